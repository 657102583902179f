"""Gradient steps on a GPU: those of all classifiers of a run at once, recorded and replayed."""

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import zip_longest

import torch
from torch.nn.functional import one_hot
from torch_geometric.data import Batch

from cores import ranks
from cores.graphs.stacked import Chunk, StackedBatches, needed_capacity, with_room
from cores.models.recording import Recording
from cores.models.stack import Stack, stackable
from cores.training.step import Step


class StackedFit:
    """Epochs of steps of several models, each on batches of its own.

    The models are a :class:`~cores.models.stack.Stack`; optimisers stay their own. One that has no
    batch left waits for the others.
    """

    def __init__(self, steps: Sequence[Step], stack: Stack) -> None:
        self.steps, self.stack = steps, stack
        device = next(self.stack.parameters()).device
        self._place = torch.zeros(1, dtype=torch.long, device=device)
        self._totals = torch.zeros(len(steps), device=device)
        self._batches: StackedBatches | None = None
        self._recordings: dict[tuple[int, ...], Recording[None]] = {}
        """By the models that take a step."""

    def fit(self, epochs: Sequence[Iterable[Batch]], size: int) -> list[float]:
        """An epoch of every model, in chunks to be cut to size; returns the mean losses."""
        self.stack.train()
        self._totals.zero_()
        graphs = [0] * len(self.steps)
        for together in zip_longest(*epochs):
            chunks = {
                number: Chunk(self._with_distributions(batch, self.steps[number]), size)
                for number, batch in enumerate(together)
                if batch is not None
            }
            self._load(chunks)
            for number, chunk in chunks.items():
                graphs[number] += chunk.batch.num_graphs
            for place in range(max(chunk.num_batches for chunk in chunks.values())):
                self._step(
                    *(number for number, chunk in chunks.items() if place < chunk.num_batches)
                )
        totals = self._totals.tolist()
        return [total / number for total, number in zip(totals, graphs, strict=True)]

    def _with_distributions(self, batch: Batch, step: Step) -> Batch:
        """A chunk whose labels are distributions, which weigh as much as their class."""
        if not batch.y.is_floating_point():
            batch.y = one_hot(batch.y, step.model.num_classes).float()
            if step.class_weights is not None:
                batch.y = batch.y * step.class_weights
        return batch

    def _load(self, chunks: dict[int, Chunk]) -> None:
        """Put the chunks where the steps look for them; if there is no room, make some."""
        places = max(chunk.num_batches for chunk in chunks.values())
        needed = needed_capacity(list(chunks.values()))
        if self._batches is None or not self._batches.holds(places, needed):
            first = next(iter(chunks.values()))
            capacity = with_room(needed)
            self._recordings.clear()  # they look elsewhere
            self._batches = StackedBatches(len(self.steps), places, capacity, first.batch)
        for number in range(len(self.steps)):
            self._batches.load(number, [chunks[number]] if number in chunks else [])
        self._place.zero_()

    def _step(self, *numbers: int) -> None:
        if numbers not in self._recordings:
            self._recordings[numbers] = Recording(partial(self._on_place, numbers))
        self._recordings[numbers]()

    def _on_place(self, numbers: tuple[int, ...]) -> None:
        assert self._batches is not None
        batch = self._batches.at(self._place)
        self._place += 1
        losses = self.stack.losses(batch)
        self.stack.backward(losses)
        for number in numbers:
            self.steps[number].optimizer.step()
        graphs = batch.unpadded_graphs.view(len(losses), -1).sum(dim=1)
        self._totals += losses.detach() * graphs


def stacked_fit(steps: Sequence[Step]) -> StackedFit | None:
    """Of the steps of models that are on a GPU, if a stack can take them.

    Where several processes train together, none: what is recorded cannot wait for the others.
    """
    if ranks.current() is not None:
        return None
    models = [step.model for step in steps]
    on_gpu = next(models[0].parameters()).is_cuda
    return StackedFit(steps, Stack(models)) if on_gpu and stackable(models) else None
