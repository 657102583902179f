"""The reward of a rollout, Eq. (7): by hand, in its parts, over samples; the selection reward."""

from dataclasses import replace

import pytest
import torch

from cores.config import RewardConfig
from cores.graphs.store import GraphStore
from cores.graphs.subgraphs import Elements
from cores.ppo import Rollout
from cores.tasks.classification import reward_sets
from cores.training import bilevel
from cores.training.rollouts import (
    Outcome,
    rollout_reward,
    selection_reward,
)


def outcome_of(probs: list[list[float]], kept: list[float], labels: list[int]) -> Outcome:
    """One sample of graphs with two nodes each."""
    count = len(labels)
    graphs = GraphStore(
        x=torch.ones(2 * count, 1),
        edge_index=torch.empty(2, 0, dtype=torch.int64),
        y=torch.tensor(labels),
        node_ptr=2 * torch.arange(count + 1),
        edge_ptr=torch.zeros(count + 1, dtype=torch.int64),
    )
    elements = Elements.of(graphs.batch(torch.arange(count)), "node")
    nothing = torch.zeros(1, 2 * count, dtype=torch.bool)
    return Outcome(
        Rollout(elements, nothing, torch.zeros(2, 2 * count)),
        elements.batch.y,
        torch.tensor([probs]),
        torch.tensor([kept]),
        torch.tensor([[False] * (count - 1) + [True]]),
    )


def test_a_rollout_is_rewarded_by_eq_7_less_the_penalty_for_removing_everything() -> None:
    probs = [[0.9, 0.1], [0.55, 0.45], [0.1, 0.9], [0.9, 0.1]]
    given = outcome_of(probs, kept=[0.3, 0.3, 0.3, 1.0], labels=[0, 0, 0, 0])
    settings = RewardConfig(lam=0.4, desired_ratio=0.3, penalty_size=1.5)
    reward = rollout_reward(given, torch.tensor(0.6), settings)[0]
    sure = 0.4 * 0.9 + 0.6 * 0.95
    expected = [sure, 0.55 / 2, -0.95, 0.4 * 0.9 - 1.5]
    assert reward.tolist() == pytest.approx(expected, abs=1e-5)


def test_every_sample_of_a_graph_is_rewarded_by_the_label_of_that_graph() -> None:
    """Two samples of three graphs; the classifier always says 0."""
    one = outcome_of([[0.9, 0.1]] * 3, kept=[0.3, 0.3, 1.0], labels=[0, 1, 0])
    two = replace(
        one,
        probs=one.probs.repeat(2, 1, 1),
        kept_ratio=torch.tensor([[0.3, 0.3, 1.0], [1.0, 0.3, 0.3]]),
        restored=torch.tensor([[False, False, False], [False, False, True]]),
    )
    settings = RewardConfig(lam=0.5, desired_ratio=0.3, penalty_size=1.0)
    sure, full = 0.5 * 0.9 + 0.5 * 0.95, 0.5 * 0.9
    first, second = rollout_reward(two, torch.tensor(0.6), settings).tolist()
    assert first == pytest.approx([sure, -0.95, full], abs=1e-5)
    assert second == pytest.approx([full, -0.95, sure - 1], abs=1e-5)


def test_the_predicted_label_stands_in_for_a_set_without_labels() -> None:
    probs = torch.tensor([[0.6, 0.4], [0.99, 0.01]])
    assert reward_sets(probs, torch.tensor(0.1)).tolist() == [[True, False], [True, False]]


def test_the_selection_criterion_rewards_being_right_and_sparse_together() -> None:
    settings = RewardConfig(lam=0.5, desired_ratio=0.3)
    probs = torch.tensor([[0.8, 0.2]] * 3)
    labels, ratio = torch.tensor([0, 0, 1]), torch.tensor([0.3, 1.0, 0.3])
    expected = [0.5 * 0.8 + 0.5 * 0.95, 0.5 * 0.8, -0.95]
    assert selection_reward(probs, labels, ratio, settings).tolist() == pytest.approx(expected)


def test_a_single_graph_of_any_class_has_a_selection_reward() -> None:
    settings = RewardConfig(lam=0.5, desired_ratio=0.3)
    probs = torch.tensor([[0.1, 0.1, 0.8]])
    reward = selection_reward(probs, torch.tensor([2]), torch.tensor([0.3]), settings)
    assert reward.tolist() == pytest.approx([0.5 * 0.8 + 0.5 * 0.95])


def test_an_epochs_rewards_and_ratios_are_means_over_its_samples() -> None:
    outcomes = [
        outcome_of([[0.9, 0.1]] * 2, kept=[0.3, 0.5], labels=[0, 1]),
        outcome_of([[0.9, 0.1]], kept=[1.0], labels=[0]),
    ]
    rollouts = [
        outcome.rollout.rewarded(torch.tensor([rewards]))
        for outcome, rewards in zip(outcomes, ([0.5, -0.5], [0.6]), strict=True)
    ]
    metrics = bilevel.rollout_metrics(rollouts, outcomes, torch.tensor(0.25))
    expected = {"reward": 0.2, "sampled_ratio": 0.6, "q_hat": 0.25}
    assert metrics == {name: pytest.approx(value) for name, value in expected.items()}
    assert "q_hat" not in bilevel.rollout_metrics(rollouts, outcomes, torch.tensor(torch.inf))
