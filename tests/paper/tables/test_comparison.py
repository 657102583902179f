"""All models beside each other: ranks, ties, what is missing, and the paper's numbers."""

import pytest

from cores.config.models import ModelSpec
from cores.runs.rows import Row
from cores_paper.tables.comparison import (
    accuracy_table,
    baselines_table,
    comparison_tables,
    coverage_table,
    gnn_difference_table,
    kept_table,
)
from cores_paper.tables.price import paired_difference
from cores_paper.tables.rows import COLUMNS
from cores_paper.tables.table import Bold
from cores_paper.tables.targets import ABLATIONS, TARGET_CONVS, TIMES, models_of, runs_of


def row(dataset: str, model: str, split: int, accuracy: float, **metrics: float) -> Row:
    named = {"dataset": dataset, "model": model, "conv": "gin", "split": str(split)}
    values = {"accuracy": accuracy, "balanced_accuracy": accuracy, **metrics}
    return dict.fromkeys(COLUMNS, "") | named | {name: str(value) for name, value in values.items()}


ROWS = [
    *(row("MUTAG", "gnn", split, 0.9) for split in (1, 2)),
    *(row("MUTAG", "sagpool", split, 0.7, node_ratio=0.8, edge_ratio=0.6) for split in (1, 2)),
    *(row("MUTAG", "gpool", split, 0.9, node_ratio=0.5, edge_ratio=0.3) for split in (1, 2)),
    *(row("BZR", "gnn", split, 0.8) for split in (1, 2)),
    *(row("BZR", "gpool", split, 0.85, node_ratio=0.5, edge_ratio=0.3) for split in (1, 2)),
]


def test_ranks_are_averaged_over_own_and_over_shared_datasets() -> None:
    lines = accuracy_table(ROWS, "gin").markdown().splitlines()
    assert lines[0] == "| dataset | GNN | SAGPool | GPool |"
    assert lines[2].startswith("| BZR | 80.0 ± 0.0 | – | **85.0 ± 0.0** |")
    assert lines[3] == "| MUTAG | **90.0 ± 0.0** | 70.0 ± 0.0 | **90.0 ± 0.0** |"
    assert lines[4] == "| rank, own datasets | 1.75 | 3.00 | 1.25 |"
    assert lines[5] == "| rank, 1 shared datasets | 1.50 | 3.00 | 1.50 |"


def test_means_that_differ_in_their_last_digit_share_a_rank() -> None:
    # 72 of 82 test graphs are right in both, but the rows have six digits.
    rights = {"gnn": (0.878049, 0.878049), "gpool": (0.902439, 0.853658)}
    rows = [
        row("BZR", model, split, accuracy)
        for model, accuracies_of in rights.items()
        for split, accuracy in enumerate(accuracies_of, start=1)
    ]
    lines = accuracy_table(rows, "gin").markdown().splitlines()
    assert lines[2] == "| BZR | **87.8 ± 0.0** | **87.8 ± 3.4** |"
    assert lines[3] == "| rank, own datasets | 1.50 | 1.50 |"


def test_a_cell_with_missing_runs_says_so_and_does_not_count() -> None:
    rows = [*ROWS, row("BZR", "sagpool", 1, 0.99, node_ratio=0.8, edge_ratio=0.6)]
    lines = accuracy_table(rows, "gin").markdown().splitlines()
    assert lines[2] == "| BZR | 80.0 ± 0.0 | 99.0 (1 of 2 runs) | **85.0 ± 0.0** |"
    assert lines[4] == "| rank, own datasets | 1.75 | 3.00 | 1.25 |"
    assert baselines_table(rows, "gin").rows[-1] == ["reached", "0 of 1", "2 of 2"]


def test_what_is_reached_is_counted_per_model() -> None:
    lines = baselines_table(ROWS, "gin").markdown().splitlines()
    # Of the paper's nine datasets only those that were run.
    assert lines[2:] == [
        "| BZR | – | 85.0 ± 0.0 (81.0 ± 4.0) |",
        "| MUTAG | 70.0 ± 0.0 (78.6 ± 5.0) short | 90.0 ± 0.0 (81.4 ± 3.9) |",
        "| reached | 0 of 1 | 2 of 2 |",
    ]


