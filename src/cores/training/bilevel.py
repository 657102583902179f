"""Algorithm 1: classifier and policy trained in alternation, Eqs. (5) and (6)."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch_geometric.data import Batch

from cores.config import PPOConfig, RewardConfig, RunConfig
from cores.data.dataset import Dims
from cores.evaluation.predictions import check_predicted, evaluation_batch
from cores.graphs.shares import of_graphs
from cores.graphs.store import GraphStore
from cores.models.build import build_effects
from cores.models.elements import EffectNetwork
from cores.models.policy import Policy
from cores.models.sparse import Choice, SparseClassifier
from cores.ppo import RewardedRollout
from cores.tasks import TASKS, selection_score
from cores.tasks.metrics import class_mean
from cores.training.balance import adjust_logits
from cores.training.effects import fit_effects, learn_effects
from cores.training.journal import Journal, Stateful
from cores.training.learner import Learner, masked_batches, masked_chunks
from cores.training.optimizer import adam
from cores.training.rollouts import (
    Outcome,
    pieces_cost,
    reward_quantile,
    rewarded,
    roll_out,
    selection_reward,
    usual_error,
)
from cores.training.schedule import Cosine
from cores.training.stacked import stacked_fit
from cores.training.state import RandomState, forked_rng
from cores.training.stopping import EarlyStopping
from cores.training.supervised import Report, diverged, no_report
from cores.training.updates import policy_updates

FINAL_RATE = 0.1
"""Final learning rate of the policy's cosine schedule, as a share of the initial one."""
SLACK = 1.5
"""The tolerance in usual errors on full graphs, where no other is asked for: without slack every
part that is removed would make all intervals too wide, and only keeping everything would pay."""
UNSELECTABLE = 0.5
"""Fraction of the policy's epochs, the first, whose weights are never returned."""


def train(state: "BilevelState", journal: Journal, report: Report = no_report) -> None:
    """Train classifier and policy in alternation, then restore the selected weights."""
    config = state.config
    for epoch in journal.epochs(config.training.epochs):  # Algorithm 1
        if state.stopping.exhausted:  # line 20
            break
        metrics: dict[str, float] = {}
        if state.trains_classifiers(epoch):  # lines 3-7, Eq. (6)
            metrics |= fit_classifiers(state, epoch)
        if state.trains_policy(epoch):
            state.set_tolerance()
            if state.policy_is_new:
                state.balance_classes()
                if config.ppo.effect_steps:
                    start_policy(state)
            outcomes = state.roll_out()  # lines 8-12
            q_hat = reward_quantile(outcomes, state.reward.alpha)  # line 13
            rollouts = rewarded(outcomes, q_hat, state.reward)  # line 14, Eq. (7)
            metrics |= rollout_metrics(rollouts, outcomes, q_hat)
            # Before the update: what a classifier did must not look like the policy's fault.
            _check_finite(state, "reward", metrics["reward"], epoch, "training")
            update_policy(state, rollouts, epoch)  # lines 15-19, Eq. (5)
        metrics |= state.finish_epoch(epoch)
        journal.record(**metrics)
        report(epoch, metrics)
    state.restore_selected()


