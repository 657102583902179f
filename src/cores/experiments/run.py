"""One configuration, one run folder: data, split, training, weights, metrics."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cores.config import RunConfig
from cores.conformal import lac_scores
from cores.data.datasets import Dataset, load_dataset
from cores.data.splits import FeatureScaler, split_graphs
from cores.data.store import GraphStore
from cores.errors import UserError
from cores.evaluation.metrics import (
    accuracy,
    balanced_accuracy,
    coverage_and_size,
    majority_rate,
)
from cores.evaluation.predictions import EVALUATION_BATCH, predict_proba
from cores.experiments.device import choose_device, tuned_cpu
from cores.experiments.folder import (
    CONFIG,
    METRICS,
    MODEL,
    check_data,
    is_finished,
    locked,
    read_identity,
    write_identity,
)
from cores.files import read_json, write_json
from cores.models.classifier import Classifier
from cores.training.state import RandomState, load_state, save_state
from cores.training.supervised import Report, train

TRUTH_FIGURES = ("node_auc", "node_precision", "node_recall")
"""Null for a model that chooses nothing, absent where there is no ground truth."""


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
    """A classifier with the scaler of its inputs and the scores that calibrate its sets."""

    classifier: Classifier
    scaler: FeatureScaler
    calibration_scores: Tensor
    """[n] LAC score of the true label on the calibration part; empty without one."""


@tuned_cpu()
def train_run(
    config: RunConfig,
    out: Path,
    *,
    data_root: Path | None = None,
    device: str = "auto",
    resume: bool = False,
    report: Report | None = None,
) -> dict[str, Any]:
    """Train one configuration into a run folder and return its metrics.

    Everything that can be wrong with the input is found before the folder is made. With
    ``resume``, a run that was interrupted goes on, a finished one is left as it is, and where
    there is none yet it starts.
    """
    if is_finished(out, config, resume):
        return _metrics(out)
    where = choose_device(device)
    dataset = load_dataset(config.dataset, data_root)
    split = split_graphs(dataset.graphs.y, config.split, config.parts, dataset.class_names)
    # A plain model has no policy to teach: it trains on that part too, unless it selects by it.
    train_index = split.train
    if config.parts.selection > 0:
        train_index = torch.cat([split.train, split.policy]).sort().values

    scaler = FeatureScaler(dataset.graphs.num_features).fit(
        dataset.graphs.subset(train_index).x, dataset.continuous, dataset.clipped
    )
    graphs = replace(dataset.graphs, x=scaler(dataset.graphs.x)).to(where)
    random = RandomState(config.seed, where)
    task = Task.of(dataset)
    classifier = build_classifier(config, task).to(where)

    with locked(out):
        if is_finished(out, config, resume):  # another process may have come first
            return _metrics(out)
        check_data(out, task.fingerprint)
        write_identity(out, config, asdict(task), where)
        journal, stopping = train(
            classifier,
            graphs.subset(train_index),
            graphs.subset(split.selection),
            config.training,
            random,
            out,
            report,
        )
        model = TrainedModel(
            classifier,
            scaler,
            _true_scores(classifier, graphs.subset(split.calibration)),
        )
        save_state(out / MODEL, _weights(model))
        metrics = {
            "dataset": dataset.name,
            "model": config.model,
            "conv": config.conv,
            "preset": config.preset,
            "split": config.split,
            "seed": config.seed,
            **measure(model, graphs.subset(split.test), config.alpha),
            "epochs": journal.epoch,
            "best_epoch": stopping.best_epoch,
            "seconds": round(journal.seconds, 3),
        }
        write_json(out / METRICS, metrics)
    return metrics


@tuned_cpu()
def evaluate_run(
    out: Path,
    *,
    dataset: str | None = None,
    data_root: Path | None = None,
    device: str = "auto",
    alpha: float | None = None,
) -> dict[str, Any]:
    """Measure a saved model on its own test split, or on all graphs of another dataset."""
    where = choose_device(device)
    config, task, model = load_run(out)
    if alpha is not None:
        config = replace(config, alpha=alpha)
    data = load_dataset(config.dataset if dataset is None else dataset, data_root)
    graphs = data.graphs
    if dataset is None:
        check_data(out, data.fingerprint)
    own = data.fingerprint == task.fingerprint  # then only its test part was held out
    if own:
        graphs = graphs.subset(split_graphs(graphs.y, config.split, config.parts).test)
    graphs = _relabelled(data, graphs, task, out)
    model.classifier.to(where)
    graphs = replace(graphs, x=model.scaler(graphs.x)).to(where)
    return {
        "run": str(out),
        "dataset": data.name,
        "model": config.model,
        "conv": config.conv,
        "preset": config.preset,
        "split": config.split if own else None,
        "seed": config.seed,
        **measure(model, graphs, config.alpha),
    }


def measure(model: TrainedModel, graphs: GraphStore, alpha: float) -> dict[str, Any]:
    """The figures of a model that removes nothing, on scaled graphs."""
    probs = predict_proba(model.classifier, graphs.batches(EVALUATION_BATCH)).cpu()
    labels = graphs.y.cpu()
    coverage, set_size = None, None
    if len(model.calibration_scores):
        coverage, set_size = coverage_and_size(model.calibration_scores, probs, labels, alpha)
    correct = accuracy(probs, labels)
    return {
        "accuracy": correct,
        "balanced_accuracy": balanced_accuracy(probs, labels),
        "majority_rate": majority_rate(labels),
        "node_ratio": 1.0,
        "edge_ratio": 1.0,
        "full_accuracy": correct,
        "judge_accuracy": None,  # nothing is chosen, so there is nothing to judge
        "judge_full_accuracy": None,
        "judge_random_accuracy": None,
        "coverage": coverage,
        "set_size": set_size,
        "alpha": alpha,
        **(dict.fromkeys(TRUTH_FIGURES) if graphs.node_truth is not None else {}),
        "test_graphs": len(labels),
    }


def build_classifier(config: RunConfig, task: Task) -> Classifier:
    """A classifier with fresh weights."""
    return Classifier(
        len(task.feature_names),
        len(task.class_names),
        config.network,
        "none" if config.model == "mlp" else config.conv,
        len(task.edge_feature_names),
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
    weights = load_state(out / MODEL)
    try:
        classifier = build_classifier(config, task)
        scaler = FeatureScaler(len(task.feature_names))
        classifier.load_state_dict(weights["classifier"])
        scaler.load_state_dict(weights["scaler"])
        scores = weights["calibration_scores"]
    except (KeyError, RuntimeError, TypeError) as error:
        raise UserError(f"{out / MODEL} does not fit {CONFIG} ({type(error).__name__})") from None
    return config, task, TrainedModel(classifier, scaler, scores)


def _tupled(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _metrics(out: Path) -> dict[str, Any]:
    metrics = read_json(out / METRICS)
    if not isinstance(metrics, dict) or "accuracy" not in metrics:
        raise UserError(f"{out / METRICS} is damaged; delete it and go on with --resume")
    return metrics


def _weights(model: TrainedModel) -> Mapping[str, Any]:
    return {
        "classifier": model.classifier.state_dict(),
        "scaler": model.scaler.state_dict(),
        "calibration_scores": model.calibration_scores,
    }


def _true_scores(classifier: Classifier, graphs: GraphStore) -> Tensor:
    """LAC score of the true label of every calibration graph."""
    if not len(graphs):
        return torch.empty(0)
    probs = predict_proba(classifier, graphs.batches(EVALUATION_BATCH))
    return lac_scores(probs).gather(-1, graphs.y[:, None]).squeeze(-1).cpu()


def _listed(names: tuple[str, ...]) -> str:
    """A few names, and how many there are."""
    shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    return f"{len(names)}: {shown}" if names else "none"


def _relabelled(data: Dataset, graphs: GraphStore, task: Task, out: Path) -> GraphStore:
    """The graphs with the model's own class numbers; refuses data that the model cannot read."""
    for mine, theirs, what in (
        (task.feature_names, data.feature_names, "node features"),
        (task.edge_feature_names, data.edge_feature_names, "edge features"),
    ):
        if mine != theirs:
            raise UserError(
                f"{data.name} has other {what} ({_listed(theirs)}) "
                f"than the model in {out} was trained on ({_listed(mine)})"
            )
    unknown = [name for name in data.class_names if name not in task.class_names]
    if unknown:
        raise UserError(
            f"{data.name} has the label {unknown[0]}, "
            f"the model in {out} knows {', '.join(task.class_names)}"
        )
    numbers = torch.tensor([task.class_names.index(name) for name in data.class_names])
    return replace(graphs, y=numbers[graphs.y])
