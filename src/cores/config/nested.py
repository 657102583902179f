"""Dataclasses of settings as nested plain data, and back; the key of a configuration."""

import dataclasses
import hashlib
import json
from collections.abc import Collection, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from cores.errors import UserError, nearest

T = TypeVar("T")
DIGITS = 100
"""Largest number of digits of a whole number in a setting."""
_FIRST = "first default"


def to_dict(config: Any, for_key: bool = False) -> dict[str, Any]:
    """The settings as plain nested data, ready for JSON; all of them, or those that a key has."""
    given = [(field, getattr(config, field.name)) for field in dataclasses.fields(config)]
    return {
        field.name: _plain(value, for_key)
        for field, value in given
        if not (for_key and _FIRST in field.metadata and field.metadata[_FIRST] == value)
    }


def _plain(value: Any, for_key: bool) -> Any:
    if dataclasses.is_dataclass(value):
        return to_dict(value, for_key)
    return [_plain(item, for_key) for item in value] if isinstance(value, tuple) else value


def from_dict(
    kind: type[T], values: Mapping[str, Any], where: str = "", hidden: Collection[str] = ()
) -> T:
    """Build a (nested) config dataclass; unknown names and wrong types are the user's to mend.

    ``hidden`` fields are not to be set this way.
    """
    known = _hints(kind)  # type: ignore[arg-type]  # mypy does not take a class for hashable
    hints = {name: hint for name, hint in known.items() if name not in hidden}
    arguments = {}
    for name, value in values.items():
        path = f"{where}.{name}" if where else name
        if name not in hints:
            raise UserError(f"unknown setting {path!r}; {nearest(name, hints)}")
        arguments[name] = _converted(hints[name], value, path)
    return kind(**arguments)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _converted(hint: Any, value: Any, path: str) -> Any:
    if isinstance(value, int) and abs(value) >= 10**DIGITS:  # Python refuses to print it
        raise UserError(f"setting {path!r} is a number of more than {DIGITS} digits")
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise UserError(f"setting {path!r} is a group of settings, got {value!r}")
        return from_dict(hint, value, path)  # type: ignore[arg-type]  # is_dataclass: class or instance
    if get_origin(hint) is Literal:
        options = get_args(hint)
        if value not in options:
            known = ", ".join(map(str, options))
            raise UserError(f"setting {path!r} must be one of {known}, got {value!r}")
        return value
    if get_origin(hint) is tuple:
        if not isinstance(value, list | tuple):
            raise UserError(f"setting {path!r} must be a list, got {value!r}")
        return tuple(_converted(get_args(hint)[0], item, path) for item in value)
    if isinstance(hint, UnionType):
        if value is None and NoneType in get_args(hint):
            return None
        (hint,) = [kind for kind in get_args(hint) if kind is not NoneType][:1]
        return _converted(hint, value, path)
    if hint is float and type(value) is int and abs(value) < 2**53:
        return float(value)
    if type(value) is not hint:
        raise UserError(f"setting {path!r} must be of type {hint.__name__}, got {value!r}")
    return value


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Nested settings with some replaced.

    >>> merged({"seed": 0, "network": {"dropout": 0.1, "gin_eps": 0}}, {"network": {"gin_eps": 1}})
    {'seed': 0, 'network': {'dropout': 0.1, 'gin_eps': 1}}
    """
    result = dict(base)
    for name, value in changes.items():
        old = result.get(name)
        nested = isinstance(old, Mapping) and isinstance(value, Mapping)
        result[name] = merged(old, value) if nested else value  # type: ignore[arg-type]
    return result


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
    return dataclasses.field(default=default, metadata={_FIRST: first})


def run_key(settings: Mapping[str, Any]) -> str:
    """Hash nested settings to twelve hexadecimal digits, the same in later versions.

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
