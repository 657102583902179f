"""PPO's gradient steps on a GPU: recorded once and replayed from then on."""

from functools import partial

from jaxtyping import Float
from torch import Tensor
from torch.optim import Optimizer

from cores.config import PPOConfig
from cores.graphs.padding import Capacity, PaddedBatch
from cores.graphs.subgraphs import Elements
from cores.models.policy import Critic, Policy
from cores.models.recording import Recording
from cores.ppo import Experience, RewardedRollout, Updates, element_objective, policy_loss


class RecordedUpdates(Updates):
    """Gradient steps of a policy on mini-batches that are padded to one size.

    For a ratio per element and no critic. A mini-batch that does not fit takes an ordinary step.

    Args:
        policy: The policy.
        optimizer: Of its weights.
        config: Settings; of those of a later call only the entropy bonus may differ.
        like: A rollout as large as most.
    """

    def __init__(
        self, policy: Policy, optimizer: Optimizer, config: PPOConfig, like: RewardedRollout
    ) -> None:
        super().__init__(policy, None, optimizer)
        self.padded = PaddedExperience(like.experience)
        self._gradients = Recording(partial(self._on_padded, config))
        self._step = Recording(optimizer.step)

    def gradients(self, rollout: RewardedRollout, config: PPOConfig) -> Float[Tensor, ""]:
        """Compute the gradients; returns the KL divergence from the policy that acted."""
        if not self.padded.holds(rollout.experience):
            return super().gradients(rollout, config)
        self.padded.load(rollout.experience, config.entropy_coef)
        return self._gradients()

    def step(self, rollout: RewardedRollout) -> None:
        """Follow the gradients."""
        if self.padded.holds(rollout.experience):
            self._step()
        else:
            super().step(rollout)

    def _on_padded(self, config: PPOConfig) -> Tensor:
        held = self.padded.experience
        objective = partial(element_objective, held, clip=config.clip)
        loss, divergence = policy_loss(self.policy, held, objective, self.padded.entropy_coef)
        self.backward(loss, config)
        return divergence


class PaddedExperience:
    """An experience in tensors that stay where they are."""

    def __init__(self, like: Experience) -> None:
        batch = like.elements.batch
        self._batch = PaddedBatch(Capacity.around(batch), batch)
        capacity, self._removal = self._batch.capacity, like.elements.removal
        most = capacity.nodes if self._removal == "node" else capacity.pairs
        self._log_probs = like.log_probs.new_zeros(2, most)
        self._frequency = like.frequency.new_zeros(2, most)
        self._advantages = like.advantages.new_zeros(2, 2, most)
        self.entropy_coef = like.log_probs.new_zeros(())

    @property
    def experience(self) -> Experience:
        """What is in the tensors now."""
        elements = Elements.of(self._batch.batch, self._removal)
        return Experience(elements, self._log_probs, self._frequency, self._advantages)

    def holds(self, experience: Experience) -> bool:
        """Whether another one has room."""
        return self._batch.holds(experience.elements.batch)

    def load(self, experience: Experience, entropy_coef: float) -> None:
        """Put another one in the place of the one before."""
        self._batch.load(experience.elements.batch)
        number = len(experience.elements.owner)
        self._log_probs[:, :number].copy_(experience.log_probs)
        self._frequency[:, :number].copy_(experience.frequency)
        self._advantages[..., :number].copy_(experience.advantages)
        self.entropy_coef.fill_(entropy_coef)


def policy_updates(
    policy: Policy,
    critic: Critic | None,
    optimizer: Optimizer,
    config: PPOConfig,
    like: RewardedRollout,
) -> Updates:
    """The quickest way to train a policy where it is, on rollouts like one."""
    on_gpu = next(policy.parameters()).is_cuda
    if on_gpu and recordable(policy, critic, config):
        return RecordedUpdates(policy, optimizer, config, like)
    return Updates(policy, critic, optimizer)


def recordable(policy: Policy, critic: Critic | None, config: PPOConfig) -> bool:
    """Whether a step of a policy has the same shapes every time, and stays finite on padding."""
    return (
        critic is None
        and config.ratio == "element"
        and policy.removal != "both"
        and policy.min_probability > 0
        and policy.encoder.fixed_shapes
    )
