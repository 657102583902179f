"""PPO's gradient steps on a GPU: recorded once and replayed from then on."""

from collections.abc import Sequence
from copy import copy
from functools import partial

import torch
from torch import Tensor
from torch.optim import Adam
from torch_geometric.data import Batch

from cores import ranks
from cores.config import PPOConfig
from cores.graphs.stacked import Chunk, element_values
from cores.graphs.subgraphs import Elements
from cores.models.policy import Policy
from cores.ppo import (
    Experience,
    RewardedRollout,
    Updates,
    element_objective,
    policy_loss,
    ppo_loss,
)
from cores.ranks import Ranks
from cores.training.optimizer import skip_steps
from cores.training.recorded import RecordedSteps, fixed_shapes


class RecordedUpdates(Updates):
    """Gradient steps of a policy on mini-batches that are padded to one size.

    The GPU is asked nothing before the last step: where the
    KL divergence is too large, the steps that follow change nothing.

    Args:
        policy: The policy.
        optimizer: Of its weights.
        config: Settings; of those of a later call only the entropy bonus may differ.
    """

    def __init__(self, policy: Policy, optimizer: Adam, config: PPOConfig) -> None:
        super().__init__(policy, optimizer)
        self._config = config
        device = next(policy.parameters()).device
        self._stopped, self._steps, self._entropy_coef = torch.zeros(3, device=device).unbind()
        skip_steps(optimizer, self._stopped)
        self._update = RecordedSteps(self._on_batch, device)

    def run(self, rollouts: Sequence[RewardedRollout], config: PPOConfig) -> int:
        """K passes over the mini-batches; stops early at a KL divergence of ``max_kl``.

        Returns the number of gradient steps.
        """
        chunks = [Chunk.of(_packed(rollout.experience), config.batch_size) for rollout in rollouts]
        batches = self._update.load(chunks)
        self._entropy_coef.fill_(config.entropy_coef)
        self._stopped.zero_()
        self._steps.zero_()
        for _ in range(config.ppo_epochs):
            self._update.rewind()
            for _ in range(batches):
                self._update()
        return int(self._steps)

    def _on_batch(self, batch: Batch) -> None:
        config = self._config
        experience = _unpacked(batch, self.policy)
        objective = partial(element_objective, experience, clip=config.clip)
        loss, divergence = policy_loss(self.policy, experience, objective, self._entropy_coef)
        self.backward(loss, config)
        if config.max_kl:
            torch.maximum(self._stopped, (divergence > config.max_kl).float(), out=self._stopped)
        self.optimizer.step()
        self._steps += 1 - self._stopped


class SharedUpdates(Updates):
    """Gradient steps of a policy on mini-batches of which every process has a share.

    Args:
        policy: The policy.
        optimizer: Of its weights.
        group: The processes.
    """

    def __init__(self, policy: Policy, optimizer: Adam, group: Ranks) -> None:
        super().__init__(policy, optimizer)
        self.group = group

    def batches(
        self, rollouts: Sequence[RewardedRollout], config: PPOConfig
    ) -> list[RewardedRollout]:
        """Slice this process's share out of every mini-batch."""
        return [
            batch.between(*self.group.bounds(batch.elements.batch.num_graphs))
            for batch in super().batches(rollouts, config)
        ]

    def gradients(self, batch: RewardedRollout, config: PPOConfig) -> Tensor:
        """Compute the gradients of the whole mini-batch; returns its KL divergence."""
        graphs = batch.elements.batch.num_graphs
        loss, divergence = torch.zeros(2).unbind()
        self.optimizer.zero_grad()
        if graphs:
            loss, divergence = ppo_loss(self.policy, batch, config)
            (loss * graphs).backward()
        weights = self.policy.parameters()
        (mean,) = self.group.mean_gradients(weights, graphs, divergence * graphs)
        self.clip(config)
        return mean


def _packed(experience: Experience) -> Batch:
    """An experience as a batch, whose elements have its values."""
    parts = experience.log_probs, experience.frequency, experience.advantages.flatten(0, 1)
    batch = copy(experience.elements.batch)
    batch[element_values(experience.elements.removal)] = torch.cat(parts).T.contiguous()  # [M, 8]
    return batch


def _unpacked(batch: Batch, policy: Policy) -> Experience:
    """The experience that a batch holds."""
    elements = Elements.of(batch, policy.removal)
    values: Tensor = batch[element_values(policy.removal)].T
    log_probs, frequency, advantages = values.split([2, 2, 4])
    return Experience(elements, log_probs, frequency, advantages.unflatten(0, (2, 2)))


def policy_updates(policy: Policy, optimizer: Adam, config: PPOConfig) -> Updates:
    """Choose how a policy is trained: shared by processes, recorded on a GPU, or plainly."""
    group = ranks.current()
    if group is not None:
        return SharedUpdates(policy, optimizer, group)
    on_gpu = next(policy.parameters()).is_cuda
    if on_gpu and recordable(policy):
        return RecordedUpdates(policy, optimizer, config)
    return Updates(policy, optimizer)


def recordable(policy: Policy) -> bool:
    """Whether a step of a policy has the same shapes every time, and stays finite on padding."""
    return policy.min_probability > 0 and fixed_shapes(policy)
