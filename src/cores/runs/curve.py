"""What is kept at several sufficiencies: how large, how sure and how honest the parts are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cores.config.spec import TaskName
from cores.errors import UserError
from cores.evaluation.predictions import predict
from cores.graphs.store import GraphStore
from cores.models.sparse import SparseClassifier
from cores.runs.device import tuned_cpu
from cores.runs.fit import measure
from cores.runs.inputs import PredictOptions
from cores.runs.opened import Run
from cores.runs.trained import TrainedModel
from cores.tasks import TASKS
from cores.training.judge import Judge

SUFFICIENCIES = 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99
"""Values that are measured, with the run's own."""
Point = dict[str, float | None]


@dataclass(frozen=True)
class Curve:
    """The parts that a model shows of the test graphs of its run, at several sufficiencies."""

    dataset: str
    model: str
    conv: str
    sufficiency: float
    """The run's own; one of the points is measured there."""
    points: list[Point]
    """In the order of sufficiency."""
    full_accuracy: float | None
    """Of the model's classifier on the full graphs; None where several labels are predicted."""
    majority_rate: float | None
    plain_accuracy: float | None
    """Of a model that removes nothing, on the same graphs."""
    alpha: float
    """Error rate of the prediction sets."""
    test_graphs: int
    task: TaskName = "classification"


@tuned_cpu()
def sufficiency_curve(
    run: Path,
    *,
    plain: Path | None = None,
    data_root: Path | None = None,
    device: str = "auto",
    alpha: float | None = None,
    score: str | None = None,
    per_class: bool | None = None,
    advance: Callable[[int], None] = lambda points: None,
) -> Curve:
    """Measure the parts that a run's model shows of its test graphs at several sufficiencies.

    Args:
        run: The run folder.
        plain: Folder of a run on the same split whose model removes nothing.
        data_root: Folder of the named datasets.
        device: Where to compute.
        alpha: Error rate of the prediction sets; None: the run's.
        score: Conformal score; None: the run's.
        per_class: Whether every class is covered as often; None: the run's.
        advance: Called with 1 after every point.
    """
    opened = Run.open(run, PredictOptions(alpha, score, per_class), device=device)
    trained, config = opened.trained, opened.config
    values = sufficiencies_of(trained)
    data = opened.dataset(data_root)
    graphs, _ = opened.test_graphs(data)
    compared = None if plain is None else _plain(plain, opened)
    judge = opened.judge(data)
    measured = []
    for value in values:
        measured.append(_measured(trained.showing(sufficiency=value), graphs, judge))
        advance(1)
    task, plain_accuracy = TASKS[trained.task], None
    if compared is not None:
        found = predict(compared.model.to(opened.device), graphs).probs
        measured_plain = task.quality["accuracy"](found, graphs.y)
        plain_accuracy = measured_plain if isinstance(measured_plain, float) else None
    return Curve(
        dataset=data.name,
        model=config.model,
        conv=config.conv,
        sufficiency=config.explanation.sufficiency,
        points=[{name: found[name] for name in (*COLUMNS, *task.curve)} for found in measured],
        full_accuracy=measured[0].get("full_accuracy"),
        majority_rate=measured[0].get("majority_rate"),
        plain_accuracy=plain_accuracy,
        alpha=config.alpha,
        test_graphs=len(graphs),
        task=trained.task,
    )


def sufficiencies_of(trained: TrainedModel) -> list[float]:
    """List the sufficiencies that are measured; refuses a model that has none."""
    trained.need_committee("train cores-node with the default preset")
    if not TASKS[trained.task].curve:
        raise UserError("a part of this model is sufficient within reward.tolerance; no curve")
    return sorted({*SUFFICIENCIES, trained.config.explanation.sufficiency})


def _measured(trained: TrainedModel, graphs: GraphStore, judge: Judge | None) -> dict[str, Any]:
    """Measure one sufficiency, and the share that is kept at it."""
    assert isinstance(trained.model, SparseClassifier)
    predictions = predict(trained.model, graphs)
    kept = predictions.kept_ratio(graphs, trained.model.policy.removal)
    metrics = measure(trained, graphs, trained.config.alpha, judge, predictions=predictions)
    return metrics | {"kept_ratio": float(kept.mean())}


def _plain(folder: Path, run: Run) -> TrainedModel:
    """The model of a run that removes nothing, with the same test graphs."""
    plain = TrainedModel.load(folder)
    if plain.config.spec.removes is not None:
        raise UserError(f"`plain` names a {plain.config.model}; it must be one that keeps all")
    if plain.schema != run.trained.schema:
        raise UserError(f"the run in {folder} was trained on other data than that in {run.folder}")
    if not torch.equal(plain.test, run.trained.test):
        raise UserError("`plain` names a run with another test part; compare runs of one split")
    return plain


COLUMNS = "sufficiency", "kept_ratio", "weak", "minimal"
"""Metrics of every point, before those of the task."""
LEGEND = (
    "*: the run's own; weak: share of graphs not as sure to begin with",
    "judge: an independent classifier on the kept subgraphs; random: on random ones",
)
"""What the columns are, in lines for a terminal."""


def curve_lines(curve: Curve) -> tuple[tuple[str, ...], list[list[str]]]:
    """The points in percent, with the names of their columns.

    Balanced accuracy has a column where it differs from accuracy.
    """
    columns = dict(TASKS[curve.task].curve_columns)
    if not any(_differ(point) for point in curve.points):
        columns.pop("balanced", None)
    lines = [_line(point, curve.sufficiency, list(columns.values())) for point in curve.points]
    return ("sufficiency", *columns), lines


def _differ(point: Point) -> bool:
    names = ("accuracy", "balanced_accuracy")
    return all(name in point for name in names) and len({_shown(point, name) for name in names}) > 1


def _line(point: Point, own: float, names: Sequence[str]) -> list[str]:
    mark = "*" if point["sufficiency"] == own else " "
    return [f"{point['sufficiency']:.2f} {mark}", *(_shown(point, name) for name in names)]


def _shown(point: Point, name: str) -> str:
    value = point[name]
    if value is None:
        return "–"
    return f"{value:.2f}" if name == "set_size" else f"{100 * value:.1f}"


def full_line(curve: Curve) -> str:
    """What the model reaches on full graphs, and a plain network, in a line for a terminal."""
    plain = curve.plain_accuracy
    told = "" if plain is None else f"; the plain network: {100 * plain:.1f}"
    return f"the model on full graphs: {100 * (curve.full_accuracy or 0):.1f}{told}"
