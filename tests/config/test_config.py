"""Settings are checked once, told apart by their key, and read back as they were written."""

import json
from dataclasses import dataclass, replace

import pytest

from cores.config import (
    NetworkConfig,
    PartsConfig,
    RunConfig,
    TrainingConfig,
    from_dict,
    to_dict,
)
from cores.config.models import MODELS
from cores.config.nested import added, run_key
from cores.config.presets import preset_config
from cores.errors import UserError
from cores_paper.models.settings import PoolConfig


def test_a_configuration_survives_json() -> None:
    config = RunConfig(dataset="MUTAG", network=NetworkConfig(pooling=("add",), dropout=0.5))
    assert RunConfig.from_settings(json.loads(json.dumps(config.settings))) == config


@pytest.mark.parametrize("model", MODELS)
def test_a_models_own_settings_survive_json(model: str) -> None:
    config = RunConfig(model=model)
    assert RunConfig.from_settings(json.loads(json.dumps(config.settings))) == config
    group = config.spec.group
    assert (group in config.settings) == (config.model_config is not None)


def test_a_models_own_settings_are_under_the_name_of_their_group() -> None:
    config = RunConfig.from_settings({"model": "gpool", "gpool": {"ratio": 0.3}})
    assert config.model_config == PoolConfig(ratio=0.3)
    assert config.settings["gpool"] == {"ratio": 0.3, "multiplier": 1.0}


def test_settings_of_another_model_are_checked_and_left_out() -> None:
    config = RunConfig.from_settings({"model": "gpool", "gsat": {"dropout": 0.1}})
    assert config == RunConfig(model="gpool")
    with pytest.raises(UserError, match=r"unknown setting 'gsat\.drop'; did you mean dropout"):
        RunConfig.from_settings({"model": "gpool", "gsat": {"drop": 0.1}})


def test_every_setting_changes_the_key() -> None:
    base = RunConfig()
    others = [
        replace(base, split=2),
        replace(base, seed=1),
        replace(base, dataset="PTC"),
        replace(base, network=NetworkConfig(gin_eps=0.1)),
        replace(base, training=TrainingConfig(patience=7)),
        replace(base, parts=PartsConfig(policy=0.3)),
    ]
    assert len({config.key for config in [base, *others]}) == 7
    assert base.key == RunConfig().key


KEYS = {
    "gnn": "da0bc999eced",
    "mlp": "512fab0ffdc8",
    "sagpool": "ba36cd521f52",
    "diffpool": "96cb88c94b05",
    "gsat": "75c90a528f87",
    "gmt": "524e06bb816b",
    "sugar": "d6a384891e33",
    "gpool": "665e07ef8be0",
    "random": "b2a696958683",
    "cores-node": "609bc7fd2ab3",
    "cores-edge": "6e174464a285",
    "cores-both": "33a92d66de14",
}
"""Of every model at its defaults: a change of defaults alone changes them."""


def test_keys_are_those_of_the_committed_rows() -> None:
    """A setting that comes that is not declared by `added` would orphan what was measured."""
    keys = {name: preset_config("MUTAG", name, "gin", "default", {}).key for name in KEYS}
    assert keys == KEYS
    paper = preset_config("PTC", "cores-edge", "gcn", "paper", {"split": 3})
    assert paper.key == "9b337fa9fb77"


@dataclass(frozen=True)
class Old:
    clip: float = 0.2


@dataclass(frozen=True)
class New(Old):
    warmth: int = added(3)


@dataclass(frozen=True)
class Later(Old):
    warmth: int = added(4, first=3)


def test_a_new_setting_changes_no_key() -> None:
    def key(config: Old) -> str:
        return run_key(to_dict(config, for_key=True))

    assert key(New()) == key(Later(warmth=3)) == key(Old())
    assert key(New(warmth=4)) == key(Later()) != key(Old())
    assert to_dict(Later()) == {"clip": 0.2, "warmth": 4}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sed": 1}, "unknown setting 'sed'; did you mean seed"),
        ({"network": {"hiden_dim": 1}}, "unknown setting 'network.hiden_dim'; did you mean hidden"),
        ({"network": 3}, "setting 'network' is a group of settings, got 3"),
        ({"conv": "gim"}, "unknown conv 'gim'; did you mean gin"),
        ({"model": "cores-nodes"}, "unknown model 'cores-nodes'; did you mean cores-node"),
        ({"model": 3}, "setting 'model' must be of type str, got 3"),
        ({"seed": "1"}, "setting 'seed' must be of type int, got '1'"),
        ({"seed": True}, "setting 'seed' must be of type int, got True"),
        ({"network": {"pooling": "mean"}}, "setting 'network.pooling' must be a list, got 'mean'"),
        ({"network": {"dropout": 1.0}}, r"network.dropout must lie in \[0, 1\), got 1.0"),
        ({"conv": "gat", "network": {"hidden_dim": 30}}, "multiple of gat_heads, got 30 and 4"),
        ({"parts": {"policy": 0.8}}, "the parts leave -0.10 of the graphs for training"),
        ({"training": {"schedule_factor": 1.0}}, "schedule_factor must lie in"),
        ({"reward": {"max_pieces": -1}}, "reward.max_pieces must not be negative, got -1"),
        ({"reward": {"pieces_penalty": -0.1}}, "reward.pieces_penalty must not be negative"),
        ({"gpool": 3}, "setting 'gpool' is a group of settings, got 3"),
        ({"model_config": {}}, "unknown setting 'model_config'"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        RunConfig.from_settings(settings)


def test_whole_numbers_serve_as_floats() -> None:
    assert from_dict(TrainingConfig, {"learning_rate": 1}).learning_rate == 1.0
