"""How tables order datasets and format numbers."""

from collections.abc import Iterable

from cores.config.presets import PAPER_DATASETS
from cores.runs.rows import Spread

TIE = 5e-5
"""Means that differ by less are equal: the paper gives two decimals of a percent."""


def percent(value: Spread | None) -> str:
    """Mean ± deviation in percent.

    >>> percent(Spread(0.8244, 0.05, 5)), percent(None)
    ('82.4 ± 5.0', '–')
    """
    deviation = "" if value is None or value.std is None else f" ± {100 * value.std:.1f}"
    return mean_percent(value) + deviation


def mean_percent(value: Spread | None) -> str:
    """Mean in percent.

    >>> mean_percent(Spread(0.8244, 0.05, 5))
    '82.4'
    """
    return "–" if value is None else f"{100 * value.mean:.1f}"


def ordered_datasets(datasets: Iterable[str]) -> list[str]:
    """Each dataset once: the paper's in its order, then the others by name.

    >>> ordered_datasets(["motifs", "PTC", "BZR", "PTC", "mine"])
    ['BZR', 'PTC', 'mine', 'motifs']
    """
    measured = set(datasets)
    paper = [name for name in PAPER_DATASETS if name in measured]
    return [*paper, *sorted(measured - set(paper))]
