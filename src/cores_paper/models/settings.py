"""Settings of the models that CORES is compared with. Needs no torch."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from cores.errors import require


def check_signs(group: str, settings: Any, positive: str = "", not_negative: str = "") -> None:
    """Refuse settings that are not finite, not positive or negative; names with spaces."""
    for name in positive.split():
        value = getattr(settings, name)
        require(0 < value < math.inf, f"{group}.{name} must be positive, got {value}")
    for name in not_negative.split():
        value = getattr(settings, name)
        require(0 <= value < math.inf, f"{group}.{name} must not be negative, got {value}")


@dataclass(frozen=True)
class PoolConfig:
    """SAGPool and GPool, which keep a given share of every graph's nodes."""

    ratio: float = 0.5
    """Share of the nodes that is kept, rounded up."""
    multiplier: float = 1.0
    """Factor on the gates of the kept nodes."""

    def __post_init__(self) -> None:
        require(0 < self.ratio <= 1, f"`ratio` must lie in (0, 1], got {self.ratio}")
        require(
            0 < self.multiplier < math.inf,
            f"`multiplier` must be positive, got {self.multiplier}",
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
        require(
            2 <= self.clusters <= 256,
            f"diffpool.clusters must lie in [2, 256], got {self.clusters}",
        )
        check_signs("diffpool", self, not_negative="link_weight entropy_weight")


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
            require(1 <= value <= 1024, f"sugar.{name} must lie in [1, 1024], got {value}")
        require(
            0 <= self.overlap < 2**31, f"sugar.overlap must lie in [0, 2^31), got {self.overlap}"
        )
        require(self.step >= 1e-4, f"sugar.step must be at least 0.0001, got {self.step}")
        for name in ("first_ratio", "step", "rate"):
            value = getattr(self, name)
            require(0 < value <= 1, f"sugar.{name} must lie in (0, 1], got {value}")
        for name in ("explore", "discount"):
            value = getattr(self, name)
            require(0 <= value <= 1, f"sugar.{name} must lie in [0, 1], got {value}")
        require(
            abs(1 / self.step - round(1 / self.step)) < 1e-6,
            f"sugar.step must divide 1, got {self.step}",
        )
        require(
            self.step <= self.first_ratio,
            f"sugar.step must not exceed first_ratio, got {self.step} and {self.first_ratio}",
        )
        check_signs("sugar", self, not_negative="information_weight")


@dataclass(frozen=True)
class GSATConfig:
    """GSAT: stochastic attention, and how little it may tell."""

    group: ClassVar[str] = "gsat"
    """What messages call these settings."""

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
            require(0 < value < 1, f"{self.group}.{name} must lie in (0, 1), got {value}")
        require(
            self.last_r <= self.first_r,
            f"{self.group}.last_r must not exceed first_r, got {self.last_r} and {self.first_r}",
        )
        check_signs(self.group, self, "temperature", "information_weight")
        require(
            0 <= self.dropout < 1, f"{self.group}.dropout must lie in [0, 1), got {self.dropout}"
        )


@dataclass(frozen=True)
class GMTConfig(GSATConfig):
    """GMT: GSAT's attention, learnt from subgraphs drawn by it, and a classifier of its own."""

    group: ClassVar[str] = "gmt"
    last_r: float = 0.7
    """r from a quarter of training on. Not a half, where more and less attention cost the same: a
    class can be told by what is not drawn, and the attention then marks all but the reason."""
    information_weight: float = 0.1
    """Weight of the divergence from Bern(r). Less than GSAT's: at 1, hard draws lose the reason
    before it is learnt."""
    samples: int = 10
    """Subgraphs that are drawn of every graph at a time; their predictions are averaged."""
    extraction: float = 0.5
    """Share of the epochs in which the attention is learnt; in the rest it stays as it is, and a
    new classifier is trained on what it extracts."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(1 <= self.samples <= 1000, f"gmt.samples must lie in [1, 1000], got {self.samples}")
        require(
            0 < self.extraction < 1, f"gmt.extraction must lie in (0, 1), got {self.extraction}"
        )
