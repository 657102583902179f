"""Algorithm 1: the classifier and the policy trained in turns, Eqs. (5) and (6).

The only file that sees classifier, policy, conformal sets, reward and PPO together.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import one_hot
from torch.optim import Adam, Optimizer
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch_geometric.data import Batch

from cores import ppo
from cores.config import PPOConfig, RewardConfig, RunConfig
from cores.conformal import aps_scores, conformal_quantile, lac_scores, prediction_sets
from cores.data.store import GraphStore
from cores.errors import UserError
from cores.evaluation.metrics import accuracy
from cores.evaluation.predictions import EVALUATION_BATCH, true_scores
from cores.graphs import Elements
from cores.masks import masked
from cores.models.classifier import Classifier
from cores.models.policy import Critic, Policy
from cores.models.sparse import SparseClassifier
from cores.ppo import Experience, Rollout
from cores.reward import conformal_reward, performance_reward, sparsity_reward
from cores.training.journal import Journal
from cores.training.schedule import Cosine, Schedule, plateau
from cores.training.state import RandomState
from cores.training.stopping import EarlyStopping
from cores.training.supervised import Report, fit_epoch, inverse_frequencies

SCORES = {"lac": lac_scores, "aps": aps_scores}
FINAL_CLASSIFIER_RATE, FINAL_POLICY_RATE = 0.05, 0.1
"""Where the cosine schedules end, as shares of the rates they start from."""
SETTLING = 0.5
"""Share of the policy's epochs, the first, whose weights are never returned."""


def train(
    model: SparseClassifier,
    critic: Critic | None,
    student: "Learner",
    referees: Sequence["Learner"],
    selection_graphs: GraphStore,
    config: RunConfig,
    random: RandomState,
    folder: Path | None = None,
    report: Report | None = None,
) -> tuple[Journal, EarlyStopping]:
    """Train classifier and policy in turns, then put the chosen weights into the model.

    ``student`` teaches the model's classifier. ``referees`` reward the policy: the student itself,
    alone (the paper), or others, and then the classifier that is returned never rewards it.
    The policy that is returned is a running mean of the one that acts and learns. An epoch is
    better than another by the mean of its :func:`decided_reward` over the selection part; those in
    which the policy is settling do not count.
    With a folder, the run is recorded there and goes on from where it was killed.
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
            losses = [each.fit(batches) for each, batches in lessons.items()]  # lines 3-7, Eq. (6)
            figures["loss"] = losses[0]
            _check_finite("loss", sum(losses), epoch, "training")
        if epoch > warm_up:
            trials = [
                trial for each in referees for trial in roll_out(model, each, config.ppo, random)
            ]  # lines 8-12
            q_hat = reward_quantile(model, student, referees, trials, config)  # line 13
            buffer = [
                ppo.experience(each.rollout, trial_reward(each, q_hat, config.reward), critic)
                for each in trials
            ]  # line 14, Eq. (7)
            progress = (epoch - warm_up) / (epochs - warm_up)
            ppo.update(policy, critic, buffer, optimizer, _entropy_annealed(config.ppo, progress))
            # lines 15-19, Eq. (5)
            averaged.update_parameters(policy)
            figures |= _rollout_figures(buffer, trials, q_hat)
            size = float(sum(each.detach().abs().sum() for each in policy.parameters()))
            _check_finite("size of the policy's weights", size, epoch, "ppo")
        figures |= selection_figures(steady, selection_batches, config.reward)
        for each in learners:
            each.schedule.step(figures["selection_accuracy"])
        if epoch > warm_up:
            schedule.step(figures["selection_reward"])
        if epoch > settled:
            stopping.step((figures["selection_reward"],), epoch)  # line 20
        journal.record(**figures)
        if report is not None:
            report(epoch, figures)

    if config.training.weights == "best":
        stopping.restore_best()
    model.load_state_dict(steady.state_dict())
    return journal, stopping


class Learner:
    """A classifier with its optimiser, the graphs it learns from, and those it rewards on."""

    def __init__(
        self,
        classifier: Classifier,
        train_graphs: GraphStore,
        policy_graphs: GraphStore,
        config: RunConfig,
    ) -> None:
        settings = config.training
        self.classifier = classifier.eval()  # but for its lessons: a referee has no dropout
        self.train_graphs = train_graphs
        self.policy_graphs = policy_graphs
        self.class_weights = (
            inverse_frequencies(train_graphs.y, classifier.num_classes)
            if settings.class_weights
            else None
        )
        self.optimizer = Adam(
            classifier.parameters(),
            lr=settings.learning_rate,
            weight_decay=settings.weight_decay,
            fused=True,
        )
        self.schedule: Schedule
        if config.diet.mix == 1:
            self.schedule = Cosine(self.optimizer, config.warm_up_epochs, FINAL_CLASSIFIER_RATE)
        else:
            self.schedule = plateau(
                self.optimizer,
                settings.schedule_factor,
                settings.schedule_patience,
                settings.min_learning_rate,
            )

    def fit(self, batches: Iterable[Batch]) -> float:
        """One epoch; returns the mean loss."""
        loss = fit_epoch(self.classifier, batches, self.optimizer, self.class_weights)
        self.classifier.eval()
        return loss

    def state_dict(self) -> dict[str, Any]:
        """What resuming needs."""
        return {
            "classifier": self.classifier.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where the state was taken."""
        self.classifier.load_state_dict(state["classifier"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])


