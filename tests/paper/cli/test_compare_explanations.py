"""`cores compare-explanations`: every method on the same graphs, resumable, in one table."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cores.cli.display import print_table
from cores.data.synthetic import ba_motifs
from cores_paper.explain import comparison, peers
from cores_paper.explain.comparison_rows import (
    COLUMNS,
    METHODS,
    METRICS,
    faithfulness_table,
    summary_table,
)
from cores_paper.tables.table import Table

Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def arguments(
    runs_here: None, short_judge: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> list[object]:
    """A comparison of a moment on thirty graphs with ground truth."""
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("GNN_EPOCHS", "PG_EPOCHS", "PG_GRAPHS", "PERMUTATIONS"):
        monkeypatch.setattr(peers, name, 2)
    write_graphs(tmp_path / "motifs.npz", truth=True)
    settings = "[network]\nhidden_dim = 8\nnum_layers = 1\n[committee]\nmembers = 2\n"
    (tmp_path / "small.toml").write_text(settings + "[ppo]\nenv_steps = 8\nsamples = 2\n")
    return [
        *("compare-explanations", "--dataset", tmp_path / "motifs.npz", "--splits", "1"),
        *("--epochs", "2", "--settings", tmp_path / "small.toml", "--device", "cpu"),
        *("--out", tmp_path / "out"),
    ]


def write_graphs(path: Path, truth: bool) -> None:
    graphs = ba_motifs(num_graphs=30, seed=0)
    marks = {"node_gt": graphs.node_truth.numpy(), "edge_gt": graphs.edge_truth.numpy()}
    np.savez(
        path,
        x=graphs.x.numpy(),
        edge_index=graphs.edge_index.numpy(),
        y=graphs.y.numpy(),
        node_ptr=graphs.node_ptr.numpy(),
        edge_ptr=graphs.edge_ptr.numpy(),
        **(marks if truth else {}),
    )


def test_every_method_gets_a_row_and_rows_are_not_measured_twice(
    ask: Ask, arguments: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, out, err = ask(*arguments, "--json")
    assert status == 0, err
    found = json.loads(out)
    rows = found["rows"]
    assert [row["method"] for row in rows] == [*METHODS]
    for row in rows:
        assert row["graphs"] == row["explained_graphs"] == 3
        for name in ("node_auc", "edge_auc", "node_judge_accuracy", "edge_judge_accuracy"):
            assert 0 <= row[name] <= 1, (row["method"], name)
        assert row["seconds_per_graph"] > 0
        assert row["training_seconds"] > 0
        assert (row["setup_seconds"] is not None) == (row["method"] == "pgexplainer")
    assert len({(row["node_ratio"], row["edge_ratio"]) for row in rows}) == 1, "equal shares"

    with (tmp_path / "out" / "explanations.csv").open() as file:
        written = list(csv.DictReader(file))
    assert [row["method"] for row in written] == [*METHODS]
    assert [*written[0]] == [*COLUMNS]

    monkeypatch.setattr(comparison.ExplainedCase, "rows", lambda *_: pytest.fail("measured again"))
    status, out, err = ask(*arguments)
    assert status == 0, err
    assert max(len(line) for line in out.splitlines() if str(tmp_path) not in line) <= 80
    for title in ("GNNExplainer", "CORES nodes", "suff. nodes", "% of the nodes"):
        assert title in out


@pytest.mark.parametrize("table", [summary_table, faithfulness_table])
def test_tables_of_several_seeds_stand_on_a_narrow_screen(
    table: Callable[..., Table], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    rows = [
        dict.fromkeys(COLUMNS, "") | dict.fromkeys(METRICS, value) | {"method": "gnnexplainer"}
        for value in ("1", "0.5", "0.25")
    ]
    print_table("BA_2Motifs", table(rows).markdown())
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    cells = next(line for line in lines if "GNNExplainer" in line).split()
    assert cells[1:5] == ["58.3±38.2"] * 4, "no cell is broken"
    head = next(line for line in lines if "method" in line)
    assert all(name in head for name in table(rows).head), "nor is the head"


def test_an_interrupted_comparison_keeps_its_rows_and_goes_on(
    ask: Ask, arguments: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [*arguments, "--models", "random,saliency"]
    measure = comparison.ExplainedCase.rows

    def interrupted(case: comparison.ExplainedCase, method: str) -> Any:
        if method == "saliency":
            raise KeyboardInterrupt
        return measure(case, method)

    with monkeypatch.context() as patch:
        patch.setattr(comparison.ExplainedCase, "rows", interrupted)
        status, _, err = ask(*asked)
    assert (status, "the same command continues" in err) == (130, True)
    lines = (tmp_path / "out" / "explanations.csv").read_text().splitlines()
    assert len(lines) == 2
    status, _, err = ask(*asked)
    assert status == 0, err
    assert (tmp_path / "out" / "explanations.csv").read_text().splitlines()[:2] == lines


def test_without_ground_truth_there_are_no_aucs_but_all_the_rest(
    ask: Ask, arguments: list[object], tmp_path: Path
) -> None:
    write_graphs(tmp_path / "motifs.npz", truth=False)
    asked = [*arguments, "--models", "random,cores-node", "--graphs", "2", "--seeds", "0-1"]
    status, out, err = ask(*asked, "--json")
    assert status == 0, err
    rows = json.loads(out)["rows"]
    assert [(row["method"], row["seed"], row["graphs"]) for row in rows] == [
        *(("random", 0, 2), ("cores-node", 0, 2)),
        *(("random", 1, 2), ("cores-node", 1, 2)),
    ]
    assert {row["node_auc"] for row in rows} == {row["edge_auc"] for row in rows} == {None}
    assert all(row["node_judge_accuracy"] is not None for row in rows)
    status, out, err = ask(*asked)
    assert status == 0, err
    assert "±" in out


def test_a_run_that_fails_costs_its_own_method_only(
    ask: Ask, arguments: list[object], failing: Callable[[str], None], tmp_path: Path
) -> None:
    failing("gsat")
    status, _, err = ask(*arguments, "--models", "random,gsat,cores-node")
    assert status == 2
    assert "1 runs failed, the first motifs-gsat" in err
    with (tmp_path / "out" / "explanations.csv").open() as file:
        assert [row["method"] for row in csv.DictReader(file)] == ["random", "cores-node"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--models", "shaply"], "unknown method 'shaply'; did you mean shapley"),
        (["--graphs", "0"], "--graphs must be positive, got 0"),
        (["--seeds", "x"], "--seeds takes numbers from 0 such as 1-5 or 1,3, got 'x'"),
        (["--conv", "gim"], "unknown conv 'gim'; did you mean gin"),
        (["--workers", "0"], "--workers must be positive, got 0"),
    ],
)
def test_a_comparison_asked_for_wrongly_gets_one_line_and_no_run(
    ask: Ask, tmp_path: Path, options: list[str], message: str
) -> None:
    asked = ["compare-explanations", "--dataset", "motifs", "--out", tmp_path / "out", *options]
    status, out, err = ask(*asked)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert not (tmp_path / "out").exists()


def test_a_damaged_row_is_told_by_its_line(
    ask: Ask, arguments: list[object], tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    values = dict.fromkeys(COLUMNS, "") | {"method": "random", "split": "1", "seed": "0"}
    lines = [",".join(COLUMNS), ",".join((values | {"node_auc": "nan"}).values())]
    (tmp_path / "out" / "explanations.csv").write_text("\n".join(lines) + "\n")
    status, _, err = ask(*arguments, "--models", "random")
    assert status == 2
    assert "explanations.csv: line 2 is not a measured explanation" in err
