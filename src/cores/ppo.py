"""Proximal policy optimisation (Eq. 1) of a policy whose episode is one action per graph.

Knows the policy and a reward tensor; where rewards come from is not its business.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer
from torch_geometric.data import Batch

from cores.config import PPOConfig
from cores.graphs import Elements
from cores.models.policy import Critic, Policy


def clipped_objective(
    log_prob: Float[Tensor, "*items"],
    old_log_prob: Float[Tensor, "*items"],
    advantage: Float[Tensor, "*items"],
    clip: float,
) -> Float[Tensor, "*items"]:
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
    """Actions that a policy took on a mini-batch of graphs, several per graph."""

    elements: Elements
    removed: Bool[Tensor, "samples elements"]
    """a, as it was sampled."""
    log_prob: Float[Tensor, "samples elements"]
    """Of what was sampled, by the policy that sampled it."""


@dataclass(frozen=True)
class Experience:
    """A rollout and what it earned."""

    rollout: Rollout
    rewards: Float[Tensor, "samples graphs"]
    advantage: Float[Tensor, "samples graphs"]


@torch.no_grad()
def collect(policy: Policy, batch: Batch, samples: int) -> Rollout:
    """Sample actions for every graph of a batch."""
    logits = policy(batch)  # [M]
    uniform = torch.rand(samples, len(logits), device=logits.device)
    removed = uniform < policy.probabilities(logits)  # [S, M]
    elements = Elements.of(batch, policy.removal)
    return Rollout(elements, removed, policy.log_prob(logits, removed))


@torch.no_grad()
def experience(
    rollout: Rollout, rewards: Float[Tensor, "samples graphs"], critic: Critic | None
) -> Experience:
    """Rewards with their advantage: over a critic's value, or over the graph's other samples."""
    if critic is None:
        return Experience(rollout, rewards, leave_one_out(rewards))
    return Experience(rollout, rewards, rewards - critic(rollout.elements.batch))


def ppo_loss(
    policy: Policy, critic: Critic | None, past: Experience, config: PPOConfig
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Loss of one mini-batch, and how far the policy has moved since it acted (KL, in nats)."""
    rollout, elements, advantage = past.rollout, past.rollout.elements, past.advantage
    logits = policy(elements.batch)  # [M]
    log_prob = policy.log_prob(logits, rollout.removed)  # [S, M]
    change = log_prob - rollout.log_prob
    if config.ratio == "joint":
        objective = clipped_objective(
            elements.sum(log_prob), elements.sum(rollout.log_prob), advantage, config.clip
        )  # [S, B]
    else:
        objective = elements.mean(
            clipped_objective(log_prob, rollout.log_prob, advantage[:, elements.owner], config.clip)
        )  # [S, B]
    loss = -objective.mean() - config.entropy_coef * elements.mean(policy.entropy(logits)).mean()
    if critic is not None:
        value = critic(elements.batch)
        loss = loss + config.value_coef * F.mse_loss(value, past.rewards.mean(dim=0))
    with torch.no_grad():
        divergence = elements.mean(change.exp() - 1 - change).mean()  # Schulman's estimate
    return loss, divergence


def update(
    policy: Policy,
    critic: Critic | None,
    buffer: Sequence[Experience],
    optimizer: Optimizer,
    config: PPOConfig,
) -> int:
    """K passes over the buffer's mini-batches; stops early when the policy has moved too far.

    Returns the number of gradient steps.
    """
    steps = 0
    for _ in range(config.ppo_epochs):
        for past in buffer:
            loss, divergence = ppo_loss(policy, critic, past, config)
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
    return [each for group in optimizer.param_groups for each in group["params"]]
