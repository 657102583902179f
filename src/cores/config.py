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

Model = Literal[
    "gnn",
    "mlp",
    "cores-node",
    "cores-edge",
    "cores-both",
    "sagpool",
    "gpool",
    "diffpool",
    "sugar",
    "gsat",
    "random",
]
Removal = Literal["node", "edge", "both"]
Conv = Literal["gin", "gcn", "gat"]
Preset = Literal["default", "paper"]
Pooling = Literal["mean", "add"]

_REMOVALS: dict[str, Removal] = {"cores-node": "node", "cores-edge": "edge", "cores-both": "both"}
_KEEPS_SOME_NODES = ("sagpool", "gpool", "sugar", "random")
_GROUPS = {
    **dict.fromkeys(_REMOVALS, ("diet", "reward", "ppo")),
    **dict.fromkeys(("sagpool", "gpool", "random"), ("pool",)),
    "diffpool": ("diffpool",),
    "sugar": ("sugar",),
    "gsat": ("gsat",),
}
"""Groups of settings that only some models use."""

TEST_SHARE = 0.1
"""Share of the graphs held out for the reported numbers, the same for every model."""


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise UserError(message)


@dataclass(frozen=True)
class PartsConfig:
    """Who may look at which graphs: shares of the whole dataset; train gets what is left."""

    policy: float = 0.2
    """Share the policy is rolled out on (the paper's validation split); with referees it joins the
    training part, and both are dealt out anew."""
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
    batch_norm: bool = True
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
        _require(
            abs(self.gin_eps) <= 1000,
            f"network.gin_eps must lie in -1000 to 1000, got {self.gin_eps}",
        )


@dataclass(frozen=True)
class TrainingConfig:
    """Optimisation of the classifier (Eq. 6)."""

    epochs: int = 240
    """Most epochs."""
    patience: int = 100
    """Epochs without improvement on the selection part before training stops; for CORES, of those
    in which its policy has settled, which at the default settings are fewer than this."""
    batch_size: int = 32
    """Graphs per update."""
    learning_rate: float = 3e-3
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
class DietConfig:
    """What the classifier of a CORES model learns from, and when."""

    mix: float = 1.0
    """Share of batches with random masks; the rest are the policy's subgraphs (0: the paper)."""
    warm_up: float = 0.5
    """Share of the epochs before the policy begins; at mix 1 the classifier rests after it."""
    distilled: float = 0.8
    """Weight of the referees' mean prediction in what the returned classifier learns to predict;
    the rest is the label. Without referees there is only the label."""

    def __post_init__(self) -> None:
        _require(0 <= self.mix <= 1, f"--mix must lie in [0, 1], got {self.mix}")
        _require(0 <= self.warm_up < 1, f"diet.warm_up must lie in [0, 1), got {self.warm_up}")
        _require(
            0 <= self.distilled <= 1, f"diet.distilled must lie in [0, 1], got {self.distilled}"
        )


@dataclass(frozen=True)
class RewardConfig:
    """The conformal-based reward (Eq. 7) and who pays it."""

    lam: float = 0.5
    """Lambda: weight of performance against sparsity on graphs that are predicted surely."""
    desired_ratio: float = 0.3
    """d: the kept ratio at which the sparsity reward reaches 0.95."""
    alpha: float = 0.09
    """Error rate of the reward's prediction sets; a smaller one calls more graphs unsure, and those
    reward accuracy alone."""
    score: Literal["lac", "aps"] = "lac"
    """Conformal score of the reward's sets; aps: Eq. 4 (Deviation D11: lac by default)."""
    empty_set: Literal["predicted", "unsure", "wrong"] = "predicted"
    """What a set without labels stands for: the predicted label, all labels (unsure), or nothing
    (wrong: as Eq. 7 is written)."""
    referees: int = 3
    """Classifiers that reward the policy, each on graphs it has not learnt from; 0: the returned
    classifier does it on the policy part, with a quantile from the training part (the paper)."""
    penalty_size: float = 1.0
    """Subtracted where a graph lost everything and was restored."""

    def __post_init__(self) -> None:
        _require(0 <= self.lam <= 1, f"--lam must lie in [0, 1], got {self.lam}")
        _require(
            0 < self.desired_ratio < 1,
            f"--desired-ratio must lie in (0, 1), got {self.desired_ratio}",
        )
        _require(0 < self.alpha < 1, f"reward.alpha must lie in (0, 1), got {self.alpha}")
        _require(
            self.referees == 0 or 2 <= self.referees <= 100,
            f"reward.referees must be 0 or lie in [2, 100], got {self.referees}",
        )
        _require(
            0 <= self.penalty_size < math.inf,
            f"reward.penalty_size must not be negative, got {self.penalty_size}",
        )