def test_kept_ratios_are_shown_for_the_models_that_remove_something() -> None:
    edges = row("MUTAG", "cores-edge", 1, 0.9, node_ratio=1.0, edge_ratio=0.2)
    part = row("BZR", "sagpool", 1, 0.9, node_ratio=0.8, edge_ratio=0.6)
    table = kept_table([*ROWS, part, edges], "gin", "node_ratio")
    assert table is not None
    assert table.markdown().splitlines()[0] == "| dataset | SAGPool | GPool |"
    assert table.markdown().splitlines()[2:] == [
        "| BZR | 80.0 (1 of 2 runs) | 50.0 ± 0.0 (96.5 ± 0.2) |",
        "| MUTAG | 80.0 ± 0.0 | 50.0 ± 0.0 (51.4 ± 0.1) |",
        "| rank, own datasets | 2.00 | 1.00 |",
    ]
    assert kept_table([edges], "gin", "node_ratio") is None


def test_a_model_that_happened_to_keep_everything_has_a_column() -> None:
    full = {"node_ratio": 1.0, "edge_ratio": 1.0}
    rows = [
        row("MUTAG", model, 1, 0.9, **full)
        for model in ("gnn", "gsat", "sagpool", "cores-node", "cores-edge", "cores-both")
    ]
    nodes, edges = (kept_table(rows, "gin", metric) for metric in ("node_ratio", "edge_ratio"))
    assert nodes is not None
    assert nodes.head == ["dataset", "SAGPool", "CORES nodes", "CORES both"]
    assert nodes.rows == [
        ["MUTAG", "100.0", "100.0 (52.4 ± 7.7)", "100.0"],
        ["rank, own datasets", "2.00", "2.00", "2.00"],
    ]
    assert edges is not None
    assert edges.head == ["dataset", "SAGPool", "CORES nodes", "CORES edges", "CORES both"]


def test_coverage_stands_beside_the_labels_per_set() -> None:
    sets = [
        row("MUTAG", "cores-node", split, 0.9, coverage=0.95, set_size=1.25) for split in (1, 2)
    ]
    lines = coverage_table([*ROWS, *sets], "gin").markdown().splitlines()
    assert lines[-1] == "| MUTAG | – | – | – | 95.0 ± 0.0 / 1.25 |"


def test_every_table_that_there_are_rows_for_is_made() -> None:
    captions = list(comparison_tables(ROWS, "gin"))
    assert [caption.split(",")[0] for caption in captions[3:]] == [
        "Nodes kept",
        "Edges kept",
        "Accuracy beside the paper's",
    ]
    plain = [measured for measured in ROWS if measured["model"] == "gnn"]
    assert list(comparison_tables(plain, "gin")) == ["Accuracy", "Balanced accuracy"]
    judged = [*ROWS, row("MUTAG", "cores-node", 1, 0.9, node_ratio=0.4, judge_accuracy=0.8)]
    judge = comparison_tables(judged, "gin")["Accuracy of a judge on what is kept"]
    assert judge.markdown().splitlines()[-1] == "| MUTAG | **80.0** |"


def test_a_model_is_compared_with_the_gnn_split_by_split() -> None:
    gnn = [row("MUTAG", "gnn", split, value) for split, value in ((1, 0.9), (2, 0.6), (3, 0.5))]
    better = [row("MUTAG", "gpool", split, value) for split, value in ((1, 0.95), (2, 0.65))]
    lines = gnn_difference_table([*gnn, *better], "gin").markdown().splitlines()
    assert lines == ["| dataset | GPool |", "|---|---|", "| MUTAG | +5.0 ± 0.0 |"]
    fewer = row("MUTAG", "gpool", 3, 0.9)
    alone = row("BZR", "gpool", 3, 0.9)  # no GNN there
    sagpool = [row("MUTAG", "sagpool", split, 0.5) for split in (1, 2)]
    lines = (
        gnn_difference_table([*gnn, *better, fewer, alone, *sagpool], "gin").markdown().splitlines()
    )
    assert len(lines) == 3
    assert lines[2].startswith("| MUTAG | -25.0 ± ")
    assert lines[2].split(" | ")[1].endswith("(2 of 3 splits)")


