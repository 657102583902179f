"""`cores equal-risk`: every order at the same controlled loss, resumable, in narrow tables."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cores.data.synthetic import ba_motifs
from cores.training import judge as judges
from cores_paper.explain import cuts as cutting
from cores_paper.explain import equal_risk
from cores_paper.explain.equal_risk_rows import COLUMNS, METRICS, ORDERS, table_of

Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data, settings and finished runs, for all tests."""
    folder = tmp_path_factory.mktemp("equal-risk")
    graphs = ba_motifs(num_graphs=200, seed=0)
    names = ("x", "edge_index", "y", "node_ptr", "edge_ptr")
    arrays = {name: getattr(graphs, name).numpy() for name in names}
    np.savez(folder / "motifs.npz", **arrays)
    settings = "[network]\nhidden_dim = 8\nnum_layers = 1\n[reward]\nreferees = 2\n"
    (folder / "small.toml").write_text(settings + "[ppo]\nenv_steps = 8\nsamples = 2\n")
    return folder


@pytest.fixture
def arguments(runs_here: None, monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[object]:
    """A comparison of a moment on two hundred graphs, twenty of them for calibration."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(judges, "EPOCHS", 1)
    monkeypatch.setattr(cutting, "SHARES", (1.0, 0.75, 0.5, 0.25, 0.0))
    return [
        *("equal-risk", "--dataset", folder / "motifs.npz", "--splits", "1", "--epochs", "2"),
        *("--settings", folder / "small.toml", "--device", "cpu", "--out", folder / "out"),
    ]


def test_every_order_has_a_row_for_every_loss_and_none_is_measured_twice(
    ask: Ask, arguments: list[object], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, out, err = ask(*arguments, "--json")
    assert status == 0, err
    rows = json.loads(out)["rows"]
    assert [(row["method"], row["max_loss"]) for row in rows] == [
        (name, loss) for name in ORDERS for loss in (0.02, 0.05, 0.1)
    ]
    for row in rows:
        assert (row["graphs"], row["calibration_graphs"], row["selection_graphs"]) == (20, 20, 20)
        assert row["rule"] in (["dial"] if row["method"] == "cores" else ["share", "threshold"])
        assert row["full_accuracy"] - row["accuracy"] <= row["loss"] + 1e-6
        assert row["confidence"] is None
        if row["max_loss"] == 0.02:
            assert (row["kept_ratio"], row["loss"]) == (1, 0), "20 graphs cannot promise it"
    assert len({row["full_accuracy"] for row in rows}) == 1, "one classifier for all"
    with (folder / "out" / "equal-risk.csv").open() as file:
        assert csv.DictReader(file).fieldnames == [*COLUMNS]

    monkeypatch.setattr(equal_risk.RiskCase, "rows", lambda *_: pytest.fail("measured again"))
    status, out, err = ask(*arguments)
    assert status == 0, err
    assert max(len(line) for line in out.splitlines() if str(folder) not in line) <= 80
    assert "A loss of 0.02 takes 49 calibration graphs, there are 20: nothing is cut" in out
    assert out.count("CORES dial") == 3


def test_a_confidence_has_rows_of_its_own(ask: Ask, arguments: list[object]) -> None:
    some = ("--models", "random,saliency", "--max-loss", "0.3", "--json")
    plain, sure = (
        json.loads(ask(*arguments, *some, *extra)[1])["rows"]
        for extra in ((), ("--confidence", "0.9"))
    )
    assert [row["method"] for row in sure] == ["saliency", "random"]
    assert {row["confidence"] for row in sure} == {0.9}
    assert not {row["key"] for row in plain} & {row["key"] for row in sure}
    for loose, strict in zip(plain, sure, strict=True):
        if loose["rule"] == strict["rule"]:
            assert loose["kept_ratio"] <= strict["kept_ratio"]


def test_a_run_that_fails_costs_its_own_method_only(
    ask: Ask, arguments: list[object], failing: Callable[[str], None]
) -> None:
    failing("gpool")
    status, out, err = ask(*arguments, "--models", "random,gpool,sagpool")
    assert status == 2
    assert "1 runs failed, the first motifs-gpool" in err
    assert "SAGPool" in out
    assert "GPool " not in out.replace("SAGPool", "")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--max-loss", "small"), "--max-loss takes shares such as 0.02,0.05, got 'small'"),
        (("--max-loss", "0.1,2"), "--max-loss must lie between 0 and 1, got 2"),
        (("--confidence", "1"), "--confidence must lie between 0 and 1, got 1"),
        (("--models", "gsaat"), "unknown method 'gsaat'; did you mean gsat?"),
    ],
)
def test_what_cannot_be_is_told_in_a_line(
    ask: Ask, arguments: list[object], options: tuple[str, ...], told: str
) -> None:
    status, out, err = ask(*arguments, *options)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert told in err


def test_a_table_has_mean_and_deviation() -> None:
    rows = [
        dict.fromkeys(COLUMNS, "")
        | dict.fromkeys(METRICS, value)
        | {"method": "gsat", "max_loss": loss}
        for loss in ("0.1", "0.02")
        for value in ("1", "0.5")
    ]
    assert table_of(rows, "kept_ratio") == (
        ["method", "at 0.02", "at 0.1"],
        [["GSAT", "75.0 ± 35.4", "75.0 ± 35.4"]],
    )
