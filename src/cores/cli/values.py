"""Values of options that the parser leaves as text."""

from pathlib import Path

from cores.errors import UserError


def path_or_none(given: str | None) -> Path | None:
    """A path, where one was given."""
    return None if given is None else Path(given)


def names(text: str) -> list[str]:
    """Names from a list with commas.

    >>> names("MUTAG, PTC,")
    ['MUTAG', 'PTC']
    """
    return [name for part in text.split(",") if (name := part.strip())]


def numbers(text: str, option: str, first: int) -> list[int]:
    """Numbers from a list with commas and ranges, none below the first.

    >>> numbers("1-3,7", "--splits", first=1)
    [1, 2, 3, 7]
    """
    found: list[int] = []
    for part in text.split(","):
        lowest, _, highest = part.partition("-")
        try:
            between = range(int(lowest), int(highest or lowest) + 1)
        except ValueError:
            between = range(0)
        if not 1 <= len(between) <= 1000 or between[0] < first:
            raise UserError(f"{option} takes numbers from {first} such as 1-5 or 1,3, got {text!r}")
        found.extend(between)
    return found


def check_workers(workers: int) -> None:
    """Refuse less than one process."""
    if workers < 1:
        raise UserError(f"--workers must be positive, got {workers}")
