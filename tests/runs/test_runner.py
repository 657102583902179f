"""Many runs: none repeated, none lost, and one that fails does not stop the rest."""

import json
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
from distributed import LocalCluster

from cores.config import RunConfig
from cores.errors import UserError
from cores.files import is_held, locked
from cores.runs import runner
from cores.runs.rows import run_row
from cores.runs.runner import (
    Outcome,
    has_fault,
    run_all,
    run_folder,
    train_in_worker,
)
from cores.runs.workers import _Worker, in_processes
from cores_paper.cli import reproduce as command

Ask = Callable[..., tuple[int, str, str]]
Begun = Callable[[Callable[[], object]], psutil.Process]


def config(split: int, epochs: int = 2, dataset: str = "motifs") -> RunConfig:
    network = {"hidden_dim": 8, "num_layers": 1}
    return RunConfig.from_settings(
        {
            "dataset": dataset,
            "model": "gnn",
            "split": split,
            "network": network,
            "training": {"epochs": epochs, "batch_size": 128},
        }
    )


@pytest.mark.usefixtures("quick_workers")
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


@pytest.mark.usefixtures("quick_workers")
def test_a_run_that_kills_its_process_is_the_only_one_to_fail() -> None:
    deadly, harmless = "__import__('os')._exit(1)", "__import__('time').sleep({})"
    runs = [deadly, *(harmless.format(seconds) for seconds in (0.2, 0.3, 0.4))]
    # Any job will do, and a worker can import a built-in one wherever the tests are started.
    ended = dict(in_processes(runs, eval, workers=2))
    assert len(ended) == 4
    assert ended.pop(deadly) == "its process was killed 3 times (out of memory?)"
    assert set(ended.values()) == {None}


def test_a_fault_of_the_program_is_told_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object, **__: object) -> None:
        raise ZeroDivisionError("so it is")

    monkeypatch.setattr("cores.runs.run.train_run", breaks)
    folder = run_folder(tmp_path, config(1))
    failure = train_in_worker(tmp_path, "cpu", None)(config(1))
    assert failure == f"ZeroDivisionError: so it is (more in {folder / 'error.txt'})"
    assert "in breaks" in (folder / "error.txt").read_text()
    assert has_fault(folder)
    assert not has_fault(tmp_path)


def test_a_lack_of_memory_is_no_fault_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("cores.runs.run.train_run", breaks)
    failure = train_in_worker(tmp_path, "cpu", None)(config(1))
    assert failure is not None
    assert failure.startswith("out of memory: too much was asked for by runs/runner.py (_run)")
    assert not has_fault(run_folder(tmp_path, config(1)))


@pytest.mark.parametrize("name", ["run", "warm-ups"])
def test_a_folder_among_the_runs_that_is_a_link_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("cores.runs.run.train_run", lambda *_, **__: pytest.fail("it was begun"))
    (tmp_path / "elsewhere").mkdir()
    link = run_folder(tmp_path, config(1)) if name == "run" else tmp_path / name
    link.symlink_to(tmp_path / "elsewhere")
    failure = train_in_worker(tmp_path, "cpu", None)(config(1))
    assert str(failure).startswith(f"{link} is a link")
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_worker_that_is_still_starting_is_ended() -> None:
    worker = _Worker()
    job = worker.start(eval, "__import__('time').sleep(60)")
    worker.end()
    with pytest.raises(BrokenProcessPool):
        job.result(timeout=30)


def test_a_killed_worker_loses_nothing(tmp_path: Path) -> None:
    """SIGKILL one of two workers in mid-run: its run goes on from the checkpoint."""
    configs = [config(1, epochs=40), config(2, epochs=40)]
    with ThreadPoolExecutor(1) as thread:
        result = thread.submit(run_all, configs, tmp_path, workers=2, device="cpu")
        wait_for(run_folder(tmp_path, configs[0]) / "history.jsonl")
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