class BilevelState:
    """All that Algorithm 1 changes: classifiers, policy, their optimisers, and what was selected.

    Args:
        model: The committee and its policy; the selected weights end up here.
        members: Train the committee's classifiers; each rewards the policy on its own fold.
        selection_graphs: Decide which epoch's weights are returned.
        config: Settings of the run.
        random: Random state of the run.
    """

    def __init__(
        self,
        model: SparseClassifier,
        members: Sequence[Learner],
        selection_graphs: GraphStore,
        config: RunConfig,
        random: RandomState,
    ) -> None:
        self.model, self.config, self.random = model, config, random
        self.members, self.selection_graphs = members, selection_graphs
        self.stacked = stacked_fit([member.step for member in members])
        size = evaluation_batch(selection_graphs.device)
        self.selection_batches = list(selection_graphs.batches(size))
        self._first_choices: list[Choice] | None = None
        self.warm_up = config.warm_up_epochs
        self.optimizer = adam(model.policy.parameters(), config.ppo.learning_rate)
        self.updates = policy_updates(model.policy, self.optimizer, config.ppo)
        self.schedule = Cosine(self.optimizer, self._policy_epochs, FINAL_RATE)
        # Deviation D10: the returned policy is an average of the one that acts and is trained.
        average = get_ema_multi_avg_fn(config.ppo.ema_decay)
        self.averaged = AveragedModel(model.policy, multi_avg_fn=average)
        self.selected = SparseClassifier(cast(Policy, self.averaged.module), model.classifier)
        self.stopping = EarlyStopping(self.selected, config.training.patience)

    @property
    def reward(self) -> RewardConfig:
        """The settings of the reward with what was found out in training."""
        return self.model.classifier.head.reward_config(self.config.reward)

    def set_tolerance(self) -> None:
        """Set the tolerance that the model keeps, from the members' errors unless it is given."""

        def usual() -> float:
            return SLACK * float(usual_error(self.members, self.config.reward.alpha))

        self.model.classifier.head.set_tolerance(self.config.reward, usual)

    def balance_classes(self) -> None:
        """Let all classes count alike where one has nearly all the graphs (Deviation D15)."""
        settings = self.config.training
        if not settings.balanced:
            return
        for member in self.members:
            head, labels = member.classifier.head, member.train_graphs.y
            adjust_logits(head, labels, settings.logit_adjustment)

    @property
    def _policy_epochs(self) -> int:
        return self.config.training.epochs - self.warm_up

    def trains_classifiers(self, epoch: int) -> bool:
        """Return whether the classifiers are trained in this epoch.

        Deviation D5: they see random masks in place of the policy's subgraphs; those do not depend
        on the policy, so their training ends with the warm-up.
        """
        return epoch <= self.warm_up

    def trains_policy(self, epoch: int) -> bool:
        """Return whether the policy is trained in this epoch."""
        return epoch > self.warm_up

    @property
    def policy_is_new(self) -> bool:
        """Return whether PPO has not changed the policy yet."""
        return int(self.averaged.n_averaged) == 0

    def progress(self, epoch: int) -> float:
        """Fraction of the policy's training that is complete after an epoch."""
        return (epoch - self.warm_up) / self._policy_epochs

    def roll_out(self) -> list[Outcome]:
        """Sample actions of the policy on an epoch's graphs, and let the members predict."""
        balanced = self.config.training.balanced
        return roll_out(self.model, self.members, self.config.ppo, self.random, balanced)

    @property
    def parts(self) -> dict[str, Stateful]:
        """The parts of a checkpoint, by name."""
        members = {f"member_{number}": member for number, member in enumerate(self.members)}
        return {
            "policy": self.model.policy,
            "averaged": self.averaged,
            "optimizer": self.optimizer,
            "schedule": self.schedule,
            "stopping": self.stopping,
            "random": self.random,
            **members,
        }

    def finish_epoch(self, epoch: int) -> dict[str, float]:
        """Measure the epoch on the selection part, and step schedules and early stopping by it.

        Epochs in the first half of the policy's training are not selectable: a policy that has
        hardly been trained keeps nearly everything.
        """
        balanced = self.config.training.balanced
        metrics = selection_metrics(self.selected, self._choices(), self.reward, balanced)
        if self.trains_classifiers(epoch):
            for member in self.members:
                member.schedule.step(selection_score(metrics))
        if not self.trains_policy(epoch):
            del metrics["selection_reward"]  # there is no policy to reward yet
            return metrics
        self.schedule.step(metrics["selection_reward"])
        if epoch > self.warm_up + int(UNSELECTABLE * self._policy_epochs):
            self.stopping.step((metrics["selection_reward"],), epoch)
        return metrics

    def _choices(self) -> list[Choice]:
        """Apply the averaged policy to the selection split."""
        if not self.policy_is_new:
            return chosen(self.selected, self.selection_batches)
        if self._first_choices is None:  # by a new policy: the same at every epoch
            self._first_choices = chosen(self.selected, self.selection_batches)
        return self._first_choices

    def restore_selected(self) -> None:
        """Put the weights of the selected epoch into the model.

        Deviation D1: the paper reports the last epoch.
        """
        self.stopping.restore_best()
        self.model.load_state_dict(self.selected.state_dict())


def fit_classifiers(state: BilevelState, epoch: int) -> dict[str, float]:
    """Train every member for an epoch on random masks, Eq. (6)."""
    config, random, members = state.config, state.random, state.members
    size, removal = config.training.batch_size, state.model.policy.removal
    if state.stacked is not None:
        losses = state.stacked.fit(masked_chunks(members, size, removal, random))
    else:
        losses = [member.fit(masked_batches(member, size, removal, random)) for member in members]
    _check_finite(state, "loss", sum(losses), epoch, "training")
    return {"loss": sum(losses) / len(losses)}


def start_policy(state: BilevelState) -> None:
    """Begin where the removal of an element costs the members least (Deviation D19)."""
    policy, config = state.model.policy, state.config
    steps = config.ppo.effect_steps * (config.training.epochs - state.warm_up)
    fit_effects(policy, state.members, steps, state.random, config.training.balanced)


