"""Drawing with matplotlib, into files."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cores.files import write_atomically
from cores.files.escape import figure as figure_text

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
"""Okabe and Ito's palette, distinguishable for colour-blind readers."""
MARKERS = "osD^vPX*<"
"""As many as keep apart what has the same colour."""
_LEFT_OUT = {"png": {"Software": None}, "svg": {"Date": None}}
"""What would make two files of the same figure differ."""


def pyplot() -> Any:
    """Matplotlib's pyplot, drawing into files."""
    import matplotlib as mpl

    mpl.use("agg")  # no screen needed
    from matplotlib import pyplot as plt

    return plt


def figure_bytes(figure: Any, kind: str, dpi: int) -> bytes:
    """A figure as the content of a file, the same bytes each time."""
    from matplotlib import pyplot as plt

    buffer = io.BytesIO()
    with plt.rc_context({"svg.hashsalt": "cores"}):
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=_LEFT_OUT.get(kind))
    return buffer.getvalue()


def write_note(figure: Any, note: str) -> None:
    """Write a note below a figure with a constrained layout; an empty one changes nothing."""
    if note:
        figure.supxlabel(note, fontsize=9)


def save_over_kept_share(
    axis: Any,
    stem: Path,
    *,
    title: str,
    kept: str,
    right: int,
    named: Sequence[Any],
    columns: int,
    measured: str = "accuracy, %",
    percent: bool = True,
) -> list[Path]:
    """Finish a picture of a metric of test graphs over kept share, in percent, and write it.

    Args:
        axis: With everything drawn.
        stem: Of the files, without a suffix.
        title: Above the picture.
        kept: What the share is of.
        right: Where the picture ends.
        named: What the legend names.
        columns: Of the legend.
        measured: What the metric is, and its unit.
        percent: Whether that is percent.

    Returns:
        The files, PNG and SVG.
    """
    axis.set_xlim(-2, right)
    low, high = axis.get_ylim()
    if percent:
        axis.set_ylim(max(low, -2), min(high, 102))
    axis.ticklabel_format(useOffset=False)
    axis.set(xlabel=f"{kept}, %", ylabel=f"test {measured}")
    axis.set_title(figure_text(title), loc="left", fontsize=11)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.25)
    legend = {"loc": "outside lower center", "ncols": columns, "frameon": False, "fontsize": 9}
    axis.figure.legend(handles=named, **legend)
    return save_figure(axis.figure, stem)


def save_figure(figure: Any, stem: Path) -> list[Path]:
    """Write a figure as PNG and SVG; returns the files."""
    from matplotlib import pyplot as plt

    files = [stem.with_suffix(f".{kind}") for kind in _LEFT_OUT]
    for path, kind in zip(files, _LEFT_OUT, strict=True):
        write_atomically(path, figure_bytes(figure, kind, dpi=160))
    plt.close(figure)
    return files
