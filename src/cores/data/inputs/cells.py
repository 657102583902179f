"""The rows of a CSV or TSV text; one that is badly quoted takes no other with it."""

import csv
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple


class Cells(NamedTuple):
    """One row of a table."""

    line: int
    """Where it begins, from 1."""
    values: list[str]
    problem: str = ""
    """Why it cannot be read, if so."""


def table_cells(lines: Iterator[str], separator: str) -> Iterator[Cells]:
    """The rows of a table, the first of which names the columns.

    A quote that nobody closes would take the rows below it into its cell. So where a row ends
    badly, or covers several lines and has another number of cells than the first, only its first
    line is given up, and reading goes on with the next.
    """
    source = _Lines(lines)
    table = _reader(source, separator)
    width: int | None = None
    while True:
        source.begin_row()
        problem = ""
        try:
            values = next(table, None)
        except csv.Error as error:
            values, problem = [], f"is badly quoted ({error})"
        if values is None:
            return
        if width is None:
            width = len(values)
        elif not problem and source.lines_of_row > 1 and len(values) != width:
            problem = "is badly quoted (a quote is not closed)"
        if problem:
            source.give_back()
            table = _reader(source, separator)
        yield Cells(source.begin, values, problem)


def _reader(source: "_Lines", separator: str) -> Iterator[list[str]]:
    return csv.reader(source, delimiter=separator, strict=True)


class _Lines(Iterator[str]):
    """Lines, of which those after the first of a row can be read again."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self._waiting: deque[str] = deque()
        self._row: list[str] = []
        self.begin = 1
        """Number of the row's first line."""

    @property
    def lines_of_row(self) -> int:
        return len(self._row)

    def __next__(self) -> str:
        line = self._waiting.popleft() if self._waiting else next(self._lines)
        self._row.append(line)
        return line

    def begin_row(self) -> None:
        self.begin += len(self._row)
        self._row = []

    def give_back(self) -> None:
        self._waiting.extendleft(reversed(self._row[1:]))
        del self._row[1:]
