"""A classifier with its optimiser, and its training batches."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

import torch
from torch_geometric.data import Batch

from cores.config import Removal, RunConfig
from cores.graphs.batches import cut
from cores.graphs.masks import masked
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
        # Except while it is trained: who rewards has no dropout.
        self.classifier = classifier.eval()
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


def masked_batches(
    learner: Learner,
    size: int,
    removal: Removal,
    random: RandomState,
) -> Iterator[Batch]:
    """An epoch of a classifier's batches of randomly masked graphs."""
    for chunk in masked_chunks([learner], size, removal, random):
        yield from cut(chunk.batch, size)


def masked_chunks(
    learners: Sequence[Learner],
    size: int,
    removal: Removal,
    random: RandomState,
) -> Iterator[Chunk]:
    """An epoch of randomly masked graphs of classifiers, a row each, whose graphs are one store's.

    Rare classes are not drawn more often here (D15): they are made to
    count in the end, by :func:`~cores.training.balance.adjust_logits`.
    """
    store = learners[0].train_graphs.store
    most = store.chunk_size(size)
    orders = [learner.train_graphs.order(random.batches).split(most) for learner in learners]
    together = list(zip_longest(*orders, fillvalue=torch.zeros(0, dtype=torch.long)))
    batches = masked(store.each(torch.cat(indices) for indices in together), removal)
    for indices, batch in zip(together, batches, strict=True):
        yield Chunk(batch, size, [len(index) for index in indices])
