"""Tables of measured rows, ours beside the paper's."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cores.config.presets import PAPER_DATASETS, published
from cores.paper.reported import published_statistics
from cores.paper.targets import ABLATIONS
from cores.runs.rows import Row, Spread, matching, spread
from cores.runs.table import Bold, Table


def percent(value: Spread | None) -> str:
    """Mean ± deviation in percent.

    >>> percent(Spread(0.8244, 0.05, 5))
    '82.4 ± 5.0'
    """
    if value is None:
        return "–"
    deviation = "" if value.std is None else f" ± {100 * value.std:.1f}"
    return f"{100 * value.mean:.1f}{deviation}"


def reported(
    dataset: str, conv: str, model: str = "gnn", figure: str = "accuracy"
) -> Spread | None:
    """What the paper reports; None where it does not."""
    figures = published(model).get(dataset, {}).get(conv, {}).get(f"reported_{figure}")
    if figures is None:
        return None
    return Spread(figures["mean"] / 100, figures["std"] / 100, 5)


def plain_gnn(rows: Sequence[Row], conv: str, preset: str) -> Table:
    """The plain GNN of one conv beside the paper's, with what a blind guess and an mlp reach.

    The mlp has no conv: it stands at the settings of the GIN row in every table.
    """
    names = (
        *("dataset", "runs", "paper", "ours", "reached", "balanced", "majority"),
        *("mlp", "mlp balanced"),
    )
    lines = []
    for cell in plain_gnn_cells(rows, conv, preset):
        here = {"dataset": cell.dataset, "preset": preset}
        gnn = matching(rows, {**here, "conv": conv, "model": "gnn"})
        mlp = matching(rows, {**here, "conv": "gin", "model": "mlp"})
        columns = [
            cell.dataset,
            str(cell.ours.runs),
            percent(cell.theirs),
            percent(cell.ours),
            "–" if cell.theirs is None else ("yes" if cell.reached else "no"),
            percent(spread(gnn, "balanced_accuracy")),
            percent(spread(gnn, "majority_rate")).split(" ")[0],
            percent(spread(mlp, "accuracy")),
            percent(spread(mlp, "balanced_accuracy")),
        ]
        lines.append(columns)
    return Table(names, lines)


TIE = 5e-5
"""Means that differ by less are the same: the paper gives two decimals of a percent."""


@dataclass(frozen=True)
class Cell:
    """Test accuracy of a model on one dataset, ours and the paper's."""

    dataset: str
    ours: Spread
    theirs: Spread | None
    """None where the paper has no such figure."""

    @property
    def reached(self) -> bool:
        """Whether our mean is at least the paper's minus one of its deviations."""
        if self.theirs is None or self.theirs.std is None:
            return False
        return self.ours.mean >= self.theirs.mean - self.theirs.std - TIE


def plain_gnn_cells(rows: Sequence[Row], conv: str, preset: str) -> list[Cell]:
    """The cells of :func:`plain_gnn` for which there are runs, in the paper's order."""
    cells = []
    for dataset in paper_first(row["dataset"] for row in rows):
        where = {"dataset": dataset, "conv": conv, "preset": preset, "model": "gnn"}
        ours = spread(rows, "accuracy", **where)
        if ours is not None:
            cells.append(Cell(dataset, ours, reported(dataset, conv)))
    return cells


SPARSE_MODELS = ("cores-node", "cores-edge", "cores-both")
"""The models that remove something; the paper has the first two."""
HONEST = 0.05
"""How far the judge may stay behind the model."""


@dataclass(frozen=True)
class SparseCell:
    """CORES on one dataset, ours and the paper's."""

    dataset: str
    accuracy: Spread
    kept: Spread
    judge: Spread
    their_accuracy: Spread | None
    """None where the paper has no such figure, like the next."""
    their_kept: Spread | None

    @property
    def shortfalls(self) -> list[str]:
        """What is not reached, of the paper's accuracy less its deviation, its ratio, the judge."""
        found = {"judge": self.judge.mean < self.accuracy.mean - HONEST}
        if self.their_accuracy is not None:
            least = self.their_accuracy.mean - (self.their_accuracy.std or 0.0)
            found["accuracy"] = self.accuracy.mean < least - TIE
        if self.their_kept is not None:
            found["kept ratio"] = self.kept.mean > self.their_kept.mean + TIE
        return sorted(name for name, missed in found.items() if missed)

    @property
    def better(self) -> bool:
        """Whether both means are at least as good as the paper's, accuracy and kept ratio."""
        if self.their_accuracy is None or self.their_kept is None:
            return False
        return (
            self.accuracy.mean >= self.their_accuracy.mean - TIE
            and self.kept.mean <= self.their_kept.mean + TIE
        )

    @property
    def level(self) -> bool:
        """Whether it keeps up with the paper.

        A mean accuracy below it by at most one standard error of ours, a kept ratio of at most its,
        and a judge not far behind.
        """
        if self.their_accuracy is None or self.their_kept is None or self.accuracy.std is None:
            return False
        error = self.accuracy.std / math.sqrt(self.accuracy.runs)
        return (
            self.accuracy.mean >= self.their_accuracy.mean - error - TIE
            and self.kept.mean <= self.their_kept.mean + TIE
            and self.judge.mean >= self.accuracy.mean - HONEST
        )