def test_the_interval_is_that_of_the_corrected_resampled_t_test() -> None:
    ours = [row("MUTAG", "gpool", split, value) for split, value in ((1, 0.7), (2, 0.8), (3, 0.9))]
    gnn = [row("MUTAG", "gnn", split, 0.7) for split in (1, 2, 3)]
    found = paired_difference(ours, gnn, "accuracy")
    assert found is not None
    assert found.mean == pytest.approx(0.1)
    # differences 0, 0.1, 0.2: s = 0.1; t(0.975, 2) = 4.302653; test/train = 1/5
    assert found.margin == pytest.approx(4.302653 * 0.1 * (1 / 3 + 1 / 5) ** 0.5)
    assert paired_difference(ours, gnn[:1], "accuracy") is None


def test_seeds_of_a_split_are_one_measurement() -> None:
    ours = [row("MUTAG", "gpool", split, 0.7) for split in (1, 1, 2)]
    gnn = [row("MUTAG", "gnn", split, 0.6) for split in (1, 2)]
    found = paired_difference(ours, gnn, "accuracy")
    assert found is not None
    assert found.splits == 2


def test_a_registered_model_stands_in_every_table_by_its_title(registered_model: ModelSpec) -> None:
    measured = {"node_ratio": 0.4, "edge_ratio": 0.2, "coverage": 0.9, "set_size": 1.2}
    added = [
        row("MUTAG", registered_model.name, split, 0.6, judge_accuracy=0.5, **measured)
        for split in (1, 2)
    ]
    tables = comparison_tables([*added, *ROWS], "gin")
    tables["Coverage"] = coverage_table([*added, *ROWS], "gin")
    del tables["Accuracy beside the paper's"]  # which does not have it
    assert [table.head[-1] for table in tables.values()] == ["Own & Co"] * 7
    assert tables["Accuracy"].head == ["dataset", "GNN", "SAGPool", "GPool", "Own & Co"]
    assert r"& Own \& Co \\" in tables["Accuracy"].latex("Accuracy.")


def test_a_registered_model_is_compared_by_default(registered_model: ModelSpec) -> None:
    default = models_of("comparison-gin", "default")
    assert default == (
        *("gnn", "mlp", "sagpool", "diffpool", "gsat", "sugar", "gpool", registered_model.name),
        *("random", "cores-node", "cores-edge"),
    )
    assert models_of("time-train", "default") == default
    # The paper has no settings for it, nor for a few of the others.
    assert models_of("comparison-gin", "paper") == (
        *("gnn", "mlp", "sagpool", "gpool", "cores-node", "cores-edge"),
    )
    assert models_of("comparison-gin", "authors") == ("random", "cores-node", "cores-edge")
    assert models_of("architectures", "authors") == ("cores-node", "cores-edge")


def test_a_policy_that_the_paper_lacks_is_compared_only_when_asked_for(
    registered_policy: ModelSpec,
) -> None:
    for target in (*TARGET_CONVS, *ABLATIONS, *TIMES):
        assert not {"cores-both", registered_policy.name} & {*models_of(target, "default")}


def test_a_model_without_a_conv_stands_in_the_table_of_every_conv() -> None:
    rows = [row("MUTAG", "gnn", 1, 0.9) | {"conv": "gat"}, row("MUTAG", "mlp", 1, 0.7)]
    table = accuracy_table([*rows, *ROWS], "gat")
    assert table.rows[0] == ["MUTAG", Bold("90.0"), "70.0", "–", "–"]


@pytest.mark.parametrize("target", ABLATIONS)
def test_an_ablation_turns_what_the_policys_part_depends_on(target: str) -> None:
    for preset in ("default", "paper"):
        runs = runs_of(target, ["MUTAG"], ["cores-node"], [1], preset)
        assert len(runs) == len(ABLATIONS[target].values)
        assert {(run.explanation.parts, run.explanation.class_from) for run in runs} == {
            ("policy", "part")
        }
