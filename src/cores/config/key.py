"""The key of a configuration: twelve hexadecimal digits that survive changes of the program.

``key.toml`` is the schema: the name of every setting in the key, and the one value at which the key
leaves it out. Adding a setting with a line there changes no key; changing a default changes the key
of every run at the new default; renaming a setting in the code changes none.
"""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

Flat = Mapping[str, Any]
"""Settings by dotted name."""


def run_key(settings: Mapping[str, Any], names: Mapping[str, str], left_out: Flat) -> str:
    """Name a configuration.

    Args:
        settings: Nested settings by their names in the code, without groups the model does not use.
        names: What the schema calls a setting, where that differs from the code.
        left_out: The value at which the key leaves a setting out, by the schema's name.

    >>> run_key({"seed": 1, "ppo": {"clip": 0.2}}, {}, {"ppo.clip": 0.2})
    'a4bbadc1c789'
    >>> run_key({"seed": 1}, {}, {})
    'a4bbadc1c789'
    """
    named = {names.get(name, name): value for name, value in flattened(settings).items()}
    hashed = {
        name: value
        for name, value in named.items()
        if name not in left_out or left_out[name] != value
    }
    text = json.dumps(hashed, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@cache
def schema() -> Flat:
    """The values at which the key leaves settings out, from ``key.toml``."""
    text = resources.files("cores.config").joinpath("key.toml").read_text(encoding="utf-8")
    return flattened(tomllib.loads(text))


def flattened(settings: Mapping[str, Any], group: str = "") -> dict[str, Any]:
    """Nested settings by dotted name.

    >>> flattened({"seed": 0, "network": {"dropout": 0.1}})
    {'seed': 0, 'network.dropout': 0.1}
    """
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            flat |= flattened(value, f"{group}{name}.")
        else:
            flat[f"{group}{name}"] = value
    return flat
