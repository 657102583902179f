"""Who learns from which graphs: a model trained by the way its configuration asks for."""

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from cores.config import RunConfig
from cores.data.dataset import Dataset
from cores.data.splits import FeatureScaler, Split, split_graphs
from cores.data.store import GraphStore
from cores.experiments.model import Task, build_classifier, build_critic
from cores.masks import RECIPE
from cores.models.classifier import GraphModel
from cores.models.sparse import SparseClassifier
from cores.training import bilevel, supervised
from cores.training.journal import Journal
from cores.training.learner import Learner
from cores.training.state import RandomState
from cores.training.stopping import EarlyStopping
from cores.training.supervised import Report


@dataclass(frozen=True)
class Material:
    """The graphs of a run, and who may look at which."""

    graphs: GraphStore
    """All of them, scaled."""
    split: Split
    scaler: FeatureScaler
    """Fitted to the graphs that the returned classifier learns from."""

    @classmethod
    def of(cls, dataset: Dataset, config: RunConfig, device: torch.device) -> "Material":
        """Divide and scale a dataset as the configuration asks for."""
        graphs = dataset.graphs
        split = split_graphs(graphs.y, config.split, config.parts, dataset.class_names)
        learnt = graphs.subset(training_graphs(config, split))
        scaler = FeatureScaler(graphs.num_features)
        scaler.fit(learnt.x, dataset.continuous, dataset.clipped)
        return cls(replace(graphs, x=scaler(graphs.x)).to(device), split, scaler)


def fit(
    model: GraphModel,
    config: RunConfig,
    task: Task,
    material: Material,
    random: RandomState,
    folder: Path | None = None,
    report: Report | None = None,
    warm_ups: Path | None = None,
) -> tuple[Journal, EarlyStopping]:
    """Train a model on its parts of the graphs: Algorithm 1 with a policy, else supervised.

    With a folder, the run is recorded there and goes on from where it was killed. ``warm_ups`` is
    a folder in which runs that differ in the reward alone share their warm-ups.
    """
    graphs, split = material.graphs, material.split
    selection = graphs.subset(split.selection)
    if not isinstance(model, SparseClassifier):
        learnt = graphs.subset(training_graphs(config, split))
        return supervised.train(model, learnt, selection, config.training, random, folder, report)
    critic = build_critic(config, task)
    student, referees = _learners(model, config, task, graphs, split, random)
    warm_start = None
    if warm_ups is not None and config.warm_up_key is not None:
        name = f"{config.warm_up_key}-{task.fingerprint}-{graphs.x.device.type}-masks{RECIPE}"
        warm_start = warm_ups / f"{name}.safetensors"
    return bilevel.train(
        model,
        None if critic is None else critic.to(graphs.x.device),
        student,
        referees,
        selection,
        config,
        random,
        folder,
        report,
        warm_start,
    )


def training_graphs(config: RunConfig, split: Split) -> torch.Tensor:
    """Graphs the returned classifier learns from.

    The policy part is among them for a model without a policy, unless it selects by that part, and
    for one whose policy is rewarded by referees of its own.
    """
    own_referee = config.removal is not None and config.reward.referees == 0
    if own_referee or config.parts.selection == 0:
        return split.train
    return torch.cat([split.train, split.policy]).sort().values


def _learners(
    model: SparseClassifier,
    config: RunConfig,
    task: Task,
    graphs: GraphStore,
    split: Split,
    random: RandomState,
) -> tuple[Learner, list[Learner]]:
    """Who teaches the classifier, and who rewards the policy.

    Without referees the classifier rewards the policy itself, on the policy part. With them, the
    training and policy parts are dealt into as many folds; each referee learns from all folds but
    one and rewards on that one, so no classifier ever rewards on a graph it has learnt from.
    """
    index = training_graphs(config, split)
    student = Learner(model.classifier, graphs.subset(index), graphs.subset(split.policy), config)
    if config.reward.referees == 0:
        return student, [student]
    dealt = index[torch.randperm(len(index), generator=random.batches)]
    dealt = dealt[graphs.y.cpu()[dealt].argsort(stable=True)]  # class by class: each fold has some
    folds = [dealt[first :: config.reward.referees] for first in range(config.reward.referees)]
    referees = [
        Learner(
            build_classifier(config, task).to(graphs.x.device),
            graphs.subset(torch.cat([each for each in folds if each is not fold])),
            graphs.subset(fold),
            config,
        )
        for fold in folds
    ]
    return student, referees
