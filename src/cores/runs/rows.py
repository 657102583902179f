"""Measured runs as rows of a CSV file, and their mean and deviation. Needs no torch."""

import csv
import io
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from cores.config import RunConfig
from cores.errors import UserError
from cores.files import in_turn, read_json, write_atomically

FIGURES = (
    *("accuracy", "balanced_accuracy", "majority_rate", "node_ratio", "edge_ratio"),
    *("full_accuracy", "judge_accuracy", "judge_full_accuracy", "judge_random_accuracy"),
    *("node_auc", "node_precision", "node_recall", "edge_auc"),
    *("coverage", "set_size", "alpha", "lam", "desired_ratio", "test_graphs"),
    *("epochs", "best_epoch", "seconds"),
)
COLUMNS = (
    *("dataset", "model", "conv", "preset", "split", "seed", *FIGURES),
    *("key", "version", "commit", "machine"),
)
"""Columns of a results file; empty where a figure does not apply."""

Row = dict[str, str]


@dataclass(frozen=True)
class Spread:
    """Mean and sample deviation over runs."""

    mean: float
    std: float | None
    """None for a single run."""
    runs: int


def run_row(folder: Path) -> Row | None:
    """The row of a run folder; None while the run has not finished."""
    if not (folder / "metrics.json").exists():
        return None
    try:
        identity = read_json(folder / "config.json")
        reward = identity["config"].get("reward", {})  # what a sweep over lambda or d varies
        found = reward | identity | read_json(folder / "metrics.json")
        row = {name: _text(found.get(name)) for name in COLUMNS}
        _check(row)
    except (AttributeError, LookupError, TypeError, ValueError):
        raise UserError(f"the run in {folder} is damaged; remove it to run it again") from None
    return row


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def as_measured(row: Row) -> dict[str, Any]:
    """A row with numbers for its figures, None where one does not apply."""
    return row | {name: _number(row[name]) for name in ("split", "seed", *FIGURES)}


def _number(text: str) -> int | float | None:
    if not text:
        return None
    return int(text) if text.isdecimal() else float(text)


def read_rows(path: Path) -> list[Row]:
    """The rows of a results file; a line that does not fit is named."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not a text file") from None
    lines = csv.reader(io.StringIO(text))
    header = next(lines, [])
    if tuple(header) != COLUMNS:
        raise UserError(f"{path}: the first line must name the columns {', '.join(COLUMNS)}")
    rows: dict[str, Row] = {}
    try:
        for line in lines:
            row = dict(zip(COLUMNS, line, strict=True))
            _check(row)
            if row["key"] in rows:
                raise UserError(f"{path}: line {lines.line_num} repeats the run {row['key']}")
            rows[row["key"]] = row
    except (ValueError, csv.Error):
        raise UserError(f"{path}: line {lines.line_num} is not a measured run") from None
    return list(rows.values())


def _check(row: Row) -> None:
    """Refuse, by a ValueError, what no run has measured."""
    _order(row)  # needs whole numbers for split and seed
    if not 0 <= float(row["accuracy"]) <= 1:
        raise ValueError("an accuracy outside of 0 to 1")
    for name in FIGURES:
        if row[name] and not math.isfinite(float(row[name])):
            raise ValueError(f"{name} is not a number")


def merge_rows(path: Path, new: Iterable[Row]) -> list[Row]:
    """Add rows to a results file, a configuration measured anew in place of the old; sorted."""
    with in_turn(path):
        by_key = {row["key"]: row for row in read_rows(path)} if path.exists() else {}
        by_key |= {row["key"]: row for row in new}
        rows = sorted(by_key.values(), key=_order)
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_atomically(path, buffer.getvalue().encode())
    return rows


def _order(row: Row) -> tuple[Any, ...]:
    names = (row["conv"], row["preset"], row["dataset"], row["model"])
    return (*names, int(row["split"]), int(row["seed"]), row["key"])


def spread(rows: Iterable[Row], figure: str, **where: str) -> Spread | None:
    """Mean and deviation of a figure over the rows that match; None where there are none.

    >>> rows = [{"model": "gnn", "accuracy": "0.5"}, {"model": "gnn", "accuracy": "0.7"}]
    >>> spread(rows, "accuracy", model="gnn").mean
    0.6
    """
    values = [float(row[figure]) for row in matching(rows, where) if row[figure]]
    if not values:
        return None
    return Spread(mean(values), stdev(values) if len(values) > 1 else None, len(values))


def with_keys(rows: Iterable[Row], configs: Iterable[RunConfig]) -> list[Row]:
    """The rows of exactly these configurations: a shorter or older one does not slip in."""
    keys = {config.key for config in configs}
    return [row for row in rows if row["key"] in keys]


def matching(rows: Iterable[Row], where: Mapping[str, str]) -> list[Row]:
    """The rows whose columns have the given values."""
    return [row for row in rows if all(row[name] == value for name, value in where.items())]
