"""Two models on the same test graphs: their mean difference, and how sure it is."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from cores.config import TEST_SHARE
from cores.runs.rows import Row

CONFIDENCE = 0.95
TRAINING_SHARE = 0.5
"""Of all graphs, those that a model learns from: between 0.4 and 0.7, by preset and model."""
OVERLAP = TEST_SHARE / TRAINING_SHARE
"""Test graphs per training graph."""


@dataclass(frozen=True)
class Paired:
    """The mean difference over splits that two models share."""

    mean: float
    margin: float
    """Half the width of the confidence interval."""
    splits: int

    def __str__(self) -> str:
        """In points of percent.

        >>> str(Paired(-0.03, 0.021, 20))
        '-3.0 ± 2.1'
        """
        return f"{100 * self.mean:+.1f} ± {100 * self.margin:.1f}"


def paired(ours: Sequence[Row], theirs: Sequence[Row], figure: str) -> Paired | None:
    """Our figure less theirs, split by split; None with fewer than two splits in common.

    Random splits of one dataset share most of their graphs, so their differences vary together and
    the plain t interval is too narrow. The variance of the mean is therefore s² (1/J + test/train)
    in place of s²/J (Nadeau and Bengio 2003, the corrected resampled t-test).
    """
    from scipy.stats import t  # slow to import

    first, second = _by_split(ours, figure), _by_split(theirs, figure)
    differences = [first[split] - second[split] for split in sorted(first.keys() & second.keys())]
    splits = len(differences)
    if splits < 2:
        return None
    error = stdev(differences) * math.sqrt(1 / splits + OVERLAP)
    quantile = float(t.ppf((1 + CONFIDENCE) / 2, splits - 1))
    return Paired(mean(differences), quantile * error, splits)


def _by_split(rows: Sequence[Row], figure: str) -> Mapping[str, float]:
    """The mean of a figure over the seeds of each split."""
    values: dict[str, list[float]] = {}
    for row in rows:
        values.setdefault(row["split"], []).append(float(row[figure]))
    return {split: mean(found) for split, found in values.items()}
