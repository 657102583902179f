"""GPool removes for good, SAGPool does not."""

import pytest
import torch
from torch_geometric.data import Batch

from cores.config import NetworkConfig, RandomConfig
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.graphs.store import GraphStore
from cores.models.control import RandomSubgraph
from cores_paper.models.settings import PoolConfig
from cores_paper.models.topk import GPool, SAGPool, TopK

NETWORK = NetworkConfig(hidden_dim=8, num_layers=2)
DIMS = Dims(num_features=3, num_classes=2)


def graphs_with_features(count: int = 4) -> GraphStore:
    graphs = ba_motifs(num_graphs=count, base_size=8, seed=0)
    torch.manual_seed(0)
    x = torch.randn(graphs.x.size(0), 3)
    return GraphStore(x, graphs.edge_index, graphs.y, graphs.node_ptr, graphs.edge_ptr)


def model_of(kind: type[TopK], ratio: float = 0.5) -> TopK:
    torch.manual_seed(1)
    return kind(DIMS, NETWORK, "gin", PoolConfig(ratio=ratio, multiplier=2.0)).eval()


def changed_outside(batch: Batch, removed: torch.Tensor) -> Batch:
    """The batch with other features on the removed nodes, and without the edges between them."""
    other = batch.clone()
    other.x = torch.where(removed[:, None], other.x + 5, other.x)
    between = removed[other.edge_index].all(dim=0)
    other.edge_index = other.edge_index[:, ~between]
    return other


def test_gpool_ignores_removed_nodes_once_the_mask_is_given() -> None:
    batch = graphs_with_features().batch(torch.arange(4))
    model = model_of(GPool)
    removed = model.predict(batch).subgraph.removed_nodes
    before = model.classify(batch, removed)
    after = model.classify(changed_outside(batch, removed), removed)
    assert torch.equal(before, after)


def test_sagpool_leaks_what_it_removed() -> None:
    batch = graphs_with_features().batch(torch.arange(4))
    model = model_of(SAGPool)
    removed = model.predict(batch).subgraph.removed_nodes
    before = model.classify(batch, removed)
    after = model.classify(changed_outside(batch, removed), removed)
    assert (before - after).abs().max() > 1e-3


@pytest.mark.parametrize("kind", [GPool, SAGPool])
@pytest.mark.parametrize(("ratio", "kept"), [(0.5, 7), (0.01, 1), (1.0, 13)])
def test_the_best_nodes_of_every_graph_are_kept_rounded_up(
    kind: type[TopK], ratio: float, kept: int
) -> None:
    batch = graphs_with_features().batch(torch.arange(4))
    model = model_of(kind, ratio)
    prediction = model.predict(batch)
    remaining = ~prediction.subgraph.removed_nodes
    assert torch.bincount(batch.batch[remaining]).tolist() == [kept] * 4
    for graph in range(4):
        here = batch.batch == graph
        worst_kept = prediction.node_scores[here & remaining].min()
        if kept < 13:
            assert worst_kept >= prediction.node_scores[here & ~remaining].max()


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 0, 2], [2, 0, 3, 1]])
def test_of_nodes_that_score_alike_the_best_connected_are_kept(order: list[int]) -> None:
    # a path 0 - 1 - 2 - 3 of nodes with the same features, numbered in some order
    number = torch.tensor(order).argsort()
    ends = number[torch.tensor([[0, 1], [1, 2], [2, 3]])].T
    graphs = GraphStore(
        x=torch.ones(4, 3),
        edge_index=torch.cat([ends, ends.flip(0)], dim=1),
        y=torch.tensor([0]),
        node_ptr=torch.tensor([0, 4]),
        edge_ptr=torch.tensor([0, 6]),
    )
    removed = model_of(GPool).predict(graphs.batch(torch.arange(1))).subgraph.removed_nodes
    assert {order[node] for node in (~removed).nonzero().flatten().tolist()} == {1, 2}


def test_sagpool_ranks_by_the_whole_score() -> None:
    batch = graphs_with_features().batch(torch.arange(1))
    scores = 0.3 + 1e-6 * torch.arange(13).flip(0)
    kept = ~model_of(SAGPool).removed(batch, scores)
    assert kept.nonzero().flatten().tolist() == list(range(7))


@pytest.mark.parametrize("kind", [GPool, SAGPool])
def test_predictions_are_those_of_the_forward_pass(kind: type[TopK]) -> None:
    batch = graphs_with_features().batch(torch.arange(4))
    model = model_of(kind)
    assert torch.allclose(model.predict(batch).probs, model(batch).softmax(dim=-1), atol=1e-6)
    everything = model_of(kind, ratio=1.0)
    assert torch.allclose(everything.full_logits(batch), everything(batch), atol=1e-6)


@pytest.mark.parametrize("kind", [GPool, SAGPool])
def test_the_scores_are_learnt(kind: type[TopK]) -> None:
    batch = graphs_with_features().batch(torch.arange(4))
    model = model_of(kind).train()
    model.loss(batch).backward()
    gradients = {name: weight.grad for name, weight in model.named_parameters()}
    assert all(each is not None and each.isfinite().all() for each in gradients.values())
    scoring = "projection" if kind is GPool else "score.weight"
    assert gradients[scoring].abs().sum() > 0


def test_the_control_draws_anew_in_training_and_repeats_itself_in_evaluation() -> None:
    batch = graphs_with_features().batch(torch.arange(4))
    torch.manual_seed(0)
    model = RandomSubgraph(DIMS, NETWORK, "gin", RandomConfig(ratio=0.3))
    drawn = [model.subgraph(batch).removed_nodes for _ in range(2)]
    assert not torch.equal(*drawn)
    model.eval()
    state = torch.get_rng_state()
    first, second = model.predict(batch), model.predict(batch)
    assert torch.equal(first.subgraph.removed_nodes, second.subgraph.removed_nodes)
    assert torch.equal(torch.get_rng_state(), state)
    assert (~first.subgraph.removed_nodes).sum() == 4 * 4
    alone = [
        model.predict(graphs_with_features().batch(torch.tensor([each]))).subgraph.removed_nodes
        for each in range(4)
    ]
    assert torch.equal(torch.cat(alone), first.subgraph.removed_nodes)
    assert not torch.equal(alone[0], alone[1])
    assert first.node_scores is None
