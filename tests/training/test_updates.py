"""PPO's steps on padded mini-batches are those on the mini-batches themselves."""

from copy import deepcopy
from dataclasses import replace
from functools import partial

import pytest
import torch

from cores.config import NetworkConfig, PPOConfig, Removal
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.graphs.store import GraphStore
from cores.models.policy import Critic, Policy
from cores.ppo import RewardedRollout, Updates, collect, element_objective, policy_loss, ppo_loss
from cores.training.optimizer import adam
from cores.training.updates import (
    PaddedExperience,
    RecordedUpdates,
    policy_updates,
    recordable,
)

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
SMALL = NetworkConfig(hidden_dim=16, num_layers=2)
DIMS = Dims(10, 2)
REMOVALS: tuple[Removal, ...] = ("node", "edge")
RATE = 1e-4


def graphs(removal: Removal) -> GraphStore:
    store = ba_motifs(num_graphs=24, base_size=12, seed=0)
    return store if removal == "node" else store.with_pairs()


def fresh(removal: Removal, min_probability: float = 0.02, conv: str = "gin") -> Policy:
    torch.manual_seed(0)
    return Policy(DIMS, SMALL, conv, removal, 0.3, min_probability)


def rollouts_of(policy: Policy, store: GraphStore) -> list[RewardedRollout]:
    """Of 10, 10 and 4 graphs."""
    torch.manual_seed(1)
    past = [collect(policy, batch, samples=3) for batch in store.batches(10)]
    rewards = [torch.randn(3, each.elements.batch.num_graphs) for each in past]
    device = store.x.device
    return [
        each.rewarded(given.to(device), None) for each, given in zip(past, rewards, strict=True)
    ]


@pytest.mark.parametrize("removal", REMOVALS)
def test_a_padded_experience_gives_the_same_loss_and_gradients(removal: Removal) -> None:
    policy, config = fresh(removal), PPOConfig(entropy_coef=0.3)
    rollouts = rollouts_of(policy, graphs(removal))
    with torch.no_grad():
        for weights in policy.parameters():
            weights += 0.1 * torch.randn_like(weights)  # it is no longer the policy that acted
    padded = PaddedExperience(rollouts[0].experience)
    for rollout in rollouts:
        assert padded.holds(rollout.experience)
        padded.load(rollout.experience, config.entropy_coef)
        held = padded.experience
        objective = partial(element_objective, held, clip=config.clip)
        found = policy_loss(policy, held, objective, padded.entropy_coef)
        expected = ppo_loss(policy, None, rollout, config)
        for one, two in zip(found, expected, strict=True):
            assert float(one.detach()) == pytest.approx(float(two.detach()), abs=1e-6)
        gradients = [
            torch.autograd.grad(loss, list(policy.parameters()), allow_unused=True)
            for loss, _ in (found, expected)
        ]
        for one, two in zip(*gradients, strict=True):
            assert (one is None and two is None) or torch.allclose(one, two, atol=1e-6)


@pytest.mark.usefixtures("unrecorded")
@pytest.mark.parametrize("removal", REMOVALS)
def test_recorded_updates_are_plain_updates(removal: Removal) -> None:
    """The second of three mini-batches alone fits; the entropy bonus changes on the way."""
    policy = fresh(removal)
    torch.nn.init.normal_(policy.node_head.weight if removal == "node" else policy.edge_head.weight)
    other = deepcopy(policy)
    buffer = rollouts_of(policy, graphs(removal))
    buffer[1], buffer[2] = buffer[2], buffer[1]
    config = PPOConfig(max_kl=0.0, entropy_coef=0.2)
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
    recorded = RecordedUpdates(other, optimizer, config, buffer[1])
    plain = Updates(policy, None, torch.optim.SGD(policy.parameters(), lr=0.1))
    assert [recorded.padded.holds(each.experience) for each in buffer] == [False, True, False]
    for settings in (config, replace(config, entropy_coef=0.01)):
        assert plain.run(buffer, settings) == recorded.run(buffer, settings) == 12
    called = [recorded._gradients, recorded._step]
    assert [each.calls for each in called] == [8, 8], "of two calls, four passes each"
    for one, two in zip(policy.parameters(), other.parameters(), strict=True):
        assert torch.allclose(one, two, atol=1e-5)


@needs_gpu
@pytest.mark.parametrize("removal", REMOVALS)
def test_on_a_gpu_recorded_updates_are_plain_updates(removal: Removal) -> None:
    gpu = torch.device("cuda")
    policy = fresh(removal).to(gpu)
    other = deepcopy(policy)
    config = PPOConfig(max_kl=0.0)
    buffer = rollouts_of(policy, graphs(removal).to(gpu))
    optimizer = adam(other.parameters(), RATE)
    recorded = policy_updates(other, None, optimizer, config, buffer[0])
    assert isinstance(recorded, RecordedUpdates)
    plain = Updates(policy, None, adam(policy.parameters(), RATE))
    assert plain.run(buffer, config) == recorded.run(buffer, config) == 12
    for one, two in zip(policy.parameters(), other.parameters(), strict=True):
        assert torch.allclose(one, two, atol=1e-4)


def test_on_a_cpu_nothing_is_recorded() -> None:
    policy = fresh("node")
    (like, *_) = rollouts_of(policy, graphs("node"))
    critic = Critic(DIMS, SMALL, "gin")
    optimizer = adam(policy.parameters(), RATE)
    made = policy_updates(policy, critic, optimizer, PPOConfig(), like)
    assert type(made) is Updates
    assert (made.policy, made.critic, made.optimizer) == (policy, critic, optimizer)
    assert type(policy_updates(policy, None, optimizer, PPOConfig(), like)) is Updates


def test_what_cannot_be_recorded() -> None:
    config = PPOConfig()
    assert recordable(fresh("node"), None, config)
    assert recordable(fresh("edge"), None, config)
    assert not recordable(fresh("both"), None, config)
    assert not recordable(fresh("node"), None, replace(config, ratio="joint"))
    assert not recordable(fresh("node", min_probability=0.0), None, config), (
        "a ratio may be infinite"
    )
    assert not recordable(fresh("node", conv="gcn"), None, config)
    assert not recordable(fresh("node"), Critic(DIMS, SMALL, "gin"), config)
