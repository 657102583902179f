"""Tables from rows: what counts as reached, and what is said where it is not."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from matplotlib import rc_context

from cores.config.models import ModelSpec
from cores.runs.rows import Row
from cores_paper.tables import figures
from cores_paper.tables.cells import CoresCell, cores_cells, cores_claims, stuck_runs
from cores_paper.tables.figures import ablation_figure
from cores_paper.tables.rows import COLUMNS
from cores_paper.tables.tables import (
    ablation_table,
    claims_of,
    cores_table,
    explanations_table,
    statistics_table,
    tables_of,
    write_tables,
)
from cores_paper.tables.targets import published_statistics


def row(model: str, split: int, **measured: float | str) -> Row:
    """MUTAG, where the paper's CORES_N has 82.86 ± 6.39 with 52.38 % of the nodes."""
    named = {"dataset": "MUTAG", "model": model, "conv": "gin", "split": str(split)}
    return dict.fromkeys(COLUMNS, "") | named | {k: str(v) for k, v in measured.items()}


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
    def shortfalls(accuracy: float, kept: float, judge: float) -> list[str]:
        (cell,) = cores_cells(rows(accuracy, kept, judge), "cores-node", "gin")
        return cell.shortfalls

    assert shortfalls(0.77, 0.52, 0.73) == []
    assert shortfalls(0.76, 0.52, 0.73) == ["accuracy"]
    assert shortfalls(0.77, 0.53, 0.73) == ["kept ratio"]
    assert shortfalls(0.90, 0.53, 0.84) == ["judge", "kept ratio"]


def test_the_table_shows_ours_beside_the_papers() -> None:
    table = cores_table([*rows(0.80, 0.4, 0.8), row("gnn", 1, accuracy=0.9)], "cores-node", "gin")
    (line,) = [line for line in table.markdown().splitlines() if line.startswith("| MUTAG")]
    assert line.split(" | ")[1:6] == ["2", "80.0 ± 0.0", "82.9 ± 6.4", "40.0 ± 0.0", "52.4 ± 7.7"]
    assert line.split(" | ")[-2] == "90.0"


def test_a_run_is_stuck_when_it_keeps_all_or_nothing_of_what_it_may_remove() -> None:
    kept = (0.99, 0.5, 0.01, 0.98, 0.02)
    nodes = [row("cores-node", 1, node_ratio=ratio, edge_ratio=0.0) for ratio in kept]
    assert stuck_runs(nodes) == 2
    edges = [row("cores-edge", 1, node_ratio=1.0, edge_ratio=ratio) for ratio in kept]
    assert stuck_runs(edges) == 2


def test_only_models_with_runs_get_a_table() -> None:
    assert list(tables_of(rows(0.8, 0.4, 0.8), "comparison-gin", "default")) == [
        "CORES removing nodes (GIN), percent"
    ]
    assert tables_of([], "comparison-gin", "default") == {}


def test_a_model_alone_gets_a_table() -> None:
    measured = [row("sagpool", split, accuracy=0.8) for split in (1, 2)]
    tables = tables_of(measured, "comparison-gin", "default")
    assert "| MUTAG | **80.0 ± 0.0** |" in tables["Accuracy (GIN), percent"].markdown()


def test_an_ablation_tells_how_far_a_setting_steers() -> None:
    kept = {0.2: 0.30, 0.4: 0.35, 0.6: 0.33, 0.8: 0.50, 0.9: 0.60}
    measured = [
        row("cores-node", split, desired_ratio=d, lam=0.0, node_ratio=ratio, accuracy=0.8)
        for d, ratio in kept.items()
        for split in (1, 2)
    ]
    line = ablation_table(measured, "ablation-d").markdown().splitlines()[2].split(" | ")
    assert line[:4] == ["| MUTAG", "cores-node", "kept", "30.0 ± 0.0"]
    assert line[-2:] == ["0.90", "30.0 |"]
    line = ablation_table(measured[:-1], "ablation-d").markdown().splitlines()[2].split(" | ")
    assert line[-3:] == ["60.0 (1)", "", " |"]  # no rank while a run is missing


def test_level_is_within_one_standard_error_and_better_is_both_means() -> None:
    """The paper's MUTAG cell is 82.86 at 52.38 % of the nodes."""

    def cell(*accuracies: float, kept: float, judge: float = 0.9) -> CoresCell:
        measured = [
            row("cores-node", split, accuracy=accuracy, node_ratio=kept, judge_accuracy=judge)
            for split, accuracy in enumerate(accuracies)
        ]
        (found,) = cores_cells(measured, "cores-node", "gin")
        return found

    assert cell(0.78, 0.82, kept=0.5).level is False  # mean 0.80, error 0.02
    assert cell(0.77, 0.84, kept=0.5).level is True  # mean 0.805, error 0.035
    assert cell(0.77, 0.84, kept=0.53).level is False
    assert cell(0.77, 0.84, kept=0.5, judge=0.7).level is False
    assert cell(0.83, 0.84, kept=0.5).better is True
    assert cell(0.83, 0.84, kept=0.53).better is False
    assert cell(0.82, 0.83, kept=0.5).better is False
    assert cell(0.828571, 0.828571, kept=0.52381).better is True  # 58 of 70, as the paper rounds it


def test_the_claims_count_complete_cells() -> None:
    first, *others = cores_claims(rows(0.84, 0.4, 0.84), "gin")
    assert first.startswith("All three hold in **1 of 1** cells with 2 runs; 0 of 2 runs keep")
    assert all("**1 of 1** cells with 2 runs." in claim for claim in others)
    assert "| **MUTAG** |" in cores_table(rows(0.84, 0.4, 0.84), "cores-node", "gin").markdown()
    assert claims_of([], "comparison-gin") == claims_of([], "ablation-d") == []