def fit_effect_network(
    state: BilevelState, dims: Dims, report: Report = no_report
) -> EffectNetwork | None:
    """Fit the network that explains each element's effect, by the members (Deviation D25).

    Its progress is told as that of more epochs, as many as the policy had. It draws random numbers
    of its own: whether it is learnt changes nothing else.
    """
    config = state.config
    steps, epochs = config.effect_steps, config.training.epochs
    if not steps:
        return None
    device = state.selection_graphs.device
    with forked_rng(device):
        random = RandomState(config.seed, device)
        network = build_effects(config, dims, state.model.scaler).to(device)

        def done(steps: int) -> None:
            if steps % config.effects.steps == 0:
                report(epochs + steps // config.effects.steps, {})

        learn_effects(network, state.members, steps, random, config.training.balanced, done)
    return network.eval()


def update_policy(state: BilevelState, rollouts: Sequence[RewardedRollout], epoch: int) -> None:
    """PPO updates of the policy on an epoch's rollouts, Eq. (5)."""
    policy, config = state.model.policy, state.config.ppo
    weight = annealed_entropy(config, state.progress(epoch))
    state.updates.run(rollouts, replace(config, entropy_coef=weight))
    state.averaged.update_parameters(policy)
    size = float(sum(weights.detach().abs().sum() for weights in policy.parameters()))
    _check_finite(state, "size of the policy's weights", size, epoch, "ppo")


@torch.no_grad()
def chosen(model: SparseClassifier, batches: Sequence[Batch], sample: bool = False) -> list[Choice]:
    """Apply a policy to batches: its mode, or one sample per graph."""
    return [model.choose(batch, sample) for batch in batches]


@torch.no_grad()
def selection_metrics(
    model: SparseClassifier,
    choices: Sequence[Choice],
    config: RewardConfig,
    balanced: bool = False,
) -> dict[str, float]:
    """Accuracy, kept ratio and :func:`selection_reward` on what is kept of the selection part.

    Where classes are balanced, the reward is the mean over the classes.
    """
    model.eval()
    batches = [choice.elements.batch for choice in choices]
    logits = [of_graphs(model.classifier, choice.subgraph.batch) for choice in choices]
    probs = model.outputs(torch.cat(logits))
    ratio = torch.cat([choice.elements.kept_ratio(choice.removed) for choice in choices])
    labels = torch.cat([batch.y for batch in batches])
    check_predicted(model, probs)
    task = TASKS[model.task]
    reward = selection_reward(probs, labels, ratio, config, task)
    if config.pieces_penalty:
        costs = [pieces_cost(choice.elements, choice.removed, config) for choice in choices]
        reward = reward - torch.cat(costs)
    found = task.selection(probs, labels, balanced)
    (name, value), *_ = found.metrics.items()  # the loss has no part in selecting a policy
    metrics = {
        name: value,
        "selection_ratio": float(ratio.mean()),
        "selection_reward": float(reward.mean()),
    }
    if balanced:
        metrics |= found.balanced
        metrics["selection_reward"] = class_mean(reward, labels)
    return metrics


def rollout_metrics(
    rollouts: Sequence[RewardedRollout], outcomes: Sequence[Outcome], q_hat: Tensor
) -> dict[str, float]:
    """Mean reward and kept ratio of an epoch's samples, and the quantile behind the rewards."""
    rewards = torch.cat([rollout.rewards.flatten() for rollout in rollouts])
    kept = torch.cat([outcome.kept_ratio.flatten() for outcome in outcomes])
    metrics = {"reward": float(rewards.mean()), "sampled_ratio": float(kept.mean())}
    if torch.isfinite(q_hat):  # JSON has no infinity
        metrics["q_hat"] = float(q_hat)
    return metrics


def _check_finite(state: BilevelState, name: str, value: float, epoch: int, group: str) -> None:
    if not math.isfinite(value):
        views = [(member.train_graphs, member.policy_graphs) for member in state.members]
        stores = {id(view.store): view.store for both in views for view in both}
        said = f"the {name} is {value}"
        raise diverged(said, epoch, state.model, stores.values(), f"{group}.learning_rate")


def annealed_entropy(config: PPOConfig, progress: float) -> float:
    """Anneal the weight of the entropy bonus geometrically, or linearly where an end is 0."""
    first, last = config.entropy_coef, config.final_entropy_coef
    if first > 0 and last > 0:
        return float(first ** (1 - progress) * last**progress)
    return first + (last - first) * progress
