"""Eq. (1) by hand, the first ratio, and a policy that finds what it is rewarded for."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cores.config import NetworkConfig, PPOConfig
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.graphs.store import GraphStore
from cores.graphs.subgraphs import Elements
from cores.models.policy import Policy
from cores.ppo import (
    RewardedRollout,
    Updates,
    clipped_objective,
    collect,
    element_objective,
    leave_one_out,
    ppo_loss,
)

ROUGH = NetworkConfig(hidden_dim=16, num_layers=2, dropout=0.5, batch_norm=True)
DIMS = Dims(num_features=1, num_classes=2)
REMOVALS = ("node", "edge", "both")

numbers = st.floats(-3, 3, allow_subnormal=False)


def test_a_ratio_of_one_gives_the_advantage_itself() -> None:
    log_prob, advantage = torch.tensor([-0.3, -2.0]), torch.tensor([1.5, -0.5])
    assert torch.equal(clipped_objective(log_prob, log_prob, advantage, 0.2), advantage)


@given(numbers, numbers, numbers, st.floats(0.05, 0.5))
def test_it_is_the_smaller_of_the_plain_and_the_clipped_product(
    new: float, old: float, advantage: float, clip: float
) -> None:
    ratio = math.exp(new - old)
    clipped = min(max(ratio, 1 - clip), 1 + clip)
    expected = min(ratio * advantage, clipped * advantage)
    items = (torch.tensor([value], dtype=torch.float64) for value in (new, old, advantage))
    assert clipped_objective(*items, clip).item() == pytest.approx(expected)


@pytest.mark.parametrize(("advantage", "new", "moves"), [(1.0, 0.5, False), (-1.0, 0.5, True)])
def test_no_gradient_rewards_going_further_than_the_clip(
    advantage: float, new: float, moves: bool
) -> None:
    log_prob = torch.tensor([new], requires_grad=True)
    clipped_objective(log_prob, torch.zeros(1), torch.tensor([advantage]), 0.2).sum().backward()
    assert log_prob.grad is not None
    assert bool(log_prob.grad.item() != 0) == moves


def marked_graphs(count: int, seed: int) -> GraphStore:
    """Graphs whose nodes carry a random 0 or 1 as their only feature."""
    graphs = ba_motifs(num_graphs=count, base_size=10, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    return GraphStore(
        x=torch.randint(2, (graphs.x.size(0), 1), generator=generator).float(),
        edge_index=graphs.edge_index,
        y=graphs.y,
        node_ptr=graphs.node_ptr,
        edge_ptr=graphs.edge_ptr,
    )


def fresh(removal: str, seed: int = 0) -> Policy:
    torch.manual_seed(seed)
    return Policy(DIMS, ROUGH, "gin", removal, initial_removal=0.27, min_probability=0.02).train()


@pytest.mark.parametrize("removal", REMOVALS)
def test_the_first_ratio_is_exactly_one_on_the_same_batch(removal: str) -> None:
    """With dropout and batch norm configured, and the policy in training mode."""
    policy, batch = fresh(removal), marked_graphs(8, seed=0).batch(torch.arange(8))
    rollout = collect(policy, batch, samples=3)
    assert torch.equal(policy.log_probs(policy(batch)), rollout.log_probs)


@pytest.mark.parametrize("removal", ["node", "edge"])
def test_the_first_ratio_is_one_within_1e_6_when_the_buffer_is_cut_up(removal: str) -> None:
    policy, graphs = fresh(removal), marked_graphs(8, seed=0)
    rollout = collect(policy, graphs.batch(torch.arange(8)), samples=3)
    for index in torch.arange(8).split(3):
        batch = graphs.batch(index)
        mine = torch.isin(rollout.elements.owner, index)
        ratio = (policy.log_probs(policy(batch)) - rollout.log_probs[:, mine]).exp()
        assert (ratio - 1).abs().max() < 1e-6


@pytest.mark.parametrize("removal", REMOVALS)
def test_elements_are_removed_as_often_as_the_policy_says(removal: str) -> None:
    policy, batch = fresh(removal), marked_graphs(8, seed=0).batch(torch.arange(8))
    rollout = collect(policy, batch, samples=400)
    assert rollout.removed.shape == (400, len(rollout.elements.owner))
    probability = policy.probabilities(policy(batch))[0].item()
    assert probability == pytest.approx(0.1 if removal == "both" else 0.27, abs=0.02)
    assert rollout.removed.double().mean().item() == pytest.approx(probability, abs=0.01)


@pytest.mark.parametrize("removal", REMOVALS)
def test_before_training_a_motif_often_stays_whole(removal: str) -> None:
    """Else no sample would be predicted right, and nothing could be learnt."""
    graphs = ba_motifs(num_graphs=8, base_size=6, seed=0)
    batch = graphs.batch(torch.arange(8))
    torch.manual_seed(0)
    dims = Dims(graphs.num_features, 2)
    policy = Policy(dims, ROUGH, "gin", removal, initial_removal=0.27, min_probability=0.02)
    rollout = collect(policy, batch, samples=60)
    whole = 0
    for removed in rollout.removed:
        subgraph = rollout.elements.subgraph(removed)
        cut = graphs.edge_truth & subgraph.removed_edges  # a motif's node goes with its edges
        hurt = torch.bincount(batch.batch[batch.edge_index[0, cut]], minlength=8) > 0
        whole += int((~hurt).sum())
    assert whole / (60 * 8) > 0.08


@pytest.mark.parametrize("removal", REMOVALS)
def test_passes_over_a_rollout_share_the_sums_along_its_edges(removal: str) -> None:
    policy, batch = fresh(removal), marked_graphs(80, seed=0).batch(torch.arange(80))
    logits = policy(batch)
    kept = collect(policy, batch, samples=1).elements.batch
    sums = {name: kept[name] for name in ("edge_sums", "pair_sums") if name in kept}
    assert ("pair_sums" in sums) == (removal != "node")
    prepared = [list(vars(each)) for each in sums.values()]
    assert torch.equal(policy(kept), logits)
    assert [list(vars(each)) for each in sums.values()] == prepared


def test_the_advantage_of_a_sample_is_over_the_mean_of_the_others() -> None:
    rewards = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.5, 3.0]])
    advantage = leave_one_out(rewards)
    assert advantage[0].tolist() == pytest.approx([1 - 0.25, 0 - 1.5])
    assert advantage.sum(dim=0).tolist() == pytest.approx([0, 0])


def two_graphs_of_one_and_three_nodes() -> GraphStore:
    return GraphStore(
        x=torch.ones(4, 1),
        edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
        y=torch.tensor([0, 1]),
        node_ptr=torch.tensor([0, 1, 4]),
        edge_ptr=torch.tensor([0, 0, 4]),
    )


def test_the_loss_averages_within_a_graph_first_and_then_over_graphs() -> None:
    policy = fresh("node")
    batch = two_graphs_of_one_and_three_nodes().batch(torch.arange(2))
    elements = Elements.of(batch, "node")
    removed = torch.tensor([[True, False, True, False]])
    log_probs = policy.log_probs(policy(batch)).detach()
    shift = torch.tensor([[0.1, 0.05, -0.02, 0.03]])
    advantage = torch.tensor([[2.0, -1.0]])
    past = RewardedRollout(elements, removed, log_probs - shift, advantage, advantage)
    loss, divergence = ppo_loss(policy, past, PPOConfig(entropy_coef=0.0))
    ratios = shift.exp()[0]
    expected = (2 * ratios[0] - ratios[1:].mean()) / 2
    assert float(loss.detach()) == pytest.approx(-float(expected), rel=1e-4)
    estimate = shift.exp() - 1 - shift
    assert float(divergence) == pytest.approx(
        float((estimate[0, 0] + estimate[0, 1:].mean()) / 2), rel=1e-3
    )


def test_the_entropy_bonus_is_taken_off_the_loss_a_mean_within_graphs_first() -> None:
    policy = fresh("node")
    torch.nn.init.normal_(policy.node_head.weight)  # else all probabilities are alike
    batch = two_graphs_of_one_and_three_nodes().batch(torch.arange(2))
    batch.x = torch.tensor([[0.0], [1.0], [2.0], [3.0]])
    past = collect(policy, batch, samples=2).rewarded(torch.ones(2, 2))
    loss, _ = ppo_loss(policy, past, PPOConfig(entropy_coef=0.5))
    p = policy.probabilities(policy(batch)).detach().double()
    entropy = -(p * p.log() + (1 - p) * (1 - p).log())
    expected = (entropy[0] + entropy[1:].mean()) / 2
    assert float(loss.detach()) == pytest.approx(-0.5 * float(expected), rel=1e-4)


def test_the_entropy_bonus_makes_a_policy_less_sure() -> None:
    """Where no sample is better than another, it is all that moves the policy."""
    policy, batch = fresh("node"), marked_graphs(8, seed=0).batch(torch.arange(8))
    past = collect(policy, batch, 2).rewarded(torch.ones(2, 8))
    before = policy.entropy(policy(batch)).mean().item()
    optimizer = torch.optim.SGD(policy.parameters(), lr=1.0)
    Updates(policy, optimizer).run([past], PPOConfig(entropy_coef=0.1))
    assert policy.entropy(policy(batch)).mean().item() > before


def test_what_was_rewarded_more_becomes_more_likely() -> None:
    """One small step; only the order of the two samples' rewards is known to it."""
    policy, batch = fresh("node"), marked_graphs(2, seed=0).batch(torch.arange(1))
    rollout = collect(policy, batch, 2)
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.01)
    config = PPOConfig(entropy_coef=0.0, ppo_epochs=1)
    Updates(policy, optimizer).run([rollout.rewarded(torch.tensor([[5.0], [-5.0]]))], config)
    change = rollout.of_actions(policy.log_probs(policy(batch)) - rollout.log_probs).sum(dim=1)
    assert change[0] > change[1]


