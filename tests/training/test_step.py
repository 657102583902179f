"""Steps that are recorded are the steps that would have been taken."""

from copy import deepcopy

import pytest
import torch

from cores.config import NetworkConfig
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.graphs.store import GraphStore
from cores.models.classifier import Classifier
from cores.models.policy import Policy
from cores.models.sparse import SparseClassifier
from cores.training.optimizer import adam, set_rate
from cores.training.step import RecordedStep, Step, recordable, training_step

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
GPU = torch.device("cuda")
SMALL = NetworkConfig(hidden_dim=16, num_layers=2, batch_norm=False)
"""Before a batch norm a bias has no gradient but noise, and Adam makes steps of that."""
RATE = 1e-4
"""So small that the order in which a GPU adds does not show."""


def graphs() -> GraphStore:
    return ba_motifs(num_graphs=70, base_size=12, seed=0)


def classifier(conv: str = "gin") -> Classifier:
    torch.manual_seed(0)
    return Classifier(Dims(graphs().num_features, 2), SMALL, conv)


def test_on_a_cpu_nothing_is_recorded() -> None:
    model = classifier()
    assert type(training_step(model, adam(model.parameters(), RATE))) is Step


def test_layers_of_pygs_own_and_other_models_are_not_recorded() -> None:
    assert recordable(classifier())
    assert not recordable(classifier("gcn"))
    policy = Policy(Dims(10, 2), SMALL, "gin", "node", 0.3, 0.02)
    assert not recordable(SparseClassifier(policy, classifier()))


@pytest.mark.usefixtures("unrecorded")
def test_recorded_steps_are_plain_steps() -> None:
    """Of eight graphs; of six, which are padded; and of all, which do not fit."""
    model = classifier()
    other = deepcopy(model)
    weights = torch.tensor([0.5, 1.5])
    plain = Step(model.train(), torch.optim.SGD(model.parameters(), lr=0.01), weights)
    recorded = RecordedStep(other.train(), torch.optim.SGD(other.parameters(), lr=0.01), weights)
    batches = [*graphs().batches(8), *graphs().batches(70), *graphs().batches(8)]
    for batch in batches:
        assert float(recorded(batch)) == pytest.approx(float(plain(batch)), abs=1e-5)
    assert recorded._recording.calls == len(batches) - 1
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.allclose(one, two, atol=1e-5)


@needs_gpu
def test_on_a_gpu_recorded_steps_are_plain_steps() -> None:
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
    before = [weights.clone() for weights in other.parameters()]
    set_rate(recorded.optimizer.param_groups[0], 0.0)
    recorded(batch)
    for one, two in zip(before, other.parameters(), strict=True):
        assert torch.equal(one, two), "the rate that a step was recorded with is not the last word"
