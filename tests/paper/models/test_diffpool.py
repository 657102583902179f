"""DiffPool: assignments are distributions, and nothing dense is made of a large graph."""

import pytest
import torch
from torch_geometric.nn import dense_diff_pool
from torch_geometric.utils import to_dense_adj

from cores.config import NetworkConfig
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.graphs.store import GraphStore
from cores_paper.models.diffpool import (
    DiffPool,
    assigned,
    entropy_loss,
    link_loss,
    neighbour_sum,
)
from cores_paper.models.settings import DiffPoolConfig

NETWORK = NetworkConfig(hidden_dim=8, num_layers=2)


def model_of(conv: str = "gin", clusters: int = 3) -> DiffPool:
    torch.manual_seed(0)
    return DiffPool(Dims(10, 2), NETWORK, conv, DiffPoolConfig(clusters=clusters))


@pytest.mark.parametrize("conv", ["gin", "gcn", "gat"])
def test_assignments_are_row_stochastic(conv: str) -> None:
    batch = ba_motifs(num_graphs=4, seed=0).batch(torch.arange(4))
    s = model_of(conv).assignments(batch)
    assert s.shape == (batch.num_nodes, 3)
    assert (s >= 0).all()
    assert torch.allclose(s.sum(dim=-1), torch.ones(len(s)))


def test_pooling_and_losses_agree_with_the_dense_definition() -> None:
    batch = ba_motifs(num_graphs=2, seed=0).batch(torch.arange(1))
    s = model_of().assignments(batch).detach()
    adjacency = to_dense_adj(batch.edge_index)[0]
    assert torch.allclose(neighbour_sum(batch, s), adjacency @ s, atol=1e-5)
    nodes, links, link, entropy = dense_diff_pool(
        batch.x[None], adjacency[None], s.log()[None], normalize=False
    )
    assert torch.allclose(assigned(batch, s, batch.x), nodes, atol=1e-5)
    assert torch.allclose(assigned(batch, s, neighbour_sum(batch, s)), links, atol=1e-4)
    assert float(link_loss(batch, s)) == pytest.approx(float(link) / len(s), rel=1e-4)
    assert float(entropy_loss(s)) == pytest.approx(float(entropy), rel=1e-4)


def mixed_sizes() -> GraphStore:
    """Graphs of 13 and 25 nodes."""
    parts = [ba_motifs(num_graphs=2, base_size=size, seed=1) for size in (8, 20)]
    return GraphStore(
        x=torch.cat([each.x for each in parts]),
        edge_index=torch.cat([each.edge_index for each in parts], dim=1),
        y=torch.cat([each.y for each in parts]),
        node_ptr=torch.tensor([0, 13, 26, 51, 76]),
        edge_ptr=torch.cat([parts[0].edge_ptr, parts[0].edge_ptr[-1] + parts[1].edge_ptr[1:]]),
    )


def test_the_link_loss_of_a_batch_is_the_mean_of_its_graphs() -> None:
    graphs = mixed_sizes()
    model = model_of().eval()
    single = [graphs.batch(torch.tensor([number])) for number in range(4)]
    together = graphs.batch(torch.arange(4))
    alone = [float(link_loss(each, model.assignments(each)).detach()) for each in single]
    whole = float(link_loss(together, model.assignments(together)).detach())
    assert whole == pytest.approx(sum(alone) / 4, rel=1e-5)


def test_a_graph_of_thousands_of_nodes_takes_little_memory() -> None:
    count = 6000  # dense, one adjacency would take 144 MB
    batch = ba_motifs(num_graphs=2, base_size=count, seed=0).batch(torch.arange(1))
    model = model_of().eval()
    with torch.no_grad(), torch.profiler.profile(profile_memory=True) as profile:
        model.loss(batch)
    largest = max(event.self_cpu_memory_usage for event in profile.key_averages())
    assert largest < 50e6


def test_every_weight_gets_a_gradient() -> None:
    batch = ba_motifs(num_graphs=8, seed=0).batch(torch.arange(8))
    model = model_of()
    model.loss(batch).backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.isfinite().all(), name
        assert weight.grad.abs().sum() > 0, name
