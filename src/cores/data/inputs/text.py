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
    """The line where it begins, from 1."""
    values: list[str]
    problem: str = ""
    """The reason why it cannot be read, if there is one."""


def table_cells(lines: Iterator[str], separator: str) -> Iterator[Cells]:
    """The rows of a table, the first of which names the columns.

    A quote that nobody closes would take the rows below it into its cell. So where a row ends
    badly, or covers several lines and has another number of cells than the first, only its first
    line is given up, and reading goes on with the next.
    """
    waiting: deque[str] = deque()
    row: list[str] = []  # its lines

    def source() -> Iterator[str]:
        while (line := waiting.popleft() if waiting else next(lines, None)) is not None:
            row.append(line)
            yield line

    table = csv.reader(source(), delimiter=separator, strict=True)
    begin, width = 1, None
    while True:
        problem = ""
        try:
            values = next(table, None)
        except csv.Error as error:
            values, problem = [], f"is badly quoted ({error})"
        if values is None:
            return
        if width is None:
            width = len(values)
        elif not problem and len(row) > 1 and len(values) != width:
            problem = "is badly quoted (a quote is not closed)"
        if problem:
            waiting.extendleft(reversed(row[1:]))
            del row[1:]
            table = csv.reader(source(), delimiter=separator, strict=True)
        yield Cells(begin, values, problem)
        begin += len(row)
        row.clear()
