"""Whatever stands in data, it stays text in every language that it is written into."""

import json
import re
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from matplotlib.cbook import is_math_text
from matplotlib.figure import Figure

from cores.explain.plotting import figure_bytes
from cores.files.escape import figure, json_text, latex, markdown, terminal

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
HOSTILE = st.text(
    st.sampled_from("ab1 |*_`~<>[]()!#$%&{}^\\/\"'=.\n\r\t\x1b\x9b\x07\u202e\u2028é😀")
) | st.text(max_size=20)


@given(text=HOSTILE)
def test_a_terminal_gets_one_line_that_it_does_not_obey(text: str) -> None:
    assert not CONTROL.search(terminal(text))
    if not CONTROL.search(text):
        assert terminal(text) == text


@given(text=HOSTILE)
def test_a_cell_of_a_markdown_table_holds_the_text_and_nothing_else(text: str) -> None:
    cell = markdown(text)
    parser = MarkdownIt("commonmark").enable("table")
    tokens = parser.parse(f"| a | b |\n|---|---|\n| x{cell}x | end |")
    inline = [token for token in tokens if token.type == "inline"]
    assert [token.content for token in inline[:2]] == ["a", "b"]
    kinds = {child.type for child in inline[2].children or ()}
    assert kinds <= {"text", "text_special"}
    read = "".join(child.content for child in inline[2].children or ())
    assert read.split() == f"x{CONTROL.sub(' ', text)}x".split()
    assert inline[3].content == "end"


@given(text=HOSTILE)
def test_latex_reads_no_command_in_the_text(text: str) -> None:
    known = r"\\text\w+\{\}|\\[{}$&%#_]|\{[\[*]\}|\$\\(pm|lambda)\$"
    rest = re.sub(known, "", latex(text))
    assert not re.search(r"[\\{}$&%#_^~<>|\[*\"]", rest)
    assert not CONTROL.search(rest)


@given(text=HOSTILE)
def test_a_figure_reads_no_formula_in_the_text(text: str) -> None:
    assert not is_math_text(figure(text))
    assert not CONTROL.search(figure(text))


def test_a_figure_with_text_from_data_can_be_drawn_and_is_xml() -> None:
    drawn = Figure()
    drawn.suptitle(figure("$\\frac{$ <script> & --> \x1b[31m"))
    ElementTree.fromstring(figure_bytes(drawn, "svg", dpi=50))


@given(text=HOSTILE)
def test_json_holds_the_same_text_and_a_terminal_does_not_obey_it(text: str) -> None:
    line = json_text(json.dumps({"id": text}, ensure_ascii=False))
    assert not CONTROL.search(line)
    assert json.loads(line) == {"id": text}
