"""Text that comes from data, as it may be shown: one function per language it is written into."""

import json
import re
from html import escape as _html

_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # escapes of terminals begin with these
    "\u2028\u2029"  # ends of lines
    "\u202a-\u202e\u2066-\u2069"  # these turn the direction of what follows
    "\ud800-\udfff]"  # halves of characters: no file can hold them
)
_MARKDOWN = re.compile(r"[\\`*\[\]<>|~$&]|(?<![^\W_])_|_(?![^\W_])")
"""What means something in the middle of a line; no line of ours begins with data. An underscore
inside a word means nothing."""
_SCRIPT = re.compile("[<>&]")
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "[": "{[}",  # at the start of a row, the `\\` before it would read these two as its arguments
    "*": "{*}",
    "±": r"$\pm$",
    "–": "--",
    "λ": r"$\lambda$",
}


def terminal(text: object) -> str:
    r"""On one line, and without anything that a terminal would obey.

    >>> print(terminal("red \x1b[31m name\n"))
    red \x1b[31m name\n
    """
    return _CONTROL.sub(_named, str(text))


def brief(text: object) -> str:
    """Shorten a line in its middle, as a remedy comes last; safe for a terminal.

    >>> len(brief("a column " + 70_000 * "x" + "; name another"))
    1000
    """
    line = terminal(text)
    return line if len(line) <= BRIEF else f"{line[: BRIEF - 301]}…{line[-300:]}"


BRIEF = 1_000
"""Characters of a message; names in data may have millions."""


def markdown(text: object) -> str:
    r"""In the middle of a line of Markdown, or in a cell of its tables; HTML is text, too.

    >>> print(markdown("a|b*c`<i>\n# d"))
    a\|b\*c\`\<i\> # d
    """
    return _MARKDOWN.sub(r"\\\g<0>", _CONTROL.sub(" ", str(text)))


def latex(text: object) -> str:
    r"""In a line of LaTeX, or in a cell of its tables.

    >>> print(latex("50 % of $x_1$"))
    50 \% of \$x\_1\$
    """
    plain = _CONTROL.sub(" ", str(text))
    return "".join(_LATEX.get(character, character) for character in plain)


def figure(text: object) -> str:
    r"""In a figure: matplotlib reads what stands between two dollars as a formula.

    >>> print(figure("$x$"))
    \$x\$
    """
    return terminal(text).replace("$", r"\$")


def json_text(value: str) -> str:
    r"""JSON that a terminal can show as it is: JSON leaves some of its escapes alone.

    >>> print(json_text('{"id": "\x9b31m"}'))
    {"id": "\u009b31m"}
    """
    return _CONTROL.sub(lambda found: json.dumps(found[0])[1:-1], value)


def html(text: object) -> str:
    r"""In an HTML page, also in a quoted attribute; what a terminal would obey is named.

    >>> print(html('<b title="a">\x1b[31m'))
    &lt;b title=&quot;a&quot;&gt;\x1b[31m
    """
    return _html(terminal(text), quote=True)


def html_json(value: object) -> str:
    r"""A value as JSON inside a ``<script>`` of an HTML page: no text in it can end the script.

    >>> print(html_json({"id": "</script>"}))
    {"id":"\u003c/script\u003e"}
    """
    text = json_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    return _SCRIPT.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _named(found: re.Match[str]) -> str:
    return ascii(found[0])[1:-1]
