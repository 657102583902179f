"""Limits on files: a small one can unpack to more than any machine has.

Each limit has an environment variable that raises it, which processes of a run inherit.
"""

import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cores.errors import UserError

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = re.compile(r"(\d{1,18})([KMGT]?)")


@dataclass(frozen=True)
class Limit:
    """The most that is taken of something, unless a variable of the environment says otherwise."""

    variable: str
    default: str

    @property
    def value(self) -> int:
        """The limit as a number."""
        text = os.environ.get(self.variable) or self.default
        found = _SIZE.fullmatch(text.strip().upper())
        if found is None:
            raise UserError(f"{self.variable} must be a number such as {self.default}, got {text}")
        return int(found[1]) * _UNITS[found[2]]

    @contextmanager
    def by_default(self, default: str) -> Iterator[None]:
        """Another default for a while; what the environment says goes before it, as ever."""
        if os.environ.get(self.variable):
            yield
            return
        os.environ[self.variable] = default
        try:
            yield
        finally:
            del os.environ[self.variable]

    def check(self, asked: int, what: str) -> None:
        """Refuse more than the limit; ``what`` ends in what it has or needs."""
        if asked > self.value:
            most = os.environ.get(self.variable) or self.default
            raise UserError(f"{what}, more than {most}; if that is meant, raise {self.variable}")


MEMORY = Limit("CORES_MAX_MEMORY", "2G")
"""Bytes that a file which is read at once unpacks to, that its features take, or a model's
weights."""
LINE = Limit("CORES_MAX_LINE", "64M")
"""Characters of a line of text, or of an entry of an SD file."""
COLUMNS = Limit("CORES_MAX_COLUMNS", "10000")
"""Features of a node or of an edge."""


def told_size(count: int) -> str:
    """A number of bytes for people.

    >>> told_size(3 * 2**30), told_size(20)
    ('3.0 GiB', '20 bytes')
    """
    for unit in ("T", "G", "M", "K"):
        if count >= _UNITS[unit]:
            return f"{count / _UNITS[unit]:.1f} {unit}iB"
    return f"{count} bytes"


class Allowance:
    """Budget of bytes for a source that is read at once, whatever its headers say."""

    def __init__(self, source: object) -> None:
        self._source = source
        self._taken, self._most = 0, MEMORY.value

    def take(self, count: int) -> None:
        """Count what was read, or is about to be."""
        self._taken += count
        if self._taken > self._most:
            MEMORY.check(self._taken, f"{self._source} unpacks to {told_size(self._taken)} or more")


def limited_lines(readline: Callable[[int], str], source: object) -> Iterator[str]:
    """The lines of a text file, none too long, with their ends."""
    longest = LINE.value
    for number, line in enumerate(iter(partial(readline, longest + 1), ""), 1):
        if len(line) > longest:
            _refuse_line(source, number, len(line))
        yield line


def all_lines(
    read: Callable[[int], str], source: object, allowance: Allowance | None = None
) -> Iterator[str]:
    r"""Lines without their ends, which must be ``\n``; faster for millions of short ones.

    With an allowance, there may not be too many of them, either.
    """
    longest, number, begun = LINE.value, 0, ""
    while block := read(BLOCK):
        if allowance is not None:
            allowance.take(len(block))
        *lines, begun = (begun + block).split("\n")
        sizes = [*map(len, lines), len(begun)]
        if max(sizes) > longest:
            first = next(place for place, size in enumerate(sizes, 1) if size > longest)
            _refuse_line(source, number + first, sizes[first - 1])
        yield from lines
        number += len(lines)
    if begun:
        yield begun


BLOCK = 2**18
"""Characters that are read at once."""


def _refuse_line(source: object, number: int, length: int) -> None:
    LINE.check(length, f"{source}: line {number} has {length} characters or more")


def check_regular(path: Path) -> None:
    """Refuse a pipe, a socket or a device: reading one may wait for ever."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    if not stat.S_ISREG(mode):
        raise UserError(f"{path} is no regular file; give one that lies on a disk")
