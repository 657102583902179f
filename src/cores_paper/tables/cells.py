"""A model on one dataset beside the paper: what is reached, and what falls short."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cores.runs.rows import Row, Spread, kept_metric, matching, spread
from cores_paper.tables.style import TIE, ordered_datasets
from cores_paper.tables.targets import PLAIN_GNN, paper_policies, policies, published_metric

MAX_JUDGE_GAP = 0.05
"""How far the judge's accuracy may be below the model's."""
STUCK = 0.02
"""A run is stuck if it keeps less than this share of the elements, or removes less than it."""


@dataclass(frozen=True)
class AccuracyCell:
    """Test accuracy of a model on one dataset, ours and the paper's."""

    dataset: str
    ours: Spread
    paper: Spread | None
    """None where the paper reports none."""

    @property
    def reached(self) -> bool:
        """Return whether our mean is at least the paper's minus one of its deviations."""
        if self.paper is None or self.paper.std is None:
            return False
        return self.ours.mean >= self.paper.mean - self.paper.std - TIE


@dataclass(frozen=True)
class CoresCell:
    """CORES on one dataset, ours and the paper's."""

    dataset: str
    accuracy: Spread
    kept: Spread
    judge: Spread
    paper_accuracy: Spread | None
    """None where the paper reports none, like the next."""
    paper_kept: Spread | None

    @property
    def shortfalls(self) -> list[str]:
        """What is not reached of the paper's accuracy minus its deviation, its ratio, the judge."""
        found = {"judge": self.judge.mean < self.accuracy.mean - MAX_JUDGE_GAP}
        if self.paper_accuracy is not None:
            least = self.paper_accuracy.mean - (self.paper_accuracy.std or 0.0)
            found["accuracy"] = self.accuracy.mean < least - TIE
        if self.paper_kept is not None:
            found["kept ratio"] = self.kept.mean > self.paper_kept.mean + TIE
        return sorted(name for name, missed in found.items() if missed)

    @property
    def better(self) -> bool:
        """Whether both mean accuracy and mean kept ratio are at least as good as the paper's."""
        if self.paper_accuracy is None or self.paper_kept is None:
            return False
        return (
            self.accuracy.mean >= self.paper_accuracy.mean - TIE
            and self.kept.mean <= self.paper_kept.mean + TIE
        )

    @property
    def level(self) -> bool:
        """Return whether the cell is on a par with the paper.

        Its mean accuracy is at most one standard error below the paper's, its kept ratio at most
        the paper's, and its judge's accuracy at most ``MAX_JUDGE_GAP`` below its own.
        """
        if self.paper_accuracy is None or self.paper_kept is None or self.accuracy.std is None:
            return False
        error = self.accuracy.std / math.sqrt(self.accuracy.runs)
        return (
            self.accuracy.mean >= self.paper_accuracy.mean - error - TIE
            and self.kept.mean <= self.paper_kept.mean + TIE
            and self.judge.mean >= self.accuracy.mean - MAX_JUDGE_GAP
        )


def gnn_cells(rows: Sequence[Row], conv: str, preset: str) -> list[AccuracyCell]:
    """The plain GNN on every dataset that it ran on, the paper's datasets first."""
    cells = []
    for dataset in ordered_datasets(row["dataset"] for row in rows):
        at = {"dataset": dataset, "conv": conv, "preset": preset, "model": PLAIN_GNN}
        ours = spread(rows, "accuracy", **at)
        if ours is not None:
            paper = published_metric(dataset, conv, PLAIN_GNN, "accuracy")
            cells.append(AccuracyCell(dataset, ours, paper))
    return cells


def cores_cells(rows: Sequence[Row], model: str, conv: str) -> list[CoresCell]:
    """A CORES model on every dataset that it ran on, the paper's datasets first."""
    ratio = kept_metric(model)
    cells = []
    for dataset in ordered_datasets(row["dataset"] for row in rows):
        runs = matching(rows, {"dataset": dataset, "conv": conv, "model": model})
        accuracy, kept = spread(runs, "accuracy"), spread(runs, ratio)
        judge = spread(runs, "judge_accuracy")
        if accuracy is not None and kept is not None and judge is not None:
            paper_accuracy = published_metric(dataset, conv, model, "accuracy")
            paper_kept = published_metric(dataset, conv, model, ratio)
            cells.append(CoresCell(dataset, accuracy, kept, judge, paper_accuracy, paper_kept))
    return cells


def cores_claims(rows: Sequence[Row], conv: str) -> list[str]:
    """How many cells of the paper's CORES models reach it, of those with all runs."""
    cells = [cell for model in paper_policies() for cell in cores_cells(rows, model, conv)]
    runs = max((cell.accuracy.runs for cell in cells), default=0)
    complete = [cell for cell in cells if cell.accuracy.runs == runs and cell.paper_accuracy]
    policy_rows = [row for row in rows if row["model"] in policies()]
    counts = {
        "All three hold in": sum(not cell.shortfalls for cell in complete),
        "Level with the paper, by one standard error of ours, in": sum(
            cell.level for cell in complete
        ),
        "Better than the paper in both accuracy and kept ratio in": sum(
            cell.better for cell in complete
        ),
    }
    claims = [
        f"{claim} **{count} of {len(complete)}** cells with {runs} runs"
        for claim, count in counts.items()
    ]
    claims[0] += (
        f"; {stuck_runs(policy_rows)} of {len(policy_rows)} runs keep more than {1 - STUCK} "
        f"or less than {STUCK}"
    )
    return [f"{claim}." for claim in claims]


def stuck_runs(rows: Sequence[Row]) -> int:
    """Number of runs that keep nearly all or nearly none of what their model may remove."""
    ratios = [float(row[kept_metric(row["model"])]) for row in rows]
    return sum(not STUCK <= ratio <= 1 - STUCK for ratio in ratios)
