"""The published settings as data (one TOML file per model), and the two presets."""

import tomllib
from functools import cache
from importlib import resources
from typing import Any

from cores.config import RunConfig, from_dict, merged, to_dict
from cores.errors import UserError

# The structure-blind baseline takes the shape and the rates of the GNN it is compared with.
_FILES = {"gnn": "gnn.toml", "mlp": "gnn.toml"}


@cache
def published(model: str) -> dict[str, dict[str, Any]]:
    """Published settings of a model: dataset, then conv, then groups of settings."""
    text = resources.files("cores.settings").joinpath(_FILES[model]).read_text(encoding="utf-8")
    return tomllib.loads(text)


PAPER_DATASETS = tuple(published("gnn"))
"""The paper's nine datasets, in the order of its tables."""


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
        section = published(model).get(dataset, {}).get(conv)
        if section is None:
            raise UserError(
                f"the paper has no settings for {model} with {conv} on {dataset}; "
                "use --preset default"
            )
        groups = {name: value for name, value in section.items() if name != "reported_accuracy"}
        base = merged(base, groups)
    return from_dict(RunConfig, merged(base, changes))
