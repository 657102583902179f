"""The published settings as data (one TOML file per model), and the two presets."""

import tomllib
from functools import cache
from importlib import resources
from typing import Any

from cores.config import RunConfig, from_dict, merged, to_dict
from cores.errors import UserError

# The structure-blind baseline takes the shape and the rates of the GNN it is compared with.
_FILES = {
    "gnn": "gnn.toml",
    "mlp": "gnn.toml",
    "cores-node": "cores_node.toml",
    "cores-edge": "cores_edge.toml",
    "sagpool": "sagpool.toml",
    "gpool": "gpool.toml",
    "diffpool": "diffpool.toml",
    "sugar": "sugar.toml",
}

PUBLISHED_MODELS = tuple(_FILES)


def _file(name: str) -> dict[str, Any]:
    text = resources.files("cores.settings").joinpath(name).read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def published(model: str) -> dict[str, dict[str, Any]]:
    """Published settings of a model: dataset, then conv, then groups of settings.

    Beside the settings stands what the paper reports, under names that begin with ``reported_``.
    """
    sections = _file(_FILES[model])
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


@cache
def published_seconds(action: str, dataset: str) -> dict[str, float]:
    """Seconds that the paper reports by model: ``train`` an epoch, ``inference``; maybe none."""
    seconds: dict[str, float] = _file("times.toml")[action].get(dataset, {})
    return seconds


@cache
def published_statistics() -> dict[str, dict[str, Any]]:
    """Table 1 as the paper has it: dataset, then column."""
    return _file("datasets.toml")


def _settings(section: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in section.items() if not name.startswith("reported_")}


WITH_SETTINGS = tuple(
    model
    for model in PUBLISHED_MODELS
    if any(_settings(section) for convs in published(model).values() for section in convs.values())
)
"""The models whose settings the paper gives; of the others it reports results only."""
PAPER_DATASETS = tuple(published("gnn"))
"""The paper's nine datasets, in the order of its tables."""


def search_space(config: RunConfig) -> dict[str, list[Any]]:
    """Values to choose from for a configuration like this one, by setting."""
    if config.removal is None:
        groups = ["gnn", config.conv] if config.model != "mlp" else ["gnn"]
        groups += ["pool"] if config.model in ("sagpool", "gpool") else []
    else:
        groups = ["cores", *(["critic"] if config.ppo.baseline == "critic" else [])]
    groups += ["paper"] if config.preset == "paper" else []
    space = _file("search.toml")
    found = {name: values for group in groups for name, values in space[group].items()}
    if config.model == "sugar":  # its subgraphs vote; there is no readout to choose
        del found["network.pooling"]
    return found


def preset_config(
    dataset: str, model: str, conv: str, preset: str, changes: dict[str, Any]
) -> RunConfig:
    """The preset's settings for a dataset, model and conv, with the user's changes on top."""
    base = to_dict(RunConfig()) | {
        "dataset": dataset,
        "model": model,
        "conv": conv,
        "preset": preset,
    }
    if preset == "paper":
        section = published(model).get(dataset, {}).get(conv) if model in WITH_SETTINGS else None
        if section is None:
            raise UserError(
                f"the paper has no settings for {model} with {conv} on {dataset}; "
                "use --preset default"
            )
        base = merged(base, _settings(section))
    return from_dict(RunConfig, merged(base, changes))
