"""The published reward by hand, in its parts; PPO's loss with a critic and the joint ratio."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from cores.config import NetworkConfig, RunConfig
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.graphs.store import GraphStore
from cores.graphs.subgraphs import Elements
from cores.models.policy import Critic, Policy
from cores.ppo import RewardedRollout, Rollout, collect
from cores_paper.presets import PaperConfig
from cores_paper.training.algorithm import Outcome, State
from cores_paper.training.reward import ppo_loss, reward_sets, squared_sparsity_reward

Reward = Callable[..., list[float]]
ROUGH = NetworkConfig(hidden_dim=16, num_layers=2, dropout=0.5, batch_norm=True)
DIMS = Dims(num_features=1, num_classes=2)


def outcome_of(probs: list[list[float]], kept: list[float]) -> Outcome:
    """One sample of graphs with two nodes each, and without edges; the last lost everything."""
    count = len(kept)
    graphs = GraphStore(
        x=torch.ones(2 * count, 1),
        edge_index=torch.empty(2, 0, dtype=torch.int64),
        y=torch.zeros(count, dtype=torch.int64),
        node_ptr=2 * torch.arange(count + 1),
        edge_ptr=torch.zeros(count + 1, dtype=torch.int64),
    )
    elements = Elements.of(graphs.batch(torch.arange(count)), "node")
    nothing = torch.zeros(1, 2 * count, dtype=torch.bool)
    return Outcome(
        Rollout(elements, nothing, torch.zeros(2, 2 * count)),
        torch.tensor([probs]),
        torch.tensor([kept]),
        torch.tensor([[False] * (count - 1) + [True]]),
    )


@pytest.fixture
def reward(together: Callable[..., RunConfig], state_of: Callable[[RunConfig], State]) -> Reward:
    """Rewards of an outcome at lambda 0.5 and a desired ratio of 0.3."""

    def found(outcome: Outcome, q_hat: float, **own: Any) -> list[float]:
        state = state_of(together(reward={"lam": 0.5, "penalty_size": 1.5}, paper=own))
        return state._reward(outcome, torch.tensor(q_hat))[0].tolist()

    return found


def test_the_sets_are_eq_3_and_an_empty_one_is_wrong(reward: Reward) -> None:
    """Sure, unsure, wrong, empty though right, and restored."""
    probs = [[0.5, 0.5], [0.3, 0.7], [0.9, 0.1], [0.5, 0.5]]
    given = outcome_of(probs, kept=[0.3, 0.3, 0.3, 1.0])
    # APS scores of label 0 are 0.5, 1, 0.9, 0.5; of label 1 they are 1, 0.7, 1, 1.
    expected = [0.5 * 0.5 + 0.5 * 0.95, -0.95, -0.95, 0.5 * 0.5 - 1.5]
    assert reward(given, 0.8) == pytest.approx(expected, abs=1e-5)
    expected = [0.25, 0.15, 0.45, 0.25 - 1.5]
    assert reward(given, 1.0) == pytest.approx(expected, abs=1e-5)


def test_the_authors_reward_by_hand(reward: Reward) -> None:
    """First case times five, R_s squared, singletons, and a penalty at both ends."""
    probs = [[0.9, 0.1], [0.55, 0.45], [0.1, 0.9], [0.9, 0.1], [0.9, 0.1]]
    given = outcome_of(probs, kept=[0.3, 0.3, 0.3, 1.0, 1.0])
    changes = {"scale": 5.0, "square_sparsity": True, "sets": "below-or-predicted"}
    sure, unsure = (5 * (0.5 * each + 0.5 * 0.95**2) for each in (0.9, 0.55))
    full = 5 * 0.5 * 0.9 - 1.5
    expected = [sure, unsure, -(0.95**2), full, full]
    assert reward(given, 1.0, penalise_full=True, **changes) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [0.825, -0.95, 0.35, 0.35 - 1.5]),
        ({"scale": 5.0}, [5 * 0.825, -0.95, 5 * 0.35, 5 * 0.35 - 1.5]),
        ({"square_sparsity": True}, [(0.7 + 0.95**2) / 2, -(0.95**2), 0.35, 0.35 - 1.5]),
        ({"penalise_full": True}, [0.825, -0.95, 0.35 - 1.5, 0.35 - 1.5]),
    ],
    ids=str,
)
def test_each_part_of_the_authors_reward_by_itself(
    changes: dict[str, Any], expected: list[float], reward: Reward
) -> None:
    """Right, wrong, right with nothing removed, right with everything removed and restored."""
    given = outcome_of([[0.7, 0.3], [0.3, 0.7], [0.7, 0.3], [0.7, 0.3]], [0.3, 0.3, 1.0, 1.0])
    assert reward(given, 0.8, **changes) == pytest.approx(expected, abs=1e-5)


def test_a_graph_without_elements_is_not_punished_for_keeping_them_all(reward: Reward) -> None:
    given = outcome_of([[0.7, 0.3]] * 2, kept=[1.0, 1.0])
    edges = Elements.of(given.rollout.elements.batch, "edge")  # of which there are none
    bare = replace(given, rollout=replace(given.rollout, elements=edges))
    assert reward(given, 0.8, penalise_full=True) == pytest.approx([0.35 - 1.5] * 2)
    assert reward(bare, 0.8, penalise_full=True) == pytest.approx([0.35] * 2)


def test_every_sample_of_a_graph_is_rewarded_by_the_label_of_that_graph(
    together: Callable[..., RunConfig], state_of: Callable[[RunConfig], State]
) -> None:
    one = outcome_of([[0.9, 0.1], [0.2, 0.8]], kept=[0.3, 0.3])
    two = replace(
        one,
        probs=one.probs.repeat(2, 1, 1),
        kept_ratio=torch.tensor([[0.3, 0.3], [1.0, 0.3]]),
        restored=torch.tensor([[False, False], [False, True]]),
    )
    state = state_of(together(reward={"lam": 0.5, "penalty_size": 1.0}))
    first, second = state._reward(two, torch.tensor(0.95)).tolist()
    assert first == pytest.approx([0.5 * 0.9 + 0.5 * 0.95, -0.95], abs=1e-5)
    assert second == pytest.approx([0.5 * 0.9, -0.95 - 1], abs=1e-5)


def test_the_authors_sets_hold_the_predicted_label_and_what_is_below_the_quantile() -> None:
    probs = torch.tensor([[0.9, 0.1], [0.5, 0.5]])
    authors = PaperConfig(sets="below-or-predicted")
    for q_hat in (0.0, 0.95, 1.0):  # 1: where Eq. (3) has both labels in every set
        sets = reward_sets(probs, torch.tensor(q_hat), authors).tolist()
        assert sets == [[True, False], [True, False]]
    assert reward_sets(probs, torch.tensor(1.0), PaperConfig()).all()
    assert not reward_sets(probs, torch.tensor(0.1), PaperConfig()).any(), "empty sets stay so"


def test_the_square_of_the_sparsity_reward_is_less_where_much_is_kept() -> None:
    kept = torch.tensor([0.0, 0.5, 0.9, 1.0])
    exponent = torch.log(torch.tensor(0.05)) / torch.log(torch.tensor(0.5))
    expected = [1.0, 0.95**2, float(1 - 0.9**exponent) ** 2, 0.0]
    assert squared_sparsity_reward(kept, 0.5).tolist() == pytest.approx(expected, abs=1e-6)


def fresh() -> tuple[Policy, Critic]:
    torch.manual_seed(0)
    policy = Policy(DIMS, ROUGH, "gin", "node", initial_removal=0.27, min_probability=0.02)
    return policy.train(), Critic(DIMS, ROUGH, "gin")


def marked_graphs(count: int, seed: int) -> GraphStore:
    """Graphs whose nodes carry a random 0 or 1 as their only feature."""
    graphs = ba_motifs(num_graphs=count, base_size=10, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    marks = torch.randint(2, (graphs.x.size(0), 1), generator=generator).float()
    return replace(graphs, x=marks)


def test_the_ratio_is_that_of_the_whole_action_and_the_critic_learns_the_mean_reward() -> None:
    policy, critic = fresh()
    graphs = GraphStore(
        x=torch.ones(4, 1),
        edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
        y=torch.tensor([0, 1]),
        node_ptr=torch.tensor([0, 1, 4]),
        edge_ptr=torch.tensor([0, 0, 4]),
    )
    batch = graphs.batch(torch.arange(2))
    removed = torch.tensor([[True, False, True, False]])
    log_probs = policy.log_probs(policy(batch)).detach()
    shift = torch.tensor([[0.1, 0.05, -0.02, 0.03]])
    advantage, rewards = torch.tensor([[2.0, -1.0]]), torch.tensor([[0.5, -0.25]])
    elements = Elements.of(batch, "node")
    past = RewardedRollout(elements, removed, log_probs - shift, rewards, advantage)
    critic.begin_at(torch.tensor(0.25))
    loss, _ = ppo_loss(policy, critic, past, clip=0.2, entropy_coef=0.0, value_coef=3.0)
    objective = (2 * shift[0, 0].exp() - shift[0, 1:].sum().exp()) / 2
    error = (0.25**2 + 0.5**2) / 2
    assert float(loss.detach()) == pytest.approx(float(3 * error - objective), rel=1e-4)


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked")
def test_the_policy_finds_a_planted_reward_over_a_critics_value() -> None:
    """Keep exactly the nodes with feature 1: known answer, a few seconds."""
    policy, critic = fresh()
    optimizer = torch.optim.Adam([*policy.parameters(), *critic.parameters()], lr=0.01)
    batch = marked_graphs(32, seed=0).batch(torch.arange(32))
    for _ in range(200):
        rollout = collect(policy, batch, samples=8)
        rewards = rollout.elements.mean((rollout.removed == (batch.x[:, 0] == 0)).float())
        past = rollout.rewarded(rewards, critic(batch))
        for _ in range(4):
            loss, _ = ppo_loss(policy, critic, past, 0.2, entropy_coef=0.0, value_coef=0.5)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    unseen = marked_graphs(16, seed=9).batch(torch.arange(16))
    right = (policy(unseen) > 0) == (unseen.x[:, 0] == 0)
    assert right.double().mean() > 0.97
