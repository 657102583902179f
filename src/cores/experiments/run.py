"""One configuration, one run folder: data, split, training, weights, metrics."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from cores.config import RunConfig
from cores.data.dataset import Dataset
from cores.data.datasets import load_dataset
from cores.data.splits import split_graphs
from cores.data.store import GraphStore
from cores.errors import UserError
from cores.evaluation.explanations import truth_figures
from cores.evaluation.metrics import (
    accuracy,
    balanced_accuracy,
    coverage_and_size,
    majority_rate,
)
from cores.evaluation.predictions import Predictions, predict, predict_whole
from cores.experiments import judge as judges
from cores.experiments.device import choose_device, tuned_cpu
from cores.experiments.fit import Material, fit
from cores.experiments.folder import METRICS, check_data, is_finished, write_identity
from cores.experiments.judge import Judge, judge_of
from cores.experiments.model import (
    Task,
    TrainedModel,
    build_model,
    calibration_scores,
    load_run,
)
from cores.files import locked, read_json, write_json
from cores.models.sparse import SparseClassifier
from cores.training.state import RandomState
from cores.training.supervised import Report


@tuned_cpu()
def train_run(
    config: RunConfig,
    out: Path,
    *,
    data_root: Path | None = None,
    device: str = "auto",
    resume: bool = False,
    report: Report | None = None,
    warm_ups: Path | None = None,
) -> dict[str, Any]:
    """Train one configuration into a run folder and return its metrics.

    Everything that can be wrong with the input is found before the folder is made. With
    ``resume``, a run that was interrupted goes on, a finished one is left as it is, and where
    there is none yet it starts. In ``warm_ups``, runs that differ in the reward alone share the
    part of their training that does not depend on it.
    """
    if is_finished(out, config, resume):
        return _metrics(out)
    where = choose_device(device)
    dataset = load_dataset(config.dataset, data_root)
    if config.removal == "edge" and not int(dataset.graphs.num_edges.sum()):
        raise UserError(f"no graph of {dataset.name} has an edge to remove; use --model cores-node")
    if config.judged is not None:  # the judge will want to divide the graphs its own way
        split_graphs(dataset.graphs.y, config.split, judges.PARTS, dataset.class_names)
    material = Material.of(dataset, config, where)
    random = RandomState(config.seed, where)
    task = Task.of(dataset)
    model = build_model(config, task).to(where)

    with locked(out):
        if is_finished(out, config, resume):  # another process may have come first
            return _metrics(out)
        check_data(out, task.fingerprint)
        write_identity(out, config, asdict(task), where)
        journal, stopping = fit(model, config, task, material, random, out, report, warm_ups)
        calibration = material.graphs.subset(material.split.calibration)
        trained = TrainedModel(model, material.scaler, calibration_scores(model, calibration))
        trained.save(out)
        judge = (
            None
            if config.judged is None
            else judge_of(dataset, config.split, config.conv, config.judged, where)
        )
        test_graphs = dataset.graphs.subset(material.split.test).to(where)
        metrics = {
            "dataset": dataset.name,
            "model": config.model,
            "conv": config.conv,
            "preset": config.preset,
            "split": config.split,
            "seed": config.seed,
            **measure(trained, test_graphs, config.alpha, judge),
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
    sample: bool = False,
) -> dict[str, Any]:
    """Measure a saved model on its own test split, or on all graphs of another dataset.

    With ``sample`` the subgraphs are drawn from the policy, seeded by the run's seed. Sets are left
    out then: they were calibrated on the mode's subgraphs.
    """
    where = choose_device(device)
    config, task, model = load_run(out)
    if sample:
        if not isinstance(model.model, SparseClassifier):
            raise UserError(f"--sample needs a model with a policy; {out} holds a {config.model}")
        model.model.sampling = True
        model = replace(model, calibration_scores=torch.empty(0))
    if alpha is not None:
        config = replace(config, alpha=alpha)
    data = load_dataset(config.dataset if dataset is None else dataset, data_root)
    graphs = data.graphs
    if dataset is None:
        check_data(out, data.fingerprint)
    own = data.fingerprint == task.fingerprint  # then only its test part was held out
    judge = None
    if own:
        graphs = graphs.subset(split_graphs(graphs.y, config.split, config.parts).test)
        if config.judged is not None:
            judge = judge_of(data, config.split, config.conv, config.judged, where)
    graphs = _relabelled(data, graphs, task, out)
    model.model.to(where)
    with torch.random.fork_rng():
        torch.manual_seed(config.seed)
        figures = measure(model, graphs.to(where), config.alpha, judge)
    return {
        "run": str(out),
        "dataset": data.name,
        "model": config.model,
        "conv": config.conv,
        "preset": config.preset,
        "split": config.split if own else None,
        "seed": config.seed,
        **figures,
    }


@tuned_cpu()
def predict_test_graphs(
    out: Path, count: int, *, data_root: Path | None = None
) -> tuple[GraphStore, Predictions, Task]:
    """The first test graphs of a finished run, and what its model says of them."""
    config, task, trained = load_run(out)
    dataset = load_dataset(config.dataset, data_root)
    check_data(out, dataset.fingerprint)
    test = split_graphs(dataset.graphs.y, config.split, config.parts).test
    graphs = dataset.graphs.subset(test[:count])
    scaled = replace(graphs, x=trained.scaler(graphs.x))
    return graphs, predict(trained.model, scaled), task


def measure(
    trained: TrainedModel, graphs: GraphStore, alpha: float, judge: Judge | None = None
) -> dict[str, Any]:
    """The figures of a model on graphs that are not scaled yet."""
    scaler = trained.scaler.to(graphs.x.device)
    scaled = replace(graphs, x=scaler(graphs.x))
    predictions = predict(trained.model, scaled)
    probs, labels = predictions.probs, graphs.y
    coverage, set_size = None, None
    if len(trained.calibration_scores):
        scores = trained.calibration_scores.to(probs.device)
        coverage, set_size = coverage_and_size(scores, probs, labels, alpha)
    whole = predict_whole(trained.model, scaled)
    return {
        "accuracy": accuracy(probs, labels),
        "balanced_accuracy": balanced_accuracy(probs, labels),
        "majority_rate": majority_rate(labels),
        "node_ratio": float(predictions.node_ratio.mean()),
        "edge_ratio": float(predictions.edge_ratio.mean()),
        "full_accuracy": accuracy(whole, labels),
        **(_UNJUDGED if judge is None else judge.figures(predictions, graphs)),
        "coverage": coverage,
        "set_size": set_size,
        "alpha": alpha,
        **truth_figures(predictions, graphs),
        "test_graphs": len(labels),
    }


_UNJUDGED = dict.fromkeys(("judge_accuracy", "judge_full_accuracy", "judge_random_accuracy"))
"""Of a model that chooses nothing, and on graphs that no judge was trained for."""


def _metrics(out: Path) -> dict[str, Any]:
    metrics = read_json(out / METRICS)
    if not isinstance(metrics, dict) or "accuracy" not in metrics:
        raise UserError(f"{out / METRICS} is damaged; delete it and go on with --resume")
    return metrics


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
