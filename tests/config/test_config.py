"""Settings are checked once, told apart by their key, and read back as they were written."""

import json
from dataclasses import replace

import pytest

from cores.config import (
    ClassifierDataConfig,
    NetworkConfig,
    PartsConfig,
    PPOConfig,
    RunConfig,
    TrainingConfig,
    from_dict,
)
from cores.config.key import run_key
from cores.config.models import MODELS
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


def test_settings_by_their_former_names_are_understood() -> None:
    old = {
        "diet": {"mix": 0.4, "warm_up": 0.1, "distilled": 0.2},
        "ppo": {"start": 0.3, "floor": 0.1, "averaging": 0.5, "clip": 0.25},
    }
    config = RunConfig.from_settings(old)
    assert config.classifier_data == ClassifierDataConfig(0.4, 0.1, 0.2)
    assert config.ppo == PPOConfig(
        initial_removal=0.3, min_probability=0.1, ema_decay=0.5, clip=0.25
    )


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


KEYS = {}
"""Of every model at its defaults of version 0.3: a change of defaults alone changes them."""


def test_keys_are_those_of_the_committed_rows() -> None:
    """A setting that comes without a line in key.toml would orphan what was measured."""
    keys = {name: preset_config("MUTAG", name, "gin", "default", {}).key for name in KEYS}
    assert keys == KEYS
    paper = preset_config("PTC", "cores-edge", "gcn", "paper", {"split": 3})
    assert paper.key == "PAPERKEY"


OLD = {"seed": 1, "ppo": {"clip": 0.2}}


def test_a_new_setting_changes_no_key() -> None:
    new = {"seed": 1, "ppo": {"clip": 0.2, "warmth": 3}}
    assert run_key(new, {"ppo.warmth": 3}) == run_key(OLD, {})
    other = {"seed": 1, "ppo": {"clip": 0.2, "warmth": 4}}
    assert run_key(other, {"ppo.warmth": 3}) != run_key(OLD, {})


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
