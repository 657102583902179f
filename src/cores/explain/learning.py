"""Learning curves of runs: as a picture, on a page, or for TensorBoard."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cores.config import RunConfig
from cores.errors import UserError
from cores.explain.plotting import COLOURS, PAGE_WIDTH, Chart, figure_bytes, page_chart
from cores.files import make_folder, parsed_json, read_text, write_atomically
from cores.files.escape import figure as figure_text
from cores.runs.folder import Identity
from cores.runs.progress import phases_of
from cores.training.journal import HISTORY

KINDS = ("png", "svg", "pdf")
MOST_NAMED = 20
"""Runs that a legend has room for."""
MOST_POINTS = 400
"""Points of a line on a page."""
NAMES = {
    "selection_accuracy": "accuracy, selection part",
    "selection_mae": "mean error, selection part",
    "selection_roc_auc": "mean ROC-AUC, selection part",
    "selection_ratio": "share kept",
    "loss": "loss of the classifier",
    "reward": "mean reward of the policy",
}
"""Metrics of an epoch that are drawn, in words."""
Points = list[tuple[int, float]]


def read_history(run: Path) -> list[dict[str, Any]]:
    """Read the epochs of a run; the line that a killed run has cut off is left out."""
    epochs = []
    if (path := run / HISTORY).is_file():
        for line in read_text(path).splitlines():
            with suppress(ValueError):
                epochs.append(parsed_json(line))
    return [epoch for epoch in epochs if isinstance(epoch, dict)]


def curve(epochs: Sequence[Mapping[str, Any]], name: str) -> Points:
    """Number and value of every epoch that has a finite one.

    >>> curve([{"loss": 0.5}, {}, {"loss": 0.25}], "loss")
    [(1, 0.5), (3, 0.25)]
    """
    return [
        (number, float(value))
        for number, epoch in enumerate(epochs, 1)
        if type(value := epoch.get(name, math.nan)) in (int, float) and math.isfinite(value)
    ]


@dataclass(frozen=True)
class LearningCurves:
    """The epochs of a run, and what to call it."""

    name: str
    """Its folder, and the one that it lies in."""
    epochs: list[dict[str, Any]]
    begun: list[tuple[str, int]]
    """Names and first epochs, from 1, of the phases that have begun."""

    @classmethod
    def of(cls, run: Path, config: RunConfig | None = None) -> "LearningCurves":
        """Read a run folder, also of a run that has not ended."""
        epochs, first, begun = read_history(run), 1, []
        for phase in phases_of(config or Identity.read(run).config, judged=False):
            if first <= len(epochs):
                begun.append((phase.name, first))
            first += phase.epochs
        return cls("/".join(run.resolve().parts[-2:]), epochs, begun)


def _read(runs: Sequence[Path]) -> list[LearningCurves]:
    read = [LearningCurves.of(run) for run in runs]
    for run, each in zip(runs, read, strict=True):
        if not each.epochs:
            raise UserError(f"{run} has no epochs yet")
    return read


def _draw_panel(
    axis: Any, lines: Sequence[Points], epochs: int, phases: Sequence[tuple[str, int]], named: bool
) -> None:
    """Draw a metric over the epochs, a line per run, and where phases begin."""
    for number, points in enumerate(lines):
        if points:
            marker = "." if len(points) == 1 else ""
            axis.plot(*zip(*points, strict=True), marker=marker, color=_colour(number, len(lines)))
    axis.set_xlim(1 - 0.03 * epochs, 1.03 * epochs)
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.set_xlabel("epoch", fontsize=9)
    axis.tick_params(labelbottom=True)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", color="#b0b0b0", alpha=0.3)
    for _, first in phases[1:]:
        axis.axvline(first, color="0.4", linewidth=0.8, linestyle=":")
    for number, (name, first) in enumerate(phases if named and len(phases) > 1 else ()):
        axis.annotate(
            name,
            (first, 0),
            xycoords=("data", "axes fraction"),
            xytext=(3, 3 + 9 * number),  # names of short phases do not meet
            textcoords="offset points",
            fontsize=8,
            color="0.4",
        )


def _colour(number: int, of: int) -> str:
    return COLOURS[0] if of == 1 else f"C{number % 10}"


def draw_learning_curves(runs: Sequence[Path], out: Path) -> None:
    """Draw a panel for every metric that a run has, a line for every run."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    kind = out.suffix.lower().lstrip(".")
    if kind not in KINDS:
        raise UserError(f"{out.name}: a picture ends in .png, .svg or .pdf")
    read = _read(runs)
    panels = {name: [curve(each.epochs, name) for each in read] for name in NAMES}
    panels = {name: lines for name, lines in panels.items() if any(lines)}
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(4.6 * columns, 2.9 * rows), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False, sharex=True).flat)
    for axis in axes[len(panels) :]:
        axis.remove()
    epochs = max(len(each.epochs) for each in read)
    phases = read[0].begun if len(read) == 1 else []
    for axis, (name, lines) in zip(axes, panels.items(), strict=False):
        _draw_panel(axis, lines, epochs, phases, named=axis is axes[0])
        axis.set_title(NAMES[name], fontsize=10, loc="left")
    if len(read) == 1:
        figure.suptitle(figure_text(read[0].name), fontsize=11)
    elif len(read) <= MOST_NAMED:
        handles = [
            Line2D([], [], color=_colour(number, len(read)), label=figure_text(each.name))
            for number, each in enumerate(read)
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=8)
    write_atomically(out, figure_bytes(figure, kind, dpi=160))


def training_charts(run: Path, config: RunConfig) -> list[Chart]:
    """Draw the panels of one run for a page; none where the folder has no history."""
    from matplotlib.figure import Figure

    read, charts = LearningCurves.of(run, config), []
    epochs = len(read.epochs)
    step = max(1, epochs // MOST_POINTS)
    for name, title in NAMES.items():
        points = curve(read.epochs, name)
        if len(points) < 2:
            continue
        figure = Figure(figsize=(PAGE_WIDTH, 2.1), layout="constrained")
        axis = figure.subplots()
        _draw_panel(axis, [[*points[:-1:step], points[-1]]], epochs, read.begun, named=True)
        axis.tick_params(labelsize=9)
        title = title[0].upper() + title[1:]
        told = f"{title} over {epochs} epochs, {points[-1][1]:.3g} at the end"
        charts.append(page_chart(figure, title, told))
    return charts


def write_tensorboard(runs: Sequence[Path], folder: Path) -> None:
    """Write every number of every epoch as TensorBoard's events, a folder for each run."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise UserError(
            "TensorBoard's files need tensorboard: pip install 'cores-gnn[tensorboard]'"
        ) from None
    read = _read(runs)
    places = [folder / each.name.replace("/", "-") for each in read]
    for place in places:
        if place.exists() and any(place.iterdir()):
            raise UserError(f"{place} has files already; choose another folder")
    for each, place in zip(read, places, strict=True):
        make_folder(place)
        names = dict.fromkeys(name for epoch in each.epochs for name in epoch)
        with SummaryWriter(str(place)) as writer:
            for name in names:
                for number, value in curve(each.epochs, name):
                    writer.add_scalar(name, value, number)
