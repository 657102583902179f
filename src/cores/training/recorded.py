"""Work on a GPU that is recorded once and replayed: its kernels no longer wait for Python."""

import warnings
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import torch
from torch_geometric.data import Batch

from cores.graphs.stacked import Chunk, StackedBatches, needed_capacity, with_room
from cores.models.elements import ElementNetwork

UNRECORDED = 3
"""Calls before one is recorded: the first ones load kernels and allocate what stays."""
Result = TypeVar("Result")


class Recording(Generic[Result]):
    """A function of nothing, replayed from the fourth call on (a CUDA graph).

    It reads and writes tensors that stay where they are, of shapes that stay as they are, and asks
    the GPU nothing. What it returns is written over by the next call. Where it cannot be recorded,
    it is called every time.
    """

    def __init__(self, function: Callable[[], Result]) -> None:
        self.function = function
        self._calls = 0
        self._recorded: tuple[torch.cuda.CUDAGraph, Result] | None = None

    def __call__(self) -> Result:
        """Run it."""
        self._calls += 1
        if self._calls == UNRECORDED + 1:
            self._record()
        if self._recorded is None:
            return self._apart()
        graph, result = self._recorded
        graph.replay()
        return result

    def _record(self) -> None:
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                result = self.function()
        except RuntimeError as error:  # of another GPU, driver or version of torch
            reason = str(error).partition("\n")[0]
            warnings.warn(f"training is slower than it could be: {reason}", stacklevel=3)
        else:
            self._recorded = graph, result

    def _apart(self) -> Result:
        """On a stream of its own, as it is recorded later: torch asks for that."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            result = self.function()
        torch.cuda.current_stream().wait_stream(stream)
        return result


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
