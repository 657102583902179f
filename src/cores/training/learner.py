"""Who learns the task: a classifier with its optimiser, and what its lessons are made of."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch.nn.functional import one_hot
from torch.optim import Adam
from torch_geometric.data import Batch

from cores.config import RunConfig
from cores.data.store import GraphStore
from cores.masks import masked
from cores.models.classifier import Classifier
from cores.models.sparse import SparseClassifier
from cores.training.schedule import Cosine, Schedule, plateau
from cores.training.state import RandomState
from cores.training.supervised import fit_epoch, inverse_frequencies

FINAL_RATE = 0.05
"""Where the cosine schedule ends, as a share of the rate it starts from."""


class Learner:
    """A classifier with its optimiser, the graphs it learns from, and those it rewards on."""

    def __init__(
        self,
        classifier: Classifier,
        train_graphs: GraphStore,
        policy_graphs: GraphStore,
        config: RunConfig,
    ) -> None:
        settings = config.training
        self.classifier = classifier.eval()  # but for its lessons: a referee has no dropout
        self.train_graphs = train_graphs
        self.policy_graphs = policy_graphs
        self.class_weights = (
            inverse_frequencies(train_graphs.y, classifier.num_classes)
            if settings.class_weights
            else None
        )
        self.optimizer = Adam(
            classifier.parameters(),
            lr=settings.learning_rate,
            weight_decay=settings.weight_decay,
            fused=True,
        )
        self.schedule: Schedule
        if config.diet.mix == 1:
            self.schedule = Cosine(self.optimizer, config.warm_up_epochs, FINAL_RATE)
        else:
            self.schedule = plateau(
                self.optimizer,
                settings.schedule_factor,
                settings.schedule_patience,
                settings.min_learning_rate,
            )

    def fit(self, batches: Iterable[Batch]) -> float:
        """One epoch; returns the mean loss."""
        loss = fit_epoch(self.classifier, batches, self.optimizer, self.class_weights)
        self.classifier.eval()
        return loss

    def state_dict(self) -> dict[str, Any]:
        """What resuming needs."""
        return {
            "classifier": self.classifier.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where the state was taken."""
        self.classifier.load_state_dict(state["classifier"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])


def diet(
    model: SparseClassifier,
    learner: Learner,
    config: RunConfig,
    warm_up: bool,
    random: RandomState,
) -> Iterator[Batch]:
    """What a classifier learns from: randomly masked graphs, for a share ``mix`` of the batches.

    The others are the policy's subgraphs, and whole graphs as long as there is no policy yet.
    """
    batches = learner.train_graphs.batches(config.training.batch_size, random.batches)
    for batch in batches:
        if config.diet.mix == 1 or torch.rand((), generator=random.batches) < config.diet.mix:
            yield from masked([batch], model.policy.removal)
        elif warm_up:
            yield batch
        else:
            with torch.no_grad():
                subgraph = model.choose(batch, sample=True).subgraph
            yield subgraph.batch


def taught(
    batches: Iterable[Batch], teachers: Sequence[Classifier], share: float
) -> Iterator[Batch]:
    """The batches with the teachers' mean prediction for a share of every label.

    Deviation D14: several classifiers together are right more often, and less sure of themselves
    where they are wrong, than one that learns the labels alone; one that learns from them is too.
    """
    for batch in batches:
        with torch.no_grad():
            opinions = torch.stack([each(batch).softmax(dim=-1) for each in teachers])
        labels = one_hot(batch.y, opinions.size(-1))
        batch.y = share * opinions.mean(dim=0) + (1 - share) * labels  # [B, K]
        yield batch
