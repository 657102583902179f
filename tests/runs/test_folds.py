"""Cross-validation: a run per fold."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cores.cli.display import print_table
from cores.config import NetworkConfig, RunConfig, TrainingConfig
from cores.data.datasets import load_dataset
from cores.data.inputs.columns import ColumnNames
from cores.data.splits import split_dataset
from cores.errors import UserError
from cores.runs.folder import Identity
from cores.runs.folds import SHOWN, folds_table, spread_of, train_folds
from cores.runs.progress import Reports
from cores.runs.run import evaluate_run, train_run

QUICK = RunConfig(
    model="gnn", training=TrainingConfig(epochs=1), network=NetworkConfig(hidden_dim=8)
)


def test_every_graph_is_tested_once_and_finished_folds_are_not_repeated(tmp_path: Path) -> None:
    out, epochs = tmp_path / "folds", []

    @contextmanager
    def progress(fold: RunConfig) -> Iterator[Reports]:
        yield Reports(lambda epoch, metrics: epochs.append((fold.split, epoch)))

    found = train_folds(QUICK, 3, out, device="cpu", progress=progress)
    assert epochs == [(1, 1), (2, 1), (3, 1)]
    dataset = load_dataset("motifs")
    configs = [Identity.read(out / f"fold{number}").config for number in (1, 2, 3)]
    tested = torch.cat([split_dataset(dataset, each.split, each.parts).test for each in configs])
    assert tested.sort().values.tolist() == list(range(len(dataset)))
    assert sum(fold["test_graphs"] for fold in found["folds"]) == len(dataset)
    assert json.loads((out / "folds.json").read_text()) == found
    again = train_folds(QUICK, 3, out, device="cpu", progress=progress)
    assert len(epochs) == 3
    assert again == found


@pytest.mark.slow
@pytest.mark.usefixtures("quick_workers")
def test_folds_in_processes_are_those_of_one_process(tmp_path: Path) -> None:
    ended: list[str] = []
    found = train_folds(
        QUICK,
        2,
        tmp_path / "both",
        device="cpu",
        workers=2,
        done=lambda outcome: ended.append(outcome.folder.name),
    )
    assert sorted(ended) == ["fold1", "fold2"]
    alone = train_folds(QUICK, 2, tmp_path / "alone", device="cpu")
    for fold in (*found["folds"], *alone["folds"]):
        del fold["seconds"]
    assert found["folds"] == alone["folds"]
    assert (tmp_path / "both" / "folds.json").exists()


def test_folds_that_fail_are_told_after_the_others_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_turns(
        runs: list[RunConfig], job: object, workers: int
    ) -> Iterator[tuple[RunConfig, str | None]]:
        yield from zip(runs, (None, "the disk is full", "out of memory"), strict=True)

    monkeypatch.setattr("cores.runs.workers.in_processes", in_turns)
    ended: list[str | None] = []
    with pytest.raises(UserError, match="2 folds failed, the first fold2: the disk is full"):
        train_folds(
            QUICK,
            3,
            tmp_path,
            device="cpu",
            workers=2,
            done=lambda outcome: ended.append(outcome.failure),
        )
    assert len(ended) == 3


def test_the_table_has_a_line_per_fold_and_their_spread() -> None:
    measured = [
        {"accuracy": 0.5, "roc_auc": None, "judge_accuracy": None},
        {"accuracy": 1.0, "roc_auc": 0.75, "judge_accuracy": None},
    ]
    found = {"folds": measured, **spread_of(measured)}
    assert found["mean"] == {"accuracy": 0.75, "roc_auc": 0.75, "judge_accuracy": None}
    assert found["std"]["accuracy"] == pytest.approx(0.5**0.5 / 2)
    assert folds_table(found).splitlines() == [
        "| fold | accuracy | ROC-AUC |",
        "|---|---|---|",
        "| 1 | 50.0 | – |",
        "| 2 | 100.0 | 75.0 |",
        "| mean | 75.0 | 75.0 |",
        "| ± | 35.4 | – |",
    ]


def test_the_table_fits_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    folds = [dict.fromkeys(SHOWN, 1.0), dict.fromkeys(SHOWN, 0.0)]
    print_table("some", folds_table({"folds": folds, **spread_of(folds)}))
    shown = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert shown[1] == ["fold", *SHOWN.values()]
    assert [line[0] for line in shown[3:]] == ["1", "2", "mean", "±"]
    assert all(len(line) == 1 + len(SHOWN) for line in shown[3:])


def test_what_cannot_be_cross_validated_is_told_before_the_first_fold(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(UserError, match="but each of the 600 folds needs one"):
        train_folds(QUICK, 600, out, device="cpu")
    assert not out.exists()
    with pytest.raises(UserError, match="`folds` must be 0 or lie in"):
        train_folds(QUICK, 1, out, device="cpu")
    out.mkdir()
    (out / "config.json").write_text("{}")
    with pytest.raises(UserError, match="holds a run of its own"):
        train_folds(QUICK, 3, out, device="cpu")


def test_a_split_counts_the_folds() -> None:
    with pytest.raises(UserError, match="number of one of 3 folds, got 4"):
        RunConfig.from_settings({"split": 4, "parts": {"folds": 3}})


def test_a_run_by_a_split_column_is_measured_on_that_columns_test_part(tmp_path: Path) -> None:
    """Also where the file is named again, without the column: the rest was trained on."""
    pytest.importorskip("rdkit")
    rows = [
        f"{'C' * (1 + n % 7)}{'N' if n % 2 else 'O'},{n % 2},{'test' if n % 5 == 0 else 'train'}"
        for n in range(100)
    ]
    table = tmp_path / "molecules.csv"
    table.write_text("\n".join(["smiles,label,fold", *rows]) + "\n")
    columns = ColumnNames(split="fold")
    out = tmp_path / "run"
    trained = train_run(replace(QUICK, dataset=str(table)), out, columns=columns, device="cpu")
    assert trained["test_graphs"] == 20
    again = evaluate_run(out, dataset=str(table), device="cpu")
    assert (again["test_graphs"], again["accuracy"]) == (20, trained["accuracy"])
