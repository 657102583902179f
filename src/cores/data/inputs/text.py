"""Text files, packed or not, line by line; and the rows of CSV and TSV texts."""

import csv
import gzip
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from cores.errors import UserError
from cores.files.limits import check_regular, limited_lines


@contextmanager
def text_lines(path: Path) -> Iterator[Iterator[str]]:
    """The lines of a text file, unpacked if its name ends in .gz, none of them too long.

    What is wrong with the file is told in one line.
    """
    check_regular(path)
    opened: Any = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
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
    waiting: deque[str] = deque()
    begin, width = 1, None
    while True:
        taken: list[str] = []
        problem = ""
        try:
            values = next(
                csv.reader(_taking(waiting, lines, taken), delimiter=separator, strict=True), None
            )
        except csv.Error as error:
            values, problem = [], f"is badly quoted ({error})"
        if values is None:
            return
        if width is None:
            width = len(values)
        elif not problem and len(taken) > 1 and len(values) != width:
            problem = "is badly quoted (a quote is not closed)"
        if problem:
            waiting.extendleft(reversed(taken[1:]))
            del taken[1:]
        yield Cells(begin, values, problem)
        begin += len(taken)


def _taking(waiting: deque[str], lines: Iterator[str], taken: list[str]) -> Iterator[str]:
    """The lines that wait and those that follow; what is read is noted in ``taken``."""
    while True:
        line = waiting.popleft() if waiting else next(lines, None)
        if line is None:
            return
        taken.append(line)
        yield line
