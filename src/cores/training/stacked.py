"""Gradient steps on a GPU: those of all classifiers of a run at once, recorded and replayed."""

from collections.abc import Iterable, Sequence
from functools import partial

import torch
from torch.nn.functional import one_hot

from cores import ranks
from cores.graphs.stacked import Chunk, StackedBatches, needed_capacity, with_room
from cores.models.stack import Stack, stackable
from cores.training.recorded import Recording
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

    def fit(self, chunks: Iterable[Chunk]) -> list[float]:
        """An epoch of every model, each on its row of the chunks; returns the mean losses."""
        self.stack.train()
        self._totals.zero_()
        graphs = [0] * len(self.steps)
        for chunk in chunks:
            self._load(chunk)
            graphs = [sum(both) for both in zip(graphs, chunk.graphs, strict=True)]
            for place in range(max(chunk.num_batches)):
                self._step(
                    *(row for row, batches in enumerate(chunk.num_batches) if place < batches)
                )
        totals = self._totals.tolist()
        return [total / number for total, number in zip(totals, graphs, strict=True)]

    def _load(self, chunk: Chunk) -> None:
        """Put a chunk where the steps look for it; if there is no room, make some."""
        self._give_distributions(chunk)
        places, needed = max(chunk.num_batches), needed_capacity([chunk])
        if self._batches is None or not self._batches.holds(places, needed):
            self._recordings.clear()  # they look elsewhere
            capacity = with_room(needed)
            self._batches = StackedBatches(len(self.steps), places, capacity, chunk.batch)
        self._batches.load([chunk])
        self._place.zero_()

    def _give_distributions(self, chunk: Chunk) -> None:
        """Turn labels into distributions, which weigh as much as their class."""
        batch = chunk.batch
        if batch.y.is_floating_point():
            return
        batch.y = one_hot(batch.y, self.steps[0].model.num_classes).float()
        class_weights = [step.class_weights for step in self.steps]
        if any(weights is not None for weights in class_weights):
            parts = batch.y.split(list(chunk.graphs))
            batch.y = torch.cat(
                [
                    part if weights is None else part * weights
                    for part, weights in zip(parts, class_weights, strict=True)
                ]
            )

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
    """Stack the steps of models that are on a GPU; None where they cannot be stacked.

    Where several processes train together, none: what is recorded cannot wait for the others.
    """
    if ranks.current() is not None:
        return None
    models = [step.model for step in steps]
    on_gpu = next(models[0].parameters()).is_cuda
    return StackedFit(steps, Stack(models)) if on_gpu and stackable(models) else None
