"""The README's claims, and the table that stands behind them."""

from cores_paper.tables.rows import COLUMNS
from cores_paper.tables.targets import PLAIN_GNN
from readme import FRESH_SPLITS, readme_claims, summary_table

METRICS = {
    "accuracy": "0.875",
    "full_accuracy": "0.875",
    "node_ratio": "0.5",
    "judge_accuracy": "0.5",
    "judge_random_accuracy": "0.5",
}
DEFAULT, PAPER = (
    [
        dict.fromkeys(COLUMNS, "")
        | {"dataset": dataset, "model": model, "conv": "gin", "preset": preset}
        | {"split": str(split), "seed": "0", **METRICS}
        for dataset in datasets
        for model in models
        for split in splits
    ]
    for preset, datasets, models, splits in (
        ("default", ["MUTAG", "PTC"], [PLAIN_GNN, "cores-node"], FRESH_SPLITS[:2]),
        ("paper", ["MUTAG"], ["cores-node"], [1, 2]),
    )
)


def test_the_table_has_a_line_per_dataset_and_the_papers_means_in_brackets() -> None:
    table = summary_table(DEFAULT).splitlines()
    assert table[2] == "| BZR | – | – | – | – | – | – | – |"
    assert table[6] == (
        "| MUTAG | **87.5 ± 0.0** (82.9) | **50.0 ± 0.0** (52.4) | 50.0 ± 0.0 "
        "| – | – | – | 87.5 ± 0.0 |"
    )


def test_the_claims_are_those_of_the_presets_that_have_rows() -> None:
    claims = readme_claims(DEFAULT).splitlines()
    assert all(line.startswith("- ") for line in claims)
    assert len(claims) == 3
    assert "**+0.0 ± 0.0** points on average" in claims[0]
    *_, published = readme_claims([*DEFAULT, *PAPER]).splitlines()
    assert published.startswith("- Algorithm 1 at the published settings")
