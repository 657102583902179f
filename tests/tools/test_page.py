"""The pages: parts made from rows are put between their marks, whatever stood there."""

from pathlib import Path

import pytest

from cores.errors import UserError
from page import PART_CHOICES, filled, over_cells, parts_table


def test_a_part_replaces_what_stood_between_its_marks() -> None:
    page = "# Title\n<!-- make results: first -->\nan older table\n<!-- end -->\nThe end\n"
    text = filled(page, {"first": "| new |", "second": "elsewhere"})
    assert text == ("# Title\n<!-- make results: first -->\n\n| new |\n\n<!-- end -->\nThe end\n")
    assert filled(text, {"first": "| new |"}) == text


def test_two_parts_are_filled_each_with_its_own() -> None:
    mark = "<!-- make results: {} --><!-- end -->"
    text = filled(mark.format("first") + mark.format("second"), {"first": "1", "second": "2"})
    assert text.index("1") < text.index("second") < text.index("2")


@pytest.mark.parametrize(
    "text",
    [
        "<!-- make results: first --> alone",
        "<!-- end --><!-- make results: first -->",
        "<!-- make results: first --><!-- make results: first --><!-- end -->",
        "an <!-- end --> alone",
    ],
)
def test_a_mark_without_its_other_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="needs an <!-- end --> behind it"):
        filled(text, {"first": "1"})


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(UserError, match="no part 'frist' is made from rows; did you mean first"):
        filled("<!-- make results: frist --><!-- end -->", {"first": "1"})


def test_a_cell_counts_once_however_many_splits_it_has() -> None:
    rows = [
        {"dataset": dataset, "model": "cores-node", "accuracy": accuracy, "full_accuracy": "0.75"}
        for dataset, accuracy in (("BZR", "0.5"), ("BZR", "1"), ("PTC", "0.25"))
    ]
    found = over_cells(rows, "accuracy")
    assert (found.mean, found.runs) == (0.5, 2)
    assert over_cells(rows, "accuracy", "full_accuracy").mean == -0.25


def test_every_choice_of_parts_is_shown_on_complete_splits_alone() -> None:
    rows = Path(__file__).parents[2] / "results" / "part_settings.csv"
    claim, _, table = parts_table(rows).partition("\n\n")
    _, _, *lines = table.splitlines()
    assert len(lines) == len(PART_CHOICES)
    assert {line.split(" | ")[5] for line in lines} == {"36"}
    assert claim.count(" points") == 4
