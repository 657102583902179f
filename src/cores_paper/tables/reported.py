"""The paper's own numbers: metrics beside its settings, seconds, and Table 1."""

import tomllib
from functools import cache
from importlib import resources
from typing import Any

from cores.runs.rows import Spread
from cores_paper.presets import published
from cores_paper.tables.targets import SPLITS


def published_metric(dataset: str, conv: str, model: str, metric: str) -> Spread | None:
    """Mean and deviation of a metric in the paper's tables; None where they lack it."""
    found = published(model).get(dataset, {}).get(conv, {}).get(f"reported_{metric}")
    return None if found is None else Spread(found["mean"] / 100, found["std"] / 100, len(SPLITS))


@cache
def published_seconds(action: str, dataset: str) -> dict[str, float]:
    """Seconds by model, of a training epoch (``train``) or a prediction (``inference``)."""
    return _file("reported_times.toml")[action].get(dataset, {})


@cache
def published_statistics() -> dict[str, dict[str, Any]]:
    """Table 1 by dataset, then by column."""
    return _file("reported_datasets.toml")


def _file(name: str) -> dict[str, Any]:
    text = resources.files("cores_paper").joinpath("published", name).read_text(encoding="utf-8")
    return tomllib.loads(text)
