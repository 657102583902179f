"""Connected pieces of kept parts, against networkx."""

import networkx as nx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Batch, Data

from cores.config import Removal
from cores.graphs.components import (
    best_pieces,
    component_labels,
    count_pieces,
    subgraph_pieces,
)
from cores.graphs.subgraphs import Elements

REMOVALS: tuple[Removal, ...] = ("node", "edge", "both")
seeds = st.integers(0, 10_000)


def random_batch(seed: int, graphs: int = 4) -> Batch:
    """Sparse graphs in several components, some without edges, of nodes that know their number."""
    random = torch.Generator().manual_seed(seed)
    found = []
    for number in range(graphs):
        nodes = int(torch.randint(1, 12, (), generator=random))
        wanted = int(torch.randint(0, nodes + 2, (), generator=random))
        drawn = torch.randint(nodes, (2, wanted), generator=random)
        pairs = sorted({(min(a, b), max(a, b)) for a, b in drawn.T.tolist() if a != b})
        ends = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
        x = 100.0 * number + torch.arange(nodes)[:, None]
        found.append(Data(x=x, edge_index=torch.cat([ends, ends.flip(0)], dim=1)))
    return Batch.from_data_list(found)


def action(elements: Elements, seed: int, samples: int = 3) -> Tensor:
    random = torch.Generator().manual_seed(seed + 1)
    share = torch.rand(samples, 1, generator=random)
    return torch.rand(samples, len(elements.owner), generator=random) < share


def pieces_of(batch: Batch, removal: Removal) -> list[list[set[int]]]:
    """The pieces of every graph of a batch, by networkx."""
    whole = nx.Graph()
    if removal != "edge":
        whole.add_nodes_from(range(batch.num_nodes))
    whole.add_edges_from(batch.edge_index.T.tolist())
    found: list[list[set[int]]] = [[] for _ in range(batch.num_graphs)]
    for piece in nx.connected_components(whole):
        found[int(batch.batch[next(iter(piece))])].append(piece)
    return found


@given(seeds)
@settings(max_examples=60, deadline=None)
def test_labels_are_the_smallest_node_of_each_component(seed: int) -> None:
    batch = random_batch(seed)
    kept = torch.rand(3, batch.num_edges, generator=torch.Generator().manual_seed(seed)) < 0.7
    labels = component_labels(batch.edge_index, kept, batch.num_nodes)
    for row, edges in zip(labels, kept, strict=True):
        graph = nx.Graph()
        graph.add_nodes_from(range(batch.num_nodes))
        graph.add_edges_from(batch.edge_index[:, edges].T.tolist())
        for piece in nx.connected_components(graph):
            assert {int(row[node]) for node in piece} == {min(piece)}


def test_a_long_path_in_any_order_is_one_component() -> None:
    order = torch.randperm(5000, generator=torch.Generator().manual_seed(0))
    path = torch.stack([order[:-1], order[1:]])
    labels = component_labels(path, torch.ones(4999, dtype=torch.bool), 5000)
    assert not labels.any()


@pytest.mark.parametrize("removal", REMOVALS)
@given(seed=seeds)
@settings(max_examples=40, deadline=None)
def test_pieces_are_counted_as_networkx_counts_them(removal: Removal, seed: int) -> None:
    elements = Elements.of(random_batch(seed), removal)
    removed = action(elements, seed)
    counts = count_pieces(elements, removed)
    for row, sample in zip(counts, removed, strict=True):
        left = elements.subgraph(sample).batch
        expected = [len(pieces) for pieces in pieces_of(left, removal)]
        assert row.tolist() == expected
        assert subgraph_pieces(left, removal).tolist() == expected


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("removal", REMOVALS)
@given(seed=seeds)
@settings(max_examples=40, deadline=None)
def test_the_best_pieces_are_left_and_nothing_else(removal: Removal, most: int, seed: int) -> None:
    elements = Elements.of(random_batch(seed), removal)
    random = torch.Generator().manual_seed(seed + 2)
    scores = torch.randn(len(elements.owner), generator=random)
    actions = action(elements, seed)
    for before, after in zip(actions, best_pieces(elements, actions, scores, most), strict=True):
        assert (after | ~before).all(), "nothing comes back"
        one, other = elements.subgraph(before), elements.subgraph(after)
        kept = _by_first_number(pieces_of(other.batch, removal), other.batch)
        there = _by_first_number(pieces_of(one.batch, removal), one.batch)
        value = _values(elements, before, scores)
        for left, all_of_it in zip(kept, there, strict=True):
            ranked = sorted(all_of_it, key=lambda piece: -sum(value[node] for node in piece))
            assert sorted(map(sorted, left)) == sorted(map(sorted, ranked[:most]))
        if removal == "edge":
            assert not other.removed_nodes.any()


def _by_first_number(pieces: list[list[set[int]]], batch: Batch) -> list[list[set[float]]]:
    """Pieces by what their nodes are called in the whole graphs."""
    return [[{float(batch.x[node]) for node in piece} for piece in graph] for graph in pieces]


def _values(elements: Elements, removed: Tensor, scores: Tensor) -> dict[float, float]:
    """Of every node; an edge that is left is counted at one of its ends."""
    batch, left = elements.batch, elements.subgraph(removed)
    names = batch.x.flatten().tolist()
    value = dict.fromkeys(names, 0.0)
    if elements.removal != "edge":
        for name, gone, score in zip(
            names, left.removed_nodes, elements.per_node(scores, 0.0), strict=True
        ):
            value[name] += 0.0 if gone else float(score)
    if elements.removal != "node":
        ends = {frozenset(pair) for pair in batch.edge_index[:, ~left.removed_edges].T.tolist()}
        for pair, score in zip(
            batch.pair_index.T.tolist(), elements.per_pair(scores).tolist(), strict=True
        ):
            value[names[pair[0]]] += score if frozenset(pair) in ends else 0.0
    return value


def test_of_pieces_that_are_alike_the_first_is_left() -> None:
    twins = Data(x=torch.ones(5, 1), edge_index=torch.tensor([[0, 1, 3, 4], [1, 0, 4, 3]]))
    elements = Elements.of(Batch.from_data_list([twins]), "node")
    removed = torch.tensor([False, False, True, False, False])
    scores = torch.tensor([0.1, 0.2, 9.0, 0.2, 0.1 + 1e-7])
    left = ~best_pieces(elements, removed, scores, most=1)
    assert left.tolist() == [True, True, False, False, False]
