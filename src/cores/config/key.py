"""The key of a configuration: twelve hexadecimal digits, the same in later versions."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")
_FIRST = "first default"


def added(default: T, first: T | None = None) -> T:
    """Declare a setting that was added since version 0.3: keys leave it out at its first default.

    So a new setting changes no key, and a changed default changes the key of every run at the new
    one.

    Args:
        default: Its default.
        first: Its default on the day it came, once that is another one.

    >>> @dataclasses.dataclass
    ... class Config:
    ...     warmth: float = added(0.0)
    >>> Config().warmth
    0.0
    """
    first = default if first is None else first
    # A dataclass takes this for a default value, and so does mypy.
    return dataclasses.field(default=default, metadata={_FIRST: first})  # type: ignore[return-value]


def is_in_key(field: dataclasses.Field[Any], value: Any) -> bool:
    """Return whether the key depends on a setting at this value."""
    return _FIRST not in field.metadata or field.metadata[_FIRST] != value


def run_key(settings: Mapping[str, Any]) -> str:
    """Hash nested settings, without groups that the model does not use.

    >>> run_key({"seed": 1, "ppo": {"clip": 0.2}})
    'a60af9a11a54'
    """
    text = json.dumps(flattened(settings), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


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
