"""Exceptions whose message is one line for the user."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(ValueError):
    """A mistake in the input; the message names it and the remedy in one line.

    Messages speak of arguments, as `out` or resume=True. The command line prints them without a
    traceback, with its options in place of arguments, and exits with status 2.
    """


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
