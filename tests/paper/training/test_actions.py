"""Metrics of what a policy samples, beside those of its mode or in their place."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cores.config import RunConfig
from cores.config.presets import preset_config
from cores.runs.run import evaluate_run, train_run

Settings = Callable[..., RunConfig]
pytestmark = pytest.mark.usefixtures("short_judge", "unchecked")
FIGURES = ("accuracy", "node_ratio", "edge_ratio")


@pytest.mark.usefixtures("few_motifs")
def test_the_authors_figures_are_of_a_sample_and_the_mode_stands_beside_them(
    in_turns: Settings, tmp_path: Path
) -> None:
    config = in_turns(training={"epochs": 6, "patience": 1}, paper={"last_policy_epochs": 2})
    metrics = train_run(config, tmp_path / "run", device="cpu")
    for name in FIGURES:
        assert metrics[f"sampled_{name}"] == metrics[name]
    assert metrics["node_ratio"] < 0.9 < metrics["mode_node_ratio"], "a policy that hardly moved"
    assert metrics["coverage"] is None
    evaluated = evaluate_run(tmp_path / "run", device="cpu")
    for name in (*FIGURES, "judge_accuracy"):
        assert evaluated[name] == metrics[name]


@pytest.mark.usefixtures("few_motifs")
def test_samples_stand_beside_the_mode_in_the_paper_preset(
    together: Settings, tmp_path: Path
) -> None:
    config = together(training={"epochs": 2}, parts={"calibration": 0.1})
    metrics = train_run(config, tmp_path / "run", device="cpu")
    assert "mode_accuracy" not in metrics
    assert metrics["coverage"] is not None
    mode = evaluate_run(tmp_path / "run", device="cpu")
    sampled = evaluate_run(tmp_path / "run", device="cpu", sample=True)
    for name in FIGURES:
        assert metrics[name] == mode[name]
        assert metrics[f"sampled_{name}"] == sampled[name]
    assert mode["node_ratio"] > sampled["node_ratio"]


@pytest.mark.data
def test_the_published_settings_run_on_their_own_parts(data_root: Path, tmp_path: Path) -> None:
    """Selection is the policy part, and there is nothing to calibrate with."""
    for preset, model in (
        ("paper", "cores-edge"),
        ("authors", "cores-node"),
        ("authors", "random"),
    ):
        config = preset_config("MUTAG", model, "gin", preset, {"training": {"epochs": 3}})
        run = tmp_path / f"{preset}-{model}"
        metrics = train_run(config, run, data_root=data_root, device="cpu")
        assert (metrics["preset"], metrics["coverage"]) == (preset, None)
        assert metrics["edge_ratio"] < 0.9 or preset == "paper"
        assert "sampled_accuracy" in metrics or model == "random"
        assert ("paper" in json.loads((run / "config.json").read_text())["config"]) == (
            model != "random"
        )
