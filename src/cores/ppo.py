"""Proximal policy optimisation (Eq. 1) of a policy whose episode is one action per graph.

Knows the policy and a reward tensor; where rewards come from is not its business.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer
from torch_geometric.data import Batch

from cores.config import PPOConfig
from cores.graphs.batches import between, cut
from cores.graphs.shares import of_elements
from cores.graphs.subgraphs import Elements
from cores.graphs.sums import with_sums
from cores.models.policy import Policy


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
    """Log-probabilities of keep and remove under the old policy."""

    @torch.no_grad()
    def rewarded(
        self,
        rewards: Float[Tensor, "samples graphs"],
        values: Float[Tensor, " graphs"] | None = None,
    ) -> "RewardedRollout":
        """Add rewards, and advantages over a critic's values or over the graph's other samples."""
        advantage = leave_one_out(rewards) if values is None else rewards - values
        return RewardedRollout(self.elements, self.removed, self.log_probs, rewards, advantage)

    def of_actions(self, values: Float[Tensor, "2 elements"]) -> Float[Tensor, "samples elements"]:
        """Pick, of the values for keep and remove, that of the sampled action."""
        kept, removed = values
        return torch.where(self.removed, removed, kept)


@dataclass(frozen=True)
class RewardedRollout(Rollout):
    """A rollout that a policy can learn from."""

    rewards: Float[Tensor, "samples graphs"]
    advantage: Float[Tensor, "samples graphs"]

    def cut(self, size: int) -> "Iterator[RewardedRollout]":
        """Split into mini-batches of ``size`` graphs."""
        batch, removal = self.elements.batch, self.elements.removal
        if batch.num_graphs <= size:
            yield self
            return
        pieces = [Elements.of(piece, removal) for piece in cut(batch, size)]
        for elements, *parts in zip(
            pieces,
            self.elements.split(self.removed, pieces),
            self.elements.split(self.log_probs, pieces),
            self.rewards.split(size, dim=1),
            self.advantage.split(size, dim=1),
            strict=True,
        ):
            yield RewardedRollout(elements, *parts)

    def between(self, first: int, last: int) -> "RewardedRollout":
        """Slice the graphs ``[first:last]``."""
        batch, removal = self.elements.batch, self.elements.removal
        ends = pairwise([0, first, last, batch.num_graphs])
        pieces = [Elements.of(between(batch, *each), removal) for each in ends]
        return RewardedRollout(
            pieces[1],
            self.elements.split(self.removed, pieces)[1],
            self.elements.split(self.log_probs, pieces)[1],
            self.rewards[:, first:last],
            self.advantage[:, first:last],
        )

    @cached_property
    def experience(self) -> "Experience":
        """The rollout as means over its samples."""
        decisions = torch.stack([~self.removed, self.removed], dim=1).float()  # [S, 2, M]
        advantage = self.advantage[:, None, self.elements.owner]  # [S, 1, M]
        signs = advantage.clamp(min=0), advantage.clamp(max=0)
        means = torch.stack([(part * decisions).mean(dim=0) for part in signs])
        return Experience(self.elements, self.log_probs, decisions.mean(dim=0), means)


@dataclass(frozen=True)
class Experience:
    """A rollout as a mean over its samples, of which there may be many."""

    elements: Elements
    log_probs: Float[Tensor, "2 elements"]
    """Log-probabilities of keep and remove under the old policy."""
    frequency: Float[Tensor, "2 elements"]
    """Share of the samples in which an element was kept, and was removed."""
    advantages: Float[Tensor, "2 2 elements"]
    """Positive and negative advantage of keeping and of removing."""


@torch.no_grad()
def collect(policy: Policy, batch: Batch, samples: int) -> Rollout:
    """Sample actions for every graph of a batch."""
    elements = Elements.of(batch, policy.removal)
    elements = replace(elements, batch=with_sums(elements.batch))
    logits = of_elements(policy, elements)  # [M]
    uniform = torch.rand(samples, len(logits), device=logits.device)
    removed = elements.removable(uniform < policy.probabilities(logits))  # [S, M]
    return Rollout(elements, removed, elements.fill_protected(policy.log_probs(logits), 0.0))


def ppo_loss(
    policy: Policy, rollout: RewardedRollout, config: PPOConfig
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Loss of one mini-batch, and the KL divergence from the old policy."""
    objective = partial(element_objective, rollout.experience, clip=config.clip)
    return policy_loss(policy, rollout.experience, objective, config.entropy_coef)


def policy_loss(
    policy: Policy,
    experience: Experience,
    objective: Callable[[Tensor], Tensor],
    entropy_coef: float | Tensor,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """The objective and the entropy bonus, to be minimised, and the KL divergence."""
    elements = experience.elements
    logits = policy(elements.batch)  # [M]
    log_probs = elements.fill_protected(policy.log_probs(logits), 0.0)  # [2, M]
    entropy = elements.fill_protected(policy.entropy(logits), 0.0)
    bonus = entropy_coef * elements.mean_over_graphs(entropy)
    with torch.no_grad():
        change = log_probs - experience.log_probs
        estimate = change.exp() - 1 - change  # [2, M], Schulman's
        divergence = elements.mean_over_graphs((experience.frequency * estimate).sum(dim=0))
    return -objective(log_probs) - bonus, divergence


def element_objective(
    experience: Experience, log_probs: Float[Tensor, "2 elements"], clip: float
) -> Float[Tensor, ""]:
    """Eq. (1) with a ratio per element: the mean over samples, each graph's elements, and graphs.

    With two decisions there are two ratios per element, whatever the number of samples, and among
    advantages of one sign Eq. (1) is linear: their means come first.
    """
    parts = clipped_objective(log_probs, experience.log_probs, experience.advantages, clip)
    return experience.elements.mean_over_graphs(parts.sum(dim=(0, 1)))


class Updates:
    """PPO's gradient steps of a policy on rollouts."""

    def __init__(self, policy: Policy, optimizer: Optimizer) -> None:
        self.policy, self.optimizer = policy, optimizer

    def run(self, rollouts: Sequence[RewardedRollout], config: PPOConfig) -> int:
        """K passes over the rollouts in mini-batches; stops early at a KL divergence of ``max_kl``.

        Returns the number of gradient steps.
        """
        buffer = self.batches(rollouts, config)
        steps = 0
        for _ in range(config.ppo_epochs):
            for batch in buffer:
                divergence = self.gradients(batch, config)
                if config.max_kl and float(divergence) > config.max_kl:
                    return steps
                self.optimizer.step()
                steps += 1
        return steps

    def batches(
        self, rollouts: Sequence[RewardedRollout], config: PPOConfig
    ) -> list[RewardedRollout]:
        """The rollouts in mini-batches."""
        return [batch for rollout in rollouts for batch in rollout.cut(config.batch_size)]

    def gradients(self, batch: RewardedRollout, config: PPOConfig) -> Float[Tensor, ""]:
        """Compute the gradients of a mini-batch; returns its KL divergence."""
        loss, divergence = ppo_loss(self.policy, batch, config)
        self.backward(loss, config)
        return divergence

    def backward(self, loss: Tensor, config: PPOConfig) -> None:
        """Compute the gradients of a loss, and clip their norm."""
        self.optimizer.zero_grad()
        loss.backward()
        self.clip(config)

    def clip(self, config: PPOConfig) -> None:
        """Clip the gradient norm."""
        if config.max_grad_norm:
            clip_grad_norm_(self.policy.parameters(), config.max_grad_norm)
