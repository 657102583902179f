"""Text files, packed or not, line by line; and the rows of CSV and TSV texts."""

import csv
import gzip
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from cores.errors import UserError
from cores.files.limits import check_regular, limited_lines


@contextmanager
def text_lines(path: Path) -> Iterator[Iterator[str]]:
    """The lines of a text file, unpacked if its name ends in .gz, none of them too long.

    What is wrong with the file is told in one line.
    """
    check_regular(path)
    try:
        if path.suffix.lower() == ".gz":
            with gzip.open(path, "rt", encoding="utf-8-sig", newline="") as file:
                yield limited_lines(file.readline, path)
        else:
            with path.open(encoding="utf-8-sig", newline="") as file:
                yield limited_lines(file.readline, path)
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8 text; save it as UTF-8") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{path} is not a whole gzip file ({error})") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None


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