@dataclass(frozen=True)
class PPOConfig:
    """The policy's optimisation (Eq. 1).

    Deviation D10: the defaults take a ratio per element, compare several samples of a graph, cut
    gradients, let the entropy bonus fade, keep probabilities off 0 and 1 and average the weights;
    the ``paper`` preset does none of that.
    """

    env_steps: int = 160
    """Graphs each referee rewards on per epoch, drawn at random; all, if there are fewer."""
    samples: int = 8
    """Actions sampled per graph."""
    ppo_epochs: int = 4
    """K: passes over what was rolled out."""
    batch_size: int = 32
    """Graphs per update."""
    ratio: Literal["element", "joint"] = "element"
    """Probability ratio per node or edge, or of a graph's whole action (the paper)."""
    baseline: Literal["samples", "critic"] = "samples"
    """What a reward is compared with: the graph's other samples, or a critic (the paper)."""
    clip: float = 0.2
    """Epsilon of Eq. 1."""
    learning_rate: float = 1e-3
    """Adam's step size for the policy at the start."""
    critic_learning_rate: float = 1e-3
    """Adam's step size for the critic at the start."""
    schedule_factor: float = 0.0
    """Factor on both rates when the reward stalls; 0: a cosine down to a tenth instead."""
    entropy_coef: float = 0.01
    """Weight of the entropy bonus at the start."""
    final_entropy_coef: float = 1e-4
    """Weight of the entropy bonus at the end, reached geometrically (linearly if one is 0)."""
    value_coef: float = 0.5
    """Weight of the critic's loss."""
    max_grad_norm: float = 0.5
    """A longer gradient is shortened to this; 0: never."""
    max_kl: float = 0.1
    """An epoch's updates end when the policy has moved this far (nats per element); 0: never."""
    start: float = 0.27
    """Probability of removal before training."""
    floor: float = 0.02
    """No removal probability comes closer to 0 or 1 than this."""
    averaging: float = 0.9
    """What the running mean of the policy's weights, which is returned, keeps of itself per epoch;
    0: the weights as they are (the paper)."""

    def __post_init__(self) -> None:
        for name in ("env_steps", "samples", "ppo_epochs", "batch_size", "clip", "learning_rate"):
            value = getattr(self, name)
            _require(0 < value < 2**31, f"ppo.{name} must lie in (0, 2^31), got {value}")
        coefficients = ("critic_learning_rate", "entropy_coef", "final_entropy_coef", "value_coef")
        for name in (*coefficients, "max_kl", "max_grad_norm"):
            value = getattr(self, name)
            _require(0 <= value < math.inf, f"ppo.{name} must not be negative, got {value}")
        _require(
            0 <= self.schedule_factor < 1,
            f"ppo.schedule_factor must lie in [0, 1), got {self.schedule_factor}",
        )
        _require(0 < self.start < 1, f"ppo.start must lie in (0, 1), got {self.start}")
        _require(0 <= self.floor < 0.5, f"ppo.floor must lie in [0, 0.5), got {self.floor}")
        _require(0 <= self.averaging < 1, f"ppo.averaging must lie in [0, 1), got {self.averaging}")
        _require(
            self.baseline == "critic" or self.samples > 1,
            f"ppo.baseline samples needs at least two samples per graph, got {self.samples}",
        )


