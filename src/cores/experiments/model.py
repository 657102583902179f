"""What a run trains: built from a configuration and a task, saved and loaded with the run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cores.baselines.control import RandomSubgraph
from cores.baselines.diffpool import DiffPool
from cores.baselines.gsat import GSAT
from cores.baselines.sugar import SUGAR
from cores.baselines.topk import GPool, SAGPool
from cores.config import RunConfig
from cores.conformal import lac_scores
from cores.data.dataset import Dataset
from cores.data.splits import FeatureScaler
from cores.data.store import GraphStore
from cores.errors import UserError
from cores.evaluation.predictions import predict, true_scores
from cores.experiments.folder import CONFIG, MODEL, read_identity
from cores.models.classifier import Classifier, GraphModel
from cores.models.policy import Critic, Policy
from cores.models.sparse import SparseClassifier
from cores.training.state import load_state, save_state

BASELINES: dict[str, tuple[Callable[..., GraphModel], str]] = {
    "sagpool": (SAGPool, "pool"),
    "gpool": (GPool, "pool"),
    "diffpool": (DiffPool, "diffpool"),
    "sugar": (SUGAR, "sugar"),
    "gsat": (GSAT, "gsat"),
    "random": (RandomSubgraph, "pool"),
}
"""The models CORES is compared with, and the group of settings each takes."""


@dataclass(frozen=True)
class Task:
    """What a model must know of its dataset to be built again."""

    feature_names: tuple[str, ...]
    edge_feature_names: tuple[str, ...]
    class_names: tuple[str, ...]
    fingerprint: str
    """Of the dataset the model was trained on."""

    @classmethod
    def of(cls, dataset: Dataset) -> "Task":
        """The task that a dataset poses."""
        return cls(
            dataset.feature_names,
            dataset.edge_feature_names,
            dataset.class_names,
            dataset.fingerprint,
        )


@dataclass(frozen=True)
class TrainedModel:
    """A model with the scaler of its inputs and the scores that calibrate its sets."""

    model: GraphModel
    scaler: FeatureScaler
    calibration_scores: Tensor
    """[n] LAC score of the true label on the calibration part; empty without one."""

    def save(self, out: Path) -> None:
        """Into a run folder."""
        save_state(
            out / MODEL,
            {
                "model": self.model.state_dict(),
                "scaler": self.scaler.state_dict(),
                "calibration_scores": self.calibration_scores,
            },
        )


def calibration_scores(model: GraphModel, graphs: GraphStore) -> Tensor:
    """LAC score of the true label of every calibration graph, none without such graphs."""
    if not len(graphs):
        return torch.empty(0)
    return true_scores(lac_scores(predict(model, graphs).probs), graphs.y).cpu()


def build_classifier(config: RunConfig, task: Task) -> Classifier:
    """A classifier with fresh weights."""
    return Classifier(
        len(task.feature_names),
        len(task.class_names),
        config.network,
        "none" if config.model == "mlp" else config.conv,
        len(task.edge_feature_names),
    )


def build_model(config: RunConfig, task: Task) -> GraphModel:
    """What the run's model is made of, with fresh weights."""
    if config.model in BASELINES:
        kind, group = BASELINES[config.model]
        return kind(
            len(task.feature_names),
            len(task.class_names),
            config.network,
            getattr(config, group),
            config.conv,
            len(task.edge_feature_names),
        )
    classifier = build_classifier(config, task)
    if config.removal is None:
        return classifier
    policy = Policy(
        len(task.feature_names),
        config.network,
        config.conv,
        config.removal,
        config.ppo.start,
        config.ppo.floor,
        len(task.edge_feature_names),
    )
    return SparseClassifier(policy, classifier)


def build_critic(config: RunConfig, task: Task) -> Critic | None:
    """A critic with fresh weights, where the settings ask for one."""
    if config.ppo.baseline != "critic":
        return None
    return Critic(
        len(task.feature_names), config.network, config.conv, len(task.edge_feature_names)
    )


def load_run(out: Path) -> tuple[RunConfig, Task, TrainedModel]:
    """The configuration, task and model of a finished run."""
    config, known = read_identity(out)
    try:
        task = Task(**{name: _tupled(value) for name, value in known.items()})
    except TypeError:
        raise UserError(f"{out} was made by another version of this program") from None
    if not (out / MODEL).exists():
        raise UserError(f"the run in {out} has not finished; go on with --resume")
    weights: Mapping[str, Any] = load_state(out / MODEL)
    try:
        model = build_model(config, task)
        scaler = FeatureScaler(len(task.feature_names))
        model.load_state_dict(weights["model"])
        scaler.load_state_dict(weights["scaler"])
        scores = weights["calibration_scores"]
    except (KeyError, RuntimeError, TypeError) as error:
        raise UserError(f"{out / MODEL} does not fit {CONFIG} ({type(error).__name__})") from None
    return config, task, TrainedModel(model, scaler, scores)


def _tupled(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
