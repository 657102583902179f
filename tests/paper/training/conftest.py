"""What tests of the published training share."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from cores.config import RunConfig, merged
from cores.data.dataset import Dataset, numbered
from cores.data.synthetic import ba_motifs
from cores.models.build import build_model
from cores.runs.fit import PreparedData
from cores.training.state import RandomState
from cores_paper.training.algorithm import State

TOGETHER = {
    "preset": "paper",
    "network": {"hidden_dim": 8, "num_layers": 1},
    "parts": {"policy": 0.3, "selection": 0.0, "calibration": 0.0},
    "training": {"epochs": 8, "batch_size": 16, "learning_rate": 0.01},
    "reward": {"desired_ratio": 0.3},
    "ppo": {"env_steps": 12, "samples": 1, "ppo_epochs": 2, "batch_size": 8}
    | {"min_probability": 0.0},
}
IN_TURNS = {
    "preset": "authors",
    "training": {"epochs": 20, "patience": 2},
    "paper": {"order": "in-turns", "policy_patience": 3, "last_policy_epochs": 4, "weights": "last"}
    | {"sets": "below-or-predicted", "square_sparsity": True, "penalise_full": True},
}


@pytest.fixture(scope="session")
def together() -> Callable[..., RunConfig]:
    """Small settings of the ``paper`` preset, changed."""
    return lambda **changes: RunConfig.from_settings(merged(TOGETHER, changes))


@pytest.fixture(scope="session")
def in_turns() -> Callable[..., RunConfig]:
    """Small settings of the ``authors`` preset, changed."""
    return lambda **changes: RunConfig.from_settings(merged(merged(TOGETHER, IN_TURNS), changes))


@pytest.fixture(scope="session")
def toy() -> Dataset:
    """Forty graphs with a motif."""
    return Dataset("toy", ba_motifs(num_graphs=40, seed=0), ("a", "b"), numbered(10))


@pytest.fixture(scope="session")
def state_of(toy: Dataset) -> Callable[[RunConfig], State]:
    """What a training begins with."""

    def begin(config: RunConfig) -> State:
        cpu = torch.device("cpu")
        data = PreparedData.of(toy, config, cpu)
        random = RandomState(0, cpu)
        model: Any = build_model(config, toy.dims)
        return State(model, config, data, random)

    return begin
