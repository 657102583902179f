"""Rollouts of the policy, the members' predictions from them, and their rewards, Eq. (7)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor
from torch_geometric.data import Batch

from cores import ppo
from cores.config import PPOConfig, RewardConfig
from cores.conformal import conformal_quantile, residual_scores
from cores.evaluation.predictions import EVALUATION_BATCH
from cores.graphs.batches import cut
from cores.graphs.components import count_pieces
from cores.graphs.shares import of_graphs
from cores.graphs.store import GraphView
from cores.graphs.subgraphs import Elements
from cores.models.sparse import SparseClassifier
from cores.ppo import RewardedRollout, Rollout
from cores.reward import pieces_penalty, sparsity_reward
from cores.tasks import CLASSIFICATION, TASKS, Task
from cores.training.balance import balanced_order
from cores.training.learner import Learner
from cores.training.state import RandomState


@dataclass(frozen=True)
class Outcome:
    """The members' predictions from the subgraphs of a rollout."""

    rollout: Rollout
    labels: Num[Tensor, "graphs *labels"]
    """The target of every subgraph."""
    probs: Float[Tensor, "samples graphs classes"]
    kept_ratio: Float[Tensor, "samples graphs"]
    restored: Bool[Tensor, "samples graphs"]
    """Graphs that had lost everything."""
    task: Task = CLASSIFICATION


@torch.no_grad()
def roll_out(
    model: SparseClassifier,
    members: Sequence[Learner],
    config: PPOConfig,
    random: RandomState,
    balanced: bool = False,
) -> list[Outcome]:
    """Sample actions on graphs that a member was not trained on, and let it predict.

    Where classes are balanced, the graphs are drawn so that every class is as frequent.
    """
    parts = [
        (member, drawn(member.policy_graphs, config.env_steps, random, balanced))
        for member in members
    ]
    if members[0].policy_graphs.store.device.type == "cuda":  # waits least if all come at once
        return [_outcome(model, parts, config.samples)]
    return [  # a CPU is quickest at sizes that its cache holds
        _outcome(model, [(member, index)], config.samples)
        for member, chosen in parts
        for index in chosen.split(config.batch_size)
    ]


def drawn(
    graphs: GraphView, most: int, random: RandomState, balanced: bool
) -> Int[Tensor, " chosen"]:
    """Sample up to ``most`` graphs; returns their indices in the store."""
    if balanced:  # Deviation D15
        size = min(most, len(graphs))
        return graphs.index[balanced_order(graphs.y, size, random.batches)]
    return graphs.order(random.batches)[:most]


def _outcome(
    model: SparseClassifier,
    parts: Sequence[tuple[Learner, Int[Tensor, " _"]]],
    samples: int,
) -> Outcome:
    """Roll out on the graphs of all folds; each member predicts its own."""
    store = parts[0][0].policy_graphs.store
    batch = store.batch(torch.cat([index for _, index in parts]))
    rollout = ppo.collect(model.policy, batch, samples)
    elements, removal = rollout.elements, model.policy.removal
    removed, restored = elements.restored(rollout.removed)
    removed = model.policy.connected(elements, removed, rollout.log_probs[0].exp())
    pieces = [
        Elements.of(piece, removal)
        for piece in cut(elements.batch, [len(index) for _, index in parts])
    ]
    probs, labels = [], []
    for (member, index), piece, gone in zip(
        parts, pieces, elements.split(removed, pieces), strict=True
    ):
        copies = Elements.of(store.batch(index.repeat(samples)), removal)
        subgraph = copies.subgraph(piece.flattened(gone))
        logits = of_graphs(member.classifier, subgraph.batch)  # [S * B, K]
        outputs = member.classifier.outputs(logits)
        probs.append(outputs.unflatten(0, (samples, len(index))))
        labels.append(_labels(member, piece.batch))
    return Outcome(
        rollout,
        torch.cat(labels),
        torch.cat(probs, dim=1),
        elements.kept_ratio(removed),
        restored,
        TASKS[model.task],
    )


