"""A classifier with its optimiser, and its training batches."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch_geometric.data import Batch

from cores.config import Removal, RunConfig
from cores.graphs.batches import batch_sizes, cut
from cores.graphs.masks import masked
from cores.graphs.shares import of_graphs
from cores.graphs.stacked import Chunk
from cores.graphs.store import GraphView
from cores.models.classifier import Classifier
from cores.training.optimizer import adam
from cores.training.schedule import Cosine
from cores.training.state import RandomState, restore_adam
from cores.training.step import Step
from cores.training.supervised import fit_epoch, inverse_frequencies

FINAL_RATE = 0.05
"""Final learning rate of the cosine schedule, as a share of the initial one."""


class Learner:
    """A classifier with its optimiser, the graphs it is trained on, and those it rewards on."""

    def __init__(
        self,
        classifier: Classifier,
        train_graphs: GraphView,
        policy_graphs: GraphView,
        config: RunConfig,
    ) -> None:
        settings = config.training
        self.classifier = classifier.eval()  # except while it is trained: a referee has no dropout
        self.train_graphs = train_graphs
        self.policy_graphs = policy_graphs
        class_weights = (
            inverse_frequencies(train_graphs.y, classifier.num_classes)
            if settings.weighs_classes
            else None
        )
        self.optimizer = adam(
            classifier.parameters(), settings.learning_rate, settings.weight_decay
        )
        self.step = Step(classifier, self.optimizer, class_weights)
        self.schedule = Cosine(self.optimizer, config.warm_up_epochs, FINAL_RATE)

    def fit(self, batches: Iterable[Batch]) -> float:
        """One epoch; returns the mean loss."""
        loss = fit_epoch(self.step, batches)
        self.classifier.eval()
        return loss

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs."""
        return {
            "classifier": self.classifier.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where the state was taken."""
        self.classifier.load_state_dict(state["classifier"])
        restore_adam(self.optimizer, state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])


@dataclass(frozen=True)
class Teachers:
    """Classifiers whose predictions are part of another one's targets.

    Deviation D14: an ensemble errs less often, and less confidently, than one classifier that is
    trained on the labels; so does one that is trained on the ensemble's predictions. The loss is
    linear in its targets: with one teacher per batch its gradient is, on average, that of their
    mean prediction, for the price of one.
    """

    classifiers: Sequence[Classifier]
    weight: float
    """Weight of the prediction in the target; the rest is the label."""

    @torch.no_grad()
    def targets(self, batch: Batch, generator: torch.Generator) -> Float[Tensor, "graphs classes"]:
        """Targets of a batch, by one randomly drawn teacher."""
        number = int(torch.randint(len(self.classifiers), (), generator=generator))
        teacher = self.classifiers[number]
        predicted = teacher.outputs(of_graphs(teacher, batch))  # [B, K]
        return self.weight * predicted + (1 - self.weight) * teacher.head.targets(batch.y)

    def teach_chunk(self, chunk: Chunk, generator: torch.Generator) -> None:
        """Give the first row of a chunk targets by as many teachers as there are.

        Several batches at once: a call of a teacher takes as long as the step that follows.
        """
        taught, *others = chunk.graphs
        batches = math.ceil(taught / chunk.size / len(self.classifiers))
        sizes = batch_sizes(taught, chunk.size * max(1, batches))
        *pieces, rest = cut(chunk.batch, [*sizes, sum(others)])
        labels = self.classifiers[0].head.targets(rest.y)
        chunk.batch.y = torch.cat([*(self.targets(each, generator) for each in pieces), labels])


def masked_batches(
    learner: Learner,
    size: int,
    removal: Removal,
    random: RandomState,
    teachers: Teachers | None = None,
) -> Iterator[Batch]:
    """An epoch of a classifier's batches of randomly masked graphs."""
    for chunk in masked_chunks([learner], size, removal, random, teachers):
        yield from cut(chunk.batch, size)


def masked_chunks(
    learners: Sequence[Learner],
    size: int,
    removal: Removal,
    random: RandomState,
    teachers: Teachers | None = None,
) -> Iterator[Chunk]:
    """An epoch of randomly masked graphs of classifiers, a row each, whose graphs are one store's.

    Teachers are the first one's. Rare classes are not drawn more often here (D15): they are made to
    count in the end, by :func:`~cores.training.balance.adjust_logits`.
    """
    store = learners[0].train_graphs.store
    most = store.chunk_size(size)
    orders = [learner.train_graphs.order(random.batches).split(most) for learner in learners]
    together = list(zip_longest(*orders, fillvalue=torch.zeros(0, dtype=torch.long)))
    batches = masked(store.each(torch.cat(indices) for indices in together), removal)
    for indices, batch in zip(together, batches, strict=True):
        chunk = Chunk(batch, size, [len(index) for index in indices])
        if teachers is not None:
            teachers.teach_chunk(chunk, random.batches)
        yield chunk
