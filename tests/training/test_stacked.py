"""Classifiers that are trained at once are those that are trained one after the other."""

from collections.abc import Iterator
from copy import deepcopy

import pytest
import torch

from cores.config import NetworkConfig, RunConfig
from cores.config.presets import preset_config
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.graphs.batches import cut
from cores.graphs.stacked import Chunk
from cores.graphs.store import GraphStore
from cores.models.build import build_classifier
from cores.models.committee import Committee
from cores.models.policy import Policy
from cores.models.sparse import SparseClassifier
from cores.models.stack import Stack
from cores.training.bilevel import BilevelState
from cores.training.learner import Learner, masked_chunks
from cores.training.stacked import StackedFit, stacked_fit
from cores.training.state import RandomState
from cores.training.step import Step

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
CPU, GPU = torch.device("cpu"), torch.device("cuda")
SIZES = 40, 25, 26
BATCH = 8


def run_config(**training: object) -> RunConfig:
    """Without batch norm: before one a bias has no gradient but noise; Adam makes steps of that."""
    changes = {
        "network": {"hidden_dim": 8, "num_layers": 2, "dropout": 0.0, "batch_norm": False},
        "training": {"batch_size": BATCH, "learning_rate": 1e-3, **training},
    }
    return preset_config("MUTAG", "cores-node", "gin", "default", changes)


def learners(config: RunConfig, device: torch.device = CPU) -> list[Learner]:
    """Of which the first has more graphs than the others."""
    torch.manual_seed(0)
    graphs = ba_motifs(num_graphs=max(SIZES), base_size=9, seed=0).to(device)
    dims = Dims(graphs.num_features, 2)
    first = build_classifier(config, dims)
    others = [build_classifier(config, dims, first.scaler) for _ in SIZES[1:]]
    return [
        Learner(model.to(device), graphs.view(torch.arange(size)), graphs.view(), config)
        for model, size in zip([first, *others], SIZES, strict=True)
    ]


def stack_of(given: list[Learner]) -> StackedFit:
    """As on a GPU."""
    return StackedFit(
        [learner.step for learner in given], Stack([learner.classifier for learner in given])
    )


def epoch_of(given: list[Learner], random: RandomState) -> list[Chunk]:
    """Masked chunks of all learners."""
    return list(masked_chunks(given, BATCH, "node", random))


def full_epoch(graphs: GraphStore, rows: int) -> Iterator[Chunk]:
    """The same graphs for all rows."""
    index = torch.arange(len(graphs)).repeat(rows)
    yield Chunk(graphs.batch(index), BATCH, [len(graphs)] * rows)


def check_same(device: torch.device, tolerance: float) -> None:
    """Three epochs, at once and one after the other, on the same masked graphs."""
    config = run_config()
    alone, together = learners(config, device), learners(config, device)
    stacked = stack_of(together)
    random = RandomState(0, device)
    for _ in range(3):
        chunks = epoch_of(alone, random)
        losses = stacked.fit(deepcopy(chunks))
        rows = zip(*(cut(chunk.batch, chunk.graphs) for chunk in chunks), strict=True)
        expected = [
            learner.fit(batch for part in parts for batch in cut(part, BATCH))
            for learner, parts in zip(alone, rows, strict=True)
        ]
        assert losses == pytest.approx(expected, abs=tolerance)
    for one, two in zip(alone, together, strict=True):
        for weights, same in zip(
            one.classifier.parameters(), two.classifier.parameters(), strict=True
        ):
            assert torch.allclose(weights, same, atol=tolerance)
        states = zip(
            one.optimizer.state_dict()["state"].values(),
            two.optimizer.state_dict()["state"].values(),
            strict=True,
        )
        assert all(float(state["step"]) == float(same["step"]) for state, same in states)


@pytest.mark.usefixtures("unrecorded")
def test_classifiers_trained_at_once_are_those_trained_one_by_one() -> None:
    check_same(CPU, tolerance=1e-5)


@needs_gpu
def test_on_a_gpu_likewise() -> None:
    check_same(GPU, tolerance=1e-3)


