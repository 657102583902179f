"""Neighbourhoods of nodes, against PyG's, and how large they may be."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.utils import k_hop_subgraph

from cores.config import Reach
from cores.graphs.neighbourhoods import LargeGraph, Neighbourhoods


def random_edges(nodes: int, edges: int, seed: int) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.randint(nodes, (2, edges), generator=random)


def both_ways(edge_index: Tensor) -> Tensor:
    return torch.cat([edge_index, edge_index.flip(0)], dim=1).unique(dim=1)


def parts(found: Neighbourhoods, at: int) -> tuple[list[int], list[int], list[list[int]]]:
    """The nodes, the edges, and the ends of the edges by the numbers of the large graph."""
    nodes = found.node[found.node_ptr[at] : found.node_ptr[at + 1]]
    edges = slice(int(found.edge_ptr[at]), int(found.edge_ptr[at + 1]))
    return nodes.tolist(), found.edge[edges].tolist(), nodes[found.edge_index[:, edges]].tolist()


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), st.integers(0, 30), st.integers(1, 3), st.integers(0, 2**31))
def test_without_a_fan_out_they_are_those_of_pyg(
    nodes: int, edges: int, hops: int, seed: int
) -> None:
    edge_index = random_edges(nodes, edges, seed)  # with loops and repeated edges, one way
    roots = torch.arange(nodes).flip(0)
    found = LargeGraph(edge_index, nodes).neighbourhoods(roots, Reach(hops, 0))
    for at, root in enumerate(roots.tolist()):
        subset, _, _, mask = k_hop_subgraph(root, hops, edge_index, num_nodes=nodes)
        numbers, chosen, ends = parts(found, at)
        assert numbers[0] == root
        assert sorted(numbers) == subset.tolist()
        assert chosen == mask.nonzero().flatten().tolist()
        assert ends == edge_index[:, mask].tolist()


def test_roots_come_first_and_the_nearest_after_them() -> None:
    path = both_ways(torch.tensor([[0, 1, 2], [1, 2, 3]]))
    found = LargeGraph(path, 4).neighbourhoods(torch.tensor([3]), Reach(3, 0))
    assert found.node.tolist() == [3, 2, 1, 0]
    assert found.is_root.tolist() == [True, False, False, False]


@pytest.mark.parametrize("fan_out", [1, 3])
def test_a_fan_out_bounds_nodes_and_edges(fan_out: int) -> None:
    star = both_ways(torch.stack([torch.zeros(50, dtype=torch.int64), torch.arange(1, 51)]))
    edge_index = torch.cat([star, both_ways(random_edges(51, 100, seed=0))], dim=1)
    found = LargeGraph(edge_index, 51).neighbourhoods(torch.arange(51), Reach(2, fan_out))
    assert int(found.node_ptr.diff().max()) <= 1 + fan_out + fan_out**2
    assert bool((found.edge_ptr.diff() <= 2 * fan_out * found.node_ptr.diff()).all())
    whole = LargeGraph(edge_index, 51).neighbourhoods(torch.arange(51), Reach(2, 0))
    for root in range(51):
        some, edges, _ = parts(found, root)
        assert set(some) <= set(parts(whole, root)[0])
        assert set(edges) <= set(parts(whole, root)[1])


def test_an_edge_comes_with_its_opposite_under_a_fan_out() -> None:
    edge_index = both_ways(random_edges(30, 120, seed=1))
    found = LargeGraph(edge_index, 30).neighbourhoods(torch.arange(30), Reach(2, 2))
    for root in range(30):
        source, target = parts(found, root)[2]
        ends = set(zip(source, target, strict=True))
        assert ends == {(b, a) for a, b in ends}


def test_a_neighbourhood_does_not_depend_on_who_else_is_asked_for() -> None:
    graph = LargeGraph(both_ways(random_edges(40, 300, seed=2)), 40)
    together = graph.neighbourhoods(torch.arange(40), Reach(2, 3))
    alone = [part for _, part in graph.in_chunks(torch.arange(40), Reach(2, 3), 7)]
    joined = Neighbourhoods.joined(alone)
    for name, value in vars(together).items():
        assert torch.equal(value, getattr(joined, name)), name


def test_another_root_sees_other_neighbours_of_a_node_that_has_many() -> None:
    star = both_ways(torch.stack([torch.zeros(60, dtype=torch.int64), torch.arange(1, 61)]))
    found = LargeGraph(star, 61).neighbourhoods(torch.arange(1, 61), Reach(2, 5))
    seen = {node for at in range(60) for node in parts(found, at)[0]}
    assert len(seen) > 40
