"""Runs that fail."""

from collections.abc import Callable
from typing import Any

import pytest

from cores.config import RunConfig
from cores.errors import UserError
from cores.runs import run


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Lets every run of a model fail."""
    train = run.train_run

    def fail(model: str) -> None:
        def train_others(config: RunConfig, *arguments: Any, **options: Any) -> dict[str, Any]:
            if config.model == model:
                raise UserError("no luck")
            return train(config, *arguments, **options)

        monkeypatch.setattr(run, "train_run", train_others)

    return fail
