"""Steps that are recorded are the steps that would have been taken."""

from copy import deepcopy

import pytest
import torch

from cores.config import NetworkConfig, PPOConfig, Removal
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.graphs.store import GraphStore
from cores.models.classifier import Classifier
from cores.models.policy import Policy
from cores.ppo import RecordedUpdates, Updates, collect, updates
from cores.training.optimizer import adam
from cores.training.step import RecordedStep, Step, training_step

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
GPU = torch.device("cuda")
SMALL = NetworkConfig(hidden_dim=16, num_layers=2, batch_norm=False)
"""Before a batch norm a bias has no gradient but noise, and Adam makes steps of that."""
RATE = 1e-4
"""So small that the order in which a GPU adds does not show."""


def graphs(removal: Removal = "node") -> GraphStore:
    store = ba_motifs(num_graphs=70, base_size=12, seed=0)
    return store if removal == "node" else store.with_pairs()


def classifier(conv: str = "gin") -> Classifier:
    torch.manual_seed(0)
    return Classifier(Dims(graphs().num_features, 2), SMALL, conv)


def test_on_a_cpu_nothing_is_recorded() -> None:
    model = classifier()
    assert type(training_step(model, adam(model.parameters(), RATE))) is Step
    policy = Policy(Dims(1, 2), SMALL, "gin", "node", 0.3, 0.02)
    assert type(updates(policy, None, adam(policy.parameters(), RATE), PPOConfig())) is Updates


@needs_gpu
def test_recorded_steps_are_plain_steps() -> None:
    """Batches of 8; the last one has 6 graphs."""
    model = classifier().to(GPU)
    other = deepcopy(model)
    plain = Step(model.train(), adam(model.parameters(), RATE))
    recorded = training_step(other.train(), adam(other.parameters(), RATE))
    assert isinstance(recorded, RecordedStep)
    for _ in range(3):
        for batch in graphs().to(GPU).batches(8):
            assert float(recorded(batch)) == pytest.approx(float(plain(batch)), abs=1e-3)
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.allclose(one, two, atol=1e-3)


@needs_gpu
def test_a_layer_of_pygs_own_is_not_recorded() -> None:
    model = classifier("gcn").to(GPU)
    assert type(training_step(model, adam(model.parameters(), RATE))) is Step


@needs_gpu
@pytest.mark.parametrize("removal", ["node", "edge"])
def test_recorded_updates_are_plain_updates(removal: Removal) -> None:
    store = graphs(removal).to(GPU)
    torch.manual_seed(0)
    policy = Policy(Dims(store.num_features, 2), SMALL, "gin", removal, 0.3, 0.02).to(GPU)
    other = deepcopy(policy)
    config = PPOConfig(max_kl=0.0)
    recorded = updates(other, None, adam(other.parameters(), RATE), config)
    assert isinstance(recorded, RecordedUpdates)
    buffer = [
        rollout.rewarded(rollout.elements.kept_ratio(rollout.removed), None)
        for rollout in (collect(policy, batch, 4) for batch in store.batches(16))
    ]
    plain = Updates(policy, None, adam(policy.parameters(), RATE))
    assert plain.run(buffer, config) == recorded.run(buffer, config) == 4 * len(buffer)
    for one, two in zip(policy.parameters(), other.parameters(), strict=True):
        assert torch.allclose(one, two, atol=1e-4)