@pytest.mark.usefixtures("unrecorded")
def test_larger_batches_than_ever_get_room() -> None:
    given = learners(run_config())
    stacked = stack_of(given)
    small = ba_motifs(num_graphs=8, base_size=5, seed=0)
    large = ba_motifs(num_graphs=8, base_size=25, seed=0)
    before = deepcopy(given[0].classifier.state_dict())
    recordings = []
    for graphs in (small, large, small):
        losses = stacked.fit(full_epoch(graphs, len(given)))
        assert all(loss > 0 for loss in losses)
        recordings.append(stacked._recordings[0, 1, 2])
    assert recordings[0] is not recordings[1], "it would look at the tensors of before"
    assert recordings[1] is recordings[2]
    assert stacked._batches is not None
    assert stacked._batches.capacity.nodes > large.node_ptr[-1]
    after = given[0].classifier.state_dict()
    assert not torch.equal(after["head.weight"], before["head.weight"])


@pytest.mark.usefixtures("unrecorded")
def test_a_learner_without_a_chunk_waits() -> None:
    given = learners(run_config())
    stacked = stack_of(given)
    graphs = ba_motifs(num_graphs=16, base_size=9, seed=0)
    whole = next(full_epoch(graphs, 3))
    alone = Chunk(graphs.batch(torch.arange(16)), BATCH, [16, 0, 0])
    stacked.fit([whole, alone])
    steps = [
        int(next(iter(learner.optimizer.state_dict()["state"].values()))["step"])
        for learner in given
    ]
    assert steps == [4, 2, 2]


@pytest.mark.usefixtures("unrecorded")
def test_classes_weigh_as_in_a_plain_step() -> None:
    """Batches of 8 graphs, of which the last has 2; rare classes weigh more."""
    config = run_config(class_weights=True)
    alone, together = learners(config)[2], learners(config)[2]
    assert alone.step.class_weights is not None
    alone.step.class_weights, together.step.class_weights = (torch.tensor([0.4, 1.6]),) * 2
    expected = alone.fit(alone.train_graphs.batches(BATCH))
    chunks = (Chunk.of(chunk, BATCH) for chunk in together.train_graphs.chunks(BATCH))
    found = stack_of([together]).fit(chunks)
    assert found == pytest.approx([expected], rel=1e-5)
    for weights, same in zip(
        alone.classifier.parameters(), together.classifier.parameters(), strict=True
    ):
        assert torch.allclose(weights, same, atol=1e-5)


@pytest.mark.usefixtures("unrecorded")
def test_classifiers_are_trained_as_such() -> None:
    """With dropout, which predictions do without."""
    given = learners(run_config())
    assert not given[0].classifier.training
    stacked = stack_of(given)
    stacked.fit(full_epoch(given[0].train_graphs.store, len(given)))
    assert all(module.training for module in stacked.stack.modules() if module is not None)
    assert not given[0].classifier.training


def test_on_a_cpu_classifiers_are_trained_one_by_one() -> None:
    steps = [learner.step for learner in learners(run_config())]
    assert stacked_fit(steps) is None
    assert stacked_fit(steps[:1]) is None


@needs_gpu
def test_on_a_gpu_they_are_stacked_where_that_is_the_same() -> None:
    steps = [learner.step for learner in learners(run_config(), GPU)]
    assert stacked_fit(steps) is not None
    model = SparseClassifier(
        Policy(Dims(10, 2), NetworkConfig(), "gin", "node", 0.3, 0.02), steps[0].model
    ).to(GPU)
    assert stacked_fit([Step(model, steps[0].optimizer)]) is None


@needs_gpu
def test_a_run_on_a_gpu_stacks_its_classifiers_where_that_is_the_same() -> None:
    settings = run_config()
    members = learners(settings, GPU)
    policy = Policy(Dims(10, 2), settings.network, "gin", "node", 0.3, 0.02).to(GPU)
    model = SparseClassifier(policy, Committee([each.classifier for each in members]))
    graphs = members[0].train_graphs.store
    state = BilevelState(model, members, graphs, settings, RandomState(0, GPU))
    assert state.stacked is not None
