"""Markdown tables of measured rows, ours beside the paper's."""

from collections.abc import Sequence
from dataclasses import dataclass

from cores.experiments.results import Row, Spread, matching, spread
from cores.settings import published


def percent(value: Spread | None) -> str:
    """Mean ± deviation in percent.

    >>> percent(Spread(0.8244, 0.05, 5))
    '82.4 ± 5.0'
    """
    if value is None:
        return "–"
    deviation = "" if value.std is None else f" ± {100 * value.std:.1f}"
    return f"{100 * value.mean:.1f}{deviation}"


def reported(dataset: str, conv: str) -> Spread | None:
    """What the paper reports for the plain GNN."""
    section = published("gnn").get(dataset)
    if section is None:
        return None
    figures = section[conv]["reported_accuracy"]
    return Spread(figures["mean"] / 100, figures["std"] / 100, 5)


def plain_gnn(rows: Sequence[Row], conv: str, preset: str) -> str:
    """The plain GNN of one conv beside the paper's, with what a blind guess and an mlp reach.

    The mlp has no conv: it stands at the settings of the GIN row in every table.
    """
    lines = [
        "| dataset | runs | paper | ours | reached | balanced | majority | mlp | mlp balanced |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
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
        lines.append(f"| {' | '.join(columns)} |")
    return "\n".join(lines)


@dataclass(frozen=True)
class Cell:
    """Test accuracy of the plain GNN on one dataset, ours and the paper's."""

    dataset: str
    ours: Spread
    theirs: Spread | None
    """None where the paper has no such figure."""

    @property
    def reached(self) -> bool:
        """Whether our mean is at least the paper's minus one of its deviations."""
        if self.theirs is None or self.theirs.std is None:
            return False
        return self.ours.mean >= self.theirs.mean - self.theirs.std


def plain_gnn_cells(rows: Sequence[Row], conv: str, preset: str) -> list[Cell]:
    """The cells of :func:`plain_gnn` for which there are runs, in the paper's order."""
    measured = {row["dataset"] for row in rows}
    names = [*published("gnn"), *sorted(measured - published("gnn").keys())]
    cells = []
    for dataset in names:
        where = {"dataset": dataset, "conv": conv, "preset": preset, "model": "gnn"}
        ours = spread(rows, "accuracy", **where)
        if ours is not None:
            cells.append(Cell(dataset, ours, reported(dataset, conv)))
    return cells
