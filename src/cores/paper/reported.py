"""What the paper reports beside its settings: seconds, and Table 1."""

import tomllib
from functools import cache
from importlib import resources
from typing import Any


def _file(name: str) -> dict[str, Any]:
    text = resources.files("cores.paper").joinpath("reported", name).read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def published_seconds(action: str, dataset: str) -> dict[str, float]:
    """Seconds that the paper reports by model: ``train`` an epoch, ``inference``; maybe none."""
    return _file("times.toml")[action].get(dataset, {})


@cache
def published_statistics() -> dict[str, dict[str, Any]]:
    """Table 1 as the paper has it: dataset, then column."""
    return _file("datasets.toml")
