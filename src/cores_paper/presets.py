"""The published settings as data (one TOML file per model), and the presets made of them.

``paper`` puts them into Algorithm 1, ``authors`` into the schedule and the reward of the authors'
program, as far as these are known.
"""

import tomllib
from functools import cache
from importlib import resources
from typing import Any

from cores.config import RunConfig, merged
from cores.config.models import conv_spec, model_spec
from cores.errors import UserError

FILES = {
    "gnn": "gnn.toml",
    "mlp": "gnn.toml",  # the shape and the rates of the GNN it is compared with
    "sagpool": "sagpool.toml",
    "diffpool": "diffpool.toml",
    "sugar": "sugar.toml",
    "gpool": "gpool.toml",
    "cores-node": "cores_node.toml",
    "cores-edge": "cores_edge.toml",
}
"""The file of a model's published settings and of what the paper reports."""


def _file(name: str) -> dict[str, Any]:
    text = resources.files("cores_paper").joinpath("published", name).read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def published(model: str) -> dict[str, dict[str, Any]]:
    """Published settings of a model: dataset, then conv, then groups of settings.

    Beside the settings stands what the paper reports, under names that begin with ``reported_``.
    """
    file = FILES.get(model)
    sections = _file(file) if file is not None else {}
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
    return {name: list(values) for name, values in found.items() if values}


def paper_settings(model: str, dataset: str, conv: str) -> dict[str, Any]:
    """Return the published settings, without edge features."""
    section = published(model).get(dataset, {}).get(conv)
    if section is None or not has_published_settings(model):
        raise UserError(
            f'the paper has no settings for {model} with {conv} on {dataset}; use preset="default"'
        )
    return merged({"network": {"edge_features": False}}, _settings(section))


def authors_settings(model: str, dataset: str, conv: str) -> dict[str, Any]:
    """The published settings in the authors' schedule; of the control, those of the plain GNN."""
    if not has_authors_settings(model):
        raise UserError(
            f"the authors preset is one of CORES, and of random beside it, not of {model}; use "
            'preset="paper"'
        )
    changes, plain = _file("authors.toml"), paper_settings("gnn", dataset, conv)
    if not model_spec(model).has_policy:
        return merged(plain, changes[model])
    patience = {"training": {"patience": plain["training"]["patience"]}}
    settings = merged(paper_settings(model, dataset, conv), patience)
    return merged(merged(settings, changes["common"]), changes[model][dataset][conv])


@cache
def has_authors_settings(model: str) -> bool:
    """Whether the ``authors`` preset has the model: CORES of the paper, and the control."""
    return model in _file("authors.toml").keys() - {"common"}
