"""The settings of a preset, and what a user changes of them."""

from collections.abc import Mapping
from typing import Any

from cores.config import RunConfig, merged
from cores.config.models import MODELS, preset_spec
from cores.config.policy import ClassifierDataConfig

MANY_GRAPHS, FEWEST_EPOCHS = 5000, 30
"""Above so many graphs of a user's, the classifiers are trained for fewer epochs, down to these."""


def own_data_settings(num_graphs: int) -> dict[str, Any]:
    """Defaults for a user's own graphs: those of the preset, with fewer epochs for large files.

    Above 5,000 graphs the classifiers see as many in all as they do at 5,000, but each of them 30
    times at least; the policy is trained for 90 epochs in any case.

    >>> own_data_settings(5000), own_data_settings(12_000)["training"]
    ({}, {'epochs': 190, 'batch_size': 128})
    """
    if num_graphs <= MANY_GRAPHS:
        return {}
    default = MODELS["cores-node"].training
    policy_epochs = round(default["epochs"] * (1 - ClassifierDataConfig.warm_up))
    classifier_epochs = default["epochs"] - policy_epochs
    warm_up = max(FEWEST_EPOCHS, round(classifier_epochs * MANY_GRAPHS / num_graphs))
    epochs = warm_up + policy_epochs
    return {
        "training": {"epochs": epochs, "batch_size": default["batch_size"]},
        "classifier_data": {"warm_up": warm_up / epochs},
    }


def preset_config(
    dataset: str, model: str, conv: str, preset: str, changes: dict[str, Any]
) -> RunConfig:
    """The preset's settings for a dataset, model and conv, with the user's changes on top.

    A policy that is asked for one lambda has no dial, nor has one without referees, who tell what
    the settings of a dial lose; unless the changes ask for a dial, too.
    """
    chosen = {"dataset": dataset, "model": model, "conv": conv, "preset": preset}
    settings = dict(preset_spec(preset).settings(model, dataset, conv))
    given: Mapping[str, Any] = changes
    reward = given.get("reward")
    if isinstance(reward, Mapping) and ("lam" in reward or reward.get("referees") == 0):
        given = merged({"reward": {"dial": False}}, given)
    return RunConfig.from_settings(merged(settings | chosen, given))


def with_dial(changes: dict[str, Any], config: RunConfig) -> dict[str, Any]:
    """Changes that make a configuration, for :func:`preset_config`: lambda alone means no dial."""
    if config.reward.dial and "lam" in changes.get("reward", {}):
        return merged(changes, {"reward": {"dial": True}})
    return changes
