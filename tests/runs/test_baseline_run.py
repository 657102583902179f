"""Runs of the baselines: trained, saved, resumed, measured and called like any other model."""

import json
from pathlib import Path
from typing import Any

import pytest

from cores.config import RunConfig
from cores.explain.run import explain_test_graphs
from cores.runs.run import evaluate_run, train_run

MODELS = ("sagpool", "gpool", "diffpool", "sugar", "gsat", "gmt", "random")
KEEP_A_PART = ("sagpool", "gpool", "sugar", "random")


pytestmark = pytest.mark.usefixtures("few_motifs", "short_judge")


def config(model: str, **changes: Any) -> RunConfig:
    settings = {
        "dataset": "motifs",
        "model": model,
        "network": {"hidden_dim": 8, "num_layers": 2, "dropout": 0.1},
        "training": {"epochs": 3, "batch_size": 64},
    }
    return RunConfig.from_settings(settings | changes)


def files(folder: Path) -> dict[str, Any]:
    metrics = json.loads((folder / "metrics.json").read_text())
    del metrics["seconds"]
    found = {name: (folder / name).read_bytes() for name in ("history.jsonl", "model.safetensors")}
    return found | {"metrics": metrics}


@pytest.mark.parametrize("model", MODELS)
def test_a_run_measures_what_applies_to_the_model(model: str, tmp_path: Path) -> None:
    metrics = train_run(config(model), tmp_path / "run", device="cpu")
    assert (metrics["node_ratio"] < 1) == (model in KEEP_A_PART)
    assert (metrics["judge_accuracy"] is not None) == (model in KEEP_A_PART)
    scored = model not in ("diffpool", "random")
    assert (metrics["node_auc"] is not None) == scored
    assert (metrics["edge_auc"] is not None) == scored
    assert metrics["coverage"] is not None
    assert 0 <= metrics["full_accuracy"] <= 1
    evaluated = evaluate_run(tmp_path / "run", device="cpu")
    same = ("accuracy", "node_ratio", "full_accuracy", "judge_accuracy", "node_auc", "coverage")
    assert all(evaluated[name] == metrics[name] for name in same)
    explanations, names = explain_test_graphs(tmp_path / "run", 3)
    assert [len(each.probabilities) for each in explanations] == [len(names)] * 3


@pytest.mark.parametrize("model", MODELS)
def test_an_interrupted_run_goes_on_to_the_same_bytes(model: str, tmp_path: Path) -> None:
    train_run(config(model), tmp_path / "whole", device="cpu")

    def stop(epoch: int, metrics: dict[str, float]) -> None:
        if epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_run(config(model), tmp_path / "cut", device="cpu", report=stop)
    train_run(config(model), tmp_path / "cut", device="cpu", resume=True)
    assert files(tmp_path / "cut") == files(tmp_path / "whole")