@pytest.mark.parametrize("removal", REMOVALS)
def test_the_objective_per_element_is_the_mean_of_eq_1_over_every_sample(removal: str) -> None:
    """Sample by sample, as the equation is written; the program adds advantages up first."""
    policy, batch = fresh(removal), marked_graphs(4, seed=0).batch(torch.arange(4))
    torch.manual_seed(1)
    past = collect(policy, batch, samples=5).rewarded(torch.randn(5, 4))
    elements = past.elements
    logits = policy(batch).detach() + torch.randn(len(elements.owner))  # beyond the clip, often
    logits.requires_grad_()
    log_probs = policy.log_probs(logits)
    assert torch.allclose(past.experience.frequency[1], past.removed.float().mean(dim=0))
    assert torch.allclose(past.experience.frequency.sum(dim=0), torch.ones(len(logits)))
    fast = element_objective(past.experience, log_probs, clip=0.2)
    each = clipped_objective(
        past.of_actions(log_probs),
        past.of_actions(past.log_probs),
        past.advantage[:, elements.owner],
        clip=0.2,
    )
    plain = elements.mean(each).mean()
    assert torch.allclose(fast, plain, atol=1e-6)
    gradients = [torch.autograd.grad(each, logits, retain_graph=True)[0] for each in (fast, plain)]
    assert torch.allclose(*gradients, atol=1e-7)
    assert (gradients[0] == 0).any(), "some ratio is beyond the clip"
    assert (gradients[0] != 0).any()


