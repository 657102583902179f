"""One configuration, one run folder: data, split, training, weights, metrics."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cores.config import RunConfig, from_dict
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
from cores.experiments.folder import (
    CONFIG,
    METRICS,
    MODEL,
    is_finished,
    locked,
    write_identity,
)
from cores.files import read_json, write_json
from cores.models.classifier import Classifier
from cores.training.state import RandomState, load_state, save_state
from cores.training.supervised import Report, train


@dataclass(frozen=True)
class Task:
    """What a model must know of its dataset to be built again."""

    num_features: int
    num_edge_features: int
    class_names: tuple[str, ...]


@dataclass(frozen=True)
class TrainedModel:
    """A classifier with the scaler of its inputs and the scores that calibrate its sets."""

    classifier: Classifier
    scaler: FeatureScaler
    calibration_scores: Tensor
    """[n] LAC score of the true label on the calibration part; empty without one."""


def choose_device(name: str) -> torch.device:
    """``auto`` takes a GPU where there is one; the CPU is set up for many small operations."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: torch sees no CUDA device here; use --device cpu")
    # At these sizes threads only wait for each other. Weight decay shrinks unused weights into
    # denormal numbers, on which a CPU is about eight times slower: flush them to zero.
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    return torch.device(name)


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
        metrics: dict[str, Any] = read_json(out / METRICS)
        return metrics
    where = choose_device(device)
    dataset = load_dataset(config.dataset, data_root)
    split = split_graphs(dataset.graphs.y, config.split, config.parts)
    # A plain model has no policy to teach: it trains on that part too, unless it selects by it.
    train_index = split.train
    if config.parts.selection > 0:
        train_index = torch.cat([split.train, split.policy]).sort().values

    scaler = FeatureScaler(dataset.graphs.num_features).fit(
        dataset.graphs.subset(train_index).x, dataset.continuous, dataset.clipped
    )
    graphs = replace(dataset.graphs, x=scaler(dataset.graphs.x)).to(where)
    random = RandomState(config.seed)
    task = Task(
        dataset.graphs.num_features,
        dataset.graphs.num_edge_features,
        dataset.class_names,
    )
    classifier = build_classifier(config, task).to(where)

    with locked(out):
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
    data = load_dataset(dataset or config.dataset, data_root)
    graphs = data.graphs
    if dataset is None:
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
        "split": config.split if dataset is None else None,
        "seed": config.seed,
        **measure(model, graphs, config.alpha if alpha is None else alpha),
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
        "test_graphs": len(labels),
    }


def build_classifier(config: RunConfig, task: Task) -> Classifier:
    """A classifier with fresh weights."""
    return Classifier(
        task.num_features,
        len(task.class_names),
        config.network,
        "none" if config.model == "mlp" else config.conv,
        task.num_edge_features,
    )


def load_run(out: Path) -> tuple[RunConfig, Task, TrainedModel]:
    """The configuration, task and model of a finished run."""
    if not (out / CONFIG).exists():
        raise UserError(f"{out} holds no run: {CONFIG} is missing")
    identity = read_json(out / CONFIG)
    try:
        config = from_dict(RunConfig, identity["config"])
        task = Task(
            **{
                **identity["task"],
                "class_names": tuple(identity["task"]["class_names"]),
            }
        )
    except (KeyError, TypeError) as error:
        raise UserError(f"{out / CONFIG} is not a run's configuration ({error})") from None
    if not (out / MODEL).exists():
        raise UserError(f"the run in {out} has not finished; go on with --resume")
    weights = load_state(out / MODEL)
    classifier = build_classifier(config, task)
    scaler = FeatureScaler(task.num_features)
    try:
        classifier.load_state_dict(weights["classifier"])
        scaler.load_state_dict(weights["scaler"])
        scores = weights["calibration_scores"]
    except (KeyError, RuntimeError) as error:
        raise UserError(f"{out / MODEL} does not fit {CONFIG} ({type(error).__name__})") from None
    return config, task, TrainedModel(classifier, scaler, scores)


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


def _relabelled(data: Dataset, graphs: GraphStore, task: Task, out: Path) -> GraphStore:
    """The graphs with the model's own class numbers; refuses data that the model cannot read."""
    if graphs.num_features != task.num_features:
        raise UserError(
            f"{data.name} has {graphs.num_features} node features, "
            f"the model in {out} was trained on {task.num_features}"
        )
    unknown = [name for name in data.class_names if name not in task.class_names]
    if unknown:
        raise UserError(
            f"{data.name} has the label {unknown[0]}, "
            f"the model in {out} knows {', '.join(task.class_names)}"
        )
    numbers = torch.tensor([task.class_names.index(name) for name in data.class_names])
    return replace(graphs, y=numbers[graphs.y])
