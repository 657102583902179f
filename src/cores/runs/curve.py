"""Accuracy over kept share: a run's model at several settings of its dial."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cores.config.policy import SETTINGS
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

POINTS = 11
"""Settings that are measured unless told otherwise."""
Point = dict[str, float | None]


@dataclass(frozen=True)
class Curve:
    """What a model with a dial does on the test graphs of its run."""

    dataset: str
    model: str
    conv: str
    lam: float
    """The run's own setting; one of the points is measured there."""
    points: list[Point]
    """In the order of their settings, the sparsest first."""
    full_accuracy: float | None
    """Of the model's classifier on the full graphs; None where numbers are predicted."""
    majority_rate: float | None
    plain_accuracy: float | None
    """Of a model that removes nothing, on the same graphs."""
    alpha: float
    """Error rate of the prediction sets."""
    test_graphs: int
    task: TaskName = "classification"
    full_mae: float | None = None
    """Mean error on the full graphs, where numbers are predicted."""
    constant_mae: float | None = None
    plain_mae: float | None = None


@tuned_cpu()
def dial_curve(
    run: Path,
    *,
    points: int = POINTS,
    plain: Path | None = None,
    data_root: Path | None = None,
    device: str = "auto",
    alpha: float | None = None,
    score: str | None = None,
    per_class: bool | None = None,
    advance: Callable[[int], None] = lambda points: None,
) -> Curve:
    """Measure a run's model on its test graphs at several settings of its dial.

    Args:
        run: The run folder.
        points: How many settings, evenly spaced; the run's own is added where it is not among them.
        plain: Folder of a run on the same split whose model removes nothing.
        data_root: Folder of the named datasets.
        device: Where to compute.
        alpha: Error rate of the prediction sets; None: the run's.
        score: Conformal score; None: the run's.
        per_class: Whether every class is covered as often; None: the run's.
        advance: Called with 1 after every setting.
    """
    opened = Run.open(run, PredictOptions(alpha, score, per_class), device=device)
    trained, config = opened.trained, opened.config
    lams = settings_of(trained, points)
    data = opened.dataset(data_root)
    graphs, _ = opened.test_graphs(data)
    compared = None if plain is None else _plain(plain, opened)
    judge = opened.judge(data)
    measured = []
    for lam in lams:
        measured.append(_measured(trained.at(lam), graphs, judge))
        advance(1)
    task = TASKS[trained.task]
    plain_metrics: dict[str, Any] = {}
    if compared is not None:
        found = predict(compared.model.to(opened.device), graphs).probs
        name = task.plain.metric
        plain_metrics[name] = task.quality[name](found, graphs.y)
    return Curve(
        dataset=data.name,
        model=config.model,
        conv=config.conv,
        lam=trained.lam or 0.0,
        points=[
            {name: found[name] for name in ("lam", "kept_ratio", *task.curve)} for found in measured
        ],
        full_accuracy=measured[0].get("full_accuracy"),
        majority_rate=measured[0].get("majority_rate"),
        plain_accuracy=plain_metrics.get("accuracy"),
        alpha=config.alpha,
        test_graphs=len(graphs),
        task=trained.task,
        full_mae=measured[0].get("full_mae"),
        constant_mae=measured[0].get("constant_mae"),
        plain_mae=plain_metrics.get("mae"),
    )


def settings_of(trained: TrainedModel, points: int) -> list[float]:
    """So many settings of a model's dial, evenly spaced, and the one that it stands at."""
    steps = len(SETTINGS) - 1
    numbers = [number for number in range(2, steps + 2) if steps % (number - 1) == 0]
    if points not in numbers:
        told = ", ".join(map(str, numbers))
        raise UserError(f"`settings` must be one of {told}, got {points}")
    own = trained.at(trained.lam if trained.lam is not None else 0).lam  # refused without a dial
    return sorted({*SETTINGS[:: steps // (points - 1)], own or 0.0})


def _measured(trained: TrainedModel, graphs: GraphStore, judge: Judge | None) -> dict[str, Any]:
    """The metrics at one setting, and the share that it keeps."""
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


LEGEND = (
    "*: the setting that the model uses; kept: share of what the policy decides on",
    "judge: an independent classifier on the kept subgraphs; random: on random ones",
)
"""What the columns are, in lines for a terminal."""


def curve_lines(curve: Curve) -> tuple[tuple[str, ...], list[list[str]]]:
    """The points in percent, with the names of their columns; errors and widths are in their unit.

    Balanced accuracy has a column where it differs from accuracy.
    """
    columns = dict(TASKS[curve.task].curve_columns)
    if not any(_differ(point) for point in curve.points):
        columns.pop("balanced", None)
    lines = [_line(point, curve.lam, list(columns.values())) for point in curve.points]
    return ("lambda", *columns), lines


def _differ(point: Point) -> bool:
    names = ("accuracy", "balanced_accuracy")
    return all(name in point for name in names) and len({_shown(point, name) for name in names}) > 1


def _line(point: Point, own: float, names: Sequence[str]) -> list[str]:
    mark = "*" if point["lam"] == own else " "
    return [f"{point['lam']:.2f} {mark}", *(_shown(point, name) for name in names)]


IN_UNIT = ("mae", "judge_mae", "judge_random_mae", "interval_width")
"""Metrics in the unit of the targets."""


def _shown(point: Point, name: str) -> str:
    value = point[name]
    if value is None:
        return "–"
    if name in IN_UNIT:
        return f"{value:.4g}"
    return f"{value:.2f}" if name == "set_size" else f"{100 * value:.1f}"


def full_line(curve: Curve) -> str:
    """What the model reaches on full graphs, and a plain network, in a line for a terminal."""
    shown = TASKS[curve.task].plain
    full, plain = (getattr(curve, f"{of}_{shown.metric}") for of in ("full", "plain"))
    told = "" if plain is None else f"; the plain network: {shown.told(plain)}"
    return f"the model's classifier on full graphs: {shown.told(full or 0)}{told}"
