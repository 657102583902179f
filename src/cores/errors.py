"""Exceptions whose message is one line for the user."""

import re
import traceback
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

_PACKAGE = Path(__file__).parent
_ASKED = re.compile(
    r"tried to allocate (\d+ bytes|[\d.]+ \wiB)|unable to allocate ([\d.]+ \wiB)", re.IGNORECASE
)


class UserError(ValueError):
    """A mistake in the input; the message names it and the remedy in one line.

    Messages speak of arguments, as `out` or resume=True. The command line prints them without a
    traceback, with its options in place of arguments, and exits with status 2.
    """


def require(holds: bool, message: str) -> None:
    """Raise a :class:`UserError` unless the condition holds."""
    if not holds:
        raise UserError(message)


class ProgramError(Exception):
    """A fault of the program behind runs that failed; their folders tell where it happened.

    The command line prints it without a traceback and exits with status 1.
    """


def failed(message: str, *, ours: bool) -> ProgramError | UserError:
    """The exception for runs that failed, by whose fault it was."""
    return ProgramError(message) if ours else UserError(message)


def nearest(name: str, known: Iterable[str]) -> str:
    """The known names closest to a misspelt one, as the end of an error message.

    >>> nearest("mutga", ["MUTAG", "PTC", "DD"])
    'did you mean MUTAG?'
    >>> nearest("xyz", ["MUTAG", "PTC"])
    'known: MUTAG, PTC'
    """
    by_folded = {name.lower(): name for name in known}
    close = get_close_matches(name.lower(), list(by_folded), n=3, cutoff=0.5)
    if close:
        return f"did you mean {' or '.join(by_folded[name] for name in close)}?"
    return f"known: {', '.join(by_folded.values())}"


def told(error: Exception) -> str:
    """Return an exception's message about a file, without its advice to programmers.

    >>> try:
    ...     int("9" * 5000)
    ... except ValueError as error:
    ...     print(told(error))
    Exceeds the limit (4300 digits) for integer string conversion: value has 5000 digits
    """
    return str(error).partition("; use sys.")[0]


def out_of_memory(error: BaseException) -> str | None:
    """Return the message for an error caused by a lack of memory; None for any other.

    Python has an exception for it, torch another one for a GPU, and a mere ``RuntimeError`` for
    the CPU.
    """
    text = str(error)
    if not (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or "can't allocate memory" in text
    ):
        return None
    found = _ASKED.search(text)
    asked = f"{found[1] or found[2]} were asked for" if found else "too much was asked for"
    ours = [
        f"{Path(frame.filename).relative_to(_PACKAGE)} ({frame.name})"
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(_PACKAGE)
    ]
    place = f" by {ours[-1]}" if ours else ""
    return f"out of memory: {asked}{place}; fewer columns or units, or smaller batches, need less"
