"""What tests of training share."""

from collections.abc import Callable
from typing import Any

import pytest


class Called:
    """In place of a recording, on a CPU: the function is called every time."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function, self.calls = function, 0

    def __call__(self) -> Any:
        self.calls += 1
        return self.function()


@pytest.fixture
def unrecorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that a GPU would replay can be taken on a CPU."""
    for module in ("stacked", "recorded"):
        monkeypatch.setattr(f"cores.training.{module}.Recording", Called)
