"""Every setting of a run, as frozen dataclasses checked once; they are also the command line.

The defaults of these classes are the ``default`` preset. Names follow one table for the whole
project (docs/architecture.md): the paper's symbols alpha, epsilon and K mean several things,
the names here do not.
"""

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from cores.errors import UserError, nearest

Model = Literal["gnn", "mlp"]
Conv = Literal["gin", "gcn", "gat"]
Preset = Literal["default", "paper"]
Pooling = Literal["mean", "add"]

TEST_SHARE = 0.1
"""Share of the graphs held out for the reported numbers, the same for every model."""


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise UserError(message)


@dataclass(frozen=True)
class PartsConfig:
    """Who may look at which graphs: shares of the whole dataset; train gets what is left."""

    policy: float = 0.2
    """Share the policy is rolled out on (the paper's validation split)."""
    selection: float = 0.1
    """Share for early stopping and choice of weights; 0: the policy part, as in the paper."""
    calibration: float = 0.1
    """Share that calibrates the prediction sets shown to users; 0: no such sets."""

    def __post_init__(self) -> None:
        for name in ("policy", "selection", "calibration"):
            share = getattr(self, name)
            _require(0 <= share < 1, f"parts.{name} must lie in [0, 1), got {share}")
        _require(self.policy > 0, f"parts.policy must be positive, got {self.policy}")
        left = 1 - TEST_SHARE - self.policy - self.selection - self.calibration
        _require(
            left > 0,
            f"the parts leave {left:.2f} of the graphs for training; lower a share",
        )


@dataclass(frozen=True)
class NetworkConfig:
    """Shape of the graph neural network (Eq. 2, readout, classifier)."""

    hidden_dim: int = 64
    """Units per layer."""
    num_layers: int = 3
    """Message-passing layers."""
    pooling: tuple[Pooling, ...] = ("mean", "add")
    """Readouts over the nodes, concatenated."""
    dropout: float = 0.0
    """Dropout rate after every layer."""
    batch_norm: bool = False
    """Batch normalisation after every message-passing layer."""
    gin_eps: float = 0.0
    """GIN: weight of the node itself, minus one."""
    gin_train_eps: bool = False
    """GIN: learn that weight."""
    gat_heads: int = 4
    """GAT: attention heads; they share the hidden units."""
    edge_features: bool = False
    """Let messages see edge features (bond types), where the dataset has them."""

    def __post_init__(self) -> None:
        for name, most in (("hidden_dim", 65536), ("num_layers", 1000), ("gat_heads", 1024)):
            value = getattr(self, name)
            _require(1 <= value <= most, f"network.{name} must lie in [1, {most}], got {value}")
        _require(bool(self.pooling), "network.pooling needs at least one of mean, add")
        _require(
            len(set(self.pooling)) == len(self.pooling),
            f"network.pooling must not repeat itself, got {', '.join(self.pooling)}",
        )
        _require(
            0 <= self.dropout < 1,
            f"network.dropout must lie in [0, 1), got {self.dropout}",
        )
        _require(math.isfinite(self.gin_eps), f"network.gin_eps must be finite, got {self.gin_eps}")


@dataclass(frozen=True)
class TrainingConfig:
    """Optimisation of the classifier (Eq. 6)."""

    epochs: int = 300
    """Most epochs."""
    patience: int = 100
    """Epochs without improvement on the selection part before training stops."""
    batch_size: int = 32
    """Graphs per update."""
    learning_rate: float = 1e-3
    """Adam's step size at the start."""
    min_learning_rate: float = 1e-4
    """The plateau schedule stops here."""
    schedule_factor: float = 0.5
    """Factor on the learning rate when the selection accuracy stalls."""
    schedule_patience: int = 20
    """Epochs of stalling before that."""
    weight_decay: float = 1e-4
    """Adam's L2 penalty."""
    class_weights: bool = False
    """Weight the loss inversely to class frequency in the training part."""
    weights: Literal["best", "last"] = "best"
    """Which epoch's weights are kept: best on the selection part, or the last (the paper)."""

    def __post_init__(self) -> None:
        for name in ("epochs", "patience", "batch_size", "learning_rate"):
            value = getattr(self, name)
            _require(0 < value < 2**31, f"training.{name} must lie in (0, 2^31), got {value}")
        for name in ("min_learning_rate", "schedule_patience", "weight_decay"):
            value = getattr(self, name)
            _require(0 <= value < math.inf, f"training.{name} must not be negative, got {value}")
        _require(
            0 < self.schedule_factor < 1,
            f"training.schedule_factor must lie in (0, 1), got {self.schedule_factor}",
        )


@dataclass(frozen=True)
class RunConfig:
    """One training run: what decides its numbers, and nothing else (no paths, no device)."""

    dataset: str = "motifs"
    """A dataset's name (`cores datasets`), or the path of a zip or folder in TU format."""
    model: Model = "gnn"
    """gnn: the plain graph neural network; mlp: the same network blind to edges."""
    conv: Conv = "gin"
    """Message-passing layer."""
    preset: Preset = "default"
    """default: one setting for all datasets; paper: the published one per dataset and conv."""
    split: int = 1
    """Number of the split, 1 or more; decides who may look at which graphs."""
    seed: int = 0
    """Seed of initial weights, batch order and dropout."""
    alpha: float = 0.1
    """Error rate of the prediction sets: they miss the true label at most this often."""
    parts: PartsConfig = field(default_factory=PartsConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)

    def __post_init__(self) -> None:
        _require(self.split >= 1, f"--split counts from 1, got {self.split}")
        _require(self.split < 2**63, f"--split must be below 2^63, got {self.split}")
        _require(0 <= self.seed < 2**63, f"--seed must lie in [0, 2^63), got {self.seed}")
        _require(0 < self.alpha < 1, f"--alpha must lie in (0, 1), got {self.alpha}")
        width, heads = self.network.hidden_dim, self.network.gat_heads
        _require(
            self.conv != "gat" or width % heads == 0,
            f"network.hidden_dim must be a multiple of gat_heads, got {width} and {heads}",
        )

    @property
    def key(self) -> str:
        """Twelve hexadecimal digits that name this configuration."""
        text = json.dumps(to_dict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


T = TypeVar("T")


def to_dict(config: Any) -> dict[str, Any]:
    """The settings as plain nested data, ready for JSON."""
    plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(config)))
    return plain


def from_dict(kind: type[T], values: Mapping[str, Any], where: str = "") -> T:
    """Build a (nested) config dataclass; unknown names and wrong types are the user's to mend."""
    hints = get_type_hints(kind)
    arguments = {}
    for name, value in values.items():
        path = f"{where}.{name}" if where else name
        if name not in hints:
            raise UserError(f"unknown setting {path!r}; {nearest(name, hints)}")
        arguments[name] = _converted(hints[name], value, path)
    return kind(**arguments)


def _converted(hint: Any, value: Any, path: str) -> Any:
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise UserError(f"setting {path!r} is a group of settings, got {value!r}")
        return from_dict(hint, value, path)  # type: ignore[arg-type]  # is_dataclass: class or instance
    if get_origin(hint) is Literal:
        options = get_args(hint)
        if value not in options:
            raise UserError(f"setting {path!r} must be one of {', '.join(options)}, got {value!r}")
        return value
    if get_origin(hint) is tuple:
        if not isinstance(value, list | tuple):
            raise UserError(f"setting {path!r} must be a list, got {value!r}")
        return tuple(_converted(get_args(hint)[0], each, path) for each in value)
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
