"""Settings of any classifier: its graphs, its network, its training."""

import math
from dataclasses import dataclass
from typing import Literal

from cores.config.nested import from_dict, to_dict
from cores.errors import require

Pooling = Literal["mean", "add"]

TEST_SHARE = 0.1
"""Share of the graphs held out for the reported numbers, the same for every model."""


@dataclass(frozen=True)
class PartsConfig:
    """Who may look at which graphs: shares of the whole dataset; train gets what is left."""

    policy: float = 0.2
    """Share the policy is rolled out on (the paper's validation split); with several members in the
    committee it is pooled with the training part."""
    selection: float = 0.1
    """Share for the choice of weights and the temperature; 0: the policy part, as in the paper."""
    calibration: float = 0.1
    """Share that calibrates the prediction sets shown to users; 0: no such sets."""
    kind: Literal["random", "scaffold", "column"] = "random"
    """How graphs are divided: random: each class in proportion; scaffold: no Bemis-Murcko scaffold
    is in two parts; column: as the file's split column says, where there is one."""
    folds: int = 0
    """Cross-validation: split k of so many tests on fold k, and every graph is tested once; 0:
    every split draws its test part by itself."""

    def __post_init__(self) -> None:
        require(
            self.folds == 0 or 2 <= self.folds <= 1000,
            f"`folds` must be 0 or lie in [2, 1000], got {self.folds}",
        )
        require(
            self.kind != "column" or self.folds == 0,
            "the parts come from a split column or from folds, not from both",
        )
        for name in ("policy", "selection", "calibration"):
            share = getattr(self, name)
            require(0 <= share < 1, f"parts.{name} must lie in [0, 1), got {share}")
        require(self.policy > 0, f"parts.policy must be positive, got {self.policy}")
        left = 1 - TEST_SHARE - self.policy - self.selection - self.calibration
        require(
            left > 0,
            f"the parts leave {left:.2f} of the graphs for training; lower a share",
        )


@dataclass(frozen=True)
class Reach:
    """What belongs to the neighbourhood from which a node is classified."""

    hops: int = 3
    """Edges between its nodes and the node in question, at most."""
    fan_out: int = 10
    """Neighbours of a node that count; 0: all."""


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
    edge_features: bool = True
    """Let messages see edge features (bond types), where the dataset has them; the paper's do
    not."""
    fan_out: int = 10
    """Where nodes are classified: neighbours of a node that count, at every hop; 0: all."""

    def __post_init__(self) -> None:
        for name, most in (("hidden_dim", 65536), ("num_layers", 1000), ("gat_heads", 1024)):
            value = getattr(self, name)
            require(1 <= value <= most, f"network.{name} must lie in [1, {most}], got {value}")
        require(
            0 <= self.fan_out < 2**31, f"network.fan_out must not be negative, got {self.fan_out}"
        )
        require(bool(self.pooling), "network.pooling needs at least one of mean, add")
        require(
            len(set(self.pooling)) == len(self.pooling),
            f"network.pooling must not repeat itself, got {', '.join(self.pooling)}",
        )
        require(
            0 <= self.dropout < 1,
            f"network.dropout must lie in [0, 1), got {self.dropout}",
        )
        require(
            abs(self.gin_eps) <= 1000,
            f"network.gin_eps must lie in -1000 to 1000, got {self.gin_eps}",
        )

    @property
    def reach(self) -> Reach:
        """The neighbourhood of a node that is classified: as far as messages come from."""
        return Reach(self.num_layers, self.fan_out)


@dataclass(frozen=True)
class SetsConfig:
    """Prediction sets shown to users."""

    score: Literal["lac", "aps", "raps", "randomised-aps"] = "lac"
    """Conformal score; aps: Eq. 4 (Deviation D4: lac by default)."""
    per_class: bool = False
    """A quantile per class, so that every class is covered as often."""

    def changed(self, score: str | None, per_class: bool | None) -> "SetsConfig":
        """With those replaced that are not None."""
        given = {"score": score, "per_class": per_class}
        settings = {name: value for name, value in given.items() if value is not None}
        return from_dict(SetsConfig, {**to_dict(self), **settings}, "sets")


@dataclass(frozen=True)
class TrainingConfig:
    """Optimisation of the classifier (Eq. 6)."""

    epochs: int = 240
    """Most epochs; 270 for CORES, 30 of them the policy's, and fewer for files of more than 5,000
    graphs."""
    patience: int = 100
    """Epochs without improvement on the selection part before training stops; for CORES, counted in
    the second half of the policy's epochs only."""
    batch_size: int = 32
    """Graphs per update; 128 for CORES and for files of more than 5,000 graphs."""
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
    """Weight the loss inversely to class frequency in the training part; without effect where
    classes are balanced."""
    balance: Literal["auto", "always", "never"] = "auto"
    """Treat all classes as equally frequent, in the policy's rollouts, in the batches of models
    without a policy and in the choice of weights; auto: where one class has more than 80 % of the
    training part."""
    logit_adjustment: float = 0.9
    """Where classes are balanced: how much of the classes' frequencies is taken out of the logits
    of a classifier behind a policy, once it is trained; 1: as if all were as frequent."""
    loss: Literal["squared", "absolute"] = "squared"
    """Regression: the loss of an error, in deviations of the training targets."""
    quantiles: bool = False
    """Regression: also predict the quantiles between which all but a share ``alpha`` of the targets
    are, so that intervals are wider where a number is harder to predict."""

    @property
    def balanced(self) -> bool:
        """Whether classes count as equally frequent; "auto" is settled by the data before."""
        return self.balance == "always"

    @property
    def weighs_classes(self) -> bool:
        """Whether the loss has class weights; balanced classes would count twice with them."""
        return self.class_weights and not self.balanced

    def __post_init__(self) -> None:
        for name in ("epochs", "patience", "batch_size", "learning_rate"):
            value = getattr(self, name)
            require(0 < value < 2**31, f"training.{name} must lie in (0, 2^31), got {value}")
        for name in (
            "min_learning_rate",
            "schedule_patience",
            "weight_decay",
            "logit_adjustment",
        ):
            value = getattr(self, name)
            require(0 <= value < math.inf, f"training.{name} must not be negative, got {value}")
        require(
            0 < self.schedule_factor < 1,
            f"training.schedule_factor must lie in (0, 1), got {self.schedule_factor}",
        )


@dataclass(frozen=True)
class RandomConfig:
    """The control, which keeps a random part of every graph."""

    ratio: float = 0.5
    """Share of the nodes that is kept, rounded up."""

    def __post_init__(self) -> None:
        require(0 < self.ratio <= 1, f"random.ratio must lie in (0, 1], got {self.ratio}")
