"""Colours of all pictures, and figures of matplotlib as files or as part of a page."""

import io
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cores.files import write_atomically
from cores.files.escape import figure as figure_text
from cores.files.escape import html

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
"""Okabe and Ito's palette, distinguishable for colour-blind readers."""
MARKERS = "osD^vPX*<"
"""As many as keep apart what has the same colour."""
ROLES = {"kept": COLOURS[0], "gone": "#767676", "truth": "#b35900"}
"""Colours of a graph's parts, which stay apart in grey, too; a page may set them anew."""
WRONG = "#a3201b"
"""Colour of the title of a wrong prediction."""
PAGE_WIDTH = 4.2
"""Inches of a chart on a page, for which the sizes of its letters are right."""
_LEFT_OUT = {"png": {"Software": None}, "svg": {"Date": None}}
"""Metadata that would make two files of the same figure differ."""
_ON_PAGE = {
    COLOURS[0]: "var(--accent)",
    "#000000": "currentColor",
    "#666666": "var(--soft)",
    "#b0b0b0": "var(--rule)",
}
"""Colours of a figure as those of a page, which may be dark."""


@dataclass(frozen=True)
class Chart:
    """A chart of a page."""

    title: str
    svg: str
    """Safe to be put into a page."""


def page_chart(figure: Any, title: str, told: str) -> Chart:
    """Convert a figure to the colours of a page; ``told`` is read to who cannot see it."""
    import matplotlib as mpl

    with (
        mpl.rc_context({"svg.fonttype": "none", "savefig.transparent": True}),
        warnings.catch_warnings(),
    ):
        # Text stays text, and a browser has letters that matplotlib's font lacks.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        body = figure_bytes(figure, "svg", dpi=72).decode().partition("<svg")[2].partition(">")[2]
    body = re.sub(r"<(metadata|style).*?</\1>", "", body, flags=re.DOTALL)
    body = re.sub(r'<g id="[^"]*">', "<g>", body)
    for colour, on_page in _ON_PAGE.items():
        body = body.replace(f": {colour}", f": {on_page}")
    body = re.sub(r"'DejaVu Sans'[^;\"]*", "system-ui, sans-serif", body)
    width, height = 72 * figure.get_size_inches()
    return Chart(
        title,
        f'<svg class="chart" role="img" viewBox="0 0 {width:g} {height:g}">'
        f"<title>{html(told)}</title>{body}",
    )


def figure_bytes(figure: Any, kind: str, dpi: int) -> bytes:
    """Write a figure into bytes, the same each time."""
    import matplotlib as mpl

    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "cores"}):
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=_LEFT_OUT.get(kind))
    return buffer.getvalue()


def save_figure(figure: Any, stem: Path) -> list[Path]:
    """Write a figure as PNG and SVG; returns the files."""
    files = [stem.with_suffix(f".{kind}") for kind in _LEFT_OUT]
    for path, kind in zip(files, _LEFT_OUT, strict=True):
        write_atomically(path, figure_bytes(figure, kind, dpi=160))
    return files


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
    """Finish a picture of a metric of test graphs over kept share and write it as PNG and SVG.

    ``measured`` is the metric with its unit, and ``percent`` tells if that is percent; the axis
    ends at ``right``, and the legend has the entries ``named`` in so many ``columns``.
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
