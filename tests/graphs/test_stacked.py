"""Stacked batches are the batches of every model, padded, one after the other."""

from copy import copy

import pytest
import torch
from torch_geometric.data import Batch

from cores.data.synthetic import ba_motifs
from cores.graphs.batches import cut
from cores.graphs.stacked import (
    SPARE,
    Capacity,
    Chunk,
    StackedBatches,
    needed_capacity,
    with_room,
)

SIZE = 4


def chunk_of(first: int, number: int, row: int = 0, edge_features: int = 2) -> Chunk:
    """Graphs with random features and random targets."""
    torch.manual_seed(first)
    batch = ba_motifs(num_graphs=40, base_size=9, seed=0).batch(torch.arange(first, first + number))
    batch.x = torch.randn(batch.x.size(0), 3)
    batch.y = torch.rand(number, 2).softmax(dim=-1)
    if edge_features:
        batch.edge_attr = torch.randn(batch.edge_index.size(1), edge_features)
    return Chunk(batch, SIZE, [0] * row + [number])


def stacked(chunks: list[Chunk]) -> StackedBatches:
    """Rows of the chunks' batches."""
    places = max(max(chunk.num_batches) for chunk in chunks)
    capacity = with_room(needed_capacity(chunks))
    batches = StackedBatches(len(chunks), places, capacity, chunks[0].batch)
    batches.load(chunks)
    return batches


def check_row(whole: Batch, capacity: Capacity, model: int, batch: Batch) -> None:
    """A model's part of a stacked batch is its batch, and padding that touches nothing."""
    nodes, edges = batch.x.size(0), batch.edge_index.size(1)
    first_node, first_edge = model * capacity.nodes, model * capacity.edges
    first_graph = model * capacity.graphs
    own_nodes = slice(first_node, first_node + capacity.nodes)
    own_graphs = slice(first_graph, first_graph + capacity.graphs)
    assert torch.equal(whole.x[own_nodes][:nodes], batch.x)
    assert whole.unpadded_nodes[own_nodes].flatten().tolist() == [1.0] * nodes + [0.0] * (
        capacity.nodes - nodes
    )
    assert torch.equal(whole.batch[own_nodes][:nodes], batch.batch + first_graph)
    assert (whole.batch[own_nodes][nodes:] == first_graph + capacity.graphs - 1).all()
    ends = whole.edge_index[:, first_edge : first_edge + capacity.edges]
    assert torch.equal(ends[:, :edges], batch.edge_index + first_node)
    spare = first_node + capacity.nodes - SPARE
    assert ((ends[:, edges:] >= spare) & (ends[:, edges:] < spare + SPARE)).all()
    assert torch.equal(ends[0, edges:], ends[1, edges:])
    graphs = batch.num_graphs
    assert torch.equal(whole.y[own_graphs][:graphs], batch.y)
    assert (whole.y[own_graphs][graphs:] == 0).all()
    real = whole.unpadded_graphs[own_graphs].tolist()
    assert real == [1.0] * graphs + [0.0] * (capacity.graphs - graphs)
    assert ("edge_attr" in whole) == ("edge_attr" in batch)
    if "edge_attr" in batch:
        own_edges = whole.edge_attr[first_edge : first_edge + capacity.edges]
        assert torch.equal(own_edges[:edges], batch.edge_attr)


def check(batches: StackedBatches, chunks: list[Chunk]) -> None:
    """At every place, the row of every model."""
    nothing = copy(chunks[0].batch)
    for name in ("x", "batch", "y", "edge_attr"):
        if name in nothing:
            nothing[name] = nothing[name][:0]
    nothing.edge_index, nothing.ptr = nothing.edge_index[:, :0], torch.zeros(1, dtype=torch.long)
    for place in range(batches.places):
        whole = batches.at(torch.tensor([place]))
        assert whole.num_graphs == batches.rows * batches.capacity.graphs
        assert len(whole.ptr) == whole.num_graphs + 1, "without it PyG asks for the last graph"
        for model, chunk in enumerate(chunks):
            pieces = list(cut(chunk.batch, SIZE))
            own = pieces[place] if place < len(pieces) else nothing
            check_row(whole, batches.capacity, model, own)


def test_every_model_has_its_batches_at_every_place() -> None:
    chunks = [chunk_of(0, 11), chunk_of(11, 7, row=1), chunk_of(18, 2, row=2)]
    check(stacked(chunks), chunks)


def test_a_chunk_may_hold_the_graphs_of_several_rows() -> None:
    together = chunk_of(0, 20)
    joined = Chunk(together.batch, SIZE, [11, 0, 7, 2])
    batches = StackedBatches(4, 3, with_room(needed_capacity([joined])), together.batch)
    batches.load([joined])
    parts = list(cut(together.batch, [11, 0, 7, 2]))
    check(batches, [Chunk.of(part, SIZE) for part in parts])


