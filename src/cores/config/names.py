"""Settings that have been renamed: what they were called when they were introduced."""

from collections.abc import Mapping
from typing import Any

INTRODUCED_AS = {
    "classifier_data.mix": "diet.mix",
    "classifier_data.warm_up": "diet.warm_up",
    "classifier_data.distillation": "diet.distilled",
    "ppo.initial_removal": "ppo.start",
    "ppo.min_probability": "ppo.floor",
    "ppo.ema_decay": "ppo.averaging",
}
"""The first name of a setting, by its name today. A run's key goes by the first; options and files
may use it for one release after the change."""
_NOW = {old: new for new, old in INTRODUCED_AS.items()}


def current_name(name: str) -> str:
    """The name of today for a setting, by any name that it has had.

    >>> current_name("ppo.floor"), current_name("ppo.clip")
    ('ppo.min_probability', 'ppo.clip')
    """
    return _NOW.get(name, name)


def with_current_names(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Nested settings by their names of today.

    >>> with_current_names({"seed": 1, "diet": {"mix": 0.5}, "ppo": {"clip": 0.1, "floor": 0.0}})
    {'seed': 1, 'classifier_data': {'mix': 0.5}, 'ppo': {'clip': 0.1, 'min_probability': 0.0}}
    """
    renamed: dict[str, Any] = {}
    for group, values in settings.items():
        if not isinstance(values, Mapping):
            renamed[group] = values
            continue
        for name, value in values.items():
            new_group, _, new_name = current_name(f"{group}.{name}").partition(".")
            renamed.setdefault(new_group, {})[new_name] = value
        if not values:
            renamed.setdefault(group, {})
    return renamed