@dataclass(frozen=True)
class PoolConfig:
    """Models that keep a given share of every graph's nodes: sagpool, gpool, random."""

    ratio: float = 0.5
    """Share of the nodes that is kept, rounded up."""
    multiplier: float = 1.0
    """Factor on the gates of the kept nodes (sagpool, gpool)."""

    def __post_init__(self) -> None:
        _require(0 < self.ratio <= 1, f"pool.ratio must lie in (0, 1], got {self.ratio}")
        _require(
            0 < self.multiplier < math.inf,
            f"pool.multiplier must be positive, got {self.multiplier}",
        )


@dataclass(frozen=True)
class DiffPoolConfig:
    """Clusters of DiffPool and its auxiliary losses."""

    clusters: int = 16
    """Clusters that the nodes are assigned to."""
    link_weight: float = 1.0
    """Weight of the link-prediction loss."""
    entropy_weight: float = 1.0
    """Weight of the entropy of the assignments."""

    def __post_init__(self) -> None:
        _require(
            2 <= self.clusters <= 256,
            f"diffpool.clusters must lie in [2, 256], got {self.clusters}",
        )
        for name in ("link_weight", "entropy_weight"):
            value = getattr(self, name)
            _require(0 <= value < math.inf, f"diffpool.{name} must not be negative, got {value}")


@dataclass(frozen=True)
class SugarConfig:
    """SUGAR: the subgraphs it samples, and how it learns the share k that is kept."""

    subgraphs: int = 12
    """Subgraphs per graph, around its best-connected nodes."""
    size: int = 16
    """Nodes per subgraph, the first that a breadth-first search meets."""
    overlap: int = 1
    """Subgraphs that share more nodes than this are joined in the sketch."""
    first_ratio: float = 0.5
    """k at the start."""
    step: float = 0.05
    """How far k moves at a time."""
    explore: float = 0.1
    """Share of the moves that are made at random."""
    rate: float = 0.5
    """Step size of the Q-learning."""
    discount: float = 0.9
    """What the value of the next state counts."""
    information_weight: float = 0.1
    """Weight of the self-supervised loss."""

    def __post_init__(self) -> None:
        for name in ("subgraphs", "size"):
            value = getattr(self, name)
            _require(1 <= value <= 1024, f"sugar.{name} must lie in [1, 1024], got {value}")
        _require(
            0 <= self.overlap < 2**31, f"sugar.overlap must lie in [0, 2^31), got {self.overlap}"
        )
        _require(self.step >= 1e-4, f"sugar.step must be at least 0.0001, got {self.step}")
        for name in ("first_ratio", "step", "rate"):
            value = getattr(self, name)
            _require(0 < value <= 1, f"sugar.{name} must lie in (0, 1], got {value}")
        for name in ("explore", "discount"):
            value = getattr(self, name)
            _require(0 <= value <= 1, f"sugar.{name} must lie in [0, 1], got {value}")
        _require(
            abs(1 / self.step - round(1 / self.step)) < 1e-6,
            f"sugar.step must divide 1, got {self.step}",
        )
        _require(
            self.step <= self.first_ratio,
            f"sugar.step must not exceed first_ratio, got {self.step} and {self.first_ratio}",
        )
        _require(
            0 <= self.information_weight < math.inf,
            f"sugar.information_weight must not be negative, got {self.information_weight}",
        )