@pytest.mark.parametrize("removal", REMOVALS)
def test_a_rollout_is_cut_into_mini_batches_of_its_graphs(removal: str) -> None:
    policy, graphs = fresh(removal), marked_graphs(7, seed=0)
    graphs = graphs if removal == "node" else graphs.with_pairs()
    past = collect(policy, graphs.batch(torch.arange(7)), samples=3)
    past = past.rewarded(torch.randn(3, 7))
    assert list(past.cut(7)) == [past]
    pieces = list(past.cut(3))
    assert [piece.elements.batch.num_graphs for piece in pieces] == [3, 3, 1]
    for number, piece in enumerate(pieces):
        mine = past.elements.owner // 3 == number
        assert torch.equal(piece.removed, past.removed[:, mine])
        assert torch.equal(piece.log_probs, past.log_probs[:, mine])
        assert torch.equal(piece.elements.owner, past.elements.owner[mine] % 3)
        assert torch.allclose(policy(piece.elements.batch), policy(past.elements.batch)[mine])
    for name in ("rewards", "advantage"):
        together = torch.cat([getattr(piece, name) for piece in pieces], dim=1)
        assert torch.equal(together, getattr(past, name))


def test_updates_stop_when_the_policy_has_moved_too_far() -> None:
    policy, batch = fresh("node"), marked_graphs(8, seed=0).batch(torch.arange(8))
    rollout = collect(policy, batch, 4)
    rewards = rollout.elements.kept_ratio(rollout.removed)
    past = rollout.rewarded(rewards)
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.05)
    steps = Updates(policy, optimizer).run([past] * 4, PPOConfig(ppo_epochs=50, max_kl=0.01))
    assert 1 <= steps < 100
    unlimited = Updates(fresh("node"), optimizer).run([past] * 2, PPOConfig(max_kl=0.0))
    assert unlimited == 2 * PPOConfig().ppo_epochs


