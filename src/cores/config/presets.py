"""The settings of a preset, and what a user changes of them."""

from typing import Any

from cores.config import RunConfig, merged
from cores.config.models import MODELS, preset_spec
from cores.config.policy import CommitteeConfig

MANY_GRAPHS, FEWEST_EPOCHS = 5000, 30
"""Above so many graphs of a user's, the classifiers are trained for fewer epochs, down to these."""


def own_data_settings(num_graphs: int) -> dict[str, Any]:
    """Defaults for a user's own graphs: those of the preset, with fewer epochs for large files.

    Above 5,000 graphs the classifiers see as many in all as they do at 5,000, but each of them 30
    times at least; the policy is trained for 30 epochs in any case.

    >>> own_data_settings(5000), own_data_settings(12_000)["training"]
    ({}, {'epochs': 130, 'batch_size': 128})
    """
    if num_graphs <= MANY_GRAPHS:
        return {}
    default = MODELS["cores-node"].training
    policy_epochs = round(default["epochs"] * (1 - CommitteeConfig.warm_up))
    classifier_epochs = default["epochs"] - policy_epochs
    warm_up = max(FEWEST_EPOCHS, round(classifier_epochs * MANY_GRAPHS / num_graphs))
    epochs = warm_up + policy_epochs
    return {
        "training": {"epochs": epochs, "batch_size": default["batch_size"]},
        "committee": {"warm_up": warm_up / epochs},
    }


def preset_config(
    dataset: str, model: str, conv: str, preset: str, changes: dict[str, Any]
) -> RunConfig:
    """Apply a user's changes to the preset's settings for a dataset, model and conv."""
    chosen = {"dataset": dataset, "model": model, "conv": conv, "preset": preset}
    settings = dict(preset_spec(preset).settings(model, dataset, conv))
    return RunConfig.from_settings(merged(settings | chosen, changes))
