"""GMT: attention learnt from drawn subgraphs, then a classifier of its own."""

from itertools import product

import pytest
import torch
from torch.optim import Adam

from cores.config import NetworkConfig, TrainingConfig
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.errors import UserError
from cores.evaluation.explanations import roc_auc
from cores.evaluation.predictions import predict
from cores.graphs.batches import copies
from cores.graphs.store import GraphStore
from cores.training.state import RandomState
from cores.training.supervised import train
from cores_paper.models.gmt import GMT
from cores_paper.models.gsat import weighed_logits
from cores_paper.models.settings import GMTConfig

NETWORK = NetworkConfig(hidden_dim=16, num_layers=2)
DIMS = Dims(num_features=10, num_classes=2)


def model_of(attention: str = "node", conv: str = "gin", **changes: float) -> GMT:
    torch.manual_seed(0)
    return GMT(DIMS, NETWORK, conv, GMTConfig(attention=attention, **changes))


def learning(model: GMT) -> set[str]:
    """The parts of which a weight has a gradient."""
    batch = ba_motifs(num_graphs=4, seed=0).with_pairs().batch(torch.arange(4))
    model.train()
    model.loss(batch).backward()
    return {
        name.partition(".")[0]
        for name, weight in model.named_parameters()
        if weight.grad is not None and weight.grad.abs().sum() > 0
    }


@pytest.mark.parametrize("attention", ["node", "edge"])
@pytest.mark.parametrize("conv", ["gin", "gcn", "gat"])
def test_the_attention_learns_first_and_then_a_new_classifier_alone(
    attention: str, conv: str
) -> None:
    model = model_of(attention, conv)
    model.begin_epoch(0.5)
    assert learning(model) == {"extractor", "hidden", "attention", "drawn_classifier"}
    model.zero_grad()
    model.begin_epoch(0.51)
    assert learning(model) == {"classifier"}


def test_nothing_of_a_fixed_attention_changes_in_training() -> None:
    batch = ba_motifs(num_graphs=4, seed=0).with_pairs().batch(torch.arange(4))
    model = model_of()
    model.begin_epoch(1.0)
    model.train()
    first = model.predict(batch).node_scores
    model.loss(batch)  # batch norms would move
    assert torch.equal(model.predict(batch).node_scores, first)


@torch.no_grad()
def test_the_mean_over_draws_is_the_expectation_over_subgraphs() -> None:
    """A path of three nodes: every subset is weighed by its probability."""
    path = GraphStore(
        x=8 * torch.randn(3, 10, generator=torch.Generator().manual_seed(0)),
        edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
        y=torch.tensor([1]),
        node_ptr=torch.tensor([0, 3]),
        edge_ptr=torch.tensor([0, 4]),
    )
    batch = path.with_pairs().batch(torch.arange(1))
    model = model_of(samples=1000).eval()
    logits = torch.tensor([1.0, -0.5, 0.3])
    keep = logits.sigmoid()
    expected = torch.zeros(1, 2)
    for kept in product((0.0, 1.0), repeat=3):
        marks = torch.tensor(kept)
        chance = torch.where(marks > 0, keep, 1 - keep).prod()
        weights = marks[batch.edge_index].prod(dim=0)
        seen = weighed_logits(model.drawn_classifier, batch, weights).softmax(dim=-1)
        expected += chance * seen
    torch.manual_seed(0)
    found = torch.stack([model.mean_over_draws(batch, logits) for _ in range(20)]).mean(dim=0)
    soft = weighed_logits(model.drawn_classifier, batch, keep[batch.edge_index].prod(dim=0))
    assert torch.allclose(found, expected, atol=1e-2)
    assert not torch.allclose(soft.softmax(dim=-1), expected, atol=3e-2)  # what GSAT would take


def test_copies_are_the_same_graphs_again() -> None:
    batch = ba_motifs(num_graphs=3, seed=0).batch(torch.arange(3))
    model = model_of().eval()
    again = model.drawn_classifier(copies(batch, 2)).unflatten(0, (2, 3))
    assert torch.allclose(again, model.drawn_classifier(batch).expand(2, -1, -1), atol=1e-6)


def test_the_learning_rate_begins_anew_with_the_new_classifier() -> None:
    graphs = ba_motifs(num_graphs=16, seed=0)
    model = model_of(samples=2)
    rates = {"learning_rate": 1e-6, "min_learning_rate": 0.0}
    config = TrainingConfig(epochs=6, batch_size=8, schedule_patience=0, **rates)
    seen: list[float] = []
    train(
        model,
        graphs,
        graphs,
        config,
        RandomState(0, torch.device("cpu")),
        report=lambda epoch, metrics: seen.append(metrics["learning_rate"]),
    )
    before, after = seen[2], seen[3]  # with so small a rate, accuracy stalls from the first epoch
    assert before < 1e-6
    assert after == pytest.approx(1e-6)


def test_only_the_second_phase_may_be_returned_and_r_is_down_before() -> None:
    model = model_of()
    seen = []
    for progress in (0.0, 0.25, 0.5, 0.75):
        model.begin_epoch(progress)
        seen.append((round(float(model.r), 6), model.phase, model.selectable))
    assert seen == [(0.9, 0, False), (0.7, 0, False), (0.7, 0, False), (0.7, 1, True)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"samples": 0}, r"gmt\.samples must lie in \[1, 1000\], got 0"),
        ({"extraction": 1.0}, r"gmt\.extraction must lie in \(0, 1\), got 1"),
        ({"first_r": 2.0}, r"gmt\.first_r must lie in \(0, 1\), got 2"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes: dict[str, float], message: str) -> None:
    with pytest.raises(UserError, match=message):
        GMTConfig(**changes)


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked")
def test_attention_finds_a_planted_motif() -> None:
    graphs, network = ba_motifs(num_graphs=400, seed=0), NetworkConfig(hidden_dim=32, num_layers=2)
    torch.manual_seed(0)
    model = GMT(DIMS, network, "gin", GMTConfig(samples=4, extraction=0.75))
    optimizer = Adam(model.parameters(), lr=3e-3, weight_decay=1e-4)
    order = torch.Generator().manual_seed(0)
    for epoch in range(60):
        model.begin_epoch((epoch + 1) / 60)
        model.train()
        for batch in graphs.batches(32, order):
            optimizer.zero_grad()
            model.loss(batch).backward()
            optimizer.step()
    found = predict(model, graphs)
    assert roc_auc(found.node_scores, graphs.node_truth) > 0.7
    assert (found.probs.argmax(-1) == graphs.y).float().mean() > 0.9
