"""The folder of a run: whose it is, and what becomes of a missing, strange or damaged file."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from cores import Cores
from cores.config import RunConfig
from cores.data.datasets import load_dataset
from cores.errors import UserError
from cores.runs.run import evaluate_run, train_run


def config(dataset: Path | str = "motifs", **changes: Any) -> RunConfig:
    settings = {
        "dataset": str(dataset),
        "model": "gnn",
        "network": {"hidden_dim": 8, "num_layers": 2, "dropout": 0.1},
        "training": {"epochs": 6, "batch_size": 64},
    }
    return RunConfig.from_settings(settings | changes)


def test_another_runs_folder_is_refused(tmp_path: Path) -> None:
    train_run(config(), tmp_path / "run", device="cpu")
    with pytest.raises(UserError, match="already holds this run; go on with resume=True"):
        train_run(config(), tmp_path / "run", device="cpu")
    for resume in (False, True):
        with pytest.raises(UserError, match=r"holds another run .*split is 1 there and 2 here"):
            train_run(config(split=2), tmp_path / "run", device="cpu", resume=resume)
    other = config(network={"hidden_dim": 8, "num_layers": 2, "dropout": 0.0})
    with pytest.raises(UserError, match=r"network\.dropout is 0\.1 there and 0\.0 here"):
        train_run(other, tmp_path / "run", device="cpu")


def test_two_processes_cannot_write_one_run(tmp_path: Path) -> None:
    wanted = config(training={"epochs": 1})

    def intrude(epoch: int, metrics: dict[str, float]) -> None:
        with pytest.raises(UserError, match="another process is writing"):
            train_run(wanted, tmp_path / "run", device="cpu", resume=True)

    train_run(wanted, tmp_path / "run", device="cpu", report=intrude)


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(UserError, match=r"is not empty and holds no run \(there is thesis.tex\)"):
        train_run(config(), tmp_path, device="cpu")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_checkpoint_without_its_configuration_is_not_taken_over(tmp_path: Path) -> None:
    train_run(config(), tmp_path / "run", device="cpu")
    (tmp_path / "run" / "config.json").unlink()
    with pytest.raises(UserError, match="is not empty and holds no run"):
        train_run(config(seed=5), tmp_path / "run", device="cpu")


def test_a_run_that_lost_its_model_makes_it_again(tmp_path: Path) -> None:
    before = train_run(config(), tmp_path / "run", device="cpu")
    (tmp_path / "run" / "model.safetensors").unlink()
    after = train_run(config(), tmp_path / "run", device="cpu", resume=True)
    assert after["accuracy"] == before["accuracy"]
    assert evaluate_run(tmp_path / "run", device="cpu")["accuracy"] == before["accuracy"]


def test_damaged_metrics_are_named(tmp_path: Path) -> None:
    train_run(config(), tmp_path / "run", device="cpu")
    for text in ("[]", '{"accuracy": 1}', '{"accuracy": 1, "model": 2, "verdicts": [3]}'):
        (tmp_path / "run" / "metrics.json").write_text(text)
        with pytest.raises(UserError, match=r"metrics\.json is damaged; delete it"):
            train_run(config(), tmp_path / "run", device="cpu", resume=True)


def test_a_hidden_file_of_the_user_is_not_taken_for_a_leftover(tmp_path: Path) -> None:
    train_run(config(), tmp_path / "run", device="cpu")
    (tmp_path / "run" / "metrics.json").unlink()
    mine = tmp_path / "run" / ".notes.tmp"
    mine.write_text("precious")
    ours = tmp_path / "run" / ".metrics.json.0123456789ab.tmp"
    ours.write_text("half of it")
    train_run(config(), tmp_path / "run", device="cpu", resume=True)
    assert mine.exists()
    assert not ours.exists()


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    train_run(config(), tmp_path / "run", device="cpu")
    (tmp_path / "run" / "metrics.json").unlink()
    (tmp_path / "run" / "checkpoint.safetensors").write_bytes(os.urandom(200))
    with pytest.raises(UserError, match=r"checkpoint\.safetensors is damaged or not ours"):
        train_run(config(), tmp_path / "run", device="cpu", resume=True)


def test_data_that_changed_is_noticed(tmp_path: Path, tu_folder: Path) -> None:
    wanted = config(tu_folder)
    train_run(wanted, tmp_path / "run", device="cpu")
    attributes = tu_folder / "toy_node_attributes.txt"
    attributes.write_text(attributes.read_text().replace("3.5", "3.6"))
    with pytest.raises(UserError, match="the dataset has changed since the run"):
        evaluate_run(tmp_path / "run", device="cpu")
    (tmp_path / "run" / "metrics.json").unlink()
    with pytest.raises(UserError, match="the dataset has changed since the run"):
        train_run(wanted, tmp_path / "run", device="cpu", resume=True)


def test_a_kill_in_the_very_first_write_leaves_a_folder_that_can_be_used(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "lock").touch()
    (tmp_path / "run" / ".config.json.0123456789ab.tmp").write_text('{"conf')
    train_run(config(), tmp_path / "run", device="cpu", resume=True)
    assert not list((tmp_path / "run").glob(".*.tmp"))


def test_a_run_made_by_another_process_meanwhile_is_not_mixed_with_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is free when we look, and taken when our data is loaded."""

    def slow_load(*arguments: object, **options: object) -> object:
        monkeypatch.undo()
        train_run(config(seed=1), tmp_path / "run", device="cpu")
        return load_dataset("motifs")

    monkeypatch.setattr("cores.runs.run.load_dataset", slow_load)
    with pytest.raises(UserError, match="holds another run"):
        train_run(config(seed=2), tmp_path / "run", device="cpu")


