"""The encoders compute Eq. (2), the classifier respects the graph's symmetries."""

import pytest
import torch
from torch_geometric.data import Batch, Data

from cores.config import NetworkConfig
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.models.classifier import Classifier
from cores.models.encoder import Encoder

# 0 - 1, 1 - 2, 1 - 3, both directions
EDGES = torch.tensor([[0, 1, 1, 2, 1, 3], [1, 0, 2, 1, 3, 1]])
SMALL = NetworkConfig(hidden_dim=8, num_layers=2, gat_heads=2)
DIMS = Dims(num_features=3, num_classes=2)
BONDS = Dims(num_features=3, num_classes=2, num_edge_features=2)


def test_gin_adds_the_neighbours_to_the_node_itself() -> None:
    """With identity matrices for weights, one layer is (1 + eps) h_i + sum of neighbours."""
    config = NetworkConfig(hidden_dim=2, num_layers=1, gin_eps=0.5, batch_norm=False)
    encoder = Encoder(Dims(num_features=2, num_classes=2), config, "gin")
    for module in encoder.modules():
        if isinstance(module, torch.nn.Linear):
            torch.nn.init.eye_(module.weight)
    x = torch.tensor([[1.0, 0.0], [2.0, 0.0], [4.0, 1.0], [8.0, 1.0]])
    assert encoder(x, EDGES).tolist() == [[3.5, 0.0], [16.0, 2.0], [8.0, 1.5], [14.0, 1.5]]


def random_graph(seed: int) -> Data:
    generator = torch.Generator().manual_seed(seed)
    return Data(
        x=torch.randn(4, 3, generator=generator),
        edge_index=EDGES,
        edge_attr=torch.randn(6, 2, generator=generator),
        y=torch.tensor([0]),
    )


@pytest.mark.parametrize("layer", ["gin", "gcn", "gat", "none"])
@pytest.mark.parametrize("edge_features", [False, True])
def test_the_order_of_the_nodes_does_not_matter(layer: str, edge_features: bool) -> None:
    torch.manual_seed(0)
    config = NetworkConfig(hidden_dim=8, num_layers=2, gat_heads=2, edge_features=edge_features)
    classifier = Classifier(BONDS, config, layer).eval()
    graph = random_graph(1)
    order = torch.tensor([2, 0, 3, 1])
    renamed = Data(
        x=graph.x[order],
        edge_index=order.argsort()[graph.edge_index],
        edge_attr=graph.edge_attr,
        y=graph.y,
    )
    one, other = (classifier(Batch.from_data_list([each])) for each in (graph, renamed))
    assert torch.allclose(one, other, atol=1e-6)


def test_batch_norm_survives_a_batch_that_was_masked_down_to_one_node() -> None:
    encoder = Encoder(DIMS, NetworkConfig(hidden_dim=8, num_layers=2), "gin").train()
    alone = encoder(torch.ones(1, 3), torch.empty(2, 0, dtype=torch.int64))
    assert alone.isfinite().all()


@pytest.mark.parametrize("layer", ["gin", "gcn", "gat", "none"])
def test_a_graphs_logits_do_not_depend_on_its_batch(layer: str) -> None:
    torch.manual_seed(0)
    classifier = Classifier(DIMS, SMALL, layer).eval()
    graphs = [random_graph(seed) for seed in range(3)]
    together = classifier(Batch.from_data_list(graphs))
    alone = torch.cat([classifier(Batch.from_data_list([graph])) for graph in graphs])
    assert torch.allclose(together, alone, atol=1e-6)


@pytest.mark.parametrize(("layer", "sees"), [("gin", True), ("gcn", True), ("none", False)])
def test_only_the_mlp_is_blind_to_edges(layer: str, sees: bool) -> None:
    torch.manual_seed(0)
    classifier = Classifier(DIMS, SMALL, layer).eval()
    graph = random_graph(1)
    cut = Data(x=graph.x, edge_index=EDGES[:, :2], y=graph.y)
    logits = [classifier(Batch.from_data_list([each])) for each in (graph, cut)]
    assert torch.allclose(*logits) != sees


@pytest.mark.parametrize("layer", ["gin", "gcn", "gat"])
@pytest.mark.parametrize("on", [False, True])
def test_bond_types_matter_only_where_they_are_asked_for(layer: str, on: bool) -> None:
    torch.manual_seed(0)
    config = NetworkConfig(hidden_dim=8, num_layers=2, gat_heads=2, edge_features=on)
    classifier = Classifier(BONDS, config, layer).eval()
    graph, changed = random_graph(1), random_graph(1)
    changed.edge_attr = changed.edge_attr + 1
    logits = [classifier(Batch.from_data_list([each])) for each in (graph, changed)]
    assert torch.allclose(*logits) != on


@pytest.mark.parametrize("batch_norm", [False, True])
def test_constant_features_still_tell_graphs_apart_under_batch_norm(batch_norm: bool) -> None:
    """A norm right after the input layer would turn constant features into zeros."""
    torch.manual_seed(0)
    batch = ba_motifs(num_graphs=10).batch(torch.arange(10))
    classifier = Classifier(Dims(10, 2), NetworkConfig(batch_norm=batch_norm), "gin").train()
    assert classifier(batch).std(dim=0).min() > 1e-3


def test_a_graph_without_edges_and_a_graph_without_nodes_get_logits() -> None:
    batch = Batch(
        x=torch.ones(1, 3),
        edge_index=torch.empty(2, 0, dtype=torch.int64),
        batch=torch.tensor([0]),
        ptr=torch.tensor([0, 1, 1]),
    )
    logits = Classifier(DIMS, SMALL, "gin").eval()(batch)
    assert logits.shape == (2, 2)
    assert logits.isfinite().all()
