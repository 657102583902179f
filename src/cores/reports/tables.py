"""Markdown tables of measured rows, ours beside the paper's."""

from collections.abc import Sequence

from cores.experiments.results import Row, Spread, matching, spread
from cores.settings import published

CONVS = ("gin", "gcn", "gat")


def percent(value: Spread | None) -> str:
    """Mean ± deviation in percent.

    >>> percent(Spread(0.8244, 0.05, 5))
    '82.4 ± 5.0'
    """
    return "–" if value is None else f"{100 * value.mean:.1f} ± {100 * value.std:.1f}"


def reported(dataset: str, conv: str, model: str = "gnn") -> Spread:
    """What the paper reports."""
    figures = published(model)[dataset][conv]["reported_accuracy"]
    return Spread(figures["mean"] / 100, figures["std"] / 100, 5)


def plain_gnn(rows: Sequence[Row], conv: str, preset: str) -> str:
    """The plain GNN of one conv beside the paper's, balanced accuracy, majority and the mlp."""
    lines = [
        "| dataset | runs | paper | ours | reached | balanced | majority | mlp | mlp balanced |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for dataset in published("gnn"):
        mine = matching(rows, {"dataset": dataset, "conv": conv, "preset": preset})
        ours = spread(mine, "accuracy", model="gnn")
        if ours is None:
            continue
        theirs = reported(dataset, conv)
        cells = [
            dataset,
            str(ours.runs),
            percent(theirs),
            percent(ours),
            "yes" if reaches(ours, theirs) else "no",
            percent(spread(mine, "balanced_accuracy", model="gnn")),
            percent(spread(mine, "majority_rate", model="gnn")).split(" ")[0],
            percent(spread(mine, "accuracy", model="mlp")),
            percent(spread(mine, "balanced_accuracy", model="mlp")),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def reaches(ours: Spread, theirs: Spread) -> bool:
    """Whether our mean is at least the paper's minus one of its deviations."""
    return ours.mean >= theirs.mean - theirs.std
