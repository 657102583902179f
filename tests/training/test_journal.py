"""The state a run goes on from: what does not fit is refused in one line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import Adam

from cores.errors import UserError
from cores.training.journal import CHECKPOINT, HISTORY, Journal, SharedState
from cores.training.state import RandomState, load_state, save_state
from cores.training.stopping import EarlyStopping


def journal(folder: Path, shared: SharedState | None = None) -> Journal:
    torch.manual_seed(0)
    model = nn.Linear(2, 2)
    optimizer = Adam(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    stopping = EarlyStopping(model, patience=3)
    random = RandomState(0, torch.device("cpu"))
    state = {"model": model, "optimizer": optimizer, "stopping": stopping, "random": random}
    return Journal(folder, state, shared)


def test_a_run_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    journal(tmp_path).record(loss=1.0)
    assert next(journal(tmp_path).epochs(most=3)) == 2


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


CRAFTED: dict[str, Callable[[Any], Any]] = {
    "an epoch in words": lambda saved: saved | {"epoch": "one"},
    "an epoch before the first": lambda saved: saved | {"epoch": -1},
    "an epoch that is a tensor": lambda saved: saved | {"epoch": torch.ones(2)},
    "no epoch": lambda saved: {name: saved[name] for name in ("parts", "seconds")},
    "seconds in words": lambda saved: saved | {"seconds": "long"},
    "a list of parts": lambda saved: saved | {"parts": []},
    "parts without a model": lambda saved: saved | {"parts": saved["parts"] | {"model": {}}},
    "a part that is a number": lambda saved: saved | {"parts": saved["parts"] | {"model": 1}},
    "an optimiser's list": lambda saved: saved | {"parts": saved["parts"] | {"optimizer": [1]}},
    "random numbers of a number": lambda saved: (
        saved | {"parts": saved["parts"] | {"random": {"batches": 1, "cpu": 1, "cuda": None}}}
    ),
    "a number": lambda saved: {"epoch": 1},
}


@pytest.mark.parametrize("change", CRAFTED.values(), ids=CRAFTED)
def test_a_crafted_checkpoint_is_refused(tmp_path: Path, change: Callable[[Any], Any]) -> None:
    journal(tmp_path).record(loss=1.0)
    path = tmp_path / CHECKPOINT
    save_state(path, change(load_state(path)))
    with pytest.raises(UserError, match="does not fit this run"):
        journal(tmp_path)
