"""A table as data, written as Markdown or LaTeX. Needs no torch."""

from collections.abc import Sequence
from dataclasses import dataclass

from cores.files import escape


@dataclass(frozen=True)
class Bold:
    """Bold text, followed by plain text."""

    text: str
    plain: str = ""


Cell = str | Bold


@dataclass(frozen=True)
class Table:
    """Column names, and rows of as many cells."""

    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.head):
                raise ValueError(f"a row needs {len(self.head)} cells, got {list(row)}")

    def markdown(self) -> str:
        """Write the table as Markdown.

        >>> print(Table(["dataset", "ours"], [["BZR", Bold("82.4", " (82.0)")]]).markdown())
        | dataset | ours |
        |---|---|
        | BZR | **82.4** (82.0) |
        """
        rule = "|---" * len(self.head) + "|"
        return "\n".join([_markdown_row(self.head), rule, *map(_markdown_row, self.rows)])

    def latex(self, caption: str) -> str:
        r"""Write the table as LaTeX, for a document with `\usepackage{booktabs}`.

        >>> print(Table(["dataset", "ours"], [["BZR", Bold("82.4 ± 5.0")]]).latex("Accuracy."))
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
        lines = [
            r"\begin{table}[t]",
            rf"\caption{{{escape.latex(caption)}}}",
            r"\centering",
            rf"\begin{{tabular}}{{l{'r' * (len(self.head) - 1)}}}",
            r"\toprule",
            _latex_row(self.head),
            r"\midrule",
            *map(_latex_row, self.rows),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
        return "\n".join(lines)


def _markdown_row(cells: Sequence[Cell]) -> str:
    return f"| {' | '.join(map(_markdown_cell, cells))} |"


def _markdown_cell(cell: Cell) -> str:
    if isinstance(cell, Bold):
        return f"**{escape.markdown(cell.text)}**{escape.markdown(cell.plain)}"
    return escape.markdown(cell)


def _latex_row(cells: Sequence[Cell]) -> str:
    return " & ".join(map(_latex_cell, cells)) + r" \\"


def _latex_cell(cell: Cell) -> str:
    if isinstance(cell, Bold):
        return rf"\textbf{{{escape.latex(cell.text)}}}{escape.latex(cell.plain)}"
    return escape.latex(cell)
