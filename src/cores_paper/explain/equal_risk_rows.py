"""Orders measured at equal risk as rows of a CSV file, and as tables. Needs no torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cores.runs.rows import Row, check_finite, matching, spread
from cores_paper.explain.comparison_rows import known_method
from cores_paper.tables.rows import RowKind
from cores_paper.tables.style import percent


@dataclass(frozen=True)
class Order:
    """What says which elements of a graph go first."""

    title: str
    """What tables call it."""
    model: str | None
    """The model whose scores they are; None: made for the classifier that predicts."""


ORDERS = {
    "cores": Order("CORES dial", None),
    "gsat": Order("GSAT", "gsat"),
    "sagpool": Order("SAGPool", "sagpool"),
    "gpool": Order("GPool", "gpool"),
    "saliency": Order("saliency", None),
    "random": Order("random", None),
}
"""Every order by name, in that of the tables."""
METRICS = (
    *("max_loss", "confidence", "kept_ratio", "loss", "accuracy", "full_accuracy"),
    *("setting", "graphs", "calibration_graphs", "selection_graphs"),
)
COLUMNS = (
    *("dataset", "method", "removal", "conv", "split", "seed", "rule", *METRICS),
    *("key", "version", "commit", "machine"),
)


def _check(row: Row) -> None:
    _order(row)
    check_finite(row, METRICS)


def _order(row: Row) -> tuple[Any, ...]:
    place = [*ORDERS].index(row["method"])
    run = int(row["split"]), int(row["seed"]), float(row["max_loss"])
    return (row["dataset"], row["removal"], row["conv"], place, *run, row["key"])


EQUAL_RISK = RowKind(COLUMNS, "an order at equal risk", _check, _order)


def order_of(name: str) -> Order:
    """The row of an order."""
    return known_method(name, ORDERS)


def table_of(rows: Sequence[Row], metric: str) -> tuple[list[str], list[list[str]]]:
    """A metric in percent: a line per order, a column per loss that is allowed.

    Mean and deviation over splits and seeds.
    """
    losses = sorted({row["max_loss"] for row in rows}, key=float)
    by_order = {name: matching(rows, {"method": name}) for name in ORDERS}
    lines = [
        [ORDERS[name].title, *(percent(spread(runs, metric, max_loss=loss)) for loss in losses)]
        for name, runs in by_order.items()
        if runs
    ]
    return ["method", *(f"at {loss}" for loss in losses)], lines
