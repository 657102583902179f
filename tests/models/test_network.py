"""Every network reads any PyG graphs as they are, and scales their features itself."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from cores.config import NetworkConfig, RunConfig
from cores.config.models import MODELS
from cores.data.dataset import Dataset, Dims, numbered
from cores.errors import UserError
from cores.graphs.store import GraphStore
from cores.models.build import build_model
from cores.models.network import GraphModel
from cores.models.scaler import FeatureScaler
from cores.training.supervised import fit_scaler
from cores_paper.models.gsat import GSAT
from cores_paper.models.settings import GSATConfig

DIMS = Dims(num_features=3, num_classes=2, num_edge_features=2)
SIZES = (5, 1, 8, 3)

each_model = pytest.mark.parametrize("name", MODELS)


def ring(nodes: int) -> Data:
    """A ring of nodes with features of very different scales; one node has no edge."""
    generator = torch.Generator().manual_seed(nodes)
    source = torch.arange(nodes)
    ends = torch.stack([source, (source + 1) % nodes])[:, : 0 if nodes == 1 else nodes]
    edges = torch.cat([ends, ends.flip(0)], dim=1)
    scales = torch.tensor([1.0, 50.0, 0.01])
    return Data(
        x=torch.randn(nodes, 3, generator=generator) * scales + scales,
        edge_index=edges,
        edge_attr=torch.randn(edges.size(1), 2, generator=generator),
        y=torch.tensor([nodes % 2]),
    )


def graphs() -> list[Data]:
    return [ring(nodes) for nodes in SIZES]


def own_batch() -> Batch:
    return GraphStore.from_graphs(graphs()).batch(torch.arange(len(SIZES)))


def model_of(name: str) -> GraphModel:
    """With bond types, and a policy whose decisions differ from element to element."""
    network = {"hidden_dim": 8, "num_layers": 2, "edge_features": True}
    torch.manual_seed(0)
    model = build_model(RunConfig.from_settings({"model": name, "network": network}), DIMS)
    for weight_name, weight in model.named_parameters():
        if weight_name.endswith(("node_head.weight", "edge_head.weight")):
            torch.nn.init.normal_(weight)
    return model.eval()


@torch.no_grad()
def logits(model: GraphModel, *given: Batch | Data | Tensor, **more: Tensor) -> Tensor:
    return model(*given, **more)


@each_model
def test_a_batch_of_pygs_gives_the_logits_of_a_batch_of_the_store(name: str) -> None:
    model = model_of(name)
    theirs = Batch.from_data_list(graphs())
    assert torch.equal(logits(model, theirs), logits(model, own_batch()))
    assert set(theirs.keys()) == {"x", "edge_index", "edge_attr", "y", "batch", "ptr"}


@each_model
def test_a_single_graph_gives_its_row_of_the_batch(name: str) -> None:
    model = model_of(name)
    alone = torch.cat([logits(model, graph) for graph in graphs()])
    assert torch.allclose(alone, logits(model, own_batch()), atol=1e-5)


@each_model
def test_plain_tensors_give_the_logits_of_their_batch(name: str) -> None:
    model, batch = model_of(name), Batch.from_data_list(graphs())
    given = batch.x, batch.edge_index, batch.edge_attr, batch.batch
    assert torch.equal(logits(model, *given), logits(model, own_batch()))


@each_model
def test_the_order_in_which_edges_are_listed_does_not_matter(name: str) -> None:
    """Not even across the graphs of a batch: PyG asks for none."""
    model, batch = model_of(name), Batch.from_data_list(graphs())
    order = torch.randperm(batch.num_edges, generator=torch.Generator().manual_seed(1))
    edges, attributes = batch.edge_index[:, order], batch.edge_attr[order]
    shuffled = logits(model, batch.x, edges, edge_attr=attributes, batch=batch.batch)
    assert torch.allclose(shuffled, logits(model, batch), atol=1e-4)


@each_model
@torch.no_grad()
def test_predictions_from_pygs_graphs_are_those_from_the_store(name: str) -> None:
    model = model_of(name)
    theirs, ours = (model.predict(each) for each in (Batch.from_data_list(graphs()), own_batch()))
    assert torch.equal(theirs.probs, ours.probs)
    assert torch.equal(theirs.subgraph.removed_nodes, ours.subgraph.removed_nodes)
    assert torch.equal(theirs.subgraph.removed_edges, ours.subgraph.removed_edges)
    (alone,) = model.predict(graphs()[0]).probs
    assert torch.allclose(alone, ours.probs[0], atol=1e-5)


@each_model
@torch.no_grad()
def test_what_else_a_users_graphs_carry_is_no_trouble(name: str) -> None:
    """Positions, texts, targets of another task, and a number of nodes that was set by hand."""
    laden = graphs()
    for number, graph in enumerate(laden):
        graph.num_nodes = graph.x.size(0)
        graph.pos = torch.ones(graph.x.size(0), 3)
        graph.smiles = "C" * number
        graph.target = torch.ones(1, 7)
    model, batch = model_of(name), Batch.from_data_list(laden)
    prediction = model.predict(batch)
    assert torch.equal(prediction.probs, model.predict(own_batch()).probs)
    left = prediction.subgraph.batch
    assert left.num_nodes == left.x.size(0) == left.pos.size(0)


@each_model
def test_a_model_trains_on_a_batch_of_pygs(name: str) -> None:
    losses = []
    for batch in (Batch.from_data_list(graphs()), own_batch()):
        model = model_of(name).train()
        torch.manual_seed(1)
        loss = model.loss(batch)
        loss.backward()
        losses.append(float(loss.detach()))
    assert losses[0] == losses[1]


@pytest.mark.parametrize("attention", ["node", "edge"])
def test_gsat_trains_on_a_batch_of_pygs_whatever_it_weighs(attention: str) -> None:
    torch.manual_seed(0)
    model = GSAT(DIMS, NetworkConfig(hidden_dim=8), "gin", GSATConfig(attention=attention))
    assert model.loss(Batch.from_data_list(graphs())).isfinite()


@each_model
def test_what_is_no_graph_is_refused(name: str) -> None:
    model = model_of(name)
    with pytest.raises(UserError, match="`edge_index` is missing"):
        model(torch.ones(3, 3))
    with pytest.raises(UserError, match="takes PyG graphs or tensors, got a str"):
        model.predict("MUTAG")


@each_model
def test_raw_features_give_what_scaled_ones_give_without_a_scaler(name: str) -> None:
    store = GraphStore.from_graphs(graphs())
    dataset = Dataset("rings", store, ("even", "odd"), numbered(3), ("a", "b"), (0, 1), (1,))
    fitted, plain = model_of(name), model_of(name)
    fit_scaler(fitted, store, dataset)
    scaled = replace(store, x=FeatureScaler(3).fit(store.x, (0, 1), (1,))(store.x))
    everything = torch.arange(len(SIZES))
    from_raw = logits(fitted, store.batch(everything))
    assert torch.allclose(from_raw, logits(plain, scaled.batch(everything)), atol=1e-5)
    assert not torch.allclose(from_raw, logits(plain, store.batch(everything)), atol=1e-3)
    with torch.no_grad():
        full = fitted.full_logits(store.batch(everything))
        assert torch.allclose(full, plain.full_logits(scaled.batch(everything)), atol=1e-5)


@each_model
def test_the_scaler_is_saved_with_the_weights(name: str) -> None:
    fitted, loaded = model_of(name), model_of(name)
    fitted.scaler.fit(own_batch().x, (0, 1, 2), (1,))
    loaded.load_state_dict(fitted.state_dict())
    assert torch.equal(logits(loaded, own_batch()), logits(fitted, own_batch()))


@pytest.mark.parametrize("name", ["cores-node", "cores-edge", "cores-both"])
def test_networks_that_are_trained_together_share_their_scaler(name: str) -> None:
    config = RunConfig.from_settings({"model": name})
    model = build_model(config, DIMS)
    parts = (model.policy, model.classifier, *model.classifier.members)
    assert all(part.scaler is model.scaler for part in parts)


def test_a_scaler_stays_where_weights_are_learnt() -> None:
    """It is data, not a weight: no optimiser moves it."""
    model = model_of("gnn")
    assert not any("scaler" in name for name, _ in model.named_parameters())
    assert {"scaler.mean", "scaler.std"} <= set(model.state_dict())
