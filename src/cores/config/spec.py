"""Rows of the tables of models, message-passing layers and presets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal

Removal = Literal["node", "edge", "both"]
TaskName = Literal["classification", "regression", "multilabel"]
"""What is predicted of a graph: a class, a number, or several labels that are true or not."""


@dataclass(frozen=True)
class ModelSpec:
    """A model that can be trained, judged and compared."""

    name: str
    title: str
    """What tables call it."""
    network: str | type
    """Its class (a :class:`~cores.models.network.GraphModel`), or ``module:Class``."""
    group: str = ""
    """Name of its own settings in files and options."""
    settings: type | None = None
    """The frozen dataclass of its own settings."""
    removes: Removal | None = None
    """What it removes; None for a model that sees full graphs. It is judged on what is left."""
    has_policy: bool = False
    """Whether it is CORES: trained by Algorithm 1, with the settings of reward and PPO."""
    uses_conv: bool = True
    """Whether its layers depend on the conv; if not, one run serves the tables of every conv."""
    training: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Where its default training differs from that of the plain network, by setting."""
    search: Mapping[str, Sequence[Any]] = field(default_factory=dict, hash=False)
    """Values that a search chooses from, by setting, beside those that all models have; none for a
    setting that the model does not read."""
    tasks: tuple[TaskName, ...] = ("classification",)
    """What it can be trained for."""

    def network_class(self) -> Any:
        """Import the class where it was only named."""
        return imported(self.network)


@dataclass(frozen=True)
class ConvSpec:
    """A message-passing layer."""

    name: str
    title: str
    layer: str | type
    """Its class, or ``module:Class``; made from a NetworkConfig and a number of edge features."""
    search: Mapping[str, Sequence[Any]] = field(default_factory=dict, hash=False)

    def layer_class(self) -> Any:
        """Import the class where it was only named."""
        return imported(self.layer)


Settings = Mapping[str, Any]
"""Nested settings, as in files."""


@dataclass(frozen=True)
class PresetSpec:
    """Settings to begin with, by model, dataset and conv."""

    name: str
    summary: str
    """What the help says of it."""
    settings: Callable[[str, str, str], Settings]
    """Its settings for a model, a dataset and a conv; raises a UserError where it has none."""
    group: str = ""
    """Name of its own settings in files and options."""
    own: type | None = None
    """The frozen dataclass of its own settings, for models with a policy."""
    train: Any = None
    """Trains models with a policy in place of :func:`cores.training.bilevel.train`: a function, or
    ``module:function``."""
    measure: Any = None
    """Measures a trained model in place of :func:`cores.runs.fit.measure`, likewise."""
    fixed: Settings = field(default_factory=dict, hash=False)
    """Settings that its training does not read, for models with a policy, nested, at the values
    that say so; others are refused, and files leave them out."""
    samples: bool = False
    """Whether predictions come from one sample of the policy per graph, not from its mode."""


def imported(place: Any) -> Any:
    """Import what is named as ``module:name``; anything else is returned as it is."""
    if not isinstance(place, str):
        return place
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
