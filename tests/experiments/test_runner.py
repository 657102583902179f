"""Many runs: none repeated, none lost, and one that fails does not stop the rest."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from cores.config import RunConfig, from_dict
from cores.experiments.results import run_row
from cores.experiments.runner import Outcome, run_all, run_folder


def config(split: int, epochs: int = 2, dataset: str = "motifs") -> RunConfig:
    network = {"hidden_dim": 8, "num_layers": 1}
    return from_dict(
        RunConfig,
        {
            "dataset": dataset,
            "split": split,
            "network": network,
            "training": {"epochs": epochs, "batch_size": 128},
        },
    )


def test_a_failed_run_is_reported_and_the_rest_goes_on(tmp_path: Path) -> None:
    broken = config(1, dataset=str(tmp_path / "nowhere.zip"))
    told: list[Outcome] = []
    outcomes = run_all([broken, config(1)], tmp_path / "runs", device="cpu", done=told.append)
    assert outcomes == told
    by_config = {outcome.config: outcome for outcome in outcomes}
    assert "nowhere.zip does not exist" in str(by_config[broken].failure)
    assert by_config[config(1)].failure is None
    row = run_row(run_folder(tmp_path / "runs", config(1)))
    assert row is not None
    assert row["key"] == config(1).key


def test_a_killed_worker_loses_nothing(tmp_path: Path) -> None:
    """SIGKILL one of two workers in mid-run: its run goes on from the checkpoint."""
    configs = [config(1, epochs=60), config(2, epochs=60)]
    with ThreadPoolExecutor(1) as thread:
        result = thread.submit(run_all, configs, tmp_path, workers=2, device="cpu")
        history = run_folder(tmp_path, configs[0]) / "history.jsonl"
        deadline = time.monotonic() + 60
        while not history.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        workers = [
            child
            for child in psutil.Process(os.getpid()).children()
            if "spawn_main" in " ".join(child.cmdline())
        ]
        workers[0].send_signal(signal.SIGKILL)
        outcomes = result.result()
    assert sorted(outcome.config.split for outcome in outcomes) == [1, 2]
    assert all(outcome.failure is None for outcome in outcomes)
    assert all(run_row(outcome.folder) for outcome in outcomes)
