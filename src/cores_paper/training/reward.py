"""The reward of Eq. (7) and PPO's loss as published, with the switches of the authors' program."""

from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from cores.config import RewardConfig
from cores.conformal import aps_scores, prediction_sets
from cores.models.policy import Critic, Policy
from cores.ppo import RewardedRollout, clipped_objective, policy_loss
from cores.reward import conformal_reward, performance_reward, sparsity_reward
from cores_paper.presets import PaperConfig


def squared_sparsity_reward(
    kept_ratio: Float[Tensor, " graphs"], desired_ratio: float
) -> Float[Tensor, " graphs"]:
    """R_s^2, which the authors' program has in place of R_s.

    >>> squared_sparsity_reward(Tensor([0.0, 0.3, 1.0]), desired_ratio=0.3)
    tensor([1.0000, 0.9025, 0.0000])
    """
    return sparsity_reward(kept_ratio, desired_ratio) ** 2


def predicted_and_below(
    probs: Float[Tensor, "graphs classes"],
    scores: Float[Tensor, "graphs classes"],
    q_hat: Float[Tensor, ""],
) -> Bool[Tensor, "graphs classes"]:
    """The predicted label and every label with s(x, y) < q-hat: Eq. (3) in the authors' program.

    With two classes and APS scores the other label's score is 1, and no q-hat is above that but
    infinity: such a set is never unsure.

    >>> probs = Tensor([[0.1, 0.9], [0.5, 0.3]])
    >>> predicted_and_below(probs, Tensor([[1.0, 0.9], [0.4, 0.5]]), Tensor([0.5])[0])
    tensor([[False,  True],
            [ True, False]])
    """
    predicted = F.one_hot(probs.argmax(dim=-1), probs.size(-1)).bool()
    return predicted | (scores < q_hat)


def reward_sets(
    probs: Float[Tensor, "graphs classes"], q_hat: Float[Tensor, ""], own: PaperConfig
) -> Bool[Tensor, "graphs classes"]:
    """Prediction sets of the reward by APS scores, Eqs. (3) and (4); an empty set stays empty."""
    scores = aps_scores(probs)
    if own.sets == "below-or-predicted":
        return predicted_and_below(probs, scores, q_hat)
    return prediction_sets(scores, q_hat)


def published_reward(
    probs: Float[Tensor, "graphs classes"],
    labels: Int[Tensor, " graphs"],
    kept_ratio: Float[Tensor, " graphs"],
    q_hat: Float[Tensor, ""] | None,
    config: RewardConfig,
    own: PaperConfig,
) -> Float[Tensor, " graphs"]:
    """Eq. (7), with a factor on its first case (line 14).

    Without q-hat the predicted label alone is the set: epochs are compared by that (Deviation D12).
    """
    if q_hat is None:
        sets = F.one_hot(probs.argmax(-1), probs.size(-1)).bool()
    else:
        sets = reward_sets(probs, q_hat, own)
    sparsity_of = squared_sparsity_reward if own.square_sparsity else sparsity_reward
    sparsity = sparsity_of(kept_ratio, config.desired_ratio)
    performance = performance_reward(probs, labels)
    return conformal_reward(performance, sparsity, sets, labels, config.lam, own.scale)


def joint_objective(
    rollout: RewardedRollout, log_probs: Float[Tensor, "2 elements"], clip: float
) -> Float[Tensor, ""]:
    """Eq. (1) with one ratio for all that was decided on a graph."""
    new, old = (rollout.of_actions(each) for each in (log_probs, rollout.log_probs))  # [S, M]
    elements = rollout.elements
    each = clipped_objective(elements.sum(new), elements.sum(old), rollout.advantage, clip)
    return each.mean()


def ppo_loss(
    policy: Policy,
    critic: Critic,
    rollout: RewardedRollout,
    clip: float,
    entropy_coef: float,
    value_coef: float,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Loss of policy and critic on a mini-batch, and the KL divergence from the old policy."""

    def objective(log_probs: Float[Tensor, "2 elements"]) -> Float[Tensor, ""]:
        return joint_objective(rollout, log_probs, clip)

    loss, divergence = policy_loss(policy, rollout.experience, objective, entropy_coef)
    value = critic(rollout.elements.batch)
    return loss + value_coef * F.mse_loss(value, rollout.rewards.mean(dim=0)), divergence
