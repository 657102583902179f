"""Values of options that the parser leaves as text, and checks that several commands share."""

from argparse import ArgumentTypeError
from pathlib import Path

from cores.errors import UserError


def named_path(text: str) -> Path:
    """Read the path of a file or folder; an empty one would stand for the working directory."""
    if not text.strip():
        raise ArgumentTypeError("it is empty; name a path, or leave the option out")
    return Path(text)


def names(text: str, option: str) -> list[str]:
    """Split a list with commas into names, at least one, each once.

    >>> names("MUTAG, PTC,", "--datasets")
    ['MUTAG', 'PTC']
    """
    found = [name for part in text.split(",") if (name := part.strip())]
    if not found:
        raise UserError(f"{option} names nothing; leave it out for all")
    return list(dict.fromkeys(found))


def numbers(text: str, option: str, first: int) -> list[int]:
    """Read numbers from a list with commas and ranges, each once, none below the first.

    >>> numbers("1-3,2,7", "--splits", first=1)
    [1, 2, 3, 7]
    """
    found: list[int] = []
    for part in text.split(","):
        lowest, _, highest = part.partition("-")
        try:
            least, most = int(lowest), int(highest or lowest)
        except ValueError:
            least, most = 0, -1
        if not first <= least <= most < least + 1000:
            raise UserError(f"{option} takes numbers from {first} such as 1-5 or 1,3, got {text!r}")
        found.extend(range(least, most + 1))
    return list(dict.fromkeys(found))


def check_workers(workers: int) -> None:
    """Refuse less than one process."""
    if workers < 1:
        raise UserError(f"--workers must be positive, got {workers}")
