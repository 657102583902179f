"""All that decides the numbers of a run."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal

from cores.config.baselines import DiffPoolConfig, GSATConfig, PoolConfig, SugarConfig
from cores.config.checks import require
from cores.config.classifier import Conv, NetworkConfig, PartsConfig, TrainingConfig
from cores.config.key import run_key, schema
from cores.config.names import INTRODUCED_AS
from cores.config.nested import to_dict
from cores.config.policy import DietConfig, PPOConfig, RewardConfig

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
Preset = Literal["default", "paper"]

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
    often, on average over draws of calibration and test graphs."""
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
        require(self.split >= 1, f"--split counts from 1, got {self.split}")
        require(self.split < 2**63, f"--split must be below 2^63, got {self.split}")
        require(0 <= self.seed < 2**63, f"--seed must lie in [0, 2^63), got {self.seed}")
        require(0 < self.alpha < 1, f"--alpha must lie in (0, 1), got {self.alpha}")
        width, heads = self.network.hidden_dim, self.network.gat_heads
        require(
            self.conv != "gat" or width % heads == 0,
            f"network.hidden_dim must be a multiple of gat_heads, got {width} and {heads}",
        )
        require(
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
        """Twelve hexadecimal digits that name this configuration, now and in later versions."""
        return run_key(self.settings, INTRODUCED_AS, schema())
