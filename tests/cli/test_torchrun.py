"""`cores train` in several processes, as a user starts it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from cores.__main__ import main

TORCHRUN = ("torch.distributed.run", "--standalone", "--nproc-per-node", "2")


def arguments(data: Path, model: str, out: Path) -> list[str]:
    """Of a tiny training.

    Without batch norm: the gradients of the biases before it are rounding, along which Adam makes
    steps, and results of single precision differ by more than rounding after a few of them.
    """
    small = ("--network.hidden_dim", "8", "--network.num_layers", "1", "--device", "cpu")
    tiny = ("--epochs", "4", *small, "--network.batch_norm", "false")
    return ["train", "--dataset", str(data), "--model", model, "--out", str(out), *tiny, "--json"]


SHORT_JUDGE = """
import sys
from cores.__main__ import main
from cores.training import judge

judge.EPOCHS = 1
sys.exit(main())
"""


@pytest.mark.parametrize("model", ["gnn", pytest.param("cores-node", marks=pytest.mark.slow)])
@pytest.mark.usefixtures("short_judge")
def test_torchrun_leaves_the_run_folder_of_one_process(
    model: str, molecule_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, program = tmp_path / "one", tmp_path / "two", ["-m", "cores"]
    assert main(arguments(molecule_file, model, one)) == 0
    if model != "gnn":  # it has a judge, whose length is no setting
        (tmp_path / "short.py").write_text(SHORT_JUDGE)
        program = [str(tmp_path / "short.py")]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))  # another judge
    ran = subprocess.run(
        [sys.executable, "-m", *TORCHRUN, *program, *arguments(molecule_file, model, two)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == json.loads((two / "metrics.json").read_text())
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