@dataclass(frozen=True)
class GSATConfig:
    """GSAT: stochastic attention, and how little it may tell."""

    attention: Literal["node", "edge"] = "node"
    """What is weighed; with nodes, an edge weighs the product of its ends."""
    first_r: float = 0.9
    """r at the start: a probability of r costs nothing."""
    last_r: float = 0.5
    """r from the middle of training on."""
    information_weight: float = 1.0
    """Weight of the divergence from Bern(r)."""
    temperature: float = 1.0
    """Of the relaxed Bernoulli draws in training."""
    dropout: float = 0.3
    """Dropout rate before the attention's last layer."""

    def __post_init__(self) -> None:
        for name in ("first_r", "last_r"):
            value = getattr(self, name)
            _require(0 < value < 1, f"gsat.{name} must lie in (0, 1), got {value}")
        _require(
            self.last_r <= self.first_r,
            f"gsat.last_r must not exceed first_r, got {self.last_r} and {self.first_r}",
        )
        _require(
            0 <= self.information_weight < math.inf,
            f"gsat.information_weight must not be negative, got {self.information_weight}",
        )
        _require(
            0 < self.temperature < math.inf,
            f"gsat.temperature must be positive, got {self.temperature}",
        )
        _require(0 <= self.dropout < 1, f"gsat.dropout must lie in [0, 1), got {self.dropout}")


@dataclass(frozen=True)
class RunConfig:
    """One training run: what decides its numbers, and nothing else (no paths, no device)."""

    dataset: str = "motifs"
    """A dataset's name (`cores datasets`), or the path of a zip or folder in TU format."""
    model: Model = "gnn"
    """gnn: the plain graph neural network; mlp: the same network blind to edges; cores-node,
    cores-edge, cores-both: CORES removing nodes, undirected edges, or both; sagpool, gpool,
    diffpool, sugar, gsat: the models it is compared with; random: a control that keeps a random
    part."""
    conv: Conv = "gin"
    """Message-passing layer."""
    preset: Preset = "default"
    """default: one setting for all datasets; paper: the published one per dataset and conv."""
    split: int = 1
    """Number of the split, 1 or more; decides who may look at which graphs."""
    seed: int = 0
    """Seed of initial weights, batch order and dropout."""
    alpha: float = 0.1
    """Error rate of the prediction sets shown to users: they miss the true label at most this
    often."""
    parts: PartsConfig = field(default_factory=PartsConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    diet: DietConfig = field(default_factory=DietConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    ppo: PPOConfig = field(default_factory=PPOConfig)
    pool: PoolConfig = field(default_factory=PoolConfig)
    diffpool: DiffPoolConfig = field(default_factory=DiffPoolConfig)
    sugar: SugarConfig = field(default_factory=SugarConfig)
    gsat: GSATConfig = field(default_factory=GSATConfig)

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
        _require(
            self.removal is None or self.diet.mix < 1 or self.warm_up_epochs > 0,
            "at --mix 1 the classifier learns in the warm-up only: raise diet.warm_up or --epochs, "
            f"got {self.diet.warm_up} of {self.training.epochs}",
        )

    @property
    def removal(self) -> Removal | None:
        """What the policy removes; None for a model without a policy."""
        return _REMOVALS.get(self.model)

    @property
    def judged(self) -> Removal | None:
        """What the model's judge has learnt to do without; None for one that sees whole graphs."""
        return "node" if self.model in _KEEPS_SOME_NODES else self.removal

    @property
    def warm_up_epochs(self) -> int:
        """Epochs before the policy of a CORES model begins."""
        return int(self.diet.warm_up * self.training.epochs)

    @property
    def warm_up_key(self) -> str | None:
        """Names what the warm-up depends on; None where it is not apart from the rest.

        At ``mix`` 1 the classifiers learn in the warm-up alone, and there is no reward in it.
        """
        if self.removal is None or self.diet.mix < 1:
            return None
        return dataclasses.replace(self, reward=RewardConfig(referees=self.reward.referees)).key

    @property
    def settings(self) -> dict[str, Any]:
        """The settings as plain data, without the groups that the model does not use."""
        used = _GROUPS.get(self.model, ())
        unused = {name for groups in _GROUPS.values() for name in groups} - set(used)
        return {name: value for name, value in to_dict(self).items() if name not in unused}

    @property
    def key(self) -> str:
        """Twelve hexadecimal digits that name this configuration."""
        text = json.dumps(self.settings, sort_keys=True)
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
