"""Algorithm 1: the classifier and the policy trained in turns, Eqs. (5) and (6).

Here the learners, the policy with its trials, and PPO meet.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import torch
from torch import Tensor
from torch.optim import Adam, Optimizer
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch_geometric.data import Batch

from cores import ppo
from cores.config import PPOConfig, RewardConfig, RunConfig
from cores.data.store import GraphStore
from cores.errors import UserError
from cores.evaluation.metrics import accuracy
from cores.evaluation.predictions import EVALUATION_BATCH
from cores.models.policy import Critic, Policy
from cores.models.sparse import SparseClassifier
from cores.ppo import Experience
from cores.training.journal import Journal
from cores.training.learner import Learner, diet, taught
from cores.training.schedule import Cosine, Schedule, plateau
from cores.training.state import RandomState
from cores.training.stopping import EarlyStopping
from cores.training.supervised import Report
from cores.training.trial import Trial, decided_reward, reward_quantile, roll_out, trial_reward

FINAL_RATE = 0.1
"""Where the policy's cosine schedule ends, as a share of the rate it starts from."""
SETTLING = 0.5
"""Share of the policy's epochs, the first, whose weights are never returned."""


def train(
    model: SparseClassifier,
    critic: Critic | None,
    student: Learner,
    referees: Sequence[Learner],
    selection_graphs: GraphStore,
    config: RunConfig,
    random: RandomState,
    folder: Path | None = None,
    report: Report | None = None,
    warm_start: Path | None = None,
) -> tuple[Journal, EarlyStopping]:
    """Train classifier and policy in turns, then put the chosen weights into the model.

    ``student`` teaches the model's classifier. ``referees`` reward the policy: the student itself,
    alone (the paper), or others, and then the classifier that is returned never rewards it.
    The policy that is returned is a running mean of the one that acts and learns. An epoch is
    better than another by the mean of its :func:`decided_reward` over the selection part; those in
    which the policy is settling do not count.
    With a folder, the run is recorded there and goes on from where it was killed. ``warm_start`` is
    a file through which runs that differ in the reward alone share their warm-up.
    """
    policy, epochs = model.policy, config.training.epochs
    warm_up = config.warm_up_epochs
    settled = warm_up + int(SETTLING * (epochs - warm_up))
    optimizer = _policy_optimizer(model, critic, config.ppo)
    schedule = _policy_schedule(optimizer, config, epochs - warm_up)
    learners = [student, *(each for each in referees if each is not student)]
    averaged = AveragedModel(policy, multi_avg_fn=get_ema_multi_avg_fn(config.ppo.averaging))
    steady = SparseClassifier(cast(Policy, averaged.module), model.classifier)
    stopping = EarlyStopping(steady, config.training.patience)
    journal = Journal(
        folder,
        warm_start,
        policy=policy,
        averaged=averaged,
        optimizer=optimizer,
        schedule=schedule,
        stopping=stopping,
        random=random,
        **({} if critic is None else {"critic": critic}),
        **{f"learner_{number}": each for number, each in enumerate(learners)},
    )
    selection_batches = list(selection_graphs.batches(EVALUATION_BATCH))

    for epoch in journal.epochs(epochs):  # Algorithm 1
        if stopping.exhausted:
            break
        figures: dict[str, float] = {}
        # Deviation D5: random masks in place of the policy's subgraphs, as far as `mix` says; they
        # do not depend on the policy, so a classifier that lives on them rests after the warm-up.
        if epoch <= warm_up or config.diet.mix < 1:
            lessons = {
                each: diet(model, each, config, epoch <= warm_up, random) for each in learners
            }
            if student not in referees:
                teachers = [each.classifier for each in referees]
                lessons[student] = taught(lessons[student], teachers, config.diet.distilled)
            # Lines 3 to 7, Eq. (6)
            losses = [each.fit(batches) for each, batches in lessons.items()]
            figures["loss"] = losses[0]
            _check_finite("loss", sum(losses), epoch, "training")
        if epoch > warm_up:
            # Lines 8 to 12
            trials = [
                trial for each in referees for trial in roll_out(model, each, config.ppo, random)
            ]
            # Line 13
            q_hat = reward_quantile(model, student, referees, trials, config.reward)
            # Line 14, Eq. (7)
            buffer = [
                ppo.experience(each.rollout, trial_reward(each, q_hat, config.reward), critic)
                for each in trials
            ]
            # Lines 15 to 19, Eq. (5)
            progress = (epoch - warm_up) / (epochs - warm_up)
            ppo.update(policy, critic, buffer, optimizer, _entropy_annealed(config.ppo, progress))
            averaged.update_parameters(policy)
            figures |= _rollout_figures(buffer, trials, q_hat)
            size = float(sum(each.detach().abs().sum() for each in policy.parameters()))
            _check_finite("size of the policy's weights", size, epoch, "ppo")
        figures |= selection_figures(steady, selection_batches, config.reward)
        for each in learners:
            each.schedule.step(figures["selection_accuracy"])
        if epoch > warm_up:
            schedule.step(figures["selection_reward"])
        else:
            del figures["selection_reward"]  # nobody works for it yet
        if epoch > settled:
            # Line 20
            stopping.step((figures["selection_reward"],), epoch)
        journal.record(**figures)
        if epoch == warm_up and warm_start is not None:
            journal.share(warm_start)
        if report is not None:
            report(epoch, figures)

    # Deviation D1: the paper reports the last epoch; "last" does that (docs/deviations.md).
    if config.training.weights == "best":
        stopping.restore_best()
    model.load_state_dict(steady.state_dict())
    return journal, stopping