def test_tables_are_written_as_markdown_and_latex(tmp_path: Path) -> None:
    tables = tables_of(rows(0.84, 0.4, 0.84), "comparison-gin", "default")
    files = write_tables(tables, ["That is all."], tmp_path / "comparison-gin")
    assert [path.name for path in files] == ["comparison-gin.md", "comparison-gin.tex"]
    assert "That is all." in files[0].read_text()
    latex = files[1].read_text()
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == len(tables)
    assert r"\textbf{MUTAG}" in latex
    assert "±" not in latex


def test_an_ablation_is_drawn_the_same_each_time(tmp_path: Path) -> None:
    measured = [
        row(model, split, desired_ratio=d, lam=0.0, node_ratio=d, edge_ratio=d / 2, accuracy=0.8)
        for model in ("cores-node", "cores-edge")
        for d in (0.2, 0.4, 0.6)
        for split in (1, 2)
    ]
    first = [path.read_bytes() for path in ablation_figure(measured, "ablation-d", tmp_path / "a")]
    again = [path.read_bytes() for path in ablation_figure(measured, "ablation-d", tmp_path / "b")]
    assert first == again
    for word in (b"removing nodes", b"removing edges", b"d, desired ratio", b"MUTAG"):
        assert b"<!-- " + word in first[1]  # matplotlib notes every text it draws as a shape


@pytest.mark.parametrize("difference", [0.0, 1e-6])
@pytest.mark.parametrize("threshold", [1, 4])  # of digits, as in a user's matplotlibrc
def test_an_axis_of_nearly_constant_values_shows_them_without_an_offset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, difference: float, threshold: int
) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(figures, "save_figure", lambda figure, stem: drawn.append(figure) or [])
    measured = [
        row("cores-node", split, desired_ratio=d, accuracy=value, node_ratio=value)
        for d in (0.2, 0.4)
        for value in [0.857143 + difference * d]
        for split in (1, 2)
    ]
    with rc_context({"axes.formatter.offset_threshold": threshold}):
        figures.ablation_figure(measured, "ablation-d", tmp_path / "a")
        drawn[0].draw_without_rendering()
    _, middle, right = drawn[0].axes
    for axis in (middle.yaxis, right.xaxis, right.yaxis):
        assert axis.get_offset_text().get_text() == ""
        labels = [float(label.get_text()) for label in axis.get_ticklabels()]
        assert min(labels) < 85.7 < max(labels)
        assert len(set(labels)) == len(labels) < 10


def test_no_error_bar_of_an_ablation_covers_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(figures, "save_figure", lambda figure, stem: drawn.append(figure) or [])
    measured = [
        row("cores-node", split, dataset=dataset, desired_ratio=d, accuracy=0.8, node_ratio=d)
        for dataset in ("MUTAG", "BZR", "PTC")
        for d in (0.2, 0.4)
        for split in (1, 2)
    ]
    figures.ablation_figure(measured, "ablation-d", tmp_path / "a")
    places = sorted(
        float(place) for bars in drawn[0].axes[0].containers for place in bars.lines[0].get_xdata()
    )
    assert len(places) == 6
    assert all(right - left > 0.005 for left, right in pairwise(places))
    assert all(
        abs(place - near) < 0.01 for place, near in zip(places, 3 * [0.2] + 3 * [0.4], strict=True)
    )


def test_explanations_are_averaged_over_runs_and_missing_metrics_are_dashes() -> None:
    soft = [row("gsat", split, accuracy=0.9, node_auc=auc) for split, auc in ((1, 0.8), (2, 0.6))]
    lines = explanations_table(soft).markdown().splitlines()
    assert lines[0].startswith("| dataset | model | runs | accuracy | judge |")
    assert lines[2] == "| MUTAG | gsat | 2 | 90.0 ± 0.0 | – | – | – | 70.0 ± 14.1 | – | – | – |"


def test_a_number_that_differs_from_table_1_shows_the_papers() -> None:
    measured = published_statistics()["BZR"] | {"dataset": "BZR", "graphs": 404}
    assert (
        "| BZR | 404 (405) | 10 | 0 | 2 | yes | 35.75 |" in statistics_table([measured]).markdown()
    )


def test_a_policy_of_a_script_has_a_table_and_a_panel_of_its_own(
    registered_policy: ModelSpec, tmp_path: Path
) -> None:
    extra = [measured | {"model": registered_policy.name} for measured in rows(0.8, 0.4, 0.8)]
    captions = list(tables_of([*rows(0.8, 0.4, 0.8), *extra], "comparison-gin", "default"))
    assert captions[:2] == [
        "CORES removing nodes, CORES nodes (GIN), percent",
        "CORES removing nodes, My policy (GIN), percent",
    ]
    ablated = [measured | {"desired_ratio": "0.2"} for measured in extra]
    assert [line[:3] for line in ablation_table(ablated, "ablation-d").rows] == [
        ("MUTAG", registered_policy.name, "kept"),
        ("MUTAG", registered_policy.name, "accuracy"),
    ]
    others = [measured | {"model": "cores-node"} for measured in ablated]
    _, svg = ablation_figure([*ablated, *others], "ablation-d", tmp_path / "a")
    drawn = svg.read_text()
    assert drawn.index("removing nodes, CORES nodes") < drawn.index("removing nodes, My policy")
