r"""Markdown tables as LaTeX, for a paper with `\usepackage{booktabs}`."""

_SYMBOLS = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "_": r"\_",
    "#": r"\#",
    "±": r"$\pm$",
    "–": "--",
    "λ": r"$\lambda$",
}


def latex(table: str, caption: str) -> str:
    r"""A Markdown table as a LaTeX table.

    >>> print(latex("| dataset | ours |\n|---|---|\n| BZR | **82.4 ± 5.0** |", "Accuracy."))
    \begin{table}[t]
    \caption{Accuracy.}
    \centering
    \begin{tabular}{lr}
    \toprule
    dataset & ours \\
    \midrule
    BZR & \textbf{82.4 $\pm$ 5.0} \\
    \bottomrule
    \end{tabular}
    \end{table}
    """
    head, _, *body = [
        [_cell(text.strip()) for text in line.strip().strip("|").split("|")]
        for line in table.splitlines()
    ]
    lines = [
        r"\begin{table}[t]",
        rf"\caption{{{_cell(caption)}}}",
        r"\centering",
        rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}",
        r"\toprule",
        _line(head),
        r"\midrule",
        *map(_line, body),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines)


def _line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def _cell(text: str) -> str:
    plain = text.removeprefix("**").removesuffix("**")
    escaped = "".join(_SYMBOLS.get(character, character) for character in plain)
    return rf"\textbf{{{escaped}}}" if plain != text else escaped
