"""Settings of CORES: the committee, the reward, PPO, and which part is shown."""

import math
from dataclasses import dataclass
from typing import Literal

from cores.errors import require


@dataclass(frozen=True)
class CommitteeConfig:
    """The classifiers of a CORES model, whose mean probability is its prediction."""

    members: int = 5
    """Classifiers, each trained on random masks of all graphs but its own fold, on which it rewards
    the policy (the paper has one)."""
    warm_up: float = 8 / 9
    """Share of the epochs before the policy is trained; the classifiers are fixed after it."""

    def __post_init__(self) -> None:
        require(0 <= self.warm_up < 1, f"committee.warm_up must lie in [0, 1), got {self.warm_up}")
        require(
            1 <= self.members <= 100,
            f"committee.members must lie in [1, 100], got {self.members}",
        )


@dataclass(frozen=True)
class ExplanationConfig:
    """Which part of a graph is shown as the one that decides, once a model is trained."""

    parts: Literal["minimal", "cut", "policy"] = "minimal"
    """minimal: no single unit can go, found by elimination inside the cut; cut: the smallest
    sufficient prefix of the proposed order; policy: what the policy keeps (the paper)."""
    sufficiency: float = 0.8
    """tau: a part is sufficient if the committee gives the predicted class at least this
    probability from the part alone, and no other class a larger one."""
    class_from: Literal["whole", "part"] = "whole"
    """What the committee predicts from: the whole graph, or the policy's part alone (the paper)."""
    proposer: Literal["policy", "effects"] = "policy"
    """Which order the search cuts: by the policy's probabilities, or by effects."""
    units: Literal["auto", "elements", "rings"] = "auto"
    """What goes or stays as a whole: single nodes or edges, or ring systems of molecules; auto:
    rings for SMILES and SDF, else elements."""

    def __post_init__(self) -> None:
        require(
            0.5 <= self.sufficiency < 1,
            f"`sufficiency` must lie in [0.5, 1), got {self.sufficiency}",
        )


@dataclass(frozen=True)
class RewardConfig:
    """The conformal-based reward (Eq. 7)."""

    lam: float = 0.5
    """Lambda: weight of performance against sparsity where the prediction set has one label."""
    tolerance: float = 0.0
    """Regression: the error that does no harm, in the unit of the targets. A prediction within it
    counts as right, an interval no wider than it to either side as sure, and a part from which the
    number differs by no more from the whole graph's as sufficient; 0: 1.5 times the error that the
    members exceed on a share ``alpha`` of full graphs they were not trained on."""
    desired_ratio: float = 0.2
    """d: the kept ratio at which the sparsity reward reaches 0.95."""
    alpha: float = 0.09
    """Error rate of the reward's prediction sets. Smaller values give larger sets, and graphs with
    larger sets are rewarded for accuracy alone."""
    penalty_size: float = 1.0
    """Subtracted where a graph lost everything and was restored."""
    pieces_penalty: float = 0.0
    """Weight of a penalty for a kept part in several pieces (Deviation D21): their number beyond
    ``max_pieces``, or beyond 1 where that is 0, as a share of the graph's nodes; 0: none."""
    max_pieces: int = 0
    """Connected pieces that may be left of a graph; the rest of what the policy keeps is removed,
    too, before any classifier sees it. 0: any number (the paper)."""

    def __post_init__(self) -> None:
        require(0 <= self.lam <= 1, f"`lam` must lie in [0, 1], got {self.lam}")
        require(
            0 < self.desired_ratio < 1,
            f"`desired_ratio` must lie in (0, 1), got {self.desired_ratio}",
        )
        require(
            0 <= self.tolerance < math.inf,
            f"`tolerance` must not be negative, got {self.tolerance}",
        )
        require(0 < self.alpha < 1, f"reward.alpha must lie in (0, 1), got {self.alpha}")
        require(
            0 <= self.penalty_size < math.inf,
            f"reward.penalty_size must not be negative, got {self.penalty_size}",
        )
        require(
            0 <= self.pieces_penalty < math.inf,
            f"reward.pieces_penalty must not be negative, got {self.pieces_penalty}",
        )
        require(
            0 <= self.max_pieces < 2**31,
            f"reward.max_pieces must not be negative, got {self.max_pieces}",
        )


@dataclass(frozen=True)
class EffectsConfig:
    """The network that tells what each node or edge contributes to a prediction."""

    steps: int = 30
    """Its gradient steps, after training, for every epoch of the policy; 0: there is none."""

    def __post_init__(self) -> None:
        require(0 <= self.steps < 2**31, f"effects.steps must lie in [0, 2^31), got {self.steps}")


@dataclass(frozen=True)
class PPOConfig:
    """The policy's optimisation (Eq. 1).

    Deviation D10: the defaults take a ratio per element, compare several samples of a graph, cut
    gradients, let the entropy bonus fade, keep probabilities off 0 and 1 and average the weights;
    the ``paper`` preset does none of that.
    """

    effect_steps: int = 15
    """Gradient steps before PPO, for every epoch of it, that fit the policy's logits to what the
    removal of an element costs (Deviation D19); 0: all elements start alike (the paper)."""
    env_steps: int = 320
    """Graphs rolled out per member and epoch, drawn at random; all, if there are fewer."""
    samples: int = 8
    """Actions sampled per graph."""
    ppo_epochs: int = 4
    """K: passes over the rollouts."""
    batch_size: int = 64
    """Graphs per update."""
    clip: float = 0.2
    """Epsilon of Eq. 1."""
    learning_rate: float = 1e-3
    """Adam's step size for the policy at the start."""
    entropy_coef: float = 0.01
    """Weight of the entropy bonus at the start."""
    final_entropy_coef: float = 1e-4
    """Weight of the entropy bonus at the end, reached geometrically (linearly if one is 0)."""
    max_grad_norm: float = 0.5
    """Gradients are clipped to this norm; 0: never."""
    max_kl: float = 0.1
    """Updates of an epoch stop at this KL divergence (nats per element); 0: never."""
    initial_removal: float = 0.27
    """Probability of removal before training; where nodes and edges are removed, that an edge is
    gone, itself or with either of its ends."""
    min_probability: float = 0.02
    """Lower bound on the probabilities of removing and of keeping: exploration never ends."""
    ema_decay: float = 0.9
    """EMA decay of the returned policy's weights per epoch; 0 disables averaging (the paper)."""

    def __post_init__(self) -> None:
        for name in ("env_steps", "samples", "ppo_epochs", "batch_size", "clip", "learning_rate"):
            value = getattr(self, name)
            require(0 < value < 2**31, f"ppo.{name} must lie in (0, 2^31), got {value}")
        require(
            0 <= self.effect_steps < 2**31,
            f"ppo.effect_steps must lie in [0, 2^31), got {self.effect_steps}",
        )
        for name in ("entropy_coef", "final_entropy_coef", "max_kl", "max_grad_norm"):
            value = getattr(self, name)
            require(0 <= value < math.inf, f"ppo.{name} must not be negative, got {value}")
        require(
            0 < self.initial_removal < 1,
            f"ppo.initial_removal must lie in (0, 1), got {self.initial_removal}",
        )
        require(
            0 <= self.min_probability < 0.5,
            f"ppo.min_probability must lie in [0, 0.5), got {self.min_probability}",
        )
        require(0 <= self.ema_decay < 1, f"ppo.ema_decay must lie in [0, 1), got {self.ema_decay}")
