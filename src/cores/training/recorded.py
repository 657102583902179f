"""A gradient step of one policy on a GPU, recorded once and replayed on batch after batch."""

from collections.abc import Callable, Sequence

import torch
from torch_geometric.data import Batch

from cores.graphs.stacked import Chunk, StackedBatches, needed_capacity, with_room
from cores.models.elements import ElementNetwork
from cores.models.recording import Recording


class RecordedSteps:
    """A step on padded batches, which all are on the device before the first one.

    Args:
        step: Of a padded batch. Asks the GPU nothing.
        device: Of the batches.
    """

    def __init__(self, step: Callable[[Batch], None], device: torch.device) -> None:
        self._step = step
        self._place = torch.zeros(1, dtype=torch.long, device=device)
        self.batches: StackedBatches | None = None
        self.recording = Recording(self._on_place)

    def load(self, chunks: Sequence[Chunk]) -> int:
        """Put the chunks where the steps look for them; returns the number of batches."""
        places = sum(sum(chunk.num_batches) for chunk in chunks)
        needed = needed_capacity(chunks)
        if self.batches is None or not self.batches.holds(places, needed):
            self.batches = StackedBatches(1, places, with_room(needed), chunks[0].batch)
            self.recording = Recording(self._on_place)  # the one before looks elsewhere
        self.batches.load(chunks)
        self.rewind()
        return places

    def rewind(self) -> None:
        """Begin with the first batch again."""
        self._place.zero_()

    def __call__(self) -> None:
        """A step on the next batch."""
        self.recording()

    def _on_place(self) -> None:
        assert self.batches is not None
        batch = self.batches.at(self._place)
        self._place += 1
        self._step(batch)


def fixed_shapes(network: ElementNetwork) -> bool:
    """Return whether what it says of padded batches has the same shape every time."""
    return network.removal != "both" and network.encoder.fixed_shapes
