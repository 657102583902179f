"""Tables in Markdown."""

from collections.abc import Iterable, Sequence


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table with a line per sequence of cells.

    >>> print(markdown(["dataset", "ours"], [["BZR", "82.4"]]))
    | dataset | ours |
    |---|---|
    | BZR | 82.4 |
    """
    return "\n".join([_line(head), "|---" * len(head) + "|", *map(_line, lines)])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