def diet(
    model: SparseClassifier,
    learner: Learner,
    config: RunConfig,
    warm_up: bool,
    random: RandomState,
) -> Iterator[Batch]:
    """What a classifier learns from: randomly masked graphs, for a share ``mix`` of the batches.

    The others are the policy's subgraphs, and whole graphs as long as there is no policy yet.
    """
    batches = learner.train_graphs.batches(config.training.batch_size, random.batches)
    for batch in batches:
        if config.diet.mix == 1 or torch.rand((), generator=random.batches) < config.diet.mix:
            yield from masked([batch], model.policy.removal)
        elif warm_up:
            yield batch
        else:
            with torch.no_grad():
                subgraph = model.choose(batch, sample=True).subgraph
            yield subgraph.batch


def taught(
    batches: Iterable[Batch], teachers: Sequence[Classifier], share: float
) -> Iterator[Batch]:
    """The batches with the teachers' mean prediction for a share of every label.

    Deviation D14: several classifiers together are right more often, and less sure of themselves
    where they are wrong, than one that learns the labels alone; one that learns from them is too.
    """
    for batch in batches:
        with torch.no_grad():
            opinions = torch.stack([each(batch).softmax(dim=-1) for each in teachers])
        labels = one_hot(batch.y, opinions.size(-1))
        batch.y = share * opinions.mean(dim=0) + (1 - share) * labels  # [B, K]
        yield batch


@dataclass(frozen=True)
class Trial:
    """A policy's actions on a mini-batch, and what a referee made of the subgraphs."""

    rollout: Rollout
    probs: Float[Tensor, "samples graphs classes"]
    kept_ratio: Float[Tensor, "samples graphs"]
    restored: Bool[Tensor, "samples graphs"]
    """Graphs that had lost everything."""


@torch.no_grad()
def roll_out(
    model: SparseClassifier, referee: Learner, config: PPOConfig, random: RandomState
) -> Iterator[Trial]:
    """Sample actions on graphs the referee has not learnt from; it predicts from what is left."""
    graphs = referee.policy_graphs
    chosen = torch.randperm(len(graphs), generator=random.batches)[: config.env_steps]
    for index in chosen.split(config.batch_size):
        rollout = ppo.collect(model.policy, graphs.batch(index), config.samples)
        removed, restored = rollout.elements.restored(rollout.removed)
        copies = Elements.of(graphs.batch(index.repeat(config.samples)), model.policy.removal)
        subgraph = copies.subgraph(rollout.elements.flattened(removed))
        logits = referee.classifier(subgraph.batch)  # [S * B, K]
        yield Trial(
            rollout,
            logits.softmax(dim=-1).unflatten(0, restored.shape),
            rollout.elements.kept_ratio(removed),
            restored,
        )


