"""Charts of a report as small SVGs: training curves with their phases, and kept shares."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cores.config import RunConfig
from cores.explain.history import NAMES, curve, read_history
from cores.explain.survey import BINS, ClassCounts
from cores.files.escape import html
from cores.runs.progress import phases_of

WIDTH, HEIGHT = 400, 190
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 22, 30
MOST_POINTS = 400
"""Of a line."""
PANELS = (
    ("Accuracy and kept share", ("selection_accuracy", "selection_ratio")),
    ("Mean error", ("selection_mae",)),
    ("Mean ROC-AUC", ("selection_roc_auc",)),
    ("Loss", ("loss",)),
    ("Reward", ("reward",)),
)


@dataclass(frozen=True)
class Chart:
    """A chart, and what it shows."""

    title: str
    svg: str
    """Safe to be put into a page."""


def training_charts(run: Path, config: RunConfig) -> list[Chart]:
    """The curves of a run's training; none where the folder has no history."""
    epochs = read_history(run)
    if len(epochs) < 2:
        return []
    charts = []
    for title, names in PANELS:
        lines = {name: _thinned(curve(epochs, name), len(epochs)) for name in names}
        lines = {name: line for name, line in lines.items() if len(line) > 1}
        if lines:
            charts.append(Chart(title, _lines_svg(title, lines, len(epochs), config)))
    return charts


def _thinned(line: list[tuple[int, float]], epochs: int) -> list[tuple[int, float]]:
    step = max(1, epochs // MOST_POINTS)
    return [*line[:-1:step], *line[-1:]]


def _lines_svg(
    title: str, lines: Mapping[str, list[tuple[int, float]]], epochs: int, config: RunConfig
) -> str:
    values = [value for line in lines.values() for _, value in line]
    low, high = min(0.0, *values), max(values)
    if all(name in ("selection_accuracy", "selection_ratio") for name in lines):
        low, high = 0.0, 1.0
    high = high if high > low else low + 1

    def x(epoch: int | float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (epoch - 1) / max(1, epochs - 1)

    def y(value: int | float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - (value - low) / (high - low))

    parts = [_phases(config, epochs, x)]
    for value in (low, (low + high) / 2, high):
        parts.append(f'<path class="grid" d="M{LEFT} {y(value):.0f}H{WIDTH - RIGHT}"/>')
        parts.append(chart_text(LEFT - 6, y(value) + 4, f"{value:.3g}", "end"))
    for epoch in (1, epochs):
        parts.append(
            chart_text(x(epoch), HEIGHT - 10, f"{epoch}", "start" if epoch == 1 else "end")
        )
    parts.append(chart_text((LEFT + WIDTH) / 2, HEIGHT - 10, "epoch", "middle"))
    for number, (name, line) in enumerate(lines.items()):
        points = "L".join(f"{x(epoch):.1f} {y(value):.1f}" for epoch, value in line)
        parts.append(f'<path class="line l{number}" d="M{points}"/>')
        if len(lines) > 1:
            left = LEFT + 190 * number
            parts.append(f'<path class="line l{number}" d="M{left} 10h22"/>')
            parts.append(chart_text(left + 28, 14, NAMES[name], "start"))
    ends = "; ".join(f"{NAMES[name]}: {line[-1][1]:.3g} at the end" for name, line in lines.items())
    return chart_svg(WIDTH, HEIGHT, f"{title} over {epochs} epochs. {ends}", parts)


def _phases(config: RunConfig, epochs: int, x: Any) -> str:
    """Where a phase begins, and its name."""
    parts, begin = [], 0
    phases = phases_of(config, judged=False)
    for number, phase in enumerate(phases):
        if begin < epochs and len(phases) > 1:
            at = x(begin + 1)
            parts.append(f'<path class="phase" d="M{at:.0f} {TOP}V{HEIGHT - BOTTOM}"/>')
            below = HEIGHT - BOTTOM - 6 - 14 * number  # names of short phases do not meet
            parts.append(chart_text(at + 4, below, phase.name, "start", "phase"))
        begin += phase.epochs
    return "".join(parts)


def shares_chart(classes: Mapping[str, ClassCounts], what: str) -> Chart:
    """How many graphs keep how much, a row for every predicted class."""
    shown = {name: counts for name, counts in classes.items() if counts.graphs}
    row, left = 74, 20
    height = row * len(shown) + 24
    wide = (WIDTH - left - RIGHT) / BINS
    parts = []
    for number, (name, counts) in enumerate(shown.items()):
        base, most = row * (number + 1), max(counts.shares.values())
        parts.append(
            chart_text(left, base - 58, f"{shortened(name)}: {counts.graphs} graphs", "start")
        )
        parts.append(f'<path class="grid" d="M{left} {base}H{WIDTH - RIGHT}"/>')
        for place, graphs in sorted(counts.shares.items()):
            tall = max(1.0, 50 * graphs / most)
            parts.append(
                f'<rect class="bar" x="{left + place * wide + 1:.1f}" y="{base - tall:.1f}" '
                f'width="{wide - 2:.1f}" height="{tall:.1f}"><title>{100 * place // BINS} to '
                f"{100 * (place + 1) // BINS} %: {graphs} graphs</title></rect>"
            )
    for share, anchor in (
        (0, "start"),
        (0.25, "middle"),
        (0.5, "middle"),
        (0.75, "middle"),
        (1, "end"),
    ):
        at = left + (WIDTH - left - RIGHT) * share
        parts.append(chart_text(at, height - 6, f"{100 * share:.0f} %", anchor))
    title = f"Share of the {what} that is kept"
    return Chart(title, chart_svg(WIDTH, height, f"{title}, by predicted class", parts))


def shortened(text: str, length: int = 40) -> str:
    """A name that fits into a line."""
    return text if len(text) <= length else text[: length - 1] + "…"


def chart_text(x: int | float, y: int | float, text: str, anchor: str, kind: str = "") -> str:
    """A word or number of a chart."""
    name = f' class="{kind}"' if kind else ""
    return f'<text{name} x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{html(text)}</text>'


def chart_svg(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    """The chart that is made of these elements."""
    return (
        f'<svg class="chart" role="img" viewBox="0 0 {width} {height}">'
        f"<title>{html(title)}</title>{''.join(parts)}</svg>"
    )
