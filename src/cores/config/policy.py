"""Settings of CORES: the classifier's training batches, the reward, and PPO."""

import math
from dataclasses import dataclass

from cores.errors import require


@dataclass(frozen=True)
class ClassifierDataConfig:
    """The training batches of a CORES model's classifier."""

    warm_up: float = 8 / 11
    """Share of the epochs before the policy is trained; the classifiers are fixed after it."""
    distillation: float = 0.0
    """Weight of the referees' mean prediction in the target of the returned classifier; the rest is
    the label. Without referees the target is the label."""

    def __post_init__(self) -> None:
        require(
            0 <= self.warm_up < 1,
            f"classifier_data.warm_up must lie in [0, 1), got {self.warm_up}",
        )
        require(
            0 <= self.distillation <= 1,
            f"classifier_data.distillation must lie in [0, 1], got {self.distillation}",
        )


SETTINGS = tuple(step / 20 for step in range(21))
"""Values of lambda that a model with a dial can be asked for, from 0, the sparsest, to 1."""


@dataclass(frozen=True)
class RewardConfig:
    """The conformal-based reward (Eq. 7) and the classifiers that compute it."""

    lam: float = 0.5
    """Lambda: weight of performance against sparsity where the prediction set has one label."""
    dial: bool = True
    """Whether the policy sees lambda and is trained for all values of it at once (Deviation D16);
    ``lam`` is not used then. Naming ``lam``, or no referees, sets it to false."""
    max_loss: float = 0.02
    """Where a dial is set after training: the sparsest setting that loses no more accuracy than
    this, neither on the selection part nor for the referees on graphs they were not trained on; in
    a regression, at which neither mean error grows by a larger share. The policy has seen both:
    without ``promised`` this is no promise."""
    promised: bool = False
    """Whether half of the calibration part sets the dial instead, with the promise
    that of every class no more than ``max_loss`` is right on the full graph and wrong on the kept
    part; the short option ``--max-loss`` says so, and ``cores tune`` does it after training."""
    tolerance: float = 0.0
    """Regression: the error that does no harm, in the unit of the targets. A prediction within it
    counts as right, an interval no wider than it to either side as sure; 0: 1.5 times the error
    that the referees exceed on a share ``alpha`` of full graphs they were not trained on."""
    desired_ratio: float = 0.2
    """d: the kept ratio at which the sparsity reward reaches 0.95."""
    alpha: float = 0.09
    """Error rate of the reward's prediction sets. Smaller values give larger sets, and graphs with
    larger sets are rewarded for accuracy alone."""
    referees: int = 3
    """Reference classifiers that reward the policy, each on graphs it was not trained on; 0: the
    returned classifier rewards it on the policy part, with a quantile from the training part (the
    paper)."""
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
        require(0 <= self.max_loss < 1, f"`max_loss` must lie in [0, 1), got {self.max_loss}")
        require(
            not self.promised or self.dial,
            "`max_loss` is promised of a model with a dial; set reward.dial to true",
        )
        require(
            not self.promised or self.max_loss > 0,
            f"`max_loss` must be positive to be promised, got {self.max_loss}",
        )
        require(
            0 <= self.tolerance < math.inf,
            f"`tolerance` must not be negative, got {self.tolerance}",
        )
        require(
            not self.dial or self.referees > 0,
            "reward.dial needs referees, which tell what a setting loses: set it to false for none",
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

    steps: int = 10
    """Its gradient steps, after training, for every epoch of the policy; 0: there is none. It is
    learnt from referees, and a model without them has none."""

    def __post_init__(self) -> None:
        require(0 <= self.steps < 2**31, f"effects.steps must lie in [0, 2^31), got {self.steps}")


@dataclass(frozen=True)
class PPOConfig:
    """The policy's optimisation (Eq. 1).

    Deviation D10: the defaults take a ratio per element, compare several samples of a graph, cut
    gradients, let the entropy bonus fade, keep probabilities off 0 and 1 and average the weights;
    the ``paper`` preset does none of that.
    """

    effect_steps: int = 5
    """Gradient steps before PPO, for every epoch of it, that fit the policy's logits to what the
    removal of an element costs (Deviation D19); 0: all elements start alike (the paper)."""
    env_steps: int = 320
    """Graphs rolled out per referee and epoch, drawn at random; all, if there are fewer."""
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