@pytest.mark.usefixtures("unchecked")
def test_a_killed_command_goes_on_and_repeats_nothing(
    tmp_path: Path,
    begun: Begun,
    ask: Ask,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """SIGKILL the parent in the middle of a table: the same command ends as one never killed."""
    monkeypatch.setattr(command, "QUICK_EPOCHS", 4)
    arguments = ["reproduce", "comparison-gin", "--json", "--datasets", "motifs", "--quick"]
    arguments += ["--models", "gnn,mlp", "--workers", "2", "--device", "cpu", "--out"]
    process = begun(lambda: ask(*arguments, tmp_path / "killed"))
    wait_for(tmp_path / "killed" / "comparison-gin.csv", lines=2)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    finished = {
        path: path.stat().st_mtime_ns for path in (tmp_path / "killed").glob("*/metrics.json")
    }
    assert 0 < len(finished) < 4
    request.getfixturevalue("runs_here")  # what has begun in workers goes on in any process

    def rows(folder: Path) -> list[dict[str, str]]:
        _, out, _ = ask(*arguments, folder)
        return [{**row, "seconds": ""} for row in json.loads(out)["rows"]]

    assert rows(tmp_path / "killed") == rows(tmp_path / "whole")
    tables = [
        {path.name: path.read_bytes() for path in (tmp_path / name).glob("comparison-gin.[mt]*")}
        for name in ("killed", "whole")
    ]
    assert tables[0].keys() == {"comparison-gin.md", "comparison-gin.tex"}
    assert tables[0] == tables[1]
    assert all(path.stat().st_mtime_ns == when for path, when in finished.items())


@pytest.mark.usefixtures("quick_workers")
def test_a_run_that_another_command_holds_comes_last(tmp_path: Path) -> None:
    theirs, ours = config(1), config(2)
    told, waited = list[Outcome](), list[int]()
    holding, ended = threading.Event(), threading.Event()

    def other_command() -> None:
        with locked(run_folder(tmp_path, theirs)):
            holding.set()
            ended.wait(60)

    def waits(runs: int) -> None:
        waited.append(runs)
        ended.set()

    with ThreadPoolExecutor(1) as other:
        other.submit(other_command)
        holding.wait(60)
        outcomes = run_all([theirs, ours], tmp_path, device="cpu", done=told.append, waits=waits)
    assert [outcome.config for outcome in outcomes] == [ours, theirs]
    assert [outcome.failure for outcome in told] == [None, None]
    assert waited == [1]


def test_a_run_that_another_command_began_and_ended_meanwhile_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was free when asked, held when begun, and free again when that was told."""
    holds = ExitStack()

    def in_turns(
        items: Iterable[RunConfig], job: runner.Job, workers: int
    ) -> Generator[tuple[RunConfig, str | None]]:
        for item in items:
            failure = job(item)
            holds.close()
            yield item, failure

    monkeypatch.setattr("cores.runs.workers.in_processes", in_turns)
    monkeypatch.setattr(runner, "is_held", lambda folder: False)
    holds.enter_context(locked(run_folder(tmp_path, config(1))))
    outcomes = run_all([config(1)], tmp_path, device="cpu")
    assert [outcome.failure for outcome in outcomes] == [None]


def test_workers_die_with_a_killed_parent(tmp_path: Path, begun: Begun) -> None:
    endless = config(1, epochs=100_000)
    folder = run_folder(tmp_path, endless)
    process = begun(lambda: run_all([endless], tmp_path, device="cpu"))
    wait_for(folder / "history.jsonl")
    assert is_held(folder)
    process.send_signal(signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 10
    while is_held(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_held(folder)


@pytest.fixture
def cluster(quick_workers: None) -> Iterator[LocalCluster]:
    """A real scheduler with two worker processes."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
    ) as cluster:
        yield cluster


def test_a_cluster_does_what_processes_do_and_a_killed_worker_loses_nothing(
    tmp_path: Path, cluster: LocalCluster
) -> None:
    broken = config(3, dataset=str(tmp_path / "nowhere.zip"))
    configs = [config(1, epochs=20), config(2, epochs=20), broken]
    with ThreadPoolExecutor(1) as thread:
        address = cluster.scheduler_address
        result = thread.submit(run_all, configs, tmp_path, scheduler=address, device="cpu")
        wait_for(run_folder(tmp_path, configs[0]) / "history.jsonl")
        cluster_workers = [worker.pid for worker in cluster.workers.values()]
        os.kill(cluster_workers[0], signal.SIGKILL)
        outcomes = result.result()
    alone = run_all(configs, tmp_path / "alone", device="cpu")
    assert figures(outcomes) == figures(alone)
    assert [outcome.config for outcome in outcomes if outcome.failure is not None] == [broken]
    for config_run in configs[:2]:
        for name in ("history.jsonl", "model.safetensors"):
            there, here = (run_folder(root, config_run) for root in (tmp_path, tmp_path / "alone"))
            assert (there / name).read_bytes() == (here / name).read_bytes()


@pytest.mark.parametrize("address", ["head", "tcp://head", "tcp://head:port", ""])
def test_an_address_without_a_port_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(UserError, match=r"takes an address such as tcp://head:8786, got"):
        run_all([config(1)], tmp_path, scheduler=address)


def figures(outcomes: list[Outcome]) -> dict[str, dict[str, str] | str | None]:
    """What came of every run, without the time it took."""
    rows = {each.config.key: run_row(each.folder) or each.failure for each in outcomes}
    return {
        key: row if not isinstance(row, dict) else {**row, "seconds": ""}
        for key, row in rows.items()
    }


def wait_for(path: Path, lines: int = 1) -> None:
    deadline = time.monotonic() + 300  # on a busy machine
    while not (path.exists() and path.read_text().count("\n") >= lines):
        assert time.monotonic() < deadline, f"{path} has not come"
        time.sleep(0.01)