def test_a_runs_configuration_names_its_format_its_data_and_where_they_lie(
    tmp_path: Path, tu_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run on a path that was relative is measured from any folder."""
    monkeypatch.chdir(tu_folder.parent)
    wanted = config(f"./{tu_folder.name}")
    train_run(wanted, tmp_path / "run", device="cpu")
    identity = json.loads((tmp_path / "run" / "config.json").read_text())
    assert identity["format"] == 2
    assert identity["config"] == wanted.settings
    assert identity["schema"]["class_names"] == ["1", "5"]
    assert identity["schema"]["fingerprint"] == load_dataset(str(tu_folder)).fingerprint
    assert identity["source"] == str(tu_folder)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert evaluate_run(tmp_path / "run", device="cpu")["test_graphs"] == 2


def test_a_dataset_known_by_name_has_no_place(tmp_path: Path) -> None:
    train_run(config(training={"epochs": 1}), tmp_path / "run", device="cpu")
    identity = json.loads((tmp_path / "run" / "config.json").read_text())
    assert identity["source"] is None
    assert evaluate_run(tmp_path / "run", device="cpu")["dataset"] == "motifs"


def test_a_folder_of_another_version_is_told_by_its_version(tmp_path: Path) -> None:
    old = {"config": {}, "task": {}, "version": "0.0.9"}
    (tmp_path / "config.json").write_text(json.dumps(old))
    for action in (
        lambda: train_run(config(), tmp_path, device="cpu", resume=True),
        lambda: evaluate_run(tmp_path, device="cpu"),
    ):
        with pytest.raises(UserError, match=r"was written by version 0\.0\.9 of this program"):
            action()


def test_a_model_without_a_committee_has_to_be_trained_again(tmp_path: Path) -> None:
    settings = {"preset": "default", "ppo": {}, "reward": {"dial": True}, "classifier_data": {}}
    old = {"format": 2, "version": "0.3.0", "config": settings, "schema": {}}
    (tmp_path / "config.json").write_text(json.dumps(old))
    for action in (
        lambda: train_run(config(), tmp_path, device="cpu", resume=True),
        lambda: evaluate_run(tmp_path, device="cpu"),
        lambda: Cores.load(tmp_path),
    ):
        with pytest.raises(UserError, match="was trained without a committee; train it again") as e:
            action()
        assert "\n" not in str(e.value)


@pytest.mark.parametrize("text", ["[]", "{}", '{"format": 2, "config": 3, "schema": {}}', "{"])
def test_a_damaged_configuration_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    for action in (
        lambda: train_run(config(), tmp_path, device="cpu", resume=True),
        lambda: evaluate_run(tmp_path, device="cpu"),
    ):
        with pytest.raises(UserError, match=r"config\.json is not"):
            action()