def sparse_cells(rows: Sequence[Row], model: str, conv: str) -> list[SparseCell]:
    """The datasets for which there are runs of a CORES model, the paper's first."""
    kept = kept_figure(model)
    cells = []
    for dataset in paper_first(row["dataset"] for row in rows):
        mine = matching(rows, {"dataset": dataset, "conv": conv, "model": model})
        accuracy, share = spread(mine, "accuracy"), spread(mine, kept)
        judge = spread(mine, "judge_accuracy")
        if accuracy is not None and share is not None and judge is not None:
            theirs = [reported(dataset, conv, model, figure) for figure in ("accuracy", kept)]
            cells.append(SparseCell(dataset, accuracy, share, judge, *theirs))
    return cells


def sparse(rows: Sequence[Row], model: str, conv: str) -> Table:
    """CORES beside the paper's, with its judge and the plain GNN on the same test graphs.

    Bold is a dataset on which both accuracy and kept ratio are at least as good as the paper's.
    """
    names = (
        *("dataset", "runs", "accuracy", "paper", "kept", "paper", "judge", "judge random"),
        *("judge whole", "own, whole", "balanced", "majority", "plain GNN", "short of"),
    )
    lines = []
    for cell in sparse_cells(rows, model, conv):
        here = {"dataset": cell.dataset, "conv": conv}
        mine = matching(rows, {**here, "model": model})
        plain = matching(rows, {**here, "model": "gnn"})
        columns = [
            Bold(cell.dataset) if cell.better else cell.dataset,
            str(cell.accuracy.runs),
            *(percent(cell.accuracy), percent(cell.their_accuracy)),
            *(percent(cell.kept), percent(cell.their_kept)),
            percent(cell.judge),
            percent(spread(mine, "judge_random_accuracy")),
            percent(spread(mine, "judge_full_accuracy")),
            percent(spread(mine, "full_accuracy")),
            percent(spread(mine, "balanced_accuracy")),
            percent(spread(mine, "majority_rate")).split(" ")[0],
            percent(spread(plain, "accuracy")),
            ", ".join(cell.shortfalls) or "–",
        ]
        lines.append(columns)
    return Table(names, lines)


def sparse_claims(rows: Sequence[Row], conv: str) -> list[str]:
    """What the cells of both modes come to, of those in which no run is missing."""
    cells = [cell for model in SPARSE_MODELS[:2] for cell in sparse_cells(rows, model, conv)]
    runs = max((cell.accuracy.runs for cell in cells), default=0)
    whole = [cell for cell in cells if cell.accuracy.runs == runs and cell.their_accuracy]
    measured = [row for row in rows if row["model"] in SPARSE_MODELS]
    counts = {
        "All three hold in": sum(not cell.shortfalls for cell in whole),
        "Level with the paper, by one standard error of ours, in": sum(c.level for c in whole),
        "Better than the paper in both accuracy and kept ratio in": sum(c.better for c in whole),
    }
    claims = [
        f"{claim} **{count} of {len(whole)}** cells with {runs} runs"
        for claim, count in counts.items()
    ]
    claims[0] += (
        f"; {stuck(measured)} of {len(measured)} runs keep more than 0.98 or less than 0.02"
    )
    return [f"{claim}." for claim in claims]


