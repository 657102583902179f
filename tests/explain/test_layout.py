"""Layouts: the same every time, rings open, and no crossings where a small graph needs none."""

import networkx as nx
import numpy as np
import pytest

from cores.explain.layout import crossings, graph_layout


def edges_of(graph: nx.Graph) -> list[tuple[int, int]]:
    return [(min(edge), max(edge)) for edge in graph.edges]


PLANE = {
    "ring": nx.cycle_graph(18),
    "ladder": nx.ladder_graph(8),
    "two rings": nx.Graph([(0, 1), (1, 2), (2, 3), (3, 0), (3, 4), (4, 5), (5, 6), (6, 3)]),
    "tree": nx.random_labeled_tree(30, seed=3),
    "dodecahedron": nx.dodecahedral_graph(),
}


@pytest.mark.parametrize("graph", PLANE.values(), ids=list(PLANE))
def test_a_small_plane_graph_does_not_cross_itself(graph: nx.Graph) -> None:
    edges = edges_of(graph)
    positions = graph_layout(len(graph), edges)
    assert crossings(positions, edges) == 0
    assert np.array_equal(positions, graph_layout(len(graph), edges))


def test_a_few_crossings_are_better_than_edges_of_any_length() -> None:
    """A stack of triangles is plane, but without crossings each lies inside the next."""
    edges = [(3 * at + a, 3 * at + b) for at in range(6) for a, b in ((0, 1), (1, 2), (0, 2))]
    edges += [(node, node + 3) for node in range(15)]
    positions = graph_layout(18, edges)
    lengths = np.array([np.linalg.norm(positions[a] - positions[b]) for a, b in edges])
    assert lengths.max() / np.median(lengths) < 3


@pytest.mark.parametrize("seed", range(4))
def test_a_roof_stands_on_its_house(seed: int) -> None:
    """A square with a triangle on it, at the end of a tree: not folded into each other."""
    house = [(0, 1), (1, 2), (2, 3), (0, 3), (0, 4), (1, 4)]
    tree = nx.random_labeled_tree(20, seed=seed)
    edges = sorted([*house, (3, 5), *((5 + a, 5 + b) for a, b in tree.edges)])
    positions = graph_layout(25, edges)
    assert crossings(positions, edges) == 0
    assert np.linalg.norm(positions[4] - positions[[2, 3]].mean(axis=0)) > 1.2


def test_a_ring_is_round() -> None:
    positions = graph_layout(12, edges_of(nx.cycle_graph(12)))
    radius = np.linalg.norm(positions - positions.mean(axis=0), axis=1)
    assert radius.max() / radius.min() < 1.05


def test_crossing_edges_are_counted() -> None:
    square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    assert crossings(square, [(0, 2), (1, 3)]) == 1
    assert crossings(square, [(0, 1), (1, 2), (2, 3)]) == 0


def test_components_and_single_nodes_lie_apart() -> None:
    positions = graph_layout(7, [(0, 1), (2, 3), (3, 4)])
    apart = np.linalg.norm(positions[:, None] - positions[None], axis=2) + np.eye(7)
    assert apart.min() > 0.5
