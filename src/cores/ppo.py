"""Proximal policy optimisation (Eq. 1) of a policy whose episode is one action per graph.

Knows the policy and a reward tensor; where rewards come from is not its business.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer
from torch_geometric.data import Batch

from cores.config import PPOConfig
from cores.graphs.subgraphs import Elements
from cores.models.policy import Critic, Policy


def clipped_objective(
    log_prob: Float[Tensor, "*#items"],
    old_log_prob: Float[Tensor, "*#items"],
    advantage: Float[Tensor, "*#items"],
    clip: float,
) -> Float[Tensor, "*#items"]:
    """min(r A, clip(r, 1 - eps, 1 + eps) A) with r = pi / pi_old, Eq. (1), before the mean.

    >>> log_prob = torch.tensor([0.0, 1.0, 1.0])
    >>> clipped_objective(log_prob, torch.zeros(3), torch.tensor([2.0, 1.0, -1.0]), clip=0.2)
    tensor([ 2.0000,  1.2000, -2.7183])
    """
    ratio = (log_prob - old_log_prob).exp()
    return torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)


def leave_one_out(
    rewards: Float[Tensor, "samples graphs"],
) -> Float[Tensor, "samples graphs"]:
    """Advantage of each sample over the mean of the others of its graph.

    >>> leave_one_out(torch.tensor([[1.0], [0.0], [0.5]]))
    tensor([[ 0.7500],
            [-0.7500],
            [ 0.0000]])
    """
    others = len(rewards) - 1
    return rewards - (rewards.sum(dim=0) - rewards) / others


@dataclass(frozen=True)
class Rollout:
    """Actions of a policy on a mini-batch of graphs, several per graph."""

    elements: Elements
    removed: Bool[Tensor, "samples elements"]
    """a, as it was sampled."""
    log_probs: Float[Tensor, "2 elements"]
    """Of keeping and of removing, by the policy that sampled."""

    @torch.no_grad()
    def rewarded(
        self, rewards: Float[Tensor, "samples graphs"], critic: Critic | None
    ) -> "RewardedRollout":
        """With rewards and their advantage: over a critic's value, or the graph's other samples."""
        if critic is None:
            advantage = leave_one_out(rewards)
        else:
            advantage = rewards - critic(self.elements.batch)
        return RewardedRollout(self.elements, self.removed, self.log_probs, rewards, advantage)

    def of_actions(self, values: Float[Tensor, "2 elements"]) -> Float[Tensor, "samples elements"]:
        """Of two values per element, for keeping and for removing, that of what was sampled."""
        kept, removed = values
        return torch.where(self.removed, removed, kept)

    @property
    def decisions(self) -> Float[Tensor, "samples 2 elements"]:
        """1 where an element was kept, and where it was removed; else 0."""
        return torch.stack([~self.removed, self.removed], dim=1).float()

    @cached_property
    def frequency(self) -> Float[Tensor, "2 elements"]:
        """Share of the samples in which an element was kept, and was removed."""
        return self.decisions.mean(dim=0)


@dataclass(frozen=True)
class RewardedRollout(Rollout):
    """A rollout that a policy can learn from."""

    rewards: Float[Tensor, "samples graphs"]
    advantage: Float[Tensor, "samples graphs"]

    @cached_property
    def mean_advantages(self) -> Float[Tensor, "2 2 elements"]:
        """Positive and negative advantage of keeping and of removing, the mean over samples."""
        advantage = self.advantage[:, None, self.elements.owner]  # [S, 1, M]
        signs = advantage.clamp(min=0), advantage.clamp(max=0)
        return torch.stack([(part * self.decisions).mean(dim=0) for part in signs])


@torch.no_grad()
def collect(policy: Policy, batch: Batch, samples: int) -> Rollout:
    """Sample actions for every graph of a batch."""
    elements = Elements.of(batch, policy.removal)
    logits = policy(elements.batch)  # [M]
    uniform = torch.rand(samples, len(logits), device=logits.device)
    removed = uniform < policy.probabilities(logits)  # [S, M]
    return Rollout(elements, removed, policy.log_probs(logits))


def ppo_loss(
    policy: Policy, critic: Critic | None, rollout: RewardedRollout, config: PPOConfig
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Loss of one mini-batch, and the KL divergence from the policy that acted."""
    elements = rollout.elements
    logits = policy(elements.batch)  # [M]
    log_probs = policy.log_probs(logits)  # [2, M]
    objective = joint_objective if config.ratio == "joint" else element_objective
    gain = objective(log_probs, rollout, config.clip).mean()
    loss = -gain - config.entropy_coef * elements.mean(policy.entropy(logits)).mean()
    if critic is not None:
        value = critic(elements.batch)
        loss = loss + config.value_coef * F.mse_loss(value, rollout.rewards.mean(dim=0))
    with torch.no_grad():
        change = log_probs - rollout.log_probs
        estimate = change.exp() - 1 - change  # [2, M], Schulman's
        divergence = elements.mean((rollout.frequency * estimate).sum(dim=0)).mean()
    return loss, divergence


def joint_objective(
    log_probs: Float[Tensor, "2 elements"], rollout: RewardedRollout, clip: float
) -> Float[Tensor, "samples graphs"]:
    """Eq. (1) with one ratio for all that was decided on a graph (the paper)."""
    new, old = (rollout.of_actions(each) for each in (log_probs, rollout.log_probs))  # [S, M]
    elements = rollout.elements
    return clipped_objective(elements.sum(new), elements.sum(old), rollout.advantage, clip)


def element_objective(
    log_probs: Float[Tensor, "2 elements"], rollout: RewardedRollout, clip: float
) -> Float[Tensor, " graphs"]:
    """Eq. (1) with a ratio per element, the mean over samples and over each graph's elements.

    With two decisions there are two ratios per element, whatever the number of samples, and among
    advantages of one sign Eq. (1) is linear: their means come first.
    """
    parts = clipped_objective(log_probs, rollout.log_probs, rollout.mean_advantages, clip)
    return rollout.elements.mean(parts.sum(dim=(0, 1)))


def update(
    policy: Policy,
    critic: Critic | None,
    buffer: Sequence[RewardedRollout],
    optimizer: Optimizer,
    config: PPOConfig,
) -> int:
    """K passes over the buffer's mini-batches; stops early at a KL divergence of ``max_kl``.

    Returns the number of gradient steps.
    """
    steps = 0
    for _ in range(config.ppo_epochs):
        for rollout in buffer:
            loss, divergence = ppo_loss(policy, critic, rollout, config)
            if config.max_kl and float(divergence) > config.max_kl:
                return steps
            optimizer.zero_grad()
            loss.backward()
            if config.max_grad_norm:
                clip_grad_norm_(_parameters(optimizer), config.max_grad_norm)
            optimizer.step()
            steps += 1
    return steps


def _parameters(optimizer: Optimizer) -> list[Tensor]:
    return [weights for group in optimizer.param_groups for weights in group["params"]]