def test_rows_are_loaded_anew() -> None:
    batches = stacked([chunk_of(0, 11), chunk_of(11, 7, row=1)])
    swapped = [chunk_of(11, 7), chunk_of(0, 11, row=1)]
    batches.load(swapped)
    check(batches, swapped)


def test_graphs_without_edge_features_have_none() -> None:
    chunks = [chunk_of(0, 5, edge_features=0)]
    batches = stacked(chunks)
    assert "edge_attr" not in batches.at(torch.tensor([0]))
    check(batches, chunks)


@pytest.mark.parametrize("fresh", [True, False])
def test_a_row_without_chunks_has_no_graphs(fresh: bool) -> None:
    chunks = [chunk_of(0, 11), chunk_of(11, 7, row=1)]
    batches = stacked(chunks)
    if fresh:
        batches = StackedBatches(2, 3, batches.capacity, chunks[0].batch)
    batches.load(chunks[:1])
    whole = batches.at(torch.tensor([0]))
    assert int(whole.unpadded_graphs.sum()) == SIZE
    capacity = batches.capacity
    assert not whole.unpadded_nodes[capacity.nodes :].any()
    owners = whole.batch[capacity.nodes :]
    assert (owners == 2 * capacity.graphs - 1).all()
    assert (whole.edge_index[:, capacity.edges :] >= 2 * capacity.nodes - SPARE).all()


def test_there_is_room_for_the_largest_batch_and_a_little_more() -> None:
    chunks = [chunk_of(0, 11), chunk_of(11, 7)]
    pieces = [piece for chunk in chunks for piece in cut(chunk.batch, SIZE)]
    nodes = max(piece.x.size(0) for piece in pieces)
    edges = max(piece.edge_index.size(1) for piece in pieces)
    needed = needed_capacity(chunks)
    assert needed == Capacity(SIZE + 1, nodes + SPARE, edges)
    assert with_room(needed) == Capacity(SIZE + 1, int(1.25 * needed.nodes), int(1.25 * edges))
    batches = StackedBatches(2, 3, needed, chunks[0].batch)
    assert batches.holds(3, needed)
    assert not batches.holds(4, needed)
    for larger in (
        Capacity(SIZE + 2, needed.nodes, edges),
        Capacity(SIZE + 1, needed.nodes + 1, edges),
        Capacity(SIZE + 1, needed.nodes, edges + 1),
    ):
        assert not batches.holds(3, larger)


def test_a_row_takes_several_chunks() -> None:
    first, second = chunk_of(0, 6), chunk_of(6, 5)
    batches = StackedBatches(1, 4, needed_capacity([first, second]), first.batch)
    batches.load([first, second])
    pieces = [*cut(first.batch, SIZE), *cut(second.batch, SIZE)]
    for place, piece in enumerate(pieces):
        check_row(batches.at(torch.tensor([place])), batches.capacity, 0, piece)


def test_the_largest_size_decides() -> None:
    chunk = chunk_of(0, 6)
    assert needed_capacity([chunk, Chunk.of(chunk.batch, 6)]).graphs == 7


def test_undirected_edges_and_values_of_elements_are_stacked_likewise() -> None:
    store = ba_motifs(num_graphs=10, base_size=9, seed=0).with_pairs()
    batch = store.batch(torch.arange(10))
    batch.pair_values = torch.randn(batch.pair_index.size(1), 8)
    batch.node_values = torch.randn(batch.x.size(0), 8)
    chunk = Chunk(batch, SIZE, [0, 10])
    needed = needed_capacity([chunk])
    pieces = [store.batch(index) for index in torch.arange(10).split(SIZE)]
    assert needed.pairs == max(piece.pair_index.size(1) for piece in pieces)
    batches = StackedBatches(2, 3, with_room(needed), batch)
    batches.load([chunk])
    first_pair, first_node = batches.capacity.pairs, batches.capacity.nodes  # of the second row
    pairs_before = nodes_before = 0
    for place, piece in enumerate(pieces):
        whole = batches.at(torch.tensor([place]))
        pairs, nodes = piece.pair_index.size(1), piece.x.size(0)
        own = whole.pair_index[:, first_pair:]
        assert torch.equal(own[:, :pairs], piece.pair_index + first_node)
        assert (own[:, pairs:] >= 2 * first_node - SPARE).all()
        known = batch.pair_values[pairs_before : pairs_before + pairs]
        assert torch.equal(whole.pair_values[first_pair:][:pairs], known)
        known = batch.node_values[nodes_before : nodes_before + nodes]
        assert torch.equal(whole.node_values[first_node:][:nodes], known)
        pairs_before, nodes_before = pairs_before + pairs, nodes_before + nodes


def test_a_chunk_knows_its_batches() -> None:
    chunk = Chunk(chunk_of(0, 27).batch, SIZE, [1, 4, 5, 8, 9, 0])
    assert chunk.num_batches == [1, 1, 2, 2, 3, 0]
