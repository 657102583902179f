"""Proximal policy optimisation (Eq. 1) of a policy whose episode is one action per graph.

Knows the policy and a reward tensor; where rewards come from is not its business.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
    """Actions of a policy on a mini-batch of graphs, several per graph, and their rewards."""

    elements: Elements
    removed: Bool[Tensor, "samples elements"]
    """a, as it was sampled."""
    log_prob: Float[Tensor, "samples elements"]
    """Of what was sampled, by the policy that sampled it."""
    rewards: Float[Tensor, "samples graphs"] | None = None
    """None until they are known."""
    advantage: Float[Tensor, "samples graphs"] | None = None

    @torch.no_grad()
    def rewarded(
        self, rewards: Float[Tensor, "samples graphs"], critic: Critic | None
    ) -> "Rollout":
        """With rewards and their advantage: over a critic's value, or the graph's other samples."""
        if critic is None:
            return replace(self, rewards=rewards, advantage=leave_one_out(rewards))
        value = critic(self.elements.batch)
        return replace(self, rewards=rewards, advantage=rewards - value)


@torch.no_grad()
def collect(policy: Policy, batch: Batch, samples: int) -> Rollout:
    """Sample actions for every graph of a batch."""
    elements = Elements.of(batch, policy.removal)
    logits = policy(elements.batch)  # [M]
    uniform = torch.rand(samples, len(logits), device=logits.device)
    removed = uniform < policy.probabilities(logits)  # [S, M]
    return Rollout(elements, removed, policy.log_prob(logits, removed))


def ppo_loss(
    policy: Policy, critic: Critic | None, rollout: Rollout, config: PPOConfig
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Loss of one mini-batch, and the KL divergence from the policy that acted."""
    elements, rewards, advantage = rollout.elements, rollout.rewards, rollout.advantage
    if rewards is None or advantage is None:
        raise ValueError("the rollout has no rewards")
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
        loss = loss + config.value_coef * F.mse_loss(value, rewards.mean(dim=0))
    with torch.no_grad():
        divergence = elements.mean(change.exp() - 1 - change).mean()  # Schulman's estimate
    return loss, divergence


def update(
    policy: Policy,
    critic: Critic | None,
    buffer: Sequence[Rollout],
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
