"""Methods of explaining: their table, and what they measured as rows and tables. Needs no torch."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cores import UserError
from cores.errors import nearest
from cores.runs.rows import Row, Spread, check_finite, matching, spread
from cores_paper.tables.rows import RowKind
from cores_paper.tables.table import Table


@dataclass(frozen=True)
class Method:
    """A way to explain; how it is made ready is in :mod:`cores_paper.explain.peers`."""

    title: str
    """What tables call it."""
    model: str
    """The model that it explains."""


METHODS = {
    "random": Method("random", "gnn"),
    "saliency": Method("saliency", "gnn"),
    "gradient": Method("grad × input", "gnn"),
    "shapley": Method("Shapley", "gnn"),
    "gnnexplainer": Method("GNNExplainer", "gnn"),
    "pgexplainer": Method("PGExplainer", "gnn"),
    "gsat": Method("GSAT", "gsat"),
    "gmt": Method("GMT", "gmt"),
    "cores-node": Method("CORES nodes", "cores-node"),
    "cores-edge": Method("CORES edges", "cores-edge"),
    "effects-node": Method("effects, nodes", "cores-node"),
    "effects-edge": Method("effects, edges", "cores-edge"),
}
"""Every method by name, in the order of the tables.

Methods that come after training explain our plain classifier; the others explain themselves. CORES
does so twice: by what its policy wants to keep, and by the effects of removing nodes or edges.
"""
METRICS = (
    *("graphs", "explained_graphs", "node_auc", "edge_auc", "node_ratio", "edge_ratio"),
    *("node_judge_accuracy", "edge_judge_accuracy"),
    *("node_sufficiency", "node_comprehensiveness"),
    *("edge_sufficiency", "edge_comprehensiveness"),
    *("seconds_per_graph", "setup_seconds", "training_seconds"),
)
"""``node_`` and ``edge_`` say what is kept at equal share, and whose scores are meant."""
COLUMNS = (
    *("dataset", "method", "model", "conv", "split", "seed", *METRICS),
    *("key", "version", "commit", "machine"),
)
SUMMARY = {
    "node AUC": "node_auc",
    "edge AUC": "edge_auc",
    "judge, nodes": "node_judge_accuracy",
    "judge, edges": "edge_judge_accuracy",
}
"""Columns of the first table, beside the milliseconds."""
FAITHFULNESS = {
    "suff. nodes": "node_sufficiency",
    "compr. nodes": "node_comprehensiveness",
    "suff. edges": "edge_sufficiency",
    "compr. edges": "edge_comprehensiveness",
}
"""Columns of the second one."""


def _check(row: Row) -> None:
    _order(row)
    check_finite(row, METRICS)


def _order(row: Row) -> tuple[Any, ...]:
    place = [*METHODS].index(row["method"])
    return (row["dataset"], row["conv"], place, int(row["split"]), int(row["seed"]), row["key"])


EXPLANATIONS = RowKind(COLUMNS, "a measured explanation", _check, _order)


def method_of(name: str) -> Method:
    """Look up a method; an unknown name is an error that names the nearest one."""
    if name not in METHODS:
        raise UserError(f"unknown method {name!r}; {nearest(name, METHODS)}")
    return METHODS[name]


def row_key(identity: Any) -> str:
    """Twelve hexadecimal digits that name all that decides a row's numbers."""
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:12]


def summary_table(rows: Sequence[Row]) -> Table:
    """Scores against ground truth and the judge at equal share, in percent; milliseconds a graph.

    Mean and deviation over splits and seeds.
    """
    lines = [
        [*line, _milliseconds(spread(runs, "seconds_per_graph"))]
        for line, runs in _lines(rows, SUMMARY)
    ]
    return Table(["method", *SUMMARY, "ms"], lines)


def faithfulness_table(rows: Sequence[Row]) -> Table:
    """What the explained model itself says of the kept parts, in percent of probability.

    Beside it the seconds of training the method, without those of the model that it explains.
    """
    lines = []
    for line, runs in _lines(rows, FAITHFULNESS):
        seconds = spread(runs, "setup_seconds")
        lines.append([*line, "–" if seconds is None else f"{seconds.mean:.0f}"])
    return Table(["method", *FAITHFULNESS, "setup s"], lines)


def told_share(rows: Sequence[Row]) -> str:
    """How much of the graphs is kept in all of this, in a sentence."""
    runs = matching(rows, {"method": rows[0]["method"]})  # the same for every method
    nodes, edges = (_percent(spread(runs, name)) for name in ("node_ratio", "edge_ratio"))
    return f"Kept by all, as by CORES: {nodes} % of the nodes, or {edges} % of the edges"


def _lines(rows: Sequence[Row], columns: dict[str, str]) -> list[tuple[list[str], list[Row]]]:
    """The cells of every method, and its rows."""
    by_method = {name: matching(rows, {"method": name}) for name in METHODS}
    return [
        (
            [METHODS[name].title, *(_percent(spread(runs, metric)) for metric in columns.values())],
            runs,
        )
        for name, runs in by_method.items()
        if runs
    ]


def _percent(value: Spread | None) -> str:
    """Short: seven columns stand side by side.

    >>> _percent(Spread(0.9764, 0.0123, 3)), _percent(None)
    ('97.6±1.2', '–')
    """
    if value is None:
        return "–"
    deviation = "" if value.std is None else f"±{100 * value.std:.1f}"
    return f"{100 * value.mean:.1f}{deviation}"


def _milliseconds(value: Spread | None) -> str:
    if value is None:
        return "–"
    number = 1000 * value.mean
    return f"{number:.0f}" if number >= 100 else f"{number:.2g}"