@pytest.mark.parametrize("max_grad_norm", [0.0, 0.01])
def test_an_update_is_a_gradient_step_per_pass_and_mini_batch(max_grad_norm: float) -> None:
    """By hand, with gradients made anew for each, and no longer than they may be."""
    config = PPOConfig(ppo_epochs=2, max_kl=0.0, max_grad_norm=max_grad_norm)
    graphs = marked_graphs(8, seed=0)
    policy, other = fresh("node"), fresh("node")
    torch.manual_seed(0)
    buffer = []
    for index in torch.arange(8).split(4):
        rollout = collect(policy, graphs.batch(index), 4)
        buffer.append(rollout.rewarded(rollout.elements.kept_ratio(rollout.removed)))
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.5)
    assert Updates(policy, optimizer).run(buffer, config) == 4
    for past in [*buffer, *buffer]:
        weights = list(other.parameters())
        loss, _ = ppo_loss(other, past, config)
        gradients = torch.autograd.grad(loss, weights, allow_unused=True)
        known = [gradient for gradient in gradients if gradient is not None]
        norm = torch.cat([gradient.flatten() for gradient in known]).norm()
        scale = min(1.0, max_grad_norm / float(norm)) if max_grad_norm else 1.0
        assert (scale < 1) == bool(max_grad_norm)
        with torch.no_grad():
            for weight, gradient in zip(weights, gradients, strict=True):
                if gradient is not None:
                    weight -= 0.5 * scale * gradient
    for one, two in zip(policy.parameters(), other.parameters(), strict=True):
        assert torch.allclose(one, two, atol=1e-6)


def test_no_advantage_moves_nothing() -> None:
    policy, batch = fresh("node"), marked_graphs(4, seed=0).batch(torch.arange(4))
    past = collect(policy, batch, 2).rewarded(torch.ones(2, 4))
    before = [each.clone() for each in policy.parameters()]
    optimizer = torch.optim.SGD(policy.parameters(), lr=1.0)
    Updates(policy, optimizer).run([past], PPOConfig(entropy_coef=0.0))
    assert all(torch.equal(a, b) for a, b in zip(before, policy.parameters(), strict=True))


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked")
def test_the_policy_finds_a_planted_reward() -> None:
    """Keep exactly the nodes with feature 1: known answer, a few seconds."""
    policy, graphs = fresh("node"), marked_graphs(32, seed=0)
    config = PPOConfig(entropy_coef=0.0, batch_size=32)
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
    batch = graphs.batch(torch.arange(32))
    for _ in range(120):
        rollout = collect(policy, batch, config.samples)
        agrees = rollout.removed == (batch.x[:, 0] == 0)  # [S, N]
        rewards = rollout.elements.mean(agrees.float())
        Updates(policy, optimizer).run([rollout.rewarded(rewards)], config)
    unseen = marked_graphs(16, seed=9).batch(torch.arange(16))
    right = (policy(unseen) > 0) == (unseen.x[:, 0] == 0)
    assert right.double().mean() > 0.97
