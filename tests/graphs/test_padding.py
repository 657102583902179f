"""A padded batch is as good as the one that it holds."""

from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Batch

from cores.config import NetworkConfig
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.graphs.padding import SPARE, Capacity, PaddedBatch
from cores.models.classifier import Classifier


def graphs_of(first: int, number: int = 8, edge_features: int = 0, base_size: int = 9) -> Batch:
    """Graphs with random features."""
    torch.manual_seed(first)
    chosen = torch.arange(first, first + number)
    batch = ba_motifs(num_graphs=40, base_size=base_size, seed=0).batch(chosen)
    batch.x = torch.randn(batch.x.size(0), 3)
    if edge_features:
        batch.edge_attr = torch.randn(batch.edge_index.size(1), edge_features)
    return batch


def trained_step(
    model: Classifier, batch: Batch, weights: torch.Tensor | None
) -> tuple[float, list[torch.Tensor]]:
    model.zero_grad()
    loss = model.train().loss(batch, weights)
    loss.backward()
    return loss.item(), [weights.grad for weights in model.parameters() if weights.grad is not None]


@pytest.mark.parametrize("edge_features", [0, 2])
@pytest.mark.parametrize("batch_norm", [True, False])
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("weights", [None, torch.tensor([0.5, 1.5])])
def test_a_step_on_a_padded_batch_is_the_step_on_the_batch(
    edge_features: int, batch_norm: bool, soft: bool, weights: torch.Tensor | None
) -> None:
    config = NetworkConfig(hidden_dim=8, num_layers=2, batch_norm=batch_norm)
    torch.manual_seed(0)
    plain = Classifier(Dims(3, 2, edge_features), config, "gin")
    other = Classifier(Dims(3, 2, edge_features), config, "gin")
    other.load_state_dict(plain.state_dict())
    padded: PaddedBatch | None = None
    for first, number, size in ((0, 8, 9), (8, 5, 9), (16, 8, 5)):  # nothing is left of the last
        batch = graphs_of(first, number, edge_features, size)
        if soft:
            batch.y = torch.rand(number, 2).softmax(dim=-1)
        padded = padded or PaddedBatch(Capacity.around(batch), batch)
        loss, gradients = trained_step(plain, batch, weights)
        assert padded.holds(batch)
        same_loss, same_gradients = trained_step(other, padded.load(batch), weights)
        assert same_loss == pytest.approx(loss, abs=1e-6)
        for one, two in zip(gradients, same_gradients, strict=True):
            assert torch.allclose(one, two, atol=1e-5)
    for name, seen in plain.state_dict().items():
        assert torch.allclose(other.state_dict()[name], seen, atol=1e-5), name


def test_what_is_padded_has_the_same_shapes_and_places_always() -> None:
    batch = graphs_of(0)
    padded = PaddedBatch(Capacity.around(batch), batch)
    one = padded.load(batch)
    places = {name: value.data_ptr() for name, value in one.to_dict().items()}
    two = padded.load(graphs_of(8))
    assert {name: value.data_ptr() for name, value in two.to_dict().items()} == places
    assert int(two.unpadded_nodes.sum()) == graphs_of(8).x.size(0)
    assert two.edge_index.max() == padded.capacity.nodes - 1
    assert two.num_graphs == 9
    assert two.ptr.shape == (10,), "without it, PyG would ask the device for the last graph"
    assert two.unpadded_graphs.tolist() == [1.0] * 8 + [0.0]


def test_padding_edges_join_no_graph() -> None:
    batch = graphs_of(0)
    padded = PaddedBatch(Capacity.around(batch), batch).load(batch)
    owners = padded.batch[padded.edge_index]
    assert torch.equal(owners[0], owners[1])
    filling = padded.edge_index[:, batch.edge_index.size(1) :]
    assert (padded.unpadded_nodes[filling.flatten()] == 0).all()
    assert len(filling[0].unique()) == SPARE, "spread out: a GPU adds to one place at a time"


@pytest.mark.parametrize(
    ("change", "fits"), [(0, True), (-1, True), (1, False)], ids=["full", "room", "too many"]
)
def test_a_batch_fits_while_spare_nodes_are_left(change: int, fits: bool) -> None:
    batch = graphs_of(0)
    nodes, edges = batch.x.size(0), batch.edge_index.size(1)
    assert Capacity(9, nodes + SPARE - change, edges).holds(batch) == fits
    assert Capacity(9, nodes + SPARE, edges - change).holds(batch) == fits
    assert Capacity(9 - change, nodes + SPARE, edges).holds(batch) == fits


def test_labels_of_another_kind_do_not_fit() -> None:
    batch = graphs_of(0)
    padded = PaddedBatch(Capacity.around(batch), batch)
    batch.y = torch.rand(8, 2)
    assert not padded.holds(batch)
    padded = PaddedBatch(Capacity.around(batch), batch)
    assert padded.holds(batch)
    batch.y = torch.rand(8, 3)
    assert not padded.holds(batch)


def test_undirected_edges_are_padded_likewise() -> None:
    store = ba_motifs(num_graphs=16, base_size=9, seed=0).with_pairs()
    batch, smaller = store.batch(torch.arange(8)), store.batch(torch.arange(8, 12))
    padded = PaddedBatch(Capacity.around(batch), batch)
    number = batch.pair_index.size(1)
    assert padded.capacity.pairs == number + number // 2
    for each in (batch, smaller):
        held = padded.load(each)
        number = each.pair_index.size(1)
        assert torch.equal(held.pair_index[:, :number], each.pair_index)
        assert (held.unpadded_nodes[held.pair_index[:, number:].flatten()] == 0).all()
    assert not replace(padded.capacity, pairs=number - 1).holds(smaller)


def test_there_is_room_for_batches_larger_by_half() -> None:
    batch = graphs_of(0)
    nodes, edges = batch.x.size(0), batch.edge_index.size(1)
    expected = Capacity(9, (3 * (nodes + SPARE)) // 2, (3 * edges) // 2, 0)
    assert Capacity.around(batch) == expected
    assert Capacity(1, 2, 3) == Capacity(1, 2, 3, 0)