def _labels(member: Learner, batch: Batch) -> Num[Tensor, "graphs *labels"]:
    """Return the targets of subgraphs.

    Deviation D18: as the member predicts the full graph, whatever the label. A policy that is
    rewarded for labels learns those of its own graphs by heart where there are few: which part to
    keep so that a member that errs is right for once. On other graphs that part means nothing.
    """
    return member.classifier.head.predicted(of_graphs(member.classifier, batch))


@torch.no_grad()
def reward_quantile(outcomes: Sequence[Outcome], alpha: float) -> Float[Tensor, ""]:
    """q-hat of the reward's prediction sets.

    Deviation D6: the paper takes it from the training graphs. Here it comes from the graphs that
    are rewarded, which the members were not trained on: scores of training graphs are too good,
    and nearly every other graph would count as wrong.
    """
    scores = [
        outcome.task.conformal_scores(probs, outcome.labels)
        for outcome in outcomes
        for probs in outcome.probs
    ]
    return conformal_quantile(torch.cat(scores), alpha)


@torch.no_grad()
def rollout_reward(
    outcome: Outcome, q_hat: Float[Tensor, ""], config: RewardConfig
) -> Float[Tensor, "samples graphs"]:
    """Eq. (7) of every sample, less the penalty where everything had been removed.

    With ``pieces_penalty`` less what the pieces of the kept part cost.
    """
    samples, graphs = outcome.kept_ratio.shape
    probs = outcome.probs.flatten(0, 1)  # [S * B, K]
    labels = torch.cat([outcome.labels] * samples)
    sparsity = sparsity_reward(outcome.kept_ratio.flatten(), config.desired_ratio)
    reward = outcome.task.reward(probs, labels, sparsity, q_hat, config.lam, config)
    reward = reward.view(samples, graphs) - config.penalty_size * outcome.restored
    if not config.pieces_penalty:
        return reward
    # Of the action itself: what ``max_pieces`` takes away must not look as if nobody had kept it.
    elements = outcome.rollout.elements
    return reward - pieces_cost(elements, elements.restored(outcome.rollout.removed)[0], config)


def pieces_cost(
    elements: Elements, removed: Bool[Tensor, "*samples elements"], config: RewardConfig
) -> Float[Tensor, "*samples graphs"]:
    """Penalty for a kept part in several pieces (Deviation D21)."""
    pieces, num_nodes = count_pieces(elements, removed), elements.batch.ptr.diff()
    return config.pieces_penalty * pieces_penalty(pieces, num_nodes, max(1, config.max_pieces))


def rewarded(
    outcomes: Sequence[Outcome], q_hat: Float[Tensor, ""], config: RewardConfig
) -> list[RewardedRollout]:
    """The rollouts with their rewards, and advantages over a graph's other samples."""
    return [
        outcome.rollout.rewarded(rollout_reward(outcome, q_hat, config)) for outcome in outcomes
    ]


def selection_reward(
    probs: Float[Tensor, "graphs classes"],
    labels: Tensor,
    kept_ratio: Float[Tensor, " graphs"],
    config: RewardConfig,
    task: Task = CLASSIFICATION,
) -> Float[Tensor, " graphs"]:
    """Eq. (7) with the predicted label alone as the prediction set: what epochs are selected by.

    It weighs accuracy, confidence and sparsity by the run's lambda and d, and needs no
    quantile, so that epochs can be compared.
    """
    sparsity = sparsity_reward(kept_ratio, config.desired_ratio)
    return task.reward(probs, labels, sparsity, None, config.lam, config)


@torch.no_grad()
def usual_error(members: Sequence[Learner], alpha: float) -> Float[Tensor, ""]:
    """The error that members exceed on a share alpha of full graphs they were not trained on."""
    residuals = [
        residual_scores(of_graphs(member.classifier, batch)[:, 0], batch.y)
        for member in members
        for batch in member.policy_graphs.batches(EVALUATION_BATCH)
    ]
    return conformal_quantile(torch.cat(residuals), alpha)
