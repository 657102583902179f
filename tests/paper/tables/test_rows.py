"""Rows of measured runs: kept, merged, and checked when read."""

import multiprocessing
from pathlib import Path

import pytest

from cores.errors import UserError
from cores.runs.rows import ACTIONS, Row, as_measured, run_row, spread
from cores_paper.tables.rows import COLUMNS, PARTS, merge_rows, read_rows


def row(key: str, **figures: str) -> Row:
    empty = dict.fromkeys(COLUMNS, "")
    return empty | {"key": key, "split": "1", "seed": "0", "accuracy": "0.5"} | figures


def test_a_configuration_measured_anew_takes_the_place_of_the_old(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    merge_rows(path, [row("a", accuracy="0.5"), row("b")])
    rows = merge_rows(path, [row("a", accuracy="0.7"), row("c")])
    assert [(each["key"], each["accuracy"]) for each in rows] == [
        ("a", "0.7"),
        ("b", "0.5"),
        ("c", "0.5"),
    ]
    assert read_rows(path) == rows


@pytest.mark.parametrize("missing", [ACTIONS, PARTS, (*ACTIONS, *PARTS)])
def test_a_file_of_before_some_metrics_were_measured_is_read_and_goes_on(
    tmp_path: Path, missing: tuple[str, ...]
) -> None:
    path = tmp_path / "rows.csv"
    earlier = [name for name in COLUMNS if name not in missing]
    cells = [row("a")[name] for name in earlier]
    path.write_text(f"{','.join(earlier)}\n{','.join(cells)}\n")
    assert read_rows(path) == [row("a")]
    rows = merge_rows(path, [row("b", sampled_accuracy="0.25", weak="0.5")])
    for name, value in (("sampled_accuracy", "0.25"), ("weak", "0.5")):
        assert [each[name] for each in rows] == ["", value]
    assert read_rows(path) == rows
    path.write_text(f"{','.join(earlier[1:])}\n")
    with pytest.raises(UserError, match="the first line must name the columns"):
        read_rows(path)


def add_rows(path: Path, name: str) -> None:
    for number in range(20):
        merge_rows(path, [row(f"{name}{number}")])


def test_rows_of_two_processes_at_once_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    context = multiprocessing.get_context("fork")
    both = [context.Process(target=add_rows, args=(path, name)) for name in "ab"]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert len(read_rows(path)) == 40


def test_a_row_is_given_back_as_numbers() -> None:
    measured = as_measured(row("a1", dataset="PTC", epochs="300", node_ratio="1e-05"))
    assert measured["dataset"] == "PTC"
    assert [measured[name] for name in ("split", "seed", "epochs")] == [1, 0, 300]
    assert [measured[name] for name in ("accuracy", "node_ratio")] == [0.5, 1e-5]
    assert measured["edge_auc"] is None


def test_spread_is_mean_and_sample_deviation() -> None:
    rows = [row("a", accuracy="0.5"), row("b", accuracy="0.7"), row("c", model="mlp")]
    found = spread(rows, "accuracy", model="")
    assert found is not None
    assert found.mean == pytest.approx(0.6)
    assert found.std == pytest.approx(0.1 * 2**0.5)
    assert found.runs == 2
    assert spread(rows, "accuracy", model="none") is None


def line(**figures: str) -> str:
    return ",".join(row("b", **figures).values())


def test_a_header_that_is_far_too_long_is_told(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("x" * 200_000 + ",b\n")
    with pytest.raises(UserError, match=r"rows\.csv: line 1 is not a measured run"):
        read_rows(tmp_path / "rows.csv")


@pytest.mark.parametrize(
    "line",
    [
        "only,two",
        "x" + "," * (len(COLUMNS) - 1),
        line(balanced_accuracy="abc"),
        line(judge_accuracy="nan"),
        line(machine="x" * 200_000),
    ],
)
def test_a_line_edited_by_hand_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "rows.csv"
    merge_rows(path, [row("a")])
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(UserError, match=r"rows\.csv: line 3 is not a measured run"):
        read_rows(path)


def test_a_line_that_repeats_a_run_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    merge_rows(path, [row("a"), row("b")])
    path.write_text(path.read_text() + line(dataset="MUTAG") + "\n")
    with pytest.raises(UserError, match=r"rows\.csv: line 4 repeats the run b"):
        read_rows(path)


def test_a_run_with_damaged_figures_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"config": {}, "key": "a"}')
    (tmp_path / "metrics.json").write_text('{"accuracy": "hello"}')
    with pytest.raises(UserError, match=r"metrics\.json is damaged; delete it"):
        run_row(tmp_path)
    known = '{"dataset": "a", "model": "gnn", "conv": "gin", "accuracy": 2}'
    (tmp_path / "metrics.json").write_text(known)
    with pytest.raises(UserError, match="is damaged; remove it to run it again"):
        run_row(tmp_path)


def test_a_file_with_other_columns_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("name,score\n")
    with pytest.raises(UserError, match="the first line must name the columns"):
        read_rows(tmp_path / "rows.csv")


def test_an_unfinished_run_has_no_row(tmp_path: Path) -> None:
    assert run_row(tmp_path) is None
