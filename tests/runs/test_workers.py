"""Several processes on one GPU: the service is there while they run, and gone afterwards."""

import os
import stat
from pathlib import Path

import pytest
import torch

from cores.runs import workers
from cores.runs.workers import CONTROL, PIPES, shared_gpu

WORKS = "import sys; sys.exit(0)"


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with a GPU whose driver has a control program, which writes down what it is told.

    ``calls`` is the file; the program ends with the status in ``status`` beside it, if any.
    """
    program, told = tmp_path / CONTROL, tmp_path / "calls"
    program.write_text(
        f"#!/bin/sh\n"
        f'echo "$@ ${PIPES}" >> {told}\n'
        f'[ "$1" = -d ] || cat >> {told}\n'
        f"exit $(cat {tmp_path}/status 2>/dev/null || echo 0)\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    told.touch()
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv(PIPES, raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(workers, "PROBE", WORKS)
    return told


def test_the_service_is_there_while_processes_run(calls: Path) -> None:
    with shared_gpu("cuda", 2):
        pipes = os.environ[PIPES]
        assert Path(pipes).is_dir()
        assert calls.read_text() == f"-d {pipes}\n"
    assert calls.read_text() == f"-d {pipes}\n {pipes}\nquit -t 5\n"
    assert PIPES not in os.environ
    assert not Path(pipes).exists()


def test_it_ends_when_the_runs_fail(calls: Path) -> None:
    with pytest.raises(KeyboardInterrupt), shared_gpu("auto", 2):
        raise KeyboardInterrupt
    assert calls.read_text().endswith("quit -t 5\n")
    assert PIPES not in os.environ


@pytest.mark.parametrize(("device", "processes"), [("cpu", 2), ("cuda", 1)])
def test_one_process_or_a_cpu_needs_none(calls: Path, device: str, processes: int) -> None:
    with shared_gpu(device, processes):
        assert PIPES not in os.environ
    assert not calls.read_text()


def test_one_that_was_set_up_before_is_left_alone(
    calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PIPES, "/somewhere")
    with shared_gpu("cuda", 2):
        assert os.environ[PIPES] == "/somewhere"
    assert os.environ[PIPES] == "/somewhere"
    assert not calls.read_text()


def test_without_a_gpu_nothing_is_started(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with shared_gpu("auto", 2):
        assert PIPES not in os.environ
    assert not calls.read_text()


def test_without_the_program_processes_take_turns(
    calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with shared_gpu("cuda", 2):
        assert PIPES not in os.environ


def test_a_service_that_does_not_start_is_told(calls: Path) -> None:
    (calls.parent / "status").write_text("3")
    with (
        pytest.warns(UserWarning, match=r"take turns on the GPU.*exit status 3"),
        shared_gpu("cuda", 2),
    ):
        pipes = os.environ.get(PIPES)
    assert pipes is None
    assert "quit" not in calls.read_text()


def test_a_service_that_no_process_can_use_is_ended(
    calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "PROBE", "import sys; sys.exit(1)")
    with pytest.warns(UserWarning, match="take turns on the GPU"), shared_gpu("cuda", 2):
        pipes = os.environ.get(PIPES)
    assert pipes is None
    assert calls.read_text().count("quit -t 5") == 1
