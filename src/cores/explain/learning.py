"""Learning curves of one run or many, as a picture or for TensorBoard."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cores.errors import UserError
from cores.explain.history import NAMES, curve, read_history
from cores.explain.plotting import figure_bytes, pyplot
from cores.files import make_folder, write_atomically
from cores.runs.folder import Identity
from cores.runs.progress import phases_of

KINDS = ("png", "svg", "pdf")
MOST_NAMED = 20
"""Runs that a legend has room for."""


@dataclass(frozen=True)
class LearningCurves:
    """The epochs of a run, and what to call it."""

    name: str
    """Its folder, and the one that it lies in."""
    epochs: list[dict[str, Any]]
    phases: list[tuple[str, int]]
    """With their first epochs, from 1."""

    @property
    def num_epochs(self) -> int:
        """So far."""
        return len(self.epochs)

    @classmethod
    def of(cls, run: Path) -> "LearningCurves":
        """Read a run folder, also of a run that has not ended."""
        config = Identity.read(run).config
        epochs = read_history(run)
        if not epochs:
            raise UserError(f"{run} has no epochs yet")
        first, phases = 1, []
        for phase in phases_of(config, judged=False):
            phases.append((phase.name, first))
            first += phase.epochs
        return cls("/".join(run.resolve().parts[-2:]), epochs, phases)


def draw_learning_curves(runs: Sequence[Path], out: Path) -> None:
    """A panel for every metric that a run has, a line for every run."""
    kind = out.suffix.lower().lstrip(".")
    if kind not in KINDS:
        raise UserError(f"{out.name}: a picture ends in .png, .svg or .pdf")
    read = [LearningCurves.of(run) for run in runs]
    panels = [name for name in NAMES if any(curve(each.epochs, name) for each in read)]
    plt = pyplot()
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(4.6 * columns, 2.9 * rows),
        layout="constrained",
        squeeze=False,
        sharex=True,
    )
    for axis in axes.flat[len(panels) :]:
        axis.remove()
    for axis, name in zip(axes.flat, panels, strict=False):
        for number, each in enumerate(read):
            points = curve(each.epochs, name)
            if points:
                marker = "." if len(points) == 1 else ""
                axis.plot(*zip(*points, strict=True), marker=marker, color=_color(number))
        axis.set_title(NAMES[name], fontsize=10, loc="left")
        axis.set_xlabel("epoch", fontsize=9)
        axis.tick_params(labelbottom=True)
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", alpha=0.3)
    if len(read) == 1:
        _mark_phases(list(axes.flat)[: len(panels)], read[0])
        figure.suptitle(_plain(read[0].name), fontsize=11)
    elif len(read) <= MOST_NAMED:
        lines = [
            plt.Line2D([], [], color=_color(number), label=_plain(each.name))
            for number, each in enumerate(read)
        ]
        figure.legend(handles=lines, loc="outside lower center", ncols=2, fontsize=8)
    try:
        write_atomically(out, figure_bytes(figure, kind, dpi=160))
    finally:
        plt.close(figure)


def _color(number: int) -> str:
    return f"C{number % 10}"


def _plain(text: str) -> str:
    """Text that matplotlib does not read as a formula."""
    return text.replace("$", r"\$")


def _mark_phases(axes: Sequence[Any], run: LearningCurves) -> None:
    begun = [(name, first) for name, first in run.phases if first <= run.num_epochs]
    for axis in axes:
        for _, first in begun[1:]:
            axis.axvline(first, color="0.6", linewidth=0.8, linestyle=":")
    for name, first in begun if len(begun) > 1 else ():
        axes[0].annotate(
            name,
            (first, 0.02),
            xycoords=("data", "axes fraction"),
            xytext=(3, 0),
            textcoords="offset points",
            fontsize=8,
            color="0.4",
        )


def write_tensorboard(runs: Sequence[Path], folder: Path) -> None:
    """Every number of every epoch as events that TensorBoard reads, a folder for each run."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise UserError(
            "TensorBoard's files need tensorboard: pip install 'cores-gnn[tensorboard]'"
        ) from None
    read = [LearningCurves.of(run) for run in runs]
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
