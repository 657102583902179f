"""Tables from rows: what counts as reached, and what is said where it is not."""

from cores.experiments.results import COLUMNS, Row
from cores.reports.tables import ablation, sparse, sparse_cells, stuck, tables_of


def row(model: str, split: int, **figures: float) -> Row:
    """MUTAG, where the paper's CORES_N has 82.86 ± 6.39 with 52.38 % of the nodes."""
    named = {"dataset": "MUTAG", "model": model, "conv": "gin", "split": str(split)}
    return dict.fromkeys(COLUMNS, "") | named | {k: str(v) for k, v in figures.items()}


def rows(accuracy: float, kept: float, judge: float) -> list[Row]:
    return [
        row(
            "cores-node",
            split,
            accuracy=accuracy,
            node_ratio=kept,
            edge_ratio=0.5,
            judge_accuracy=judge,
        )
        for split in (1, 2)
    ]


def test_a_cell_names_everything_it_is_short_of() -> None:
    def shortfalls(*figures: float) -> list[str]:
        (cell,) = sparse_cells(rows(*figures), "cores-node", "gin")
        return cell.shortfalls

    assert shortfalls(0.77, 0.52, 0.73) == []
    assert shortfalls(0.76, 0.52, 0.73) == ["accuracy"]
    assert shortfalls(0.77, 0.53, 0.73) == ["kept ratio"]
    assert shortfalls(0.90, 0.53, 0.84) == ["judge", "kept ratio"]


def test_the_table_shows_ours_beside_the_papers() -> None:
    text = sparse([*rows(0.80, 0.4, 0.8), row("gnn", 1, accuracy=0.9)], "cores-node", "gin")
    (line,) = [line for line in text.splitlines() if line.startswith("| MUTAG")]
    assert line.split(" | ")[1:6] == ["2", "80.0 ± 0.0", "82.9 ± 6.4", "40.0 ± 0.0", "52.4 ± 7.7"]
    assert line.split(" | ")[-2] == "90.0"


def test_a_run_is_stuck_when_it_keeps_all_or_nothing_of_what_it_may_remove() -> None:
    kept = (0.99, 0.5, 0.01, 0.98, 0.02)
    nodes = [row("cores-node", 1, node_ratio=each, edge_ratio=0.0) for each in kept]
    assert stuck(nodes) == 2
    edges = [row("cores-edge", 1, node_ratio=1.0, edge_ratio=each) for each in kept]
    assert stuck(edges) == 2


def test_only_models_with_runs_get_a_table() -> None:
    assert len(tables_of(rows(0.8, 0.4, 0.8), "comparison-gin", "default")) == 1
    assert tables_of([], "comparison-gin", "default") == []


def test_an_ablation_tells_how_far_a_setting_steers() -> None:
    kept = {0.2: 0.30, 0.4: 0.35, 0.6: 0.33, 0.8: 0.50, 0.9: 0.60}
    measured = [
        row("cores-node", split, desired_ratio=d, lam=0.0, node_ratio=ratio, accuracy=0.8)
        for d, ratio in kept.items()
        for split in (1, 2)
    ]
    line = ablation(measured, "ablation-d").splitlines()[2].split(" | ")
    assert line[:4] == ["| MUTAG", "cores-node", "kept", "30.0 ± 0.0"]
    assert line[-2:] == ["0.90", "30.0 |"]
    line = ablation(measured[:-1], "ablation-d").splitlines()[2].split(" | ")
    assert line[-3:] == ["60.0 (1)", "", " |"]  # no rank while a run is missing
