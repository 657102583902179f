"""The arguments of ``Cores``, as scikit-learn wants them, and the settings that they stand for."""

import inspect
from collections.abc import Mapping
from typing import Any, TypeVar, cast, get_args

import numpy as np

from cores.config import RunConfig, merged
from cores.config.models import MODELS
from cores.config.presets import own_data_settings, preset_config
from cores.config.run import AskedTask
from cores.config.spec import TaskName
from cores.errors import UserError
from cores.tasks import CLASSIFICATION, TASKS

Whole = int | np.integer[Any]
Real = float | np.floating[Any]
COMMITTEE = {"committee": ("members",), "explanation": ("sufficiency", "parts", "class_from")}
"""Arguments that are settings of these groups."""
Own = TypeVar("Own", bound="Parameters")


class Parameters:
    """Stores the arguments of the constructor; :class:`cores.Cores` says what they mean."""

    def __init__(
        self,
        removal: str | None = "node",
        conv: str = "gin",
        epochs: Whole | None = None,
        seed: Whole = 0,
        device: str = "auto",
        progress: bool = True,
        desired_ratio: Real | None = None,
        lam: Real | None = None,
        judge: bool = True,
        settings: Mapping[str, Any] | None = None,
        task: str = "auto",
        members: Whole = 5,
        sufficiency: Real | None = None,
        parts: str = "minimal",
        class_from: str = "whole",
    ) -> None:
        self.removal = removal
        self.conv = conv
        self.epochs = epochs
        self.seed = seed
        self.device = device
        self.progress = progress
        self.desired_ratio = desired_ratio
        self.lam = lam
        self.judge = judge
        self.settings = settings
        self.task = task
        self.members = members
        self.sufficiency = sufficiency
        self.parts = parts
        self.class_from = class_from

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments of the constructor, as scikit-learn asks for them."""
        return {name: getattr(self, name) for name in _arguments()}

    def set_params(self: Own, **params: Any) -> Own:
        """Change arguments of the constructor."""
        for name, value in params.items():
            if name not in _arguments():
                raise UserError(f"unknown parameter {name!r}; known: {', '.join(_arguments())}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = _arguments()
        given = self.get_params().items()
        changed = [f"{name}={value!r}" for name, value in given if value != defaults[name]]
        return f"Cores({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn about this estimator; only scikit-learn asks."""
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

        fitted = getattr(self, "_fitted", self)  # asked for, unless the labels have decided it
        task = TASKS.get(cast(TaskName, fitted.task), CLASSIFICATION)
        numbers = not task.has_sets
        several = task.has_sets and not task.has_classes
        return Tags(
            estimator_type="regressor" if numbers else "classifier",
            target_tags=TargetTags(required=False, multi_output=several),
            classifier_tags=None if numbers else ClassifierTags(multi_label=several),
            regressor_tags=RegressorTags() if numbers else None,
            input_tags=InputTags(two_d_array=False),
        )

    def _config(self, num_graphs: int) -> RunConfig:
        model = "gnn" if self.removal is None else f"cores-{self.removal}"
        if model not in MODELS:
            raise UserError(f"`removal` is node, edge, both or None, got {self.removal!r}")
        settings = dict(self.settings or {})
        for name in ("conv", "seed", "task"):
            if name in settings:
                raise UserError(f"`settings` names {name}; give it as the argument `{name}`")
        seed = python_number(self.seed)
        if not isinstance(seed, int) or seed < 0:
            raise UserError(f"`seed` is a whole number from 0, got {self.seed!r}")
        given: dict[str, Any] = {
            "seed": seed,
            "task": self._asked_task,
            "training": self._given("epochs"),
            "reward": self._given("desired_ratio", "lam"),
            **{group: self._changed(*names) for group, names in COMMITTEE.items()},
        }
        preset = settings.pop("preset", "default")
        by_size = own_data_settings(num_graphs) if preset == "default" else {}
        defaults = merged({"split": default_split(seed)}, by_size)
        changes = merged(merged(defaults, settings), given)
        asked = settings.get("model")  # a model that `removal` does not name, such as a baseline
        model = asked if isinstance(asked, str) else model
        return preset_config("graphs", model, self.conv, preset, changes)

    def _given(self, *names: str) -> dict[str, Any]:
        values = {name: python_number(getattr(self, name)) for name in names}
        return {name: value for name, value in values.items() if value is not None}

    def _changed(self, *names: str) -> dict[str, Any]:
        """The arguments that are not as they are by default: a preset decides the others."""
        defaults = _arguments()
        given = self._given(*names)
        return {name: value for name, value in given.items() if value != defaults[name]}

    @property
    def _asked_task(self) -> AskedTask:
        if self.task not in get_args(AskedTask):
            known = ", ".join(get_args(AskedTask))
            raise UserError(f"`task` is one of {known}, got {self.task!r}")
        return cast(AskedTask, self.task)


def python_number(value: Any) -> Any:
    """Convert NumPy's numbers, which searches over parameters give, to Python's."""
    return value.item() if isinstance(value, np.generic) else value


def default_split(seed: int) -> int:
    """Return the split where none is asked for: another seed divides the graphs anew."""
    return seed + 1


def settings_of(config: RunConfig) -> dict[str, Any]:
    """Return the settings that differ from the defaults and are no arguments."""
    arguments = ("dataset", "conv", "split", "seed", "task")
    found = {name: value for name, value in config.changes.items() if name not in arguments}
    for group, names in COMMITTEE.items():
        others = {name: value for name, value in found.pop(group, {}).items() if name not in names}
        found |= {group: others} if others else {}
    if config.split != default_split(config.seed):
        found["split"] = config.split
    if config.removal is None and config.model != "gnn":
        found["model"] = config.model
    return found


def committee_arguments(config: RunConfig) -> dict[str, Any]:
    """Return the arguments of committee and parts that differ from the defaults."""
    changes = config.changes
    return {
        name: changes[group][name]
        for group, names in COMMITTEE.items()
        for name in names
        if name in changes.get(group, {})
    }


def _arguments() -> dict[str, Any]:
    """Return the arguments of the constructor and their defaults."""
    parameters = inspect.signature(Parameters.__init__).parameters
    return {name: found.default for name, found in parameters.items() if name != "self"}
