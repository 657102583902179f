"""All classifiers of a run trained at once, on a GPU: a recorded step takes one of each."""

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import zip_longest

import torch
from torch.nn.functional import one_hot
from torch_geometric.data import Batch

from cores.config import RunConfig
from cores.graphs.stacked import Chunk, StackedBatches, needed_capacity, with_room
from cores.models.recording import Recording
from cores.models.stack import Stack, stackable
from cores.training.learner import Learner


class StackedFit:
    """Epochs of several learners, each on batches of its own.

    Their classifiers are a :class:`~cores.models.stack.Stack`; optimisers stay their own. One that
    has no batch left waits for the others.
    """

    def __init__(self, learners: Sequence[Learner]) -> None:
        self.learners = learners
        self.stack = Stack([learner.classifier for learner in learners])
        device = next(self.stack.parameters()).device
        self._place = torch.zeros(1, dtype=torch.long, device=device)
        self._totals = torch.zeros(len(learners), device=device)
        self._batches: StackedBatches | None = None
        self._steps: dict[tuple[int, ...], Recording[None]] = {}
        """By the learners that take a step."""

    def fit(self, epochs: Sequence[Iterable[Batch]], size: int) -> list[float]:
        """An epoch of every learner, in chunks; returns the mean losses."""
        self.stack.train()
        self._totals.zero_()
        graphs = [0] * len(self.learners)
        for together in zip_longest(*epochs):
            chunks = {
                number: Chunk(self._with_distributions(batch), size)
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

    def _with_distributions(self, batch: Batch) -> Batch:
        if not batch.y.is_floating_point():
            batch.y = one_hot(batch.y, self.stack.network.num_classes).float()
        return batch

    def _load(self, chunks: dict[int, Chunk]) -> None:
        """Put the chunks where the steps look for them; if there is no room, make some."""
        places = max(chunk.num_batches for chunk in chunks.values())
        needed = needed_capacity(list(chunks.values()))
        if self._batches is None or not self._batches.holds(places, needed):
            first = next(iter(chunks.values()))
            capacity = with_room(needed)
            self._steps.clear()  # they look elsewhere
            self._batches = StackedBatches(len(self.learners), places, capacity, first.batch)
        for number in range(len(self.learners)):
            if number in chunks:
                self._batches.load(number, chunks[number])
            else:
                self._batches.clear(number)
        self._place.zero_()

    def _step(self, *numbers: int) -> None:
        if numbers not in self._steps:
            self._steps[numbers] = Recording(partial(self._on_place, numbers))
        self._steps[numbers]()

    def _on_place(self, numbers: tuple[int, ...]) -> None:
        assert self._batches is not None
        batch = self._batches.at(self._place)
        self._place += 1
        self.stack.zero_grad(set_to_none=False)  # the learners' gradients are views of these
        losses = self.stack.losses(batch)
        losses.sum().backward()
        for number in numbers:
            self.learners[number].optimizer.step()
        graphs = batch.unpadded_graphs.view(len(losses), -1).sum(dim=1)
        self._totals += losses.detach() * graphs


def stacked_fit(learners: Sequence[Learner], config: RunConfig) -> StackedFit | None:
    """Of the learners of a run, where that is quicker than one after the other."""
    classifiers = [learner.classifier for learner in learners]
    on_gpu = next(classifiers[0].parameters()).is_cuda
    weighted = config.training.class_weights
    if on_gpu and config.classifier_data.mix == 1 and not weighted and stackable(classifiers):
        return StackedFit(learners)
    return None
