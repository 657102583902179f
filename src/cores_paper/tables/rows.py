"""Files of measured runs, a row each: read, checked and merged. Needs no torch."""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cores import UserError
from cores.config import RunConfig
from cores.config.models import model_spec
from cores.files import in_turn, read_text
from cores.runs.rows import ACTIONS, METRICS, NAMES, ORIGIN, Row, check_run, write_rows

PARTS = (
    *("sufficiency", "weak", "minimal", "questions", "committee_std", "members"),
    "calibration_error",
)
"""Metrics of a committee and of the parts it was asked about."""
RUN_METRICS = tuple(dict.fromkeys((*METRICS, *PARTS)))
"""Metrics of a row; files of earlier versions lack some."""
COLUMNS = (*NAMES, *RUN_METRICS, *ORIGIN)
"""Columns of a results file; empty where a metric does not apply."""


@dataclass(frozen=True)
class RowKind:
    """A kind of rows; one of the columns is ``key``."""

    columns: Sequence[str]
    what: str
    """Name of one of them in messages."""
    check: Callable[[Row], None]
    """Raises a ValueError for values that cannot have been measured."""
    order: Callable[[Row], tuple[Any, ...]]
    """The sort key of the file."""
    added: Sequence[str] = ()
    """Columns that earlier files do not have; their rows are empty there."""


def _order(row: Row) -> tuple[Any, ...]:
    names = (row["conv"], row["preset"], row["dataset"], row["model"])
    return (*names, int(row["split"]), int(row["seed"]), row["key"])


def _check(row: Row) -> None:
    check_run(row, RUN_METRICS)


RUNS = RowKind(COLUMNS, "a measured run", _check, _order, added=(*ACTIONS, *PARTS))


def read_rows(path: Path, kind: RowKind = RUNS) -> list[Row]:
    """Read a file of rows; an invalid line is an error with its number."""
    lines = csv.reader(io.StringIO(read_text(path)))
    rows: dict[str, Row] = {}
    try:
        columns = next(lines, [])
        there = [name for name in kind.columns if name in columns or name not in kind.added]
        if columns != there:
            named = ", ".join(kind.columns)
            raise UserError(f"{path}: the first line must name the columns {named}")
        for line in lines:
            row = dict.fromkeys(kind.columns, "") | dict(zip(columns, line, strict=True))
            kind.check(row)
            if row["key"] in rows:
                raise UserError(f"{path}: line {lines.line_num} repeats the run {row['key']}")
            rows[row["key"]] = row
    except UserError:
        raise
    except (ValueError, csv.Error):
        raise UserError(f"{path}: line {lines.line_num} is not {kind.what}") from None
    return list(rows.values())


def merge_rows(path: Path, new: Iterable[Row], kind: RowKind = RUNS) -> list[Row]:
    """Add rows to a file, replacing those with the same key; returns all rows, sorted."""
    with in_turn(path):
        by_key = {row["key"]: row for row in read_rows(path, kind)} if path.exists() else {}
        by_key |= {row["key"]: row for row in new}
        rows = sorted(by_key.values(), key=kind.order)
        write_rows(path, rows, kind.columns)
    return rows


def kept_rows(
    path: Path, kind: RowKind, keys: Sequence[str], measure: Callable[[], list[Row]]
) -> list[Row]:
    """The rows of these keys from a file; if one is missing, all are measured and kept there."""
    known = {row["key"]: row for row in read_rows(path, kind)} if path.exists() else {}
    if all(key in known for key in keys):
        return [known[key] for key in keys]
    measured = measure()
    merge_rows(path, measured, kind)
    return measured


def with_keys(rows: Iterable[Row], configs: Iterable[RunConfig]) -> list[Row]:
    """The rows of exactly these configurations, not of similar ones with other settings."""
    keys = {config.key for config in configs}
    return [row for row in rows if row["key"] in keys]


def rows_of_conv(rows: Iterable[Row], conv: str) -> list[Row]:
    """The rows of a conv, and those of models that do not use one."""
    return [row for row in rows if row["conv"] == conv or not model_spec(row["model"]).uses_conv]
