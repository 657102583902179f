"""Drawing with matplotlib, into files."""

import io
from pathlib import Path
from typing import Any

from cores.files import write_atomically

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


def save_figure(figure: Any, stem: Path) -> list[Path]:
    """Write a figure as PNG and SVG; returns the files."""
    from matplotlib import pyplot as plt

    files = [stem.with_suffix(f".{kind}") for kind in _LEFT_OUT]
    for path, kind in zip(files, _LEFT_OUT, strict=True):
        write_atomically(path, figure_bytes(figure, kind, dpi=160))
    plt.close(figure)
    return files