@torch.no_grad()
def selection_figures(
    model: SparseClassifier, batches: Sequence[Batch], config: RewardConfig
) -> dict[str, float]:
    """Accuracy, kept ratio and :func:`decided_reward` of the mode on the selection part."""
    model.eval()
    choices = [model.choose(batch) for batch in batches]
    probs = torch.cat([model.classifier(each.subgraph.batch) for each in choices]).softmax(dim=-1)
    ratio = torch.cat([each.elements.kept_ratio(each.removed) for each in choices])
    labels = torch.cat([batch.y for batch in batches])
    return {
        "selection_accuracy": accuracy(probs, labels),
        "selection_ratio": float(ratio.mean()),
        "selection_reward": float(decided_reward(probs, labels, ratio, config).mean()),
    }


def _rollout_figures(
    buffer: Sequence[Experience], trials: Sequence[Trial], q_hat: Tensor
) -> dict[str, float]:
    rewards = torch.cat([each.rewards.flatten() for each in buffer])
    kept = torch.cat([each.kept_ratio.flatten() for each in trials])
    figures = {"reward": float(rewards.mean()), "sampled_ratio": float(kept.mean())}
    if torch.isfinite(q_hat):  # JSON has no infinity
        figures["q_hat"] = float(q_hat)
    return figures


def _check_finite(name: str, value: float, epoch: int, group: str) -> None:
    if not math.isfinite(value):
        raise UserError(f"the {name} is {value} in epoch {epoch}; lower {group}.learning_rate")


def _policy_optimizer(
    model: SparseClassifier, critic: Critic | None, config: PPOConfig
) -> Optimizer:
    groups = [{"params": list(model.policy.parameters()), "lr": config.learning_rate}]
    if critic is not None:
        groups.append({"params": list(critic.parameters()), "lr": config.critic_learning_rate})
    return Adam(groups, fused=True)


def _policy_schedule(optimizer: Optimizer, config: RunConfig, epochs: int) -> Schedule:
    settings = config.training
    if config.ppo.schedule_factor:
        factor, floor = config.ppo.schedule_factor, settings.min_learning_rate
        return plateau(optimizer, factor, settings.schedule_patience, floor)
    return Cosine(optimizer, epochs, FINAL_RATE)


def _entropy_annealed(config: PPOConfig, progress: float) -> PPOConfig:
    """The settings with the entropy bonus part of the way from first to last.

    Geometrically, or along a line where one of them is 0.
    """
    first, last = config.entropy_coef, config.final_entropy_coef
    if first > 0 and last > 0:
        weight = first ** (1 - progress) * last**progress
    else:
        weight = first + (last - first) * progress
    return replace(config, entropy_coef=weight)
