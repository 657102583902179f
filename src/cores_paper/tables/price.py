"""What choosing a part costs and gains: paired differences on the same test graphs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from cores.config import TEST_SHARE
from cores.config.models import MODELS
from cores.runs.rows import Row, matching
from cores_paper.tables.cells import CoresCell, cores_cells
from cores_paper.tables.style import REMOVED, TIE, ordered_datasets, percent
from cores_paper.tables.table import Cell, Table
from cores_paper.tables.targets import PLAIN_GNN, paper_policies

CONFIDENCE = 0.95
TRAINING_SHARE = 0.5
"""Share of the graphs that a model is trained on: between 0.4 and 0.7, by preset and model."""
OVERLAP = TEST_SHARE / TRAINING_SHARE
"""Test graphs per training graph."""
CLEAR_GAIN = 0.02
"""The judge's gain over random parts that is called clear."""
_HEAD = (
    *("dataset", "removes", "runs", "accuracy less GNN's", "full graphs less GNN's", "kept"),
    *("judge less accuracy", "judge less random parts"),
)


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


@dataclass(frozen=True)
class Price:
    """CORES on one dataset, in differences over its splits."""

    cell: CoresCell
    model: str
    accuracy: Difference
    """Less the plain GNN's."""
    full_accuracy: Difference
    """Of its classifier on full graphs, less the plain GNN's."""
    judge: Difference
    """Less its own accuracy."""
    gain: Difference
    """Of the judge, over random parts of the same size."""

    @property
    def sparser(self) -> bool:
        """Return whether it keeps at most what the paper's does."""
        paper = self.cell.paper_kept
        return paper is not None and self.cell.kept.mean <= paper.mean + TIE


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


def prices(rows: Sequence[Row], conv: str) -> list[Price]:
    """Of the paper's CORES models, where they and the plain GNN ran on common splits."""
    found = []
    for model in paper_policies():
        for cell in cores_cells(rows, model, conv):
            at = {"dataset": cell.dataset, "conv": conv}
            ours = matching(rows, {**at, "model": model})
            gnn = matching(rows, {**at, "model": PLAIN_GNN})
            differences = (
                paired_difference(ours, gnn, "accuracy"),
                paired_difference(ours, gnn, "full_accuracy", "accuracy"),
                paired_difference(ours, ours, "judge_accuracy", "accuracy"),
                paired_difference(ours, ours, "judge_accuracy", "judge_random_accuracy"),
            )
            known = [difference for difference in differences if difference is not None]
            if len(known) == len(differences):
                found.append(Price(cell, model, *known))
    return found


def price_table(rows: Sequence[Row], conv: str) -> Table | None:
    """Every dataset and mode in percentage points, with margins; None without common splits."""
    found = prices(rows, conv)
    lines: list[list[Cell]] = [
        [
            *(price.cell.dataset, REMOVED[MODELS[price.model].removes], str(price.accuracy.splits)),
            *(str(price.accuracy), str(price.full_accuracy), percent(price.cell.kept)),
            *(str(price.judge), str(price.gain)),
        ]
        for dataset in ordered_datasets(price.cell.dataset for price in found)
        for price in found
        if price.cell.dataset == dataset
    ]
    return Table(_HEAD, lines) if lines else None


def price_claims(rows: Sequence[Row], conv: str) -> list[str]:
    """The table in words; empty below two datasets."""
    found = prices(rows, conv)
    if len({price.cell.dataset for price in found}) < 2:
        return []
    worst = min(found, key=lambda price: price.accuracy.mean)
    behind = min(found, key=lambda price: price.judge.mean)
    kept = mean(price.cell.kept.mean for price in found)
    compared = [price for price in found if price.cell.paper_kept is not None]
    sparser = sum(price.sparser for price in compared)
    clear = sum(price.gain.mean >= CLEAR_GAIN - TIE for price in found)
    accuracy = over_datasets({_place(price): price.accuracy.mean for price in found})
    full = over_datasets({_place(price): price.full_accuracy.mean for price in found})
    gain = over_datasets({_place(price): price.gain.mean for price in found})
    return [
        f"Accuracy less the plain GNN's: **{accuracy}** points on average over the datasets, "
        f"{100 * worst.accuracy.mean:+.1f} at worst ({_named(worst)}); with full graphs {full}.",
        f"Kept: {100 * kept:.0f} % on average, at most the paper's share in {sparser} of "
        f"{len(compared)} cells.",
        f"Judge on chosen parts less judge on random ones of the same size: **{gain}** points, at "
        f"least {100 * CLEAR_GAIN:.0f} in {clear} of {len(found)} cells; less the model's own "
        f"accuracy: {100 * behind.judge.mean:+.1f} at worst ({_named(behind)}).",
    ]


def over_datasets(values: Mapping[tuple[str, str], float]) -> Difference:
    """The mean over datasets of their models' mean, by dataset and model, with a t interval.

    Models of one dataset share test graphs: datasets are what is drawn independently.

    >>> pairs = {("A", "m"): 0.01, ("A", "n"): 0.03, ("B", "m"): 0.04, ("C", "m"): 0.03}
    >>> str(over_datasets(pairs))
    '+3.0 ± 2.5'
    """
    from scipy.stats import t  # slow to import

    means = [
        mean(value for (name, _), value in values.items() if name == dataset)
        for dataset in dict.fromkeys(name for name, _ in values)
    ]
    error = stdev(means) / math.sqrt(len(means))
    quantile = float(t.ppf((1 + CONFIDENCE) / 2, len(means) - 1))
    return Difference(mean(means), quantile * error, len(means))


def _place(price: Price) -> tuple[str, str]:
    return price.cell.dataset, price.model


def _named(price: Price) -> str:
    return f"{REMOVED[MODELS[price.model].removes]} of {price.cell.dataset}"
