"""Whatever a user has of PyG's becomes one batch, and stays as it was."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

from cores.data.synthetic import ba_motifs
from cores.errors import UserError
from cores.graphs.batches import as_batch, cut, undirected_pairs, with_pairs
from cores.graphs.store import GraphStore

NO_EDGES = torch.empty(2, 0, dtype=torch.int64)


def random_graph(seed: int) -> Data:
    """Up to six nodes and nine directed edges: loops, repetitions and single directions as well."""
    generator = torch.Generator().manual_seed(seed)
    nodes, edges = (int(torch.randint(least, 7, (), generator=generator)) for least in (1, 0))
    ends = torch.randint(nodes, (2, edges + 3), generator=generator)[:, :edges]
    return Data(
        x=torch.randn(nodes, 2, generator=generator),
        edge_index=torch.cat([ends, ends[:, : edges // 2].flip(0)], dim=1),
        edge_attr=torch.randn(edges + edges // 2, 3, generator=generator),
        y=torch.tensor([seed % 2]),
    )


def graphs(count: int = 4) -> list[Data]:
    return [random_graph(seed) for seed in range(count)]


def assert_same(ours: Batch, theirs: Batch, *names: str) -> None:
    assert ours.num_graphs == theirs.num_graphs
    for name in names or ("x", "edge_index", "edge_attr", "y", "batch", "ptr"):
        assert torch.equal(ours[name], theirs[name]), name


def copied(data: Data) -> dict[str, Any]:
    return {name: value.clone() for name, value in data.to_dict().items()}


def assert_unchanged(data: Data, before: dict[str, Any]) -> None:
    after = data.to_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], value) for name, value in before.items())


def test_a_batch_is_returned_as_it_is() -> None:
    batch = Batch.from_data_list(graphs())
    assert as_batch(batch) is batch
    ours = GraphStore.from_graphs(graphs()).batch(torch.arange(4))
    assert as_batch(ours) is ours


def test_a_single_graph_is_a_batch_of_one() -> None:
    graph = random_graph(3)
    before = copied(graph)
    assert_same(as_batch(graph), Batch.from_data_list([graph]))
    assert_unchanged(graph, before)


def test_a_graph_of_one_node_without_edges_is_a_batch_of_one() -> None:
    batch = as_batch(Data(x=torch.ones(1, 2), edge_index=NO_EDGES))
    assert (batch.num_graphs, batch.ptr.tolist(), batch.batch.tolist()) == (1, [0, 1], [0])


def test_a_graph_without_nodes_is_a_batch_of_one() -> None:
    batch = as_batch(Data(x=torch.ones(0, 2), edge_index=NO_EDGES))
    assert (batch.num_graphs, batch.ptr.tolist()) == (1, [0, 0])


def test_a_record_with_pointers_keeps_them() -> None:
    """They know what a batch vector does not: that the last graph has no nodes."""
    owner, ptr = torch.tensor([0, 0, 1]), torch.tensor([0, 2, 3, 3])
    batch = as_batch(Data(x=torch.ones(3, 2), edge_index=NO_EDGES, batch=owner, ptr=ptr))
    assert (batch.num_graphs, batch.ptr.tolist()) == (3, [0, 2, 3, 3])


def test_a_record_with_a_batch_vector_keeps_its_graphs_apart() -> None:
    theirs = Batch.from_data_list(graphs())
    record = Data(x=theirs.x, edge_index=theirs.edge_index, batch=theirs.batch)
    before = copied(record)
    assert_same(as_batch(record), theirs, "x", "edge_index", "batch", "ptr")
    assert_unchanged(record, before)


def test_plain_tensors_are_a_batch() -> None:
    theirs = Batch.from_data_list(graphs())
    ours = as_batch(theirs.x, theirs.edge_index, theirs.edge_attr, theirs.batch)
    assert_same(ours, theirs, "x", "edge_index", "edge_attr", "batch", "ptr")
    assert ours.x is theirs.x


def test_plain_tensors_without_a_batch_vector_are_one_graph() -> None:
    graph = random_graph(3)
    ours = as_batch(graph.x, graph.edge_index)
    assert_same(ours, Batch.from_data_list([graph]), "x", "edge_index", "batch", "ptr")
    assert "edge_attr" not in ours


def test_features_without_edges_are_refused() -> None:
    with pytest.raises(UserError, match="`edge_index` is missing"):
        as_batch(torch.ones(3, 2))


@pytest.mark.parametrize(
    "record", [Data(x=torch.ones(3, 2)), Data(edge_index=NO_EDGES), Data()], ids=str
)
def test_a_record_without_features_or_edges_is_refused(record: Data) -> None:
    with pytest.raises(UserError, match="needs node features x and an edge_index"):
        as_batch(record)


@pytest.mark.parametrize("thing", [None, "MUTAG", 3, np.ones((3, 2)), [random_graph(0)]], ids=str)
def test_what_is_no_graph_is_named_by_its_type(thing: object) -> None:
    with pytest.raises(
        UserError, match=f"takes PyG graphs or tensors, got a {type(thing).__name__}"
    ):
        as_batch(thing)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=5))
@settings(max_examples=40, deadline=None)
def test_the_undirected_edges_of_any_batch_are_those_of_the_store(seeds: list[int]) -> None:
    chosen = [random_graph(seed) for seed in seeds]
    theirs = Batch.from_data_list(chosen)
    before = copied(theirs)
    ours = GraphStore.from_graphs(chosen).with_pairs().batch(torch.arange(len(chosen)))
    assert_same(with_pairs(theirs), ours, "pair_index", "edge_pair")
    assert_unchanged(theirs, before)


@given(st.integers(0, 200))
@settings(max_examples=40, deadline=None)
def test_every_directed_edge_names_the_undirected_one_with_its_ends(seed: int) -> None:
    graph = random_graph(seed)
    ends, pair = undirected_pairs(graph.edge_index, graph.x.size(0))
    assert torch.equal(ends[:, pair], graph.edge_index.sort(dim=0).values)
    different = {frozenset(edge) for edge in graph.edge_index.T.tolist()}
    assert ends.size(1) == len(different)
    assert ends.T.tolist() == sorted(ends.T.tolist())


def test_a_batch_that_knows_its_undirected_edges_is_returned_as_it_is() -> None:
    ours = GraphStore.from_graphs(graphs()).with_pairs().batch(torch.arange(4))
    assert with_pairs(ours) is ours


def test_a_batch_without_nodes_has_no_undirected_edges() -> None:
    empty = with_pairs(as_batch(Data(x=torch.ones(0, 2), edge_index=NO_EDGES)))
    assert empty.pair_index.shape == (2, 0)
    assert empty.edge_pair.shape == (0,)


def test_nodes_that_do_not_lie_together_are_refused() -> None:
    with pytest.raises(UserError, match="`batch` must be sorted"):
        as_batch(
            torch.ones(3, 1), torch.empty(2, 0, dtype=torch.int64), batch=torch.tensor([0, 1, 0])
        )


@pytest.mark.parametrize(("size", "pieces"), [(3, [3, 1]), (4, [4]), (5, [4])])
def test_a_batch_that_needs_no_cut_is_returned_as_it_is(size: int, pieces: list[int]) -> None:
    batch = Batch.from_data_list(graphs())
    found = list(cut(batch, size))
    assert [piece.num_graphs for piece in found] == pieces
    assert (found[0] is batch) == (len(pieces) == 1)


def test_a_batch_is_cut_to_any_sizes() -> None:
    """Also to none: a piece without graphs."""
    store = ba_motifs(num_graphs=6, base_size=5, seed=0).with_pairs()
    batch = store.batch(torch.arange(6))
    pieces = list(cut(batch, [1, 0, 3, 2]))
    for piece, index in zip(pieces, torch.arange(6).split([1, 0, 3, 2]), strict=True):
        expected = store.batch(index)
        for name in ("x", "edge_index", "y", "batch", "ptr", "pair_index", "edge_pair"):
            assert torch.equal(piece[name], expected[name]), name
