"""The README's claims, and the table that stands behind them."""

from cores.runs.rows import COLUMNS
from measured import measured_runs
from readme import readme_claims, summary_table

METRICS = {"accuracy": "0.875", "node_ratio": "0.5", "judge_accuracy": "0.5"}
ROWS = [
    dict.fromkeys(COLUMNS, "")
    | {"dataset": "MUTAG", "model": "cores-node", "conv": "gin", "key": config.key}
    | {"split": str(config.split), "seed": "0", **METRICS}
    for config in measured_runs("comparison-gin", ["MUTAG"], ["cores-node"], [1, 2], "default")
]


def test_the_table_has_a_line_per_dataset_and_the_papers_means_in_brackets() -> None:
    table = summary_table(ROWS).splitlines()
    assert table[2] == "| BZR | – | – | – | – | – | – | – |"
    assert table[6] == (
        "| MUTAG | **87.5 ± 0.0** (82.9) | **50.0 ± 0.0** (52.4) | 50.0 ± 0.0 | – | – | – | – |"
    )


def test_the_claims_are_those_of_the_presets_that_have_rows() -> None:
    claims = readme_claims(ROWS)
    assert all(line.startswith("- ") for line in claims.splitlines())
    assert "Algorithm 1" not in claims  # of which there is no row
