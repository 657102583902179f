"""The mean difference of two models on the same test graphs, with a confidence interval."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from cores.config import TEST_SHARE
from cores.runs.rows import Row

CONFIDENCE = 0.95
TRAINING_SHARE = 0.5
"""Share of the graphs that a model is trained on: between 0.4 and 0.7, by preset and model."""
OVERLAP = TEST_SHARE / TRAINING_SHARE
"""Test graphs per training graph."""


@dataclass(frozen=True)
class Difference:
    """The mean difference of two models over the splits that both ran on."""

    mean: float
    margin: float
    """Half the width of the confidence interval."""
    splits: int

    def __str__(self) -> str:
        """In percentage points.

        >>> str(Difference(-0.03, 0.021, 20))
        '-3.0 ± 2.1'
        """
        return f"{100 * self.mean:+.1f} ± {100 * self.margin:.1f}"


def paired_difference(
    rows: Sequence[Row], baseline: Sequence[Row], metric: str, baseline_metric: str | None = None
) -> Difference | None:
    """A model's metric minus the baseline's, split by split; None below two common splits.

    The baseline's metric is the same if not said.

    Random splits of one dataset share most of their graphs, so their differences are correlated and
    the plain t interval is too narrow. The variance of the mean is therefore s² (1/J + test/train)
    instead of s²/J (Nadeau and Bengio 2003, the corrected resampled t-test).
    """
    from scipy.stats import t  # slow to import

    first = _by_split(rows, metric)
    second = _by_split(baseline, baseline_metric or metric)
    differences = [first[split] - second[split] for split in sorted(first.keys() & second.keys())]
    splits = len(differences)
    if splits < 2:
        return None
    error = stdev(differences) * math.sqrt(1 / splits + OVERLAP)
    quantile = float(t.ppf((1 + CONFIDENCE) / 2, splits - 1))
    return Difference(mean(differences), quantile * error, splits)


def _by_split(rows: Sequence[Row], metric: str) -> Mapping[str, float]:
    """The mean of a metric over the seeds of each split."""
    values: dict[str, list[float]] = {}
    for row in rows:
        if row[metric]:
            values.setdefault(row["split"], []).append(float(row[metric]))
    return {split: mean(found) for split, found in values.items()}
