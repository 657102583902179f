"""The presets: ours, and the published settings as data (one TOML file per model).

The published ones come in two: ``paper`` puts them into Algorithm 1, ``authors`` into the schedule
and the reward of the authors' program, as far as these are known.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from cores.config import RunConfig, merged
from cores.config.models import MODELS, conv_spec, model_spec
from cores.config.policy import ClassifierDataConfig
from cores.errors import UserError

MANY_GRAPHS, FEWEST_EPOCHS = 5000, 30
"""Above so many graphs of a user's, the classifiers are trained for fewer epochs, down to these."""


def _file(name: str) -> dict[str, Any]:
    text = resources.files("cores.config").joinpath("published", name).read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def published(model: str) -> dict[str, dict[str, Any]]:
    """Published settings of a model: dataset, then conv, then groups of settings.

    Beside the settings stands what the paper reports, under names that begin with ``reported_``.
    """
    file = model_spec(model).published
    sections = _file(file) if file else {}
    common = sections.pop("common", None)
    if common is None:
        return sections
    plain = published("gnn")
    return {
        dataset: {
            conv: merged(merged(_settings(plain[dataset][conv]), common), section)
            for conv, section in convs.items()
        }
        for dataset, convs in sections.items()
    }


def _settings(section: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in section.items() if not name.startswith("reported_")}


@cache
def has_published_settings(model: str) -> bool:
    """Whether the paper gives settings for a model; of some it reports results only."""
    sections = published(model).values()
    return any(_settings(section) for convs in sections for section in convs.values())


PAPER_DATASETS = tuple(published("gnn"))
"""The paper's nine datasets, in the order of its tables."""


def search_space(config: RunConfig) -> dict[str, list[Any]]:
    """Values to choose from for a configuration like this one, by setting."""
    space = _file("search.toml")
    spec, conv = config.spec, conv_spec(config.conv)
    if spec.has_policy:
        found = dict(space["cores"])
        if config.reward.dial:  # its policy learns for every lambda
            del found["reward.lam"]
        if config.ppo.baseline == "critic":
            found |= space["critic"]
    else:
        found = dict(space["gnn"]) | (dict(conv.search) if spec.uses_conv else {})
    found |= spec.search
    if config.preset != "default":
        found |= space["paper"]
    return {name: list(values) for name, values in found.items() if name not in spec.not_searched}


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
    settings: dict[str, Any] = {}
    if preset == "default":
        settings = {"training": dict(model_spec(model).training)}
    elif preset == "paper":
        settings = _paper_settings(model, dataset, conv)
    elif preset == "authors":
        settings = _authors_settings(model, dataset, conv)
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


def _paper_settings(model: str, dataset: str, conv: str) -> dict[str, Any]:
    section = published(model).get(dataset, {}).get(conv)
    if section is None or not has_published_settings(model):
        raise UserError(
            f'the paper has no settings for {model} with {conv} on {dataset}; use preset="default"'
        )
    return merged({"network": {"edge_features": False}}, _settings(section))


def _authors_settings(model: str, dataset: str, conv: str) -> dict[str, Any]:
    """The published settings in the authors' schedule; of the control, those of the plain GNN."""
    if not has_authors_settings(model):
        raise UserError(
            f"the authors preset is one of CORES, and of random beside it, not of {model}; use "
            'preset="paper"'
        )
    changes, plain = _file("authors.toml"), _paper_settings("gnn", dataset, conv)
    if not model_spec(model).has_policy:
        return merged(plain, changes[model])
    patience = {"training": {"patience": plain["training"]["patience"]}}
    settings = merged(_paper_settings(model, dataset, conv), patience)
    return merged(merged(settings, changes["common"]), changes[model][dataset][conv])


@cache
def has_authors_settings(model: str) -> bool:
    """Whether the ``authors`` preset has the model: CORES of the paper, and the control."""
    return model in _file("authors.toml").keys() - {"common"}
