"""What a chosen part costs beside the plain GNN, and what it gains over chance."""

import pytest

from cores.runs.rows import Row
from cores_paper.tables.comparison import comparison_tables
from cores_paper.tables.price import price_claims, price_table, prices
from cores_paper.tables.rows import COLUMNS


def row(dataset: str, model: str, split: int, accuracy: float, **metrics: float) -> Row:
    named = {"dataset": dataset, "model": model, "conv": "gin", "split": str(split)}
    values = {"accuracy": accuracy, "balanced_accuracy": accuracy, **metrics}
    return dict.fromkeys(COLUMNS, "") | named | {name: str(value) for name, value in values.items()}


def cores(dataset: str, split: int, accuracy: float, node_ratio: float, gain: float) -> Row:
    judge = {"judge_accuracy": accuracy - 0.02, "judge_random_accuracy": accuracy - 0.02 - gain}
    kept = {"node_ratio": node_ratio, "edge_ratio": node_ratio / 2, "full_accuracy": 0.85}
    return row(dataset, "cores-node", split, accuracy, **judge, **kept)


ROWS = [
    *(row(dataset, "gnn", split, 0.9) for dataset in ("BZR", "MUTAG") for split in (1, 2)),
    *(cores("BZR", split, 0.84, node_ratio=0.9, gain=0.03) for split in (1, 2)),
    *(cores("MUTAG", split, 0.88, node_ratio=0.3, gain=0.01) for split in (1, 2)),
]


def test_every_cell_is_compared_on_the_same_test_graphs() -> None:
    table = price_table(ROWS, "gin")
    assert table is not None
    lines = table.markdown().splitlines()
    assert lines[2] == (
        "| BZR | nodes | 2 | -6.0 ± 0.0 | -5.0 ± 0.0 | 90.0 ± 0.0 | -2.0 ± 0.0 | +3.0 ± 0.0 |"
    )
    assert lines[3].startswith("| MUTAG | nodes | 2 | -2.0 ± 0.0 |")
    assert "What CORES costs and gains, in points on the same test graphs" in comparison_tables(
        ROWS, "gin"
    )


def test_the_claims_name_the_worst_cell_and_count_the_clear_gains() -> None:
    accuracy, kept, judge = price_claims(ROWS, "gin")
    # means -6 and -2 over two datasets: t(0.975, 1) * 2.828 / sqrt(2)
    assert "**-4.0 ± 25.4** points" in accuracy
    assert "-6.0 at worst (nodes of BZR)" in accuracy
    assert "60 % on average, at most the paper's share in 1 of 2 cells" in kept
    assert "at least 2 in 1 of 2 cells" in judge
    assert "-2.0 at worst" in judge


@pytest.mark.parametrize("missing", ["gnn", "judge_random_accuracy"])
def test_what_was_not_measured_is_left_out(missing: str) -> None:
    rows = [each | {missing: ""} for each in ROWS if each["model"] != missing]
    assert prices(rows, "gin") == []
    assert price_table(rows, "gin") is None
    assert price_claims(rows, "gin") == []


def test_one_dataset_has_no_average_over_datasets() -> None:
    one = [each for each in ROWS if each["dataset"] == "BZR"]
    assert price_table(one, "gin") is not None
    assert price_claims(one, "gin") == []