def ablation(rows: Sequence[Row], target: str) -> Table:
    """Kept ratio and accuracy over one setting of the reward (Figures 3 and 4).

    *Rank* is Spearman's correlation of the setting with the mean kept ratio, *span* how many points
    of kept ratio lie between its first and last value; both wait until no run is missing. A cell
    with fewer runs than there are splits says how many it has.
    """
    setting, values = ABLATIONS[target].setting, ABLATIONS[target].values
    heads = [f"{setting} {value:g}" for value in values]
    lines = []
    runs = len({(row["split"], row["seed"]) for row in rows})
    for dataset, model in sorted({(row["dataset"], row["model"]) for row in rows}):
        mine = matching(rows, {"dataset": dataset, "model": model})
        for figure, name in ((kept_figure(model), "kept"), ("accuracy", "accuracy")):
            found = [
                spread([row for row in mine if float(row[setting]) == value], figure)
                for value in values
            ]
            rank, span = "", ""
            whole = [each.mean for each in found if each is not None and each.runs == runs]
            if name == "kept" and len(whole) == len(values):
                correlation = _spearman(values, whole)
                rank = "–" if correlation is None else f"{correlation:.2f}"
                span = f"{100 * (whole[-1] - whole[0]):.1f}"
            shown = [
                f"{percent(each)} ({each.runs})" if each and each.runs < runs else percent(each)
                for each in found
            ]
            lines.append((dataset, model, name, *shown, rank, span))
    return Table(("dataset", "model", "figure", *heads, "rank", "span"), lines)


def _spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Correlation of the ranks; None where one side is constant.

    >>> _spearman([0.1, 0.2, 0.3], [5.0, 7.0, 6.0])
    0.5
    >>> _spearman([0.1, 0.2, 0.3], [1.0, 1.0, 1.0]) is None
    True
    """
    from scipy.stats import spearmanr  # slow to import

    if len(set(first)) == 1 or len(set(second)) == 1:
        return None
    return float(spearmanr(first, second).statistic)


def stuck(rows: Sequence[Row]) -> int:
    """Runs that keep nearly everything or nearly nothing of what they may remove."""
    ratios = [float(row[kept_figure(row["model"])]) for row in rows]
    return sum(not 0.02 <= ratio <= 0.98 for ratio in ratios)


def motifs(rows: Sequence[Row]) -> Table:
    """CORES where the true reason is known."""
    figures = (
        *("accuracy", "node_ratio", "edge_ratio", "node_auc", "edge_auc", "node_recall"),
        *("node_precision", "judge_accuracy", "seconds"),
    )
    lines = []
    for row in rows:
        shown = [f"{float(row[each]):.3g}" if row[each] else "–" for each in figures]
        lines.append((row["dataset"], row["model"], row["seed"], *shown))
    return Table(("dataset", "model", "seed", *figures), lines)


def explanations(rows: Sequence[Row]) -> Table:
    """Every model that scores nodes or edges, where the true reason is known."""
    figures = {
        "accuracy": "accuracy",
        "judge": "judge_accuracy",
        "nodes kept": "node_ratio",
        "edges kept": "edge_ratio",
        "node AUC": "node_auc",
        "edge AUC": "edge_auc",
        "node recall": "node_recall",
        "node precision": "node_precision",
    }
    lines = []
    for dataset, model in sorted({(row["dataset"], row["model"]) for row in rows}):
        mine = matching(rows, {"dataset": dataset, "model": model})
        shown = [percent(spread(mine, figure)) for figure in figures.values()]
        lines.append((dataset, model, str(len(mine)), *shown))
    return Table(("dataset", "model", "runs", *figures), lines)


def paper_first(datasets: Iterable[str]) -> list[str]:
    """Each of the datasets once: the paper's in its order, then the others by name.

    >>> paper_first(["motifs", "PTC", "BZR", "PTC", "mine"])
    ['BZR', 'PTC', 'mine', 'motifs']
    """
    measured = set(datasets)
    paper = [name for name in PAPER_DATASETS if name in measured]
    return [*paper, *sorted(measured - set(paper))]


def of_conv(rows: Iterable[Row], conv: str) -> list[Row]:
    """The rows of a conv; the mlp has none and stands everywhere."""
    return [row for row in rows if row["conv"] == conv or row["model"] == "mlp"]


def kept_figure(model: str) -> str:
    """The ratio a model is measured by: of what it removes, nodes where it removes both."""
    return "edge_ratio" if model == "cores-edge" else "node_ratio"


def statistics_table(measured: Sequence[Mapping[str, Any]]) -> Table:
    """Table 1 as measured; the paper's figure in brackets where it is another."""
    names = list(next(iter(published_statistics().values())))
    lines = []
    for row in measured:
        theirs = published_statistics().get(row["dataset"], {})
        cells = [row["dataset"]]
        for name in names:
            other = name in theirs and theirs[name] != row[name]
            cells.append(
                f"{_shown(row[name])} ({_shown(theirs[name])})" if other else _shown(row[name])
            )
        lines.append(cells)
    return Table(["dataset", *(name.replace("_", " ") for name in names)], lines)


def _shown(value: bool | int | float) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.2f}" if isinstance(value, float) else str(value)
