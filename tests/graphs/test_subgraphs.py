"""Subgraphs hold what was kept, in its old order, and nothing else."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data
from torch_geometric.utils import subgraph as pyg_subgraph

from cores.config import NetworkConfig, Removal
from cores.data.dataset import Dims
from cores.graphs.batches import as_batch, cut, with_pairs
from cores.graphs.subgraphs import (
    Elements,
    Subgraph,
    edge_ratio,
    node_ratio,
    remove_edges,
    remove_nodes,
)
from cores.models.classifier import Classifier

# 0 - 1, 1 - 2, 1 - 3, both directions
EDGES = torch.tensor([[0, 1, 1, 2, 1, 3], [1, 0, 2, 1, 3, 1]])


def two_graphs() -> Batch:
    graphs = [
        Data(
            x=torch.arange(4.0)[:, None] + 10 * i,
            edge_index=EDGES,
            edge_attr=torch.arange(6.0)[:, None] + 10 * i,
            node_truth=torch.tensor([True, False, True, False]),
            y=torch.tensor([i]),
        )
        for i in range(2)
    ]
    return Batch.from_data_list(graphs)


def test_removing_a_node_removes_its_edges_and_renumbers_the_rest() -> None:
    removed = torch.tensor([True, False, False, False, False, False, True, True])
    subgraph = remove_nodes(two_graphs(), removed)
    assert subgraph.x.flatten().tolist() == [1, 2, 3, 10, 11]
    assert subgraph.edge_index.tolist() == [[0, 1, 0, 2, 3, 4], [1, 0, 2, 0, 4, 3]]
    assert subgraph.edge_attr.flatten().tolist() == [2, 3, 4, 5, 10, 11]
    assert subgraph.node_truth.tolist() == [False, True, False, True, False]
    assert subgraph.batch.tolist() == [0, 0, 0, 1, 1]
    assert subgraph.ptr.tolist() == [0, 3, 5]
    assert subgraph.y.tolist() == [0, 1]
    assert subgraph.num_graphs == 2


def test_a_graph_that_lost_all_its_nodes_stays_in_the_batch() -> None:
    removed = torch.tensor([True] * 4 + [False] * 4)
    subgraph = remove_nodes(two_graphs(), removed)
    assert subgraph.num_graphs == 2
    assert subgraph.ptr.tolist() == [0, 0, 4]
    assert subgraph.edge_index.tolist() == EDGES.tolist()


def test_labels_and_pointers_are_never_taken_for_edges() -> None:
    """Whatever their length happens to be."""
    one_edge = torch.tensor([[0, 1], [1, 0]])
    for count in (1, 2):
        graphs = [
            Data(x=torch.ones(3, 1), edge_index=one_edge[:, : 2 // count], y=torch.tensor([1]))
            for _ in range(count)
        ]
        batch = Batch.from_data_list(graphs)
        for removed in (False, True):
            edges = remove_edges(batch, torch.full((batch.num_edges,), removed))
            nodes = remove_nodes(batch, torch.full((batch.num_nodes,), removed))
            for subgraph in (edges, nodes):
                assert subgraph.num_graphs == count
                assert subgraph.y.tolist() == [1] * count


def test_removing_edges_keeps_all_nodes() -> None:
    removed = torch.zeros(12, dtype=torch.bool)
    removed[[0, 1, 10, 11]] = True
    subgraph = remove_edges(two_graphs(), removed)
    assert subgraph.x.flatten().tolist() == [0, 1, 2, 3, 10, 11, 12, 13]
    assert subgraph.edge_index.tolist() == [[1, 2, 1, 3, 4, 5, 5, 6], [2, 1, 3, 1, 5, 4, 6, 5]]
    assert subgraph.edge_attr.flatten().tolist() == [2, 3, 4, 5, 10, 11, 12, 13]
    assert subgraph.num_graphs == 2


@given(st.lists(st.booleans(), min_size=8, max_size=8))
@settings(deadline=None)
def test_node_removal_agrees_with_pygs_subgraph(removed: list[bool]) -> None:
    batch, mask = two_graphs(), torch.tensor(removed)
    edge_index, edge_attr = pyg_subgraph(
        ~mask, batch.edge_index, batch.edge_attr, relabel_nodes=True, num_nodes=8
    )
    ours = remove_nodes(batch, mask)
    assert torch.equal(ours.edge_index, edge_index)
    assert torch.equal(ours.edge_attr, edge_attr)


def test_ratios_are_shares_per_graph_and_1_where_there_is_nothing() -> None:
    batch = two_graphs()
    removed = torch.tensor([True, False, False, False, True, True, True, True])
    assert node_ratio(batch, removed).tolist() == [0.75, 0.0]
    edges = torch.tensor([True, True] + [False] * 10)
    assert torch.allclose(edge_ratio(batch, edges), torch.tensor([2 / 3, 1.0]))
    lonely = Batch.from_data_list([Data(x=torch.ones(2, 1), edge_index=EDGES[:, :0])])
    assert edge_ratio(lonely, torch.zeros(0, dtype=torch.bool)).tolist() == [1.0]


@pytest.mark.parametrize("dims", [Dims(1, 2), Dims(1, 3, task="multilabel")])
@given(st.integers(0, 1000), st.lists(st.booleans(), min_size=8, max_size=8))
@settings(max_examples=25, deadline=None)
def test_the_classifier_ignores_everything_outside_the_subgraph(
    dims: Dims, seed: int, removed: list[bool]
) -> None:
    """With the mask held fixed, features and edges of removed nodes never reach the output."""
    torch.manual_seed(seed)
    classifier = Classifier(dims, NetworkConfig(hidden_dim=8, num_layers=2), "gin").eval()
    mask = torch.tensor(removed)
    batch, changed = two_graphs(), two_graphs()
    changed.x = torch.where(mask[:, None], torch.randn(8, 1), changed.x)
    touched = mask[changed.edge_index].any(dim=0)
    keep_some = ~touched | (torch.rand(12) < 0.5)
    changed.edge_index = changed.edge_index[:, keep_some]
    changed.edge_attr = changed.edge_attr[keep_some]
    one, other = (classifier(remove_nodes(each, mask)) for each in (batch, changed))
    assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("removal", "removed", "nodes", "edges"),
    [
        # node 0 of the first graph, nodes 2 and 3 of the second
        ("node", [0, 6, 7], [1, 2, 3, 10, 11], [2, 3, 4, 5, 10, 11]),
        # 1 - 3 of the first, 0 - 1 of the second
        ("edge", [2, 3], [0, 1, 2, 3, 10, 11, 12, 13], [0, 1, 2, 3, 12, 13, 14, 15]),
        # node 0 and 1 - 2 of the first (whose 0 - 1 goes with its end), 1 - 3 of the second
        ("both", [0, 9, 13], [1, 2, 3, 10, 11, 12, 13], [4, 5, 10, 11, 12, 13]),
    ],
)
def test_a_subgraph_holds_what_was_not_removed(
    removal: str, removed: list[int], nodes: list[int], edges: list[int]
) -> None:
    elements = Elements.of(two_graphs(), removal)
    mask = torch.zeros(len(elements.owner), dtype=torch.bool)
    mask[removed] = True
    subgraph = elements.subgraph(mask)
    assert subgraph.batch.x.flatten().tolist() == nodes
    assert subgraph.batch.edge_attr.flatten().tolist() == edges
    whole = elements.batch
    assert whole.x[~subgraph.removed_nodes].flatten().tolist() == nodes
    assert whole.edge_attr[~subgraph.removed_edges].flatten().tolist() == edges
    assert "pair_index" not in subgraph.batch, "it is of the whole graphs"


@pytest.mark.parametrize(
    ("removal", "removed", "ratio"),
    [
        ("node", [0, 6, 7], [0.75, 0.5]),
        ("edge", [2, 3], [2 / 3, 2 / 3]),
        # 4 nodes and 3 edges: without node 0, its edge and 1 - 2; without 1 - 3
        ("both", [0, 9, 13], [4 / 7, 6 / 7]),
    ],
)
def test_the_kept_ratio_counts_what_is_decided_on(
    removal: str, removed: list[int], ratio: list[float]
) -> None:
    elements = Elements.of(two_graphs(), removal)
    mask = torch.zeros(2, len(elements.owner), dtype=torch.bool)
    mask[1, removed] = True
    assert elements.kept_ratio(mask).tolist() == [[1.0, 1.0], pytest.approx(ratio)]


def test_values_of_samples_lie_as_in_a_batch_with_a_copy_for_each() -> None:
    """Nodes of all copies first, then their edges."""
    batch = two_graphs()
    for removal, nodes in (("node", 8), ("edge", 0), ("both", 8)):
        elements = Elements.of(batch, removal)
        count = len(elements.owner)
        values = torch.arange(2 * count).view(2, count)
        expected = [*values[:, :nodes].flatten().tolist(), *values[:, nodes:].flatten().tolist()]
        assert elements.flattened(values).tolist() == expected


def test_what_is_not_decided_on_has_the_other_value() -> None:
    batch = two_graphs()
    nodes, pairs = torch.arange(8.0), torch.arange(6.0)
    node, edge, both = (Elements.of(batch, removal) for removal in ("node", "edge", "both"))
    assert torch.equal(node.per_node(nodes, 5.0), nodes)
    assert node.per_edge(nodes, 5.0).tolist() == [5.0] * 12
    assert edge.per_node(pairs, 5.0).tolist() == [5.0] * 8
    assert torch.equal(edge.per_pair(pairs), pairs)
    assert torch.equal(edge.per_edge(pairs, 5.0), pairs[edge.batch.edge_pair])
    joined = torch.cat([nodes, pairs + 10])
    assert torch.equal(both.per_node(joined, 5.0), nodes)
    assert torch.equal(both.per_pair(joined), pairs + 10)


def test_the_full_subgraph_has_lost_nothing() -> None:
    full = Subgraph.full(two_graphs())
    assert full.removed_nodes.tolist() == [False] * 8
    assert full.removed_edges.tolist() == [False] * 12


def test_sums_and_means_are_those_of_each_graph_and_0_where_there_is_nothing() -> None:
    lonely = Data(x=torch.ones(1, 1), edge_index=EDGES[:, :0], y=torch.tensor([0]))
    batch = Batch.from_data_list([Data(x=torch.ones(4, 1), edge_index=EDGES), lonely])
    edges = Elements.of(batch, "edge")
    values = torch.tensor([[1.0, 2.0, 6.0], [0.0, 0.0, 3.0]])
    assert edges.sum(values).tolist() == [[9.0, 0.0], [3.0, 0.0]]
    assert edges.mean(values).tolist() == [[3.0, 0.0], [1.0, 0.0]]
    assert edges.count.tolist() == [3, 0]


def test_of_a_single_node_nothing_or_all_is_kept() -> None:
    lonely = Batch.from_data_list([Data(x=torch.ones(1, 1), edge_index=EDGES[:, :0])])
    assert node_ratio(lonely, torch.tensor([True])).tolist() == [0.0]
    assert node_ratio(lonely, torch.tensor([False])).tolist() == [1.0]


def test_who_decides_on_nodes_alone_finds_no_undirected_edges() -> None:
    batch = two_graphs()
    assert Elements.of(batch, "node").batch is batch
    assert "pair_index" in Elements.of(batch, "edge").batch


def test_with_both_an_edge_goes_by_its_own_logit() -> None:
    both = Elements.of(two_graphs(), "both")
    logits = torch.cat([torch.full((8,), -1.0), torch.tensor([-1.0, 0.0, 0.5, -1.0, 0.0, 2.0])])
    assert both.per_pair(both.mode(logits)).tolist() == [False, False, True] * 2


@pytest.mark.parametrize("removal", ["node", "edge", "both"])
def test_values_are_split_as_their_batch_is_cut(removal: Removal) -> None:
    """Four graphs are cut into three and one; two values per element say where it lies."""
    one = two_graphs()
    batch = with_pairs(as_batch(Batch.from_data_list([*one.to_data_list(), *one.to_data_list()])))
    elements = Elements.of(batch, removal)
    pieces = [Elements.of(piece, removal) for piece in cut(batch, 3)]
    nodes, pairs = batch.x.size(0), batch.pair_index.size(1)
    of_nodes, of_pairs = torch.arange(nodes), 100 + torch.arange(pairs)
    known = {"node": [of_nodes], "edge": [of_pairs], "both": [of_nodes, of_pairs]}[removal]
    values = torch.stack([torch.cat(known), -torch.cat(known)])
    first, second = elements.split(values, pieces)
    for part, piece in ((first, pieces[0]), (second, pieces[1])):
        assert part.shape == (2, len(piece.owner))
        assert torch.equal(part[1], -part[0])
    cut_at = [pieces[0].batch.x.size(0), pieces[0].batch.pair_index.size(1)]
    ends = {"node": cut_at[:1], "edge": cut_at[1:], "both": cut_at}[removal]
    expected = torch.cat([values[:end] for values, end in zip(known, ends, strict=True)])
    assert torch.equal(first[0], expected)
    expected = torch.cat([values[end:] for values, end in zip(known, ends, strict=True)])
    assert torch.equal(second[0], expected)


def test_a_mean_over_graphs_weighs_graphs_alike_and_leaves_padding_out() -> None:
    """Graphs of one, two and three nodes, with means 2, 3 and 7."""
    batch = Batch(
        x=torch.ones(6, 1),
        edge_index=torch.empty(2, 0, dtype=torch.int64),
        batch=torch.tensor([0, 1, 1, 2, 2, 2]),
        ptr=torch.tensor([0, 1, 3, 6]),
    )
    values = torch.tensor([2.0, 2.0, 4.0, 6.0, 7.0, 8.0])
    assert Elements.of(batch, "node").mean_over_graphs(values).item() == pytest.approx(4.0)
    batch.unpadded_graphs = torch.tensor([1.0, 1.0, 0.0])
    assert Elements.of(batch, "node").mean_over_graphs(values).item() == pytest.approx(2.5)
