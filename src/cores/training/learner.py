"""A classifier with its optimiser, and its training batches."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch.nn.functional import one_hot
from torch.optim import Adam
from torch_geometric.data import Batch

from cores.config import RunConfig
from cores.graphs.masks import masked, masked_batches
from cores.graphs.store import GraphStore
from cores.models.classifier import Classifier
from cores.models.sparse import SparseClassifier
from cores.training.schedule import Cosine, Schedule, plateau
from cores.training.state import RandomState, restore_adam
from cores.training.supervised import fit_epoch, inverse_frequencies

FINAL_RATE = 0.05
"""Final learning rate of the cosine schedule, as a share of the initial one."""


class Learner:
    """A classifier with its optimiser, the graphs it is trained on, and those it rewards on."""

    def __init__(
        self,
        classifier: Classifier,
        train_graphs: GraphStore,
        policy_graphs: GraphStore,
        config: RunConfig,
    ) -> None:
        settings = config.training
        self.classifier = classifier.eval()  # except while it is trained: a referee has no dropout
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
        if config.classifier_data.mix == 1:
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
        restore_adam(self.optimizer, state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])


def training_batches(
    model: SparseClassifier,
    learner: Learner,
    config: RunConfig,
    warm_up: bool,
    random: RandomState,
) -> Iterator[Batch]:
    """An epoch of a classifier's batches: randomly masked graphs, for a share ``mix`` of them.

    The others are the policy's subgraphs, or full graphs while there is no policy yet.
    """
    mix = config.classifier_data.mix
    size, removal = config.training.batch_size, model.policy.removal
    # Rare classes are not drawn more often here (D15): where a mask hides what makes a graph rare,
    # the classifier would learn that nothing in particular is rare.
    if mix == 1:
        yield from masked_batches(learner.train_graphs, size, removal, random.batches)
        return
    for batch in learner.train_graphs.batches(size, random.batches):
        if torch.rand((), generator=random.batches) < mix:
            yield from masked([batch], removal)
        elif warm_up:
            yield batch
        else:
            with torch.no_grad():
                subgraph = model.choose(batch, sample=True).subgraph
            yield subgraph.batch


def distilled(
    batches: Iterable[Batch],
    teachers: Sequence[Classifier],
    weight: float,
    generator: torch.Generator,
) -> Iterator[Batch]:
    """The batches with targets that are in part a prediction: of one teacher, drawn for each batch.

    Deviation D14: an ensemble errs less often, and less confidently, than one classifier that is
    trained on the labels; so does one that is trained on the ensemble's predictions. The loss is
    linear in its targets: with one teacher per batch its gradient is, on average, that of their
    mean prediction, for the price of one.
    """
    for batch in batches:
        teacher = teachers[int(torch.randint(len(teachers), (), generator=generator))]
        with torch.no_grad():
            teacher_probs = teacher(batch).softmax(dim=-1)  # [B, K]
        labels = one_hot(batch.y, teacher_probs.size(-1))
        batch.y = weight * teacher_probs + (1 - weight) * labels  # [B, K]
        yield batch
