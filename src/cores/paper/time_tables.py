"""Seconds of every model as ratios to the plain GNN, beside the paper's (Tables 11 and 12)."""

from collections.abc import Sequence

from cores.paper.comparison import NAMES
from cores.paper.reported import published_seconds
from cores.paper.tables import paper_first
from cores.paper.times import Timing
from cores.runs.table import Table


def times(timings: Sequence[Timing], action: str) -> Table:
    """A line per dataset and batch size: the GNN's milliseconds, then everybody's ratio to it.

    In brackets stands the paper's ratio, which it measured with single graphs.
    """
    mine = [each for each in timings if each.action == action]
    measured_models = {each.model for each in mine} - {"gnn"}
    models = [model for model in NAMES if model in measured_models]
    names = ["dataset", "graphs at once", "GNN, ms", *(NAMES[each] for each in models)]
    lines = []
    for dataset in paper_first(each.dataset for each in mine):
        for batch_size in sorted({each.batch_size for each in mine if each.dataset == dataset}):
            found = {
                each.model: each
                for each in mine
                if (each.dataset, each.batch_size) == (dataset, batch_size)
            }
            theirs = published_seconds(action, dataset) if batch_size == 1 else {}
            plain = _milliseconds(found["gnn"].seconds) if "gnn" in found else "–"
            shown = [dataset, str(batch_size), plain]
            for model in models:
                ratio = f"{found[model].ratio:.2f}" if model in found else "–"
                paper = f" ({theirs[model] / theirs['gnn']:.1f})" if model in theirs else ""
                shown.append(f"{ratio}{paper}")
            lines.append(shown)
    return Table(names, lines)


def _milliseconds(seconds: float) -> str:
    """Three digits where there is a point, and no exponent.

    >>> _milliseconds(0.00123456), _milliseconds(1.73456)
    ('1.23', '1735')
    """
    number = 1000 * seconds
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"
