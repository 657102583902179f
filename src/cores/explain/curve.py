"""What parts are worth over the share that they keep, at several sufficiencies: one picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cores.explain.plotting import COLOURS, save_over_kept_share
from cores.runs.curve import Curve, Point

_LINES: dict[str, tuple[str, dict[str, Any]]] = {
    "accuracy": ("model", {"color": COLOURS[0], "marker": "o", "zorder": 4}),
    "judge_accuracy": ("judge", {"color": COLOURS[1], "marker": "s"}),
    "judge_random_accuracy": (
        "judge, random parts",
        {"color": COLOURS[7], "marker": "^", "linestyle": ":"},
    ),
}
"""Name in the legend and style of each metric that is drawn over the kept share."""
_LEVELS: dict[str, tuple[str, dict[str, Any]]] = {
    "full_accuracy": ("model, full graphs", {"color": COLOURS[0], "linestyle": "--"}),
    "plain_accuracy": ("plain network", {"color": COLOURS[2], "linestyle": "-."}),
    "majority_rate": ("largest class", {"color": "0.45", "linestyle": "--"}),
}
"""The same of what does not depend on sufficiency."""
_APART = 6.0
"""Percentage points of kept share between sufficiencies that are named."""


def curve_figure(curve: Curve, title: str, stem: Path) -> list[Path]:
    """Draw the model and its judge over the kept share, with the run's own sufficiency marked.

    Args:
        curve: What was measured.
        title: Above the picture.
        stem: Of the files, without a suffix.

    Returns:
        The files, PNG and SVG.
    """
    from matplotlib.figure import Figure

    axis = Figure(figsize=(6.4, 4.8), layout="constrained").subplots()
    named = [_line(axis, curve.points, name, *drawn) for name, drawn in _LINES.items()]
    named = [line for line in named if line is not None]
    for name, (label, style) in _LEVELS.items():
        if (level := getattr(curve, name)) is not None:
            named.append(axis.axhline(100 * level, label=label, linewidth=1, **style))
    (own,) = (point for point in curve.points if point["sufficiency"] == curve.sufficiency)
    named.append(_marked(axis, own))
    _name_points(axis, curve.points, own)
    return save_over_kept_share(
        axis,
        stem,
        title=title,
        kept="kept share",
        right=104,
        named=named,
        columns=3,
    )


def _line(
    axis: Any, points: Sequence[Point], name: str, label: str, style: dict[str, Any]
) -> Any | None:
    """Draw a metric over the kept share; None where nobody has measured it."""
    if any(point[name] is None for point in points):
        return None
    kept, values = ([_percent(point, each) for point in points] for each in ("kept_ratio", name))
    (line,) = axis.plot(kept, values, label=label, markersize=4.5, linewidth=1.4, **style)
    return line


def _marked(axis: Any, own: Point) -> Any:
    """Draw a ring around the run's own sufficiency."""
    return axis.scatter(
        [_percent(own, "kept_ratio")],
        [_percent(own, "accuracy")],
        s=150,
        facecolors="none",
        edgecolors="black",
        linewidths=1.4,
        zorder=5,
        label=f"the run's sufficiency, {own['sufficiency']:g}",
    )


def _name_points(axis: Any, points: Sequence[Point], own: Point) -> None:
    """Write the sufficiency above the first, the last and those that are far enough apart."""
    shown: dict[float, str] = {}
    for point in (own, points[0], points[-1], *points):
        kept = _percent(point, "kept_ratio")
        if all(abs(kept - other) >= _APART for other in shown):
            shown[kept] = f"{point['sufficiency']:g}"
    above = axis.secondary_xaxis("top")
    above.set_xticks(list(shown), labels=list(shown.values()), fontsize=8)
    above.set_xlabel("sufficiency", fontsize=9)
    above.spines["top"].set_visible(False)


def _percent(point: Point, name: str) -> float:
    return 100 * (point[name] or 0.0)
