"""The state a run goes on from: what does not fit is refused in one line."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import Adam

from cores.errors import UserError
from cores.training import journal as journals
from cores.training.journal import CHECKPOINT, HISTORY, Journal, SharedState
from cores.training.optimizer import DeviceAdam, rates
from cores.training.schedule import plateau
from cores.training.state import RandomState, load_state, save_state
from cores.training.stopping import EarlyStopping


def journal(folder: Path, shared: SharedState | None = None, key: str = "") -> Journal:
    torch.manual_seed(0)
    model = nn.Linear(2, 2)
    optimizer = Adam(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    stopping = EarlyStopping(model, patience=3)
    random = RandomState(0, torch.device("cpu"))
    state = {"model": model, "optimizer": optimizer, "stopping": stopping, "random": random}
    return Journal(folder, state, shared, key)


def test_a_run_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    journal(tmp_path).record(loss=1.0)
    assert next(journal(tmp_path).epochs(most=3)) == 2


def test_a_run_that_was_begun_on_a_cpu_goes_on_on_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Journal(tmp_path, {"random": RandomState(0, torch.device("cpu"))}).record(loss=1.0)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: torch.zeros(16))
    on_gpu = RandomState(0, torch.device("cuda", 0))
    assert Journal(tmp_path, {"random": on_gpu}).epoch == 1


@pytest.mark.parametrize("kinds", [(DeviceAdam, Adam), (Adam, DeviceAdam)])
def test_a_run_with_a_plateau_changes_between_gpu_and_cpu(
    tmp_path: Path, kinds: tuple[type[Adam], type[Adam]]
) -> None:
    seen = []
    for kind in kinds:
        optimizer = kind([nn.Parameter(torch.ones(2))], lr=0.4)
        schedule = plateau(optimizer, factor=0.5, patience=0, min_rate=0.0)
        run = Journal(tmp_path, {"optimizer": optimizer, "schedule": schedule})
        for _ in range(2):
            schedule.step(0.5)
        run.record(loss=1.0)
        seen += rates(optimizer)
    assert run.epoch == 2
    assert seen == pytest.approx([0.2, 0.05])  # two stalled epochs more, of one best score


def test_a_run_begins_with_the_state_that_another_one_shared(tmp_path: Path) -> None:
    shared = SharedState(tmp_path / "shared" / "state.safetensors", epoch=2)
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    first = journal(tmp_path / "first", shared)
    for number, _ in enumerate(first.epochs(most=3), start=1):
        first.record(loss=1.0 / number)
        assert shared.path.exists() == (number >= 2)
    second = journal(tmp_path / "second", shared)
    assert next(second.epochs(most=3)) == 3
    lines = [(tmp_path / name / HISTORY).read_text().splitlines() for name in ("first", "second")]
    assert lines[1] == lines[0][:2]
    assert next(journal(tmp_path / "second").epochs(most=3)) == 3  # it is a checkpoint of its own


def with_best(saved: Any, weights: Any) -> Any:
    stopping = saved["parts"]["stopping"] | {"best_weights": weights}
    return saved | {"parts": saved["parts"] | {"stopping": stopping}}


def with_optimizer(saved: Any, groups: Any = None, moments: Any = None) -> Any:
    """A checkpoint with other settings of its optimiser, or another state of the first weight."""
    known = saved["parts"]["optimizer"]
    first, *others = known["param_groups"]
    new = {
        "state": known["state"] | ({} if moments is None else {0: known["state"][0] | moments}),
        "param_groups": [first | (groups or {}), *others],
    }
    return saved | {"parts": saved["parts"] | {"optimizer": new}}


def with_number(saved: Any, number: int) -> Any:
    known = saved["parts"]["optimizer"]
    return known | {"state": known["state"] | {number: known["state"][0]}}


def with_weights(saved: Any, dtype: torch.dtype) -> Any:
    """A checkpoint with weights of another type, which torch would round."""
    weights = {name: value.to(dtype) for name, value in saved["parts"]["model"].items()}
    return saved | {"parts": saved["parts"] | {"model": weights}}


def without_betas(saved: Any) -> Any:
    changed = with_optimizer(saved)
    del changed["parts"]["optimizer"]["param_groups"][0]["betas"]
    return changed


CRAFTED: dict[str, Callable[[Any], Any]] = {
    "an epoch in words": lambda saved: saved | {"epoch": "one"},
    "an epoch before the first": lambda saved: saved | {"epoch": -1},
    "an epoch that is a tensor": lambda saved: saved | {"epoch": torch.ones(2)},
    "no epoch": lambda saved: {name: saved[name] for name in ("parts", "seconds")},
    "seconds in words": lambda saved: saved | {"seconds": "long"},
    "a list of parts": lambda saved: saved | {"parts": []},
    "parts without a model": lambda saved: saved | {"parts": saved["parts"] | {"model": {}}},
    "a part that is a number": lambda saved: saved | {"parts": saved["parts"] | {"model": 1}},
    "weights that are whole numbers": lambda saved: with_weights(saved, torch.int64),
    "an optimiser's list": lambda saved: saved | {"parts": saved["parts"] | {"optimizer": [1]}},
    "random numbers of a number": lambda saved: (
        saved | {"parts": saved["parts"] | {"random": {"batches": 1, "cpu": 1, "cuda": None}}}
    ),
    "moments of other weights": lambda saved: with_optimizer(
        saved, moments={"exp_avg": torch.ones(3, 3)}
    ),
    "complex moments": lambda saved: with_optimizer(
        saved, moments={"exp_avg": torch.ones(2, 2, dtype=torch.complex64)}
    ),
    "moments of no weight": lambda saved: (
        saved | {"parts": saved["parts"] | {"optimizer": with_number(saved, 9)}}
    ),
    "an optimiser of another kind": lambda saved: with_optimizer(saved, {"amsgrad": True}),
    "a learning rate that is none": lambda saved: with_optimizer(saved, {"lr": float("nan")}),
    "an optimiser without betas": without_betas,
    "patience without weights": lambda saved: (
        saved | {"parts": saved["parts"] | {"stopping": saved["parts"]["stopping"] | {"waited": 9}}}
    ),
    "patience in words": lambda saved: (
        saved
        | {"parts": saved["parts"] | {"stopping": saved["parts"]["stopping"] | {"waited": "0"}}}
    ),
    "a number": lambda saved: {"epoch": 1},
    "best weights of another model": lambda saved: with_best(saved, {"weight": torch.ones(3, 3)}),
    "best weights without names": lambda saved: with_best(saved, [torch.ones(2)]),
}


@pytest.mark.parametrize("change", CRAFTED.values(), ids=CRAFTED)
def test_a_crafted_checkpoint_is_refused(tmp_path: Path, change: Callable[[Any], Any]) -> None:
    journal(tmp_path).record(loss=1.0)
    path = tmp_path / CHECKPOINT
    save_state(path, change(load_state(path)))
    with pytest.raises(UserError, match="does not fit this run"):
        journal(tmp_path)


def test_a_checkpoint_of_other_settings_is_refused(tmp_path: Path) -> None:
    journal(tmp_path, key="theirs").record(loss=1.0)
    with pytest.raises(UserError, match="belongs to a run of other settings or data; delete it"):
        journal(tmp_path, key="ours")
    assert journal(tmp_path, key="theirs").epoch == 1
    path = tmp_path / CHECKPOINT
    saved = load_state(path)
    del saved["key"]  # as version 0.2 wrote it
    save_state(path, saved)
    assert journal(tmp_path, key="ours").epoch == 1


def test_a_shared_state_of_other_settings_is_refused(tmp_path: Path) -> None:
    journal(tmp_path, SharedState(tmp_path / "theirs.safetensors", epoch=1)).record(loss=1.0)
    ours = (tmp_path / "theirs.safetensors").rename(tmp_path / "ours.safetensors")
    (tmp_path / "run").mkdir()
    with pytest.raises(UserError, match="belongs to a run of other settings"):
        journal(tmp_path / "run", SharedState(ours, epoch=1))


@pytest.mark.parametrize("history", ["", '{"epoch": 1}\n', '{"epoch": 1}\n{"epoch": 2, "lo'])
def test_a_history_that_is_shorter_than_its_checkpoint_is_told(
    tmp_path: Path, history: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Journal, "OVERHEAD", 1e9)
    written = journal(tmp_path)
    for _ in range(2):
        written.record(loss=1.0)
    (tmp_path / HISTORY).write_text(history)
    with pytest.raises(UserError, match=r"history.jsonl holds [01] epochs, .* is of epoch 2"):
        journal(tmp_path)
    assert (tmp_path / HISTORY).read_text() == history


def test_a_history_stays_in_its_folder(tmp_path: Path) -> None:
    """A link, of either kind, to a file elsewhere: that file is neither cut nor appended to."""
    run, precious = tmp_path / "run", tmp_path / "precious.txt"
    precious.write_text("one\ntwo\n")
    for link in (precious, tmp_path / "nothing yet"):
        run.mkdir(exist_ok=True)
        (run / HISTORY).symlink_to(link)
        with pytest.raises(UserError, match=r"history.jsonl is a link"):
            journal(run).record(loss=1.0)
        (run / HISTORY).unlink()
    os.link(precious, run / HISTORY)
    journal(run).record(loss=1.0)
    assert precious.read_text() == "one\ntwo\n"
    assert not (tmp_path / "nothing yet").exists()
    assert (run / HISTORY).read_text() == '{"epoch": 1, "loss": 1.0}\n'


class Clock:
    """Time that passes when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(journals.time, "perf_counter", lambda: self.now)


