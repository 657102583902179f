"""`cores train` in several processes, as a user starts it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

ALONE = [sys.executable]
TOGETHER = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


@pytest.fixture
def train(molecule_file: Path, tmp_path: Path) -> Callable[..., Path]:
    """Trains a tiny model; returns the run folder.

    Without batch norm: the gradients of the biases before it are rounding, along which Adam makes
    steps, and results of single precision differ by more than rounding after a few of them.
    """
    tiny = ("--epochs", "4", "--device", "cpu", "--network.batch_norm", "false")
    small = ("--network.hidden_dim", "8", "--network.num_layers", "1")

    def run(launcher: list[str], model: str) -> Path:
        out = tmp_path / f"{len(launcher)}-{model}"
        data = ("--dataset", str(molecule_file), "--model", model, "--out", str(out), "--json")
        ran = subprocess.run(
            [*launcher, "-m", "cores", "train", *data, *tiny, *small],
            env=os.environ | {"OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(out.with_suffix(".c"))},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        assert json.loads(ran.stdout) == json.loads((out / "metrics.json").read_text())
        return out

    return run


@pytest.mark.parametrize("model", ["gnn", pytest.param("cores-node", marks=pytest.mark.slow)])
def test_torchrun_leaves_the_run_folder_of_one_process(
    model: str, train: Callable[..., Path]
) -> None:
    one, two = train(ALONE, model), train(TOGETHER, model)
    assert {path.name for path in one.iterdir()} == {path.name for path in two.iterdir()}
    assert read(one)["config"] == read(two)["config"]
    for here, there in zip(history(one), history(two), strict=True):
        assert here == pytest.approx(there, abs=1e-4)
    here, there = (json.loads((run / "metrics.json").read_text()) for run in (one, two))
    assert here.pop("verdicts") == there.pop("verdicts")
    assert {**here, "seconds": 0} == pytest.approx({**there, "seconds": 0}, abs=1e-4)
    weights = [load_file(run / "model.safetensors") for run in (one, two)]
    for name, values in weights[0].items():
        assert torch.allclose(values, weights[1][name], atol=1e-4), name


def history(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]


def read(run: Path) -> dict[str, Any]:
    return dict(json.loads((run / "config.json").read_text()))
