"""What every model must do, whatever it is made of."""

import pytest
import torch

from cores.config import RunConfig
from cores.config.models import MODELS
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.graphs.store import GraphStore
from cores.models.build import build_model
from cores.models.network import GraphModel

SEE_EDGES = [name for name in MODELS if name != "mlp"]


def model_of(name: str, features: int, **changes: object) -> GraphModel:
    settings = {"model": name, "network": {"hidden_dim": 8, "num_layers": 2}} | changes
    torch.manual_seed(0)
    dims = Dims(features, num_classes=2, num_edge_features=2 if changes else 0)
    return build_model(RunConfig.from_settings(settings), dims)


def atoms(count: int = 12) -> GraphStore:
    """Graphs whose nodes are of three kinds: equal scores are the rule."""
    graphs = ba_motifs(num_graphs=count, base_size=8, seed=0)
    kinds = torch.randint(3, (graphs.x.size(0),), generator=torch.Generator().manual_seed(0))
    x = torch.nn.functional.one_hot(kinds, 3).float()
    return GraphStore(x, graphs.edge_index, graphs.y, graphs.node_ptr, graphs.edge_ptr)


@pytest.mark.parametrize("name", MODELS)
def test_a_graph_is_predicted_alike_alone_and_among_others(name: str) -> None:
    graphs = atoms()
    model = model_of(name, 3).eval()
    with torch.no_grad():
        together = model.predict(graphs.batch(torch.arange(12)))
        alone = [model.predict(graphs.batch(torch.tensor([number]))) for number in range(12)]
    probs = torch.cat([each.probs for each in alone])
    assert torch.allclose(together.probs, probs, atol=1e-5)
    removed = torch.cat([each.subgraph.removed_nodes for each in alone])
    assert torch.equal(together.subgraph.removed_nodes, removed)


@pytest.mark.parametrize("conv", ["gin", "gcn", "gat"])
@pytest.mark.parametrize("name", MODELS)
def test_single_nodes_and_graphs_without_edges_are_no_trouble(name: str, conv: str) -> None:
    graphs = GraphStore(
        x=torch.eye(3),
        edge_index=torch.tensor([[0, 1], [1, 0]]),
        y=torch.tensor([0, 1]),
        node_ptr=torch.tensor([0, 2, 3]),
        edge_ptr=torch.tensor([0, 2, 2]),
    )
    model = from_conv(name, conv)
    for index in (torch.arange(2), torch.tensor([1])):
        batch = graphs.batch(index)
        model.train()
        loss = model.loss(batch)
        loss.backward()
        assert loss.isfinite()
        probs = model.eval().predict(batch).probs
        assert probs.isfinite().all()


def from_conv(name: str, conv: str) -> GraphModel:
    settings = {"model": name, "conv": conv, "network": {"hidden_dim": 8, "num_layers": 2}}
    torch.manual_seed(0)
    return build_model(RunConfig.from_settings(settings), Dims(num_features=3, num_classes=2))


@pytest.mark.parametrize("name", SEE_EDGES)
def test_bond_types_reach_every_model_that_is_told_to_use_them(name: str) -> None:
    graphs = atoms(4)
    kinds = torch.arange(graphs.edge_index.size(1)) % 2
    with_bonds = GraphStore(
        graphs.x,
        graphs.edge_index,
        graphs.y,
        graphs.node_ptr,
        graphs.edge_ptr,
        edge_attr=torch.nn.functional.one_hot(kinds, 2).float(),
    )
    network = {"hidden_dim": 8, "num_layers": 2, "edge_features": True}
    model = model_of(name, 3, network=network).eval()
    batch = with_bonds.batch(torch.arange(4))
    other = batch.clone()
    other.edge_attr = batch.edge_attr.flip(-1)
    with torch.no_grad():
        assert not torch.allclose(model(batch), model(other), atol=1e-6)
