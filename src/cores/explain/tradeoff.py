"""A metric over kept share of several models, as one picture."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from cores.config.models import MODELS
from cores.explain.plotting import COLOURS, MARKERS, save_over_kept_share
from cores.files.escape import figure as figure_text
from cores.runs.rows import Row, kept_metric, matching, spread
from cores.tasks import CLASSIFICATION, ShownMetric, Task

APART = 1.5
"""Percentage points between models that keep equally much: their bars would hide each other."""
MOST_IN_ROW = 4
"""Models in a row of the legend."""
_BASELINE: dict[str, Any] = {"color": "0.45", "linewidth": 1, "linestyle": "--"}


def tradeoff_figure(
    rows: Sequence[Row], title: str, stem: Path, task: Task = CLASSIFICATION
) -> list[Path]:
    """A point for every model: its mean accuracy over the mean share that it keeps.

    Other tasks have their leading metric in place of the accuracy. Bars are one standard deviation
    over the runs, small dots the runs themselves; the dashed line is a prediction that sees no
    graph, such as that of the largest class. Models that keep equally much are drawn side
    by side.

    Args:
        rows: Of runs on one dataset.
        title: Above the picture.
        stem: Of the files, without a suffix.
        task: What the models predict.

    Returns:
        The files, PNG and SVG.
    """
    from matplotlib.figure import Figure

    leading = task.leading
    models = {name: _points(name, rows, leading) for name in MODELS}
    models = {name: points for name, points in models.items() if points}
    shifts = _shifts({name: mean(share for share, _ in points) for name, points in models.items()})
    axis = Figure(figsize=(6.4, 4.4), layout="constrained").subplots()
    named = [
        _draw(axis, MODELS[name].title, points, shifts[name], number)
        for number, (name, points) in enumerate(models.items())
    ]
    if task.baseline is not None and (level := spread(rows, task.baseline[0])) is not None:
        height = _scale(leading) * level.mean
        named.append(axis.axhline(height, label=task.baseline[1], **_BASELINE))
    return save_over_kept_share(
        axis,
        stem,
        title=title,
        kept="kept share of nodes or edges",
        right=106,
        named=named,
        columns=min(MOST_IN_ROW, max(1, len(named))),
        measured=_axis_name(leading),
        percent=leading.unit == "percent",
    )


Point = tuple[float, float]
"""Kept share in percent, and the metric."""


def _scale(metric: ShownMetric) -> int:
    return 100 if metric.unit == "percent" else 1


def _axis_name(metric: ShownMetric) -> str:
    """Label of the axis.

    >>> _axis_name(CLASSIFICATION.leading), _axis_name(ShownMetric("mae", "MAE", "target", False))
    ('accuracy, %', 'MAE; lower is better')
    """
    unit = ", %" if metric.unit == "percent" else ""
    return f"{metric.title}{unit}{'' if metric.higher_is_better else '; lower is better'}"


def _points(model: str, rows: Sequence[Row], metric: ShownMetric) -> list[Point]:
    """Kept share and metric of a model's runs that have measured both."""
    runs = matching(rows, {"model": model})
    found = [(row[kept_metric(model)], row[metric.metric]) for row in runs]
    scale = _scale(metric)
    return [(100 * float(kept), scale * float(value)) for kept, value in found if kept and value]


def _deviation(values: Sequence[float]) -> float:
    return stdev(values) if len(values) > 1 else 0.0


def _draw(axis: Any, title: str, points: Sequence[Point], shift: float, number: int) -> Any:
    """Draw a model; returns its marker, for the legend."""
    colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
    kept, accuracy = [share + shift for share, _ in points], [value for _, value in points]
    if len(points) > 1:
        axis.scatter(kept, accuracy, s=12, color=colour, alpha=0.45, linewidths=0)
    drawn = axis.errorbar(
        mean(kept),
        mean(accuracy),
        yerr=_deviation(accuracy),
        xerr=_deviation(kept),
        color=colour,
        marker=marker,
        markersize=9,
        markeredgecolor="white",
        markeredgewidth=0.6,
        linestyle="none",
        elinewidth=1.2,
        capsize=0,
        label=figure_text(title),
    )
    drawn.lines[0].set_label(drawn.get_label())
    return drawn.lines[0]


def _shifts(kept: Mapping[str, float]) -> dict[str, float]:
    """Horizontal shifts of models that keep equally much.

    >>> _shifts({"gnn": 100.0, "mlp": 100.0, "cores-node": 30.2})
    {'gnn': -0.75, 'mlp': 0.75, 'cores-node': 0.0}
    """
    places = {name: round(share) for name, share in kept.items()}
    crowd, seen, found = Counter(places.values()), Counter[int](), {}
    for name, place in places.items():
        found[name] = APART * (seen[place] - (crowd[place] - 1) / 2)
        seen[place] += 1
    return found
