"""The README's table: put between its marks, whatever stood there."""

from pathlib import Path

import pytest

from cores.errors import UserError
from cores.experiments.paper import runs_of
from cores.experiments.results import COLUMNS, merge_rows
from cores.reports.readme import BEGIN, END, with_table


@pytest.fixture
def results(tmp_path: Path) -> Path:
    figures = dict.fromkeys(("node_ratio", "judge_accuracy"), "0.5") | {"accuracy": "0.875"}
    rows = [
        dict.fromkeys(COLUMNS, "")
        | {"dataset": "MUTAG", "model": "cores-node", "conv": "gin", "key": config.key}
        | {"split": str(config.split), "seed": "0", **figures}
        for config in runs_of("comparison-gin", ["MUTAG"], ["cores-node"], [1, 2], "default")
    ]
    merge_rows(tmp_path / "runs.csv", rows)
    return tmp_path


def test_the_table_replaces_what_stood_between_the_marks(results: Path) -> None:
    readme = with_table(f"# Title\n{BEGIN}\nan older table\n{END}\nThe end\n", results)
    assert "older" not in readme
    assert readme.startswith("# Title\n")
    assert readme.endswith(f"{END}\nThe end\n")
    assert "| MUTAG | **87.5 ± 0.0** (82.9) | **50.0 ± 0.0** (52.4) | – | – | – |" in readme
    assert "| BZR | – | – | – | – | – |" in readme
    assert with_table(readme, results) == readme


@pytest.mark.parametrize("text", ["no marks", f"{BEGIN} alone", f"{END}{BEGIN}"])
def test_a_readme_without_both_marks_is_refused(text: str, results: Path) -> None:
    with pytest.raises(UserError, match="the README needs the lines"):
        with_table(text, results)
