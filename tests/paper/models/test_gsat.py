"""GSAT: attention that pays for what it tells, and finds a planted motif."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from cores.config import NetworkConfig
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.evaluation.explanations import roc_auc
from cores.evaluation.predictions import predict
from cores.graphs.store import GraphStore
from cores_paper.models.gsat import GSAT, information_loss
from cores_paper.models.settings import GSATConfig

NETWORK = NetworkConfig(hidden_dim=16, num_layers=2)
Learnt = Callable[[GSAT, GraphStore, int, int], tuple[float, float]]
DIMS = Dims(num_features=10, num_classes=2)


def model_of(attention: str = "node", conv: str = "gin", **changes: float) -> GSAT:
    torch.manual_seed(0)
    return GSAT(DIMS, NETWORK, conv, GSATConfig(attention=attention, **changes))


@pytest.mark.parametrize("attention", ["node", "edge"])
@pytest.mark.parametrize("conv", ["gin", "gcn", "gat"])
def test_every_weight_gets_a_gradient(attention: str, conv: str) -> None:
    batch = ba_motifs(num_graphs=4, seed=0).with_pairs().batch(torch.arange(4))
    model = model_of(attention, conv)
    model.loss(batch).backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.isfinite().all(), name
        assert weight.grad.abs().sum() > 0, name


@pytest.mark.parametrize("conv", ["gin", "gcn", "gat"])
def test_the_attention_learns_from_the_classes_alone(conv: str) -> None:
    batch = ba_motifs(num_graphs=4, seed=0).with_pairs().batch(torch.arange(4))
    model = model_of("node", conv, information_weight=0.0)
    model.loss(batch).backward()
    assert model.attention.weight.grad.abs().sum() > 0


def test_a_batch_without_edges_has_a_loss() -> None:
    graphs = GraphStore(
        x=torch.ones(3, 10),
        edge_index=torch.empty(2, 0, dtype=torch.int64),
        y=torch.tensor([0, 1]),
        node_ptr=torch.tensor([0, 2, 3]),
        edge_ptr=torch.tensor([0, 0, 0]),
    )
    assert model_of("edge").loss(graphs.batch(torch.arange(2))).isfinite()


def test_the_constraint_is_on_the_probability_not_on_the_draw() -> None:
    batch = ba_motifs(num_graphs=4, seed=0).with_pairs().batch(torch.arange(4))
    model = model_of(dropout=0.0)
    torch.nn.init.zeros_(model.attention.weight)
    torch.nn.init.zeros_(model.attention.bias)  # probability 0.5 everywhere
    model.r.fill_(0.5)
    losses = []
    for weight in (0.0, 100.0):
        model.gsat = replace(model.gsat, information_weight=weight)
        torch.manual_seed(0)
        losses.append(float(model.loss(batch).detach()))
    assert losses[0] == pytest.approx(losses[1])


@pytest.mark.parametrize("conv", ["gin", "gcn", "gat"])
def test_attention_of_one_changes_nothing(conv: str) -> None:
    batch = ba_motifs(num_graphs=4, seed=0).with_pairs().batch(torch.arange(4))
    model = model_of("edge", conv).eval()
    full = torch.ones(batch.pair_index.size(1))
    assert torch.allclose(model._classify(batch, full), model.classifier(batch), atol=1e-5)


@pytest.mark.parametrize("conv", ["gin", "gcn"])
@torch.no_grad()
def test_attention_of_zero_cuts_every_message(conv: str) -> None:
    """Readout and head are linear: logits are a sum over nodes just when no node sees another.

    Not so with GAT, whose softmax over the neighbours also weighs the node itself.
    """
    batch = ba_motifs(num_graphs=2, seed=0).with_pairs().batch(torch.arange(1))
    model = model_of("edge", conv).eval()
    one, other = batch.edge_index[:, 0].tolist()

    def logits(attention: float, *changed: int) -> torch.Tensor:
        features = batch.clone()
        features.x = batch.x.clone()
        features.x[list(changed)] = 3 * torch.randn(10, generator=torch.Generator().manual_seed(1))
        return model._classify(features, torch.full((batch.pair_index.size(1),), attention))

    def interaction(attention: float) -> float:
        alone = logits(attention, one) + logits(attention, other)
        both = logits(attention, one, other) + logits(attention)
        return float((both - alone).abs().max())

    assert interaction(0.0) < 1e-5
    assert interaction(1.0) > 1e-3


def test_both_directions_of_an_edge_weigh_the_same() -> None:
    batch = ba_motifs(num_graphs=4, seed=0).with_pairs().batch(torch.arange(4))
    scores = model_of("edge").eval().predict(batch).edge_scores
    pairs = torch.stack([batch.edge_pair, torch.arange(len(scores))])
    order = pairs[0].argsort(stable=True)
    first, second = scores[order].view(-1, 2).unbind(dim=-1)
    assert torch.equal(first, second)


def test_information_is_least_at_r_and_r_goes_down() -> None:
    r = torch.tensor(0.6)
    losses = [float(information_loss(torch.full((5,), p), r)) for p in (0.3, 0.6, 0.9)]
    assert losses[1] == pytest.approx(0, abs=1e-6)
    assert min(losses[0], losses[2]) > 0.1
    model = model_of(first_r=0.9, last_r=0.5)
    seen = []
    selectable = []
    for progress in (0.0, 0.25, 0.5, 0.9):
        model.begin_epoch(progress)
        seen.append(float(model.r))
        selectable.append(model.selectable)
    assert seen == pytest.approx([0.9, 0.7, 0.5, 0.5])
    assert selectable == [False, False, True, True]


def test_evaluation_is_not_random() -> None:
    batch = ba_motifs(num_graphs=4, seed=0).with_pairs().batch(torch.arange(4))
    model = model_of().eval()
    assert torch.equal(model.predict(batch).probs, model.predict(batch).probs)
    assert torch.allclose(model(batch).softmax(-1), model.predict(batch).probs)
    model.train()
    assert not torch.equal(model(batch), model(batch))


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked")
def test_attention_sharpens_on_a_planted_motif(learnt: Learnt) -> None:
    """In two runs of three: one in six learns to attend to everything but the motif."""
    graphs = ba_motifs(num_graphs=400, seed=0)
    sharp = 0
    for seed in range(3):
        torch.manual_seed(seed)
        model = GSAT(DIMS, NetworkConfig(hidden_dim=32, num_layers=2), "gin", GSATConfig())
        before, after = learnt(model, graphs, 60, 32)
        assert abs(before) < 0.1
        sharp += after > 0.2
        if sharp == 2:
            break
    assert sharp == 2
    assert roc_auc(predict(model, graphs).node_scores, graphs.node_truth) > 0.75