def test_saving_takes_a_twentieth_of_the_time_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    saved: list[int] = []

    def save(path: Path, state: dict[str, Any]) -> None:
        clock.now += 1.0  # a second each
        saved.append(state["epoch"])

    monkeypatch.setattr(journals, "save_state", save)
    running = journal(tmp_path)
    for _ in running.epochs(most=15):
        clock.now += 4.0
        running.record(loss=1.0)
    assert saved == [1, 6, 11]  # 20 seconds after the one before
    assert running.seconds == 15 * 4.0 + 3


def test_the_time_of_a_run_is_that_of_all_its_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    first = journal(tmp_path)
    assert first.seconds == 0
    clock.now += 5.0
    first.record(loss=1.0)
    clock.now += 100.0  # nobody runs
    second = journal(tmp_path)
    assert second.seconds == 5
    clock.now += 2.0
    assert second.seconds == 7


def test_without_a_folder_nothing_is_written_and_epochs_are_counted() -> None:
    kept = Journal(None, {})
    for epoch in kept.epochs(most=3):
        assert epoch == kept.epoch + 1
        kept.record(loss=1.0)
    assert kept.epoch == 3


def test_lines_after_the_checkpoint_are_cut_from_the_history(tmp_path: Path) -> None:
    (tmp_path / HISTORY).write_text("a line of a run that never was\n")
    running = journal(tmp_path)
    running.record(loss=0.5)
    with (tmp_path / HISTORY).open("a") as file:
        file.write('{"epoch": 2}\n{"epo')
    journal(tmp_path)
    assert (tmp_path / HISTORY).read_text() == '{"epoch": 1, "loss": 0.5}\n'


def test_a_history_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    running = journal(tmp_path)
    (tmp_path / HISTORY).mkdir()
    with pytest.raises(UserError, match=r"cannot write .*history.jsonl: Is a directory"):
        running.record(loss=1.0)


def test_a_line_is_on_the_disk_before_the_checkpoint_that_counts_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut a checkpoint may be older than its history, never newer."""
    on_disk: list[int] = []
    to_disk, history = os.fsync, tmp_path / HISTORY

    def note(file: int) -> None:
        if history.exists() and os.path.samestat(os.fstat(file), history.stat()):
            on_disk.append(history.read_text().count("\n"))
        to_disk(file)

    def counted(path: Path, state: dict[str, Any]) -> None:
        assert on_disk[-1] == state["epoch"]

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(journals, "save_state", counted)
    clock = Clock(monkeypatch)
    running = journal(tmp_path)
    running._saving_seconds = 1.0  # so that the second line waits
    for seconds in (20.0, 1.0, 19.0):
        clock.now += seconds
        running.record(loss=1.0)
        running._saving_seconds = 1.0
    assert on_disk == [1, 3]
