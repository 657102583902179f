"""Settings are checked once, told apart by their key, and read back as they were written."""

from dataclasses import replace

import pytest

from cores.config import NetworkConfig, PartsConfig, RunConfig, TrainingConfig, from_dict, to_dict
from cores.errors import UserError


def test_a_configuration_survives_json() -> None:
    config = RunConfig(dataset="MUTAG", network=NetworkConfig(pooling=("add",), dropout=0.5))
    assert from_dict(RunConfig, to_dict(config)) == config


def test_every_setting_changes_the_key() -> None:
    base = RunConfig()
    others = [
        replace(base, split=2),
        replace(base, seed=1),
        replace(base, dataset="PTC"),
        replace(base, network=NetworkConfig(gin_eps=0.1)),
        replace(base, training=TrainingConfig(weights="last")),
        replace(base, parts=PartsConfig(policy=0.3)),
    ]
    assert len({config.key for config in [base, *others]}) == 7
    assert base.key == RunConfig().key


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sed": 1}, "unknown setting 'sed'; did you mean seed"),
        ({"network": {"hiden_dim": 1}}, "unknown setting 'network.hiden_dim'; did you mean hidden"),
        ({"network": 3}, "setting 'network' is a group of settings, got 3"),
        ({"conv": "gim"}, "setting 'conv' must be one of gin, gcn, gat, got 'gim'"),
        ({"seed": "1"}, "setting 'seed' must be of type int, got '1'"),
        ({"seed": True}, "setting 'seed' must be of type int, got True"),
        ({"network": {"pooling": "mean"}}, "setting 'network.pooling' must be a list, got 'mean'"),
        ({"network": {"dropout": 1.0}}, r"network.dropout must lie in \[0, 1\), got 1.0"),
        ({"conv": "gat", "network": {"hidden_dim": 30}}, "multiple of gat_heads, got 30 and 4"),
        ({"parts": {"policy": 0.8}}, "the parts leave -0.10 of the graphs for training"),
        ({"training": {"schedule_factor": 1.0}}, "schedule_factor must lie in"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        from_dict(RunConfig, settings)


def test_whole_numbers_serve_as_floats() -> None:
    assert from_dict(TrainingConfig, {"learning_rate": 1}).learning_rate == 1.0
