"""One configuration, one run: what its folder holds, how it resumes, what it is measured on."""

import json
import random
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from cores.config import RunConfig
from cores.data import datasets
from cores.data.datasets import load_dataset
from cores.data.splits import split_dataset
from cores.data.synthetic import ba_motifs
from cores.errors import UserError
from cores.runs.inputs import PredictOptions
from cores.runs.run import evaluate_run, train_run
from cores.runs.trained import TrainedModel

CONTRACT = {
    *("accuracy", "balanced_accuracy", "majority_rate", "node_ratio", "edge_ratio"),
    *("full_accuracy", "judge_accuracy", "judge_full_accuracy", "judge_random_accuracy"),
    *("judge_balanced_accuracy", "judge_full_balanced_accuracy", "judge_random_balanced_accuracy"),
    *("coverage", "set_size", "alpha", "dataset", "model", "conv", "split", "seed", "epochs"),
    *("seconds", "test_graphs", "roc_auc", "average_precision", "f1", "mcc"),
}

pytestmark = pytest.mark.usefixtures("few_motifs")
Begun = Callable[[Callable[[], object]], psutil.Process]


def config(dataset: Path | str = "motifs", **changes: Any) -> RunConfig:
    settings = {
        "dataset": str(dataset),
        "model": "gnn",
        "network": {"hidden_dim": 8, "num_layers": 2, "dropout": 0.1},
        "training": {"epochs": 6, "batch_size": 64},
    }
    return RunConfig.from_settings(settings | changes)


def comparable(folder: Path) -> dict[str, Any]:
    metrics: dict[str, Any] = json.loads((folder / "metrics.json").read_text())
    del metrics["seconds"]
    return metrics


def test_a_run_folder_holds_what_the_contract_names(tmp_path: Path) -> None:
    metrics = train_run(config(), tmp_path / "run", device="cpu")
    assert {path.name for path in (tmp_path / "run").iterdir()} >= {
        "config.json",
        "model.safetensors",
        "metrics.json",
        "history.jsonl",
        "checkpoint.safetensors",
    }
    assert metrics.keys() >= CONTRACT
    assert json.loads((tmp_path / "run" / "metrics.json").read_text()) == metrics
    assert 0.5 <= metrics["coverage"] <= 1
    assert metrics["judge_accuracy"] is None


def test_the_paper_preset_has_no_calibrated_sets(tmp_path: Path) -> None:
    parts = {"policy": 0.5, "selection": 0.0, "calibration": 0.0}
    metrics = train_run(config(parts=parts), tmp_path / "run", device="cpu")
    assert metrics["coverage"] is None
    assert metrics["set_size"] is None