@torch.no_grad()
def reward_quantile(
    model: SparseClassifier,
    student: Learner,
    referees: Sequence[Learner],
    trials: Sequence[Trial],
    config: RunConfig,
) -> Float[Tensor, ""]:
    """q-hat of the reward's prediction sets.

    The paper takes it from the training graphs. Deviation D6: with referees of their own it comes
    from the graphs that are rewarded, which the referees have not learnt from: scores of training
    graphs are too good, and nearly every other graph would count as wrong.
    """
    scores_of = SCORES[config.reward.score]
    if student in referees:
        pairs = [
            (
                student.classifier(model.choose(batch, sample=True).subgraph.batch).softmax(-1),
                batch.y,
            )
            for batch in student.train_graphs.batches(EVALUATION_BATCH)
        ]
    else:
        pairs = [
            (probs, trial.rollout.elements.batch.y) for trial in trials for probs in trial.probs
        ]
    scores = [true_scores(scores_of(probs), labels) for probs, labels in pairs]
    return conformal_quantile(torch.cat(scores), config.reward.alpha)


@torch.no_grad()
def trial_reward(
    trial: Trial, q_hat: Float[Tensor, ""], config: RewardConfig
) -> Float[Tensor, "samples graphs"]:
    """Eq. (7) of every sample, less the penalty where everything had been removed."""
    samples, graphs = trial.kept_ratio.shape
    probs = trial.probs.flatten(0, 1)  # [S * B, K]
    labels = trial.rollout.elements.batch.y.repeat(samples)
    sets = reward_sets(probs, q_hat, config)
    reward = conformal_reward(
        performance_reward(probs, labels),
        sparsity_reward(trial.kept_ratio.flatten(), config.desired_ratio),
        sets,
        labels,
        config.lam,
    )
    return reward.view(samples, graphs) - config.penalty_size * trial.restored


def reward_sets(
    probs: Float[Tensor, "graphs classes"], q_hat: Float[Tensor, ""], config: RewardConfig
) -> Bool[Tensor, "graphs classes"]:
    """Prediction sets of the reward, Eq. (3), and what stands in for one without labels.

    Deviation D7: the predicted label stands in. When a classifier errs less often than alpha, its
    least sure graphs get empty sets, right or not; Eq. (7) as written punishes them, and since
    q-hat follows the policy, it would punish every subgraph that is less sure than the rest: only
    keeping everything is safe then.
    """
    sets = prediction_sets(SCORES[config.score](probs), q_hat)
    empty = ~sets.any(dim=-1, keepdim=True)
    if config.empty_set == "predicted":
        return sets | (empty & one_hot(probs.argmax(dim=-1), probs.size(-1)).bool())
    return sets | empty if config.empty_set == "unsure" else sets


def decided_reward(
    probs: Float[Tensor, "graphs classes"],
    labels: Tensor,
    kept_ratio: Float[Tensor, " graphs"],
    config: RewardConfig,
) -> Float[Tensor, " graphs"]:
    """Eq. (7) with the predicted label alone as the prediction set.

    It values accuracy, certainty and sparsity as the run's lambda and d do, and needs no quantile,
    so that epochs can be compared.
    """
    return conformal_reward(
        performance_reward(probs, labels),
        sparsity_reward(kept_ratio, config.desired_ratio),
        one_hot(probs.argmax(-1), probs.size(-1)).bool(),
        labels,
        config.lam,
    )


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
    return Cosine(optimizer, epochs, FINAL_POLICY_RATE)


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
