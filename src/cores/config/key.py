"""The key of a configuration: twelve hexadecimal digits, the same in later versions."""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any


def run_key(settings: Mapping[str, Any], added: Mapping[str, Any]) -> str:
    """Hash a configuration.

    Args:
        settings: Nested settings, without groups that the model does not use.
        added: The value at which the key leaves a setting out, by dotted name.

    >>> run_key({"seed": 1, "ppo": {"clip": 0.2}}, {"ppo.clip": 0.2}) == run_key({"seed": 1}, {})
    True
    """
    hashed = {
        name: value
        for name, value in flattened(settings).items()
        if name not in added or added[name] != value
    }
    text = json.dumps(hashed, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@cache
def added_settings() -> Mapping[str, Any]:
    """Return the values at which keys leave settings out, from ``key.toml``."""
    text = resources.files("cores.config").joinpath("key.toml").read_text(encoding="utf-8")
    return flattened(tomllib.loads(text))


def flattened(settings: Mapping[str, Any], group: str = "") -> dict[str, Any]:
    """Flatten nested settings to dotted names.

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