def test_equal_seeds_give_equal_bytes_and_other_seeds_do_not(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        train_run(config(seed=seed), tmp_path / name, device="cpu")
    weights = {name: (tmp_path / name / "model.safetensors").read_bytes() for name in "abc"}
    assert weights["a"] == weights["b"] != weights["c"]
    history = {name: (tmp_path / name / "history.jsonl").read_bytes() for name in "abc"}
    assert history["a"] == history["b"] != history["c"]
    assert comparable(tmp_path / "a") == comparable(tmp_path / "b")


def test_resuming_a_run_whose_patience_ran_out_trains_no_further(tmp_path: Path) -> None:
    wanted = config(training={"epochs": 50, "patience": 2, "learning_rate": 0.5})
    train_run(wanted, tmp_path / "run", device="cpu")
    before = comparable(tmp_path / "run")
    assert before["epochs"] < 50
    (tmp_path / "run" / "metrics.json").unlink()
    train_run(wanted, tmp_path / "run", device="cpu", resume=True)
    assert comparable(tmp_path / "run") == before


def test_a_half_written_history_line_is_cut_on_resume(tmp_path: Path) -> None:
    train_run(config(), tmp_path / "whole", device="cpu")
    shutil.copytree(tmp_path / "whole", tmp_path / "torn")
    (tmp_path / "torn" / "metrics.json").unlink()
    with (tmp_path / "torn" / "history.jsonl").open("a") as file:
        file.write('{"epoch": 7, "los')
    train_run(config(), tmp_path / "torn", device="cpu", resume=True)
    histories = [(tmp_path / name / "history.jsonl").read_bytes() for name in ("whole", "torn")]
    assert histories[0] == histories[1]


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked")
def test_a_run_killed_at_random_epochs_resumes_to_the_same_metrics(
    tmp_path: Path, begun: Begun
) -> None:
    """SIGKILL, three times, wherever it strikes: in an epoch, in a write, between two."""
    wanted = config(training={"epochs": 60}, network={"hidden_dim": 16, "dropout": 0.1})
    train_run(wanted, tmp_path / "whole", device="cpu")
    killed = tmp_path / "killed"
    history = killed / "history.jsonl"
    pause = random.Random()  # not seeded: every run of this test tries other moments
    for at_line in sorted(pause.sample(range(1, 45), 3)):
        process = begun(lambda: train_run(wanted, killed, device="cpu", resume=True))
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            lines = history.read_bytes().count(b"\n") if history.exists() else 0
            if lines >= at_line:
                time.sleep(pause.random() * 0.05)
                process.kill()
                break
            time.sleep(0.005)
        assert process.wait() == -signal.SIGKILL, "the run must have been caught alive"
    assert not (killed / "metrics.json").exists()
    train_run(wanted, killed, device="cpu", resume=True)
    assert comparable(killed) == comparable(tmp_path / "whole")
    for name in ("history.jsonl", "model.safetensors"):
        assert (killed / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize(
    ("parts", "unseen"),
    [
        ({}, ("selection", "calibration", "test")),
        ({"policy": 0.5, "selection": 0.0, "calibration": 0.0}, ("policy", "test")),
    ],
    ids=["default", "paper"],
)
def test_scalers_and_clips_see_the_training_part_alone(
    tmp_path: Path,
    tu_folder: Path,
    parts: dict[str, float],
    unseen: tuple[str, ...],
) -> None:
    """Poison every other part: the fitted scaler must not move."""
    wanted = config(tu_folder, parts=parts)
    split = split_dataset(load_dataset(str(tu_folder)), wanted.split, wanted.parts)
    scalers = []
    for name in ("clean", "poisoned"):
        dataset = replace(load_dataset(str(tu_folder)), clipped=(0,))
        if name == "poisoned":
            for graph in torch.cat([getattr(split, role) for role in unseen]).tolist():
                first, last = dataset.graphs.node_ptr[graph : graph + 2]
                dataset.graphs.x[first:last, :2] = 1e6
        train_run(wanted, tmp_path / name, dataset=dataset, device="cpu")
        scalers.append(TrainedModel.load(tmp_path / name).model.scaler)
    for name in ("low", "high", "mean", "std"):
        clean, poisoned = (getattr(scaler, name) for scaler in scalers)
        assert torch.equal(clean, poisoned), name
    assert scalers[0].mean[0] != 0
    assert scalers[0].low[0].isfinite()


def test_evaluate_checks_alpha(tmp_path: Path) -> None:
    train_run(config(), tmp_path / "run", device="cpu")
    with pytest.raises(UserError, match="`alpha` must lie in"):
        evaluate_run(tmp_path / "run", PredictOptions(alpha=1.0), device="cpu")


def test_evaluating_on_other_data_checks_features_and_labels(
    tmp_path: Path, tu_folder: Path
) -> None:
    train_run(config(), tmp_path / "run", device="cpu")
    with pytest.raises(UserError, match=r"have 2 numbers and 1 kind of label per node, .* 10 num"):
        evaluate_run(tmp_path / "run", dataset=str(tu_folder), device="cpu")
    with pytest.raises(UserError, match="holds no run"):
        evaluate_run(tmp_path / "nothing", device="cpu")


def test_naming_its_own_dataset_still_measures_only_the_test_part(tmp_path: Path) -> None:
    trained = train_run(config(), tmp_path / "run", device="cpu")
    evaluated = evaluate_run(tmp_path / "run", dataset="MOTIFS", device="cpu")
    assert evaluated["test_graphs"] == trained["test_graphs"] == 20


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_trains_resumes_and_measures(tmp_path: Path) -> None:
    def stop(epoch: int, metrics: dict[str, float]) -> None:
        if epoch == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_run(config(), tmp_path / "run", device="cuda", report=stop)
    trained = train_run(config(), tmp_path / "run", device="cuda", resume=True)
    assert trained["epochs"] == 6
    assert evaluate_run(tmp_path / "run", device="cpu")["test_graphs"] == 20


@pytest.mark.data
def test_labels_of_another_dataset_are_matched_by_name(tmp_path: Path, data_root: Path) -> None:
    train_run(config(), tmp_path / "run", device="cpu")
    with pytest.raises(UserError, match=r"has the label 0, the model knows cycle, house"):
        evaluate_run(tmp_path / "run", dataset="BA_2Motifs", data_root=data_root, device="cpu")


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked")
def test_gin_solves_the_generated_motifs_with_the_default_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Constant features, learnt from structure alone."""
    monkeypatch.setattr(datasets, "ba_motifs", ba_motifs)  # all of them
    wanted = RunConfig.from_settings({"model": "gnn", "training": {"epochs": 40}})
    assert train_run(wanted, tmp_path / "run", device="cpu")["accuracy"] >= 0.99


def test_a_run_folder_travels_and_asks_for_data_that_have_gone(
    tmp_path: Path, tu_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tu_folder.parent)
    trained = train_run(config(f"./{tu_folder.name}"), Path("run"), device="cpu")
    (tmp_path / "far" / "away").mkdir(parents=True)
    moved = (tmp_path / "run").rename(tmp_path / "far" / "moved")
    monkeypatch.chdir(tmp_path / "far" / "away")
    assert evaluate_run(Path("../moved"), device="cpu")["accuracy"] == trained["accuracy"]
    data = tu_folder.rename(tmp_path / "far" / "data")
    with pytest.raises(UserError, match=r"no longer at .*toy; say where with `dataset`") as told:
        evaluate_run(moved, device="cpu")
    assert "\n" not in str(told.value)
    found = evaluate_run(moved, dataset=str(data), device="cpu")
    assert found["accuracy"] == trained["accuracy"]
    assert found["test_graphs"] == trained["test_graphs"], "still its own test part"


def test_a_run_on_a_dataset_that_is_not_known_here_asks_for_it(tmp_path: Path) -> None:
    train_run(config(), tmp_path / "run", device="cpu")
    identity = json.loads((tmp_path / "run" / "config.json").read_text())
    identity["config"]["dataset"] = "graphs"  # what an estimator's graphs are called
    (tmp_path / "run" / "config.json").write_text(json.dumps(identity))
    with pytest.raises(UserError, match=r"'graphs' is no known dataset; give a `dataset`"):
        evaluate_run(tmp_path / "run", device="cpu")
