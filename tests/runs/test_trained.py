"""The files of a trained model, crafted by somebody else: one line each, and never a traceback."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from cores import Cores
from cores.errors import UserError
from cores.runs.rows import read_metrics, run_row
from cores.runs.trained import TrainedModel
from cores.training.state import load_state, save_state


@pytest.fixture
def run(molecule_run: Path, tmp_path: Path) -> Path:
    """A folder of a tiny model, ours to damage."""
    return Path(shutil.copytree(molecule_run, tmp_path / "run"))


Change = Callable[[dict[str, Any]], Any]


def changed(path: Path, change: Change) -> None:
    """Change a JSON file in place."""
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


SCHEMA: dict[str, Any] = {
    "class_names": ["ab", [3, 4], ["a"], [], None, {"a": 1}, [None, "b"]],
    "labels": [
        *("ab", [[1], [2]], ["a"], 2, [None, None], [{}, {}], ["a", "a"], ["a", 1], [0, False]),
        *([0, 2**63], [0.5, 1.5], ["\ud800", "a"]),
    ],
    "feature_names": ["x" * 40, [1] * 40, 3],
    "fingerprint": [3, None],
    "encoding": [
        *("molecules", [], {"kind": "images"}, {"kind": ["molecules"]}, {"node_numbers": "many"}),
        *({"version": -1}, {"node_values": 3}, {"edge_values": [[[1]]]}),
    ],
}


@pytest.mark.parametrize("name", SCHEMA)
def test_a_schema_of_wrong_types_is_told_in_a_line(run: Path, name: str) -> None:
    whole = (run / "config.json").read_text()
    for value in SCHEMA[name]:
        (run / "config.json").write_text(whole)
        changed(run / "config.json", lambda found, new=value: found["schema"].update({name: new}))
        with pytest.raises(UserError, match=r"config.json does not name its data as it should"):
            TrainedModel.load(run)


CALIBRATION: dict[str, Change] = {
    "labels of other classes": lambda saved: saved["calibration"]["labels"].fill_(7),
    "labels below zero": lambda saved: saved["calibration"]["labels"].fill_(-1),
    "fractional labels": lambda saved: saved["calibration"].update(labels=torch.rand(16)),
    "labels in a column": lambda saved: saved["calibration"]["labels"].unsqueeze_(1),
    "one label": lambda saved: saved["calibration"].update(labels=torch.tensor(0)),
    "whole probabilities": lambda saved: saved["calibration"].update(
        probs=saved["calibration"]["probs"].long()
    ),
    "no tensor": lambda saved: saved["calibration"].update(probs=[[0.5, 0.5]]),
    "no labels": lambda saved: saved["calibration"].pop("labels"),
    "a list": lambda saved: saved.update(calibration=[]),
    "a test part below zero": lambda saved: saved["parts"].update(test=torch.tensor([-1])),
    "fractions of test graphs": lambda saved: saved["parts"].update(test=torch.rand(3)),
    "a test part in words": lambda saved: saved["parts"].update(test="all"),
    "complex weights": lambda saved: saved["model"].update(
        {name: each.to(torch.complex64) for name, each in saved["model"].items()}
    ),
}


@pytest.mark.parametrize("change", CALIBRATION.values(), ids=CALIBRATION)
def test_crafted_weights_or_parts_are_told_in_a_line(run: Path, change: Change) -> None:
    saved = load_state(run / "model.safetensors")
    change(saved)
    save_state(run / "model.safetensors", saved)
    with pytest.raises(UserError, match=r"model.safetensors does not fit config.json"):
        TrainedModel.load(run)


METRICS: dict[str, Change] = {
    "no model": lambda metrics: metrics.pop("model"),
    "a list of models": lambda metrics: metrics.update(model=["gnn"]),
    "an accuracy in words": lambda metrics: metrics.update(accuracy="high"),
    "a coverage of lists": lambda metrics: metrics.update(coverage=[[]]),
    "an accuracy without end": lambda metrics: metrics.update(accuracy=float("inf")),
    "a number of 400 digits": lambda metrics: metrics.update(epochs=10**400),
    "NaN somewhere": lambda metrics: metrics.update(note=[float("nan")]),
    "one verdict": lambda metrics: metrics.update(verdicts="good"),
    "a promise in words": lambda metrics: metrics.update(promise="nothing is lost"),
    "half a promise": lambda metrics: metrics.update(promise={"sufficiency": 0.5, "graphs": 40}),
    "verdicts of numbers": lambda metrics: metrics.update(verdicts=[1]),
}


@pytest.mark.parametrize("change", METRICS.values(), ids=METRICS)
def test_crafted_metrics_are_told_in_a_line(run: Path, change: Change) -> None:
    changed(run / "metrics.json", change)
    for action in (run_row, Cores.load, lambda folder: read_metrics(folder / "metrics.json")):
        with pytest.raises(UserError, match=r"metrics.json is damaged; delete it"):
            action(run)


def test_weights_that_were_changed_are_noticed(run: Path) -> None:
    path = run / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match="is damaged: its content is not what its checksum says"):
        TrainedModel.load(run)
