"""A table as data: its cells in Markdown and LaTeX, whatever stands in them."""

import pytest

from cores_paper.tables.table import Bold, Table


def test_text_from_data_is_escaped_in_latex() -> None:
    name = r"a\b{c}$d$ 50% #1 x_y^z ~ p&q <r> s|t"
    table = Table(["model", name], [[name, Bold(name, name)]])
    escaped = (
        r"a\textbackslash{}b\{c\}\$d\$ 50\% \#1 x\_y\textasciicircum{}z \textasciitilde{} p\&q "
        r"\textless{}r\textgreater{} s\textbar{}t"
    )
    lines = table.latex(name).splitlines()
    assert lines[1] == rf"\caption{{{escaped}}}"
    assert lines[5] == rf"model & {escaped} \\"
    assert lines[7] == rf"{escaped} & \textbf{{{escaped}}}{escaped} \\"


@pytest.mark.parametrize("name", ["[1] mine", "*mine"])
def test_a_row_does_not_begin_with_an_argument_of_the_line_break_before_it(name: str) -> None:
    assert Table(["model"], [[name]]).latex("").splitlines()[7][0] == "{"


def test_a_bar_does_not_end_a_cell_in_markdown() -> None:
    line = Table(["model", "ours"], [["a|b", Bold("1|2", "|3")]]).markdown().splitlines()[2]
    assert line == r"| a\|b | **1\|2**\|3 |"


def test_text_from_data_is_text_in_markdown() -> None:
    lines = Table(["a"], [["**b** _c_ <i>\nd | e"]]).markdown().splitlines()
    assert lines[2:] == [r"| \*\*b\*\* \_c\_ \<i\> d \| e |"]


def test_stars_in_a_name_are_text_and_bold_is_data() -> None:
    latex = Table(["model"], [["**mine**"], [Bold("mine")]]).latex("")
    assert latex.count(r"\textbf") == 1
    assert "{*}{*}mine{*}{*}" in latex


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a row needs 2 cells, got \['BZR'\]"):
        Table(["dataset", "ours"], [["BZR"]])
