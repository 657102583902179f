"""PPO's steps on padded mini-batches are those on the mini-batches themselves."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from cores.config import NetworkConfig, PPOConfig, Removal
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.graphs.store import GraphStore
from cores.models.policy import Policy
from cores.ppo import RewardedRollout, Updates, collect
from cores.training.optimizer import adam
from cores.training.updates import RecordedUpdates, policy_updates, recordable

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
    return [each.rewarded(given.to(device)) for each, given in zip(past, rewards, strict=True)]


def both_ways(
    policy: Policy, store: GraphStore, config: PPOConfig, rate: float = RATE
) -> tuple[Policy, RecordedUpdates]:
    """A copy that is trained as on a GPU while the policy is trained as on a CPU.

    Three times on the same rollouts, with less and less entropy bonus.
    """
    other = deepcopy(policy)
    plain = Updates(policy, adam(policy.parameters(), rate))
    recorded = RecordedUpdates(other, adam(other.parameters(), rate), config)
    rollouts = rollouts_of(policy, store)
    for entropy_coef in (0.2, 0.01, 0.001):
        settings = replace(config, entropy_coef=entropy_coef)
        assert recorded.run(rollouts, settings) == plain.run(rollouts, settings)
    return other, recorded


@pytest.mark.usefixtures("unrecorded")
@pytest.mark.parametrize("removal", REMOVALS)
def test_recorded_updates_are_plain_updates(removal: Removal) -> None:
    """Rollouts of 10, 10 and 4 graphs are cut into batches of 4 or fewer."""
    policy = fresh(removal)
    torch.nn.init.normal_(policy.node_head.weight if removal == "node" else policy.edge_head.weight)
    config = PPOConfig(max_kl=0.0, batch_size=4)
    other, recorded = both_ways(policy, graphs(removal), config)
    assert recorded._update.recording.calls == 3 * 4 * 7, "calls, passes, mini-batches"
    for one, two in zip(policy.parameters(), other.parameters(), strict=True):
        assert torch.allclose(one, two, atol=1e-5)


@pytest.mark.usefixtures("unrecorded")
@pytest.mark.parametrize("removal", REMOVALS)
def test_after_a_large_divergence_no_step_is_made(removal: Removal) -> None:
    """At a rate that moves the policy too far in the first call, but not at once."""
    policy = fresh(removal)
    config = PPOConfig(max_kl=0.01, batch_size=4)
    other, recorded = both_ways(policy, graphs(removal), config, rate=0.01)
    assert int(recorded._steps) == 0, "in the last call, the policy has moved long ago"
    for one, two in zip(policy.parameters(), other.parameters(), strict=True):
        assert torch.allclose(one, two, atol=1e-4)
    (steps,) = {int(state["step"]) for state in recorded.optimizer.state_dict()["state"].values()}
    assert 1 < steps < 4 * 7, "Adam counts those that were made"
    (rollout, *_) = rollouts_of(other, graphs(removal))
    assert recorded.run([rollout], config) > 0, "of the policy as it is now"


@pytest.mark.usefixtures("unrecorded")
def test_a_single_rollout_will_do() -> None:
    policy, config = fresh("node"), PPOConfig(batch_size=4, max_kl=0.0)
    recorded = RecordedUpdates(policy, adam(policy.parameters(), RATE), config)
    (rollout, *_) = rollouts_of(policy, graphs("node"))
    assert recorded.run([rollout], config) == 4 * 3


@pytest.mark.usefixtures("unrecorded")
def test_larger_rollouts_than_ever_get_room() -> None:
    policy, config = fresh("node"), PPOConfig(batch_size=4)
    recorded = RecordedUpdates(policy, adam(policy.parameters(), RATE), config)
    recordings = []
    for base_size in (6, 30, 6):
        store = ba_motifs(num_graphs=12, base_size=base_size, seed=0)
        assert recorded.run(rollouts_of(policy, store), config) > 0
        recordings.append(recorded._update.recording)
    assert recordings[0] is not recordings[1], "it would look at the tensors of before"
    assert recordings[1] is recordings[2]
    assert recorded._update.batches is not None
    assert recorded._update.batches.capacity.nodes > 4 * 30


@needs_gpu
@pytest.mark.parametrize("removal", REMOVALS)
def test_on_a_gpu_recorded_updates_are_plain_updates(removal: Removal) -> None:
    gpu = torch.device("cuda")
    policy, config = fresh(removal).to(gpu), PPOConfig(batch_size=4)
    made = policy_updates(policy, adam(policy.parameters(), RATE), config)
    assert isinstance(made, RecordedUpdates)
    other, _ = both_ways(policy, graphs(removal).to(gpu), config)
    for one, two in zip(policy.parameters(), other.parameters(), strict=True):
        assert torch.allclose(one, two, atol=1e-4)


def test_on_a_cpu_nothing_is_recorded() -> None:
    policy = fresh("node")
    optimizer = adam(policy.parameters(), RATE)
    made = policy_updates(policy, optimizer, PPOConfig())
    assert type(made) is Updates
    assert (made.policy, made.optimizer) == (policy, optimizer)


def test_what_cannot_be_recorded() -> None:
    assert recordable(fresh("node"))
    assert recordable(fresh("edge"))
    assert not recordable(fresh("both"))
    assert not recordable(fresh("node", min_probability=0.0)), "a ratio may be infinite"
    assert not recordable(fresh("node", conv="gcn"))
