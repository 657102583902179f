"""Algorithm 1 at the published settings, in the paper's order or in the authors' long turns.

The classifier is trained on the policy's own subgraphs and rewards the policy itself; the reward's
quantile comes from the training split.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch_geometric.data import Batch

from cores import ppo
from cores.config import RunConfig
from cores.conformal import aps_scores, conformal_quantile, true_scores
from cores.data.dataset import need_classes
from cores.evaluation.predictions import (
    EVALUATION_BATCH,
    check_predicted,
    evaluation_batch,
)
from cores.graphs.subgraphs import Elements
from cores.models.policy import Critic
from cores.models.sparse import Choice, SparseClassifier
from cores.ppo import RewardedRollout, Rollout
from cores.runs.fit import PreparedData
from cores.tasks.metrics import accuracy
from cores.training.bilevel import UNSELECTABLE, annealed_entropy, chosen
from cores.training.journal import Journal, Stateful
from cores.training.optimizer import adam
from cores.training.rollouts import drawn
from cores.training.schedule import plateau
from cores.training.state import RandomState
from cores.training.step import Step
from cores.training.stopping import EarlyStopping
from cores.training.supervised import Report, diverged, fit_epoch
from cores_paper.presets import PaperConfig
from cores_paper.training.reward import ppo_loss, published_reward
from cores_paper.training.turns import Turns


@dataclass(frozen=True)
class Outcome:
    """What the classifier predicts from the subgraphs of a rollout."""

    rollout: Rollout
    probs: Float[Tensor, "samples graphs classes"]
    kept_ratio: Float[Tensor, "samples graphs"]
    restored: Bool[Tensor, "samples graphs"]
    """Graphs that had lost everything."""


def train(
    model: SparseClassifier,
    config: RunConfig,
    data: PreparedData,
    random: RandomState,
    folder: Path | None,
    report: Report,
    key: str,
) -> tuple[Journal, EarlyStopping]:
    """Train classifier and policy in alternation, then restore the selected weights."""
    need_classes(data.dataset, f"the preset {config.preset}")
    state = State(model, config, data, random)
    journal = Journal(folder, state.parts, key=key)
    for epoch in journal.epochs(config.training.epochs):  # Algorithm 1
        if state.stopping.exhausted:  # line 20
            break
        metrics: dict[str, float] = {}
        if state.trains_classifier(epoch):  # lines 3-7, Eq. (6)
            metrics |= state.fit_classifier(epoch)
        if state.trains_policy(epoch):
            outcomes = state.roll_out()  # lines 8-12
            q_hat = state.quantile()  # line 13
            rollouts = state.rewarded(outcomes, q_hat)  # line 14, Eq. (7)
            metrics |= state.rollout_metrics(rollouts, outcomes, q_hat, epoch)
            metrics |= state.update_policy(rollouts, epoch)  # lines 15-19, Eq. (5)
        metrics |= state.finish_epoch(epoch)
        if state.turns is not None:
            state.turns.step(epoch, metrics)
        journal.record(**metrics)
        report(epoch, metrics)
    if state.own.weights == "best":  # Deviation D1: the paper reports the last epoch
        state.stopping.restore_best()
    return journal, state.stopping


class State:
    """All that the training changes: classifier, policy, critic, their optimisers, the best epoch.

    Args:
        model: The classifier behind its policy.
        config: Settings of the run.
        data: The graphs, divided.
        random: Random state of the run.
    """

    def __init__(
        self, model: SparseClassifier, config: RunConfig, data: PreparedData, random: RandomState
    ) -> None:
        self.model, self.config, self.random = model, config, random
        self.own: PaperConfig = config.preset_settings
        settings, device = config.training, data.graphs.device
        self.critic = Critic(data.dataset.dims, config.network, config.conv)
        self.critic.scaler = model.scaler
        self.critic.to(device)
        self.train_graphs = data.graphs.view(data.split.train)
        self.policy_graphs = data.graphs.view(data.split.policy)
        selection = data.part("selection")
        self.selection_batches = list(selection.batches(evaluation_batch(device)))
        classifier = model.classifier.eval()  # except while it is trained
        weights = classifier.parameters()
        self.classifier_optimizer = adam(weights, settings.learning_rate, settings.weight_decay)
        self.step = Step(classifier, self.classifier_optimizer)
        patience, floor = settings.schedule_patience, settings.min_learning_rate
        self.classifier_schedule = plateau(
            self.classifier_optimizer, settings.schedule_factor, patience, floor
        )
        groups = [
            {"params": list(model.policy.parameters()), "lr": config.ppo.learning_rate},
            {"params": list(self.critic.parameters()), "lr": self.own.critic_learning_rate},
        ]
        self.optimizer = adam(groups, config.ppo.learning_rate)
        self.schedule = plateau(self.optimizer, self.own.schedule_factor, patience, floor)
        in_turns = self.own.order == "in-turns"  # patience ends a turn then, not the training
        self.turns = Turns(settings, self.own) if in_turns else None
        self.stopping = EarlyStopping(model, settings.epochs if in_turns else settings.patience)

    @property
    def parts(self) -> dict[str, Stateful]:
        """What a checkpoint holds, by name."""
        turns = {} if self.turns is None else {"turns": self.turns}
        return {
            "model": self.model,
            "critic": self.critic,
            "classifier_optimizer": self.classifier_optimizer,
            "classifier_schedule": self.classifier_schedule,
            "optimizer": self.optimizer,
            "schedule": self.schedule,
            "stopping": self.stopping,
            "random": self.random,
            **turns,
        }

    def trains_classifier(self, epoch: int) -> bool:
        """Return whether the classifier is trained in this epoch."""
        return self.turns is None or not self.turns.is_policy_turn(epoch)

    def trains_policy(self, epoch: int) -> bool:
        """Return whether the policy is trained in this epoch."""
        return self.turns is None or self.turns.is_policy_turn(epoch)

    def fit_classifier(self, epoch: int) -> dict[str, float]:
        """Train the classifier for an epoch on sampled subgraphs, or first on full graphs."""
        full = self.turns is not None and self.turns.on_full_graphs
        size = self.config.training.batch_size

        def batches() -> Iterator[Batch]:
            for batch in self.train_graphs.batches(size, self.random.batches):
                # A number that nothing reads: the stored runs drew it here.
                torch.rand((), generator=self.random.batches)
                if full:
                    yield batch
                    continue
                with torch.no_grad():
                    subgraph = self.model.choose(batch, sample=True).subgraph
                yield subgraph.batch

        loss = fit_epoch(self.step, batches())
        self.model.classifier.eval()
        self._check_finite("loss", loss, epoch, "training.learning_rate")
        return {"loss": loss}

    @torch.no_grad()
    def roll_out(self) -> list[Outcome]:
        """Sample actions on an epoch's graphs, and let the classifier predict."""
        settings = self.config.ppo
        index = drawn(self.policy_graphs, settings.env_steps, self.random, balanced=False)
        if self.policy_graphs.store.device.type == "cuda":  # waits least if all come at once
            return [self._outcome(index)]
        return [self._outcome(piece) for piece in index.split(settings.batch_size)]

    def _outcome(self, index: Int[Tensor, " graphs"]) -> Outcome:
        store, samples = self.policy_graphs.store, self.config.ppo.samples
        policy, classifier = self.model.policy, self.model.classifier
        rollout = ppo.collect(policy, store.batch(index), samples)
        elements = rollout.elements
        removed, restored = elements.restored(rollout.removed)
        copies = Elements.of(store.batch(index.repeat(samples)), policy.removal)
        subgraph = copies.subgraph(elements.flattened(removed))
        probs = classifier.outputs(classifier(subgraph.batch))  # [S * B, K]
        kept_ratio = elements.kept_ratio(removed)
        return Outcome(rollout, probs.unflatten(0, (samples, len(index))), kept_ratio, restored)

    @torch.no_grad()
    def quantile(self) -> Float[Tensor, ""]:
        """q-hat of the reward's sets, from samples on the training split."""
        scores = []
        for batch in self.train_graphs.batches(EVALUATION_BATCH):
            subgraph = self.model.choose(batch, sample=True).subgraph
            probs = self.model.outputs(self.model.classifier(subgraph.batch))
            scores.append(true_scores(aps_scores(probs), batch.y))
        return conformal_quantile(torch.cat(scores), self.config.reward.alpha)

    @torch.no_grad()
    def rewarded(
        self, outcomes: Sequence[Outcome], q_hat: Float[Tensor, ""]
    ) -> list[RewardedRollout]:
        """The rollouts with their rewards, and advantages over the critic's values.

        The critic begins with the mean of the first rewards that it sees.
        """
        rewards = [self._reward(outcome, q_hat) for outcome in outcomes]
        self.critic.begin_at(torch.cat([each.flatten() for each in rewards]).mean())
        return [
            outcome.rollout.rewarded(each, self.critic(outcome.rollout.elements.batch))
            for outcome, each in zip(outcomes, rewards, strict=True)
        ]

    def _reward(
        self, outcome: Outcome, q_hat: Float[Tensor, ""]
    ) -> Float[Tensor, "samples graphs"]:
        """Eq. (7) of every sample, less the penalty where everything had been removed.

        With ``penalise_full`` also where nothing had been, though there was something to lose.
        """
        config, elements = self.config.reward, outcome.rollout.elements
        samples, graphs = outcome.kept_ratio.shape
        labels = torch.cat([elements.batch.y] * samples)
        probs, kept = outcome.probs.flatten(0, 1), outcome.kept_ratio.flatten()
        reward = published_reward(probs, labels, kept, q_hat, config, self.own)
        penalised = outcome.restored
        if self.own.penalise_full:
            penalised = ((outcome.kept_ratio == 1) | outcome.restored) & (elements.count > 0)
        return reward.view(samples, graphs) - config.penalty_size * penalised

    def rollout_metrics(
        self,
        rollouts: Sequence[RewardedRollout],
        outcomes: Sequence[Outcome],
        q_hat: Tensor,
        epoch: int,
    ) -> dict[str, float]:
        """Mean reward and kept ratio of an epoch's samples, and the quantile."""
        rewards = torch.cat([rollout.rewards.flatten() for rollout in rollouts])
        kept = torch.cat([outcome.kept_ratio.flatten() for outcome in outcomes])
        metrics = {"reward": float(rewards.mean()), "sampled_ratio": float(kept.mean())}
        if torch.isfinite(q_hat):  # JSON has no infinity
            metrics["q_hat"] = float(q_hat)
        # Before the update: what the classifier did must not look like the policy's fault.
        self._check_finite("reward", metrics["reward"], epoch, "training.learning_rate")
        return metrics

    def update_policy(self, rollouts: Sequence[RewardedRollout], epoch: int) -> dict[str, float]:
        """K passes of clipped PPO over the rollouts, Eq. (5)."""
        settings = self.config.ppo
        entropy_coef = annealed_entropy(settings, epoch / self.config.training.epochs)
        buffer = [batch for rollout in rollouts for batch in rollout.cut(settings.batch_size)]
        losses = []
        for _ in range(settings.ppo_epochs):
            for batch in buffer:
                loss, _ = ppo_loss(
                    self.model.policy,
                    self.critic,
                    batch,
                    settings.clip,
                    entropy_coef,
                    self.own.value_coef,
                )
                losses.append(loss.detach())
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
        weights = self.model.policy.parameters()
        size = float(sum(weight.detach().abs().sum() for weight in weights))
        self._check_finite("size of the policy's weights", size, epoch, "ppo.learning_rate")
        return {"ppo_loss": float(torch.stack(losses).mean())}

    def finish_epoch(self, epoch: int) -> dict[str, float]:
        """Measure the epoch on the selection split; step schedules and early stopping by it."""
        sample = self.config.samples  # Deviation D17: by default the mode
        metrics = self._selection_metrics(chosen(self.model, self.selection_batches, sample))
        accuracy_now = metrics["selection_accuracy"]
        if self.trains_classifier(epoch):
            self.classifier_schedule.step(accuracy_now)
        if not self.trains_policy(epoch):
            del metrics["selection_reward"]  # there is no policy to reward yet
            return metrics
        self.schedule.step(metrics["selection_reward"])
        if epoch > int(UNSELECTABLE * self.config.training.epochs):
            # At lambda 0 an epoch whose mode keeps everything has reward 0: accuracy breaks ties.
            self.stopping.step((metrics["selection_reward"], accuracy_now), epoch)
        return metrics

    @torch.no_grad()
    def _selection_metrics(self, choices: Sequence[Choice]) -> dict[str, float]:
        model = self.model.eval()
        logits = [model.classifier(choice.subgraph.batch) for choice in choices]
        probs = model.outputs(torch.cat(logits))
        kept = torch.cat([choice.elements.kept_ratio(choice.removed) for choice in choices])
        labels = torch.cat([choice.elements.batch.y for choice in choices])
        check_predicted(model, probs)
        reward = published_reward(probs, labels, kept, None, self.config.reward, self.own)
        return {
            "selection_accuracy": accuracy(probs, labels),
            "selection_ratio": float(kept.mean()),
            "selection_reward": float(reward.mean()),
        }

    def _check_finite(self, name: str, value: float, epoch: int, setting: str) -> None:
        if not math.isfinite(value):
            stores = [graphs.store for graphs in (self.train_graphs, self.policy_graphs)]
            raise diverged(f"the {name} is {value}", epoch, self.model, stores, setting)
