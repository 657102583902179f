"""Docstrings as the site shows them: doctests in frames, roles of reST as plain names."""

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|func|data|meth|attr):`~?([^`]+)`")
_DOCTEST = re.compile(r"(?:^[ ]*(?:>>>|\.\.\.).*\n(?:^[ ]*\S.*\n)*)+", re.MULTILINE)
_LITERAL = re.compile(r"^([ ]*\S.*)::$", re.MULTILINE)


class ForMarkdown(griffe.Extension):
    """Rewrites every docstring before it is parsed."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called for every module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = for_markdown(obj.docstring.value)


def for_markdown(text: str) -> str:
    r"""A docstring as Markdown.

    >>> print(for_markdown("Of a :class:`~cores.Cores`.\n\n>>> 1 + 1\n2"))
    Of a `cores.Cores`.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    """
    text = _ROLE.sub(r"`\1`", text)
    text = _LITERAL.sub(r"\1:", text)
    framed = _DOCTEST.sub(lambda found: f"```pycon\n{found[0]}```\n", text + "\n")
    return framed.rstrip("\n")
