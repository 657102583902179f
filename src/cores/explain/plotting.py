"""Drawing with matplotlib, into files."""

import io
from pathlib import Path
from typing import Any

from cores.files import write_atomically


def save_figure(figure: Any, stem: Path) -> list[Path]:
    """Write a figure as PNG and SVG, the same bytes each time; returns the files."""
    from matplotlib import pyplot as plt

    files = []
    for kind, without in (("png", {"Software": None}), ("svg", {"Date": None})):
        buffer = io.BytesIO()
        with plt.rc_context({"svg.hashsalt": "cores"}):
            figure.savefig(buffer, format=kind, dpi=160, metadata=without)
        files.append(stem.with_suffix(f".{kind}"))
        write_atomically(files[-1], buffer.getvalue())
    plt.close(figure)
    return files


def pyplot() -> Any:
    """Matplotlib's pyplot, drawing into files."""
    import matplotlib as mpl

    mpl.use("agg")  # no screen needed
    from matplotlib import pyplot as plt

    return plt
