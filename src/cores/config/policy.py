"""Settings of CORES: what its classifier learns from, what pays its policy, and PPO."""

import math
from dataclasses import dataclass
from typing import Literal

from cores.config.checks import require


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
        require(0 <= self.mix <= 1, f"--mix must lie in [0, 1], got {self.mix}")
        require(0 <= self.warm_up < 1, f"diet.warm_up must lie in [0, 1), got {self.warm_up}")
        require(
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
        require(0 <= self.lam <= 1, f"--lam must lie in [0, 1], got {self.lam}")
        require(
            0 < self.desired_ratio < 1,
            f"--desired-ratio must lie in (0, 1), got {self.desired_ratio}",
        )
        require(0 < self.alpha < 1, f"reward.alpha must lie in (0, 1), got {self.alpha}")
        require(
            self.referees == 0 or 2 <= self.referees <= 100,
            f"reward.referees must be 0 or lie in [2, 100], got {self.referees}",
        )
        require(
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
            require(0 < value < 2**31, f"ppo.{name} must lie in (0, 2^31), got {value}")
        coefficients = ("critic_learning_rate", "entropy_coef", "final_entropy_coef", "value_coef")
        for name in (*coefficients, "max_kl", "max_grad_norm"):
            value = getattr(self, name)
            require(0 <= value < math.inf, f"ppo.{name} must not be negative, got {value}")
        require(
            0 <= self.schedule_factor < 1,
            f"ppo.schedule_factor must lie in [0, 1), got {self.schedule_factor}",
        )
        require(0 < self.start < 1, f"ppo.start must lie in (0, 1), got {self.start}")
        require(0 <= self.floor < 0.5, f"ppo.floor must lie in [0, 0.5), got {self.floor}")
        require(0 <= self.averaging < 1, f"ppo.averaging must lie in [0, 1), got {self.averaging}")
        require(
            self.baseline == "critic" or self.samples > 1,
            f"ppo.baseline samples needs at least two samples per graph, got {self.samples}",
        )
