"""Ctrl-C, also when it comes more than once."""

import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from cores.__main__ import main
from cores.cli import single_interrupt
from cores.cli.command import Command, CommandParser
from cores.runs.workers import in_processes

Begun = Callable[[Callable[[], object]], psutil.Process]


def work(options: Any) -> None:
    """Keep two workers busy for longer than any test."""
    jobs = [f"__import__('time').sleep({seconds})" for seconds in (600, 601)]
    assert not dict(in_processes(jobs, eval, workers=2))


def workers_of(process: psutil.Process) -> list[psutil.Process]:
    """Its workers, when both have something to do."""
    deadline = time.monotonic() + 60
    while True:
        found = [each for each in process.children() if "spawn_main" in " ".join(each.cmdline())]
        if len(found) == 2 and all(each.num_threads() > 1 for each in found):
            return found
        assert time.monotonic() < deadline, "no workers have come"
        time.sleep(0.01)


@pytest.fixture(autouse=True)
def _interruptible() -> Iterator[None]:
    """Interrupts as in a terminal; in the background of a shell they would be ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("pause", [0.0, 0.0001, 0.05])
def test_interrupts_in_a_row_are_one(
    pause: float, begun: Begun, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """As a launcher sends them, to a process and to its group, or a hand that does not wait."""
    again = "the same command continues"
    command = Command("work", "", lambda: CommandParser(""), work, after_interrupt=again)
    monkeypatch.setattr("cores.cli.commands.COMMANDS", (command,))
    monkeypatch.setattr("sys.argv", ["cores", "work"])
    process = begun(main)
    workers = workers_of(process)
    for _ in range(20):
        process.send_signal(signal.SIGINT)
        time.sleep(pause)
    assert process.wait(timeout=60) == 130
    told = capfd.readouterr().err
    assert told.startswith(f"cores: interrupted; {again}\n")
    assert "Traceback" not in told
    assert not psutil.wait_procs(workers, timeout=30)[1]


def test_an_interrupt_is_no_longer_ignored_when_the_first_is_over() -> None:
    with single_interrupt(at_exit=True):
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_interrupts_that_are_ignored_stay_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with single_interrupt(at_exit=True):
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
