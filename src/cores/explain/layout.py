"""Positions of a graph's nodes: rings open, no crossings where a small graph has a plane drawing.

Stress majorisation (Gansner, Koren and North 2004) from several starts; where edges cross in the
end, nodes are moved one by one from a plane start and never across an edge, unless that would
stretch the graph too much.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

ROUNDS, SINGLE_ROUNDS = 60, 20
"""Rounds of stress majorisation for all nodes at once, and node by node; more change little."""
TRIAL_ROUNDS, FOLLOWED = 15, 4
"""After so many rounds only the best starts are followed."""
HOPEFUL_ROUNDS = 5
"""After which untangling is given up where far too much stress is left."""
MOST_UNTANGLED = 60
"""Nodes of a component that is untangled node by node, and begun from several starts."""
MOST_EDGES, FEW_EDGES = 3.0, 1.5
"""Edges per node: no plane graph has more, and a large one with more does as well from other starts
as from a plane one, which takes long to find."""
RANDOM_STARTS = 8
STILL = 6e-3
"""Edge lengths: a layout in which no node moves further in a round has settled."""
STEPS = np.array([[1.0], [0.5], [0.2]])
"""Towards the place that a node should have: the longest that lets no edges cross."""
ROWS = 64
"""Edges that are tested at once against all others: more would need much memory."""
MOST_STRESS = 4.0
"""Largest ratio of the stress without crossings to that with: some plane graphs, such
as those of proteins, can only be drawn so with edges that are very long or very short."""
Positions = NDArray[np.float64]


def graph_layout(nodes: int, edges: Sequence[tuple[int, int]]) -> Positions:
    """[nodes, 2]: the components side by side; an edge is about 1 long.

    >>> ring = [(0, 1), (1, 2), (2, 3), (0, 3)]
    >>> crossings(graph_layout(4, ring), ring)
    0
    """
    graph = nx.empty_graph(nodes)
    graph.add_edges_from(edges)
    positions = np.zeros((nodes, 2))
    parts = sorted(map(sorted, nx.connected_components(graph)), key=lambda part: (-len(part), part))
    width = max(3.0, 1.6 * nodes**0.5)
    left = top = row = 0.0
    for part in parts:
        placed = _component(graph, part)
        low, high = placed.min(axis=0), placed.max(axis=0)
        if left > 0 and left + high[0] - low[0] > width:  # a row is full
            left, top, row = 0.0, top + row + 1, 0.0
        positions[part] = placed - low + (left, top)
        left += high[0] - low[0] + 1
        row = max(row, high[1] - low[1])
    return positions


def crossings(positions: Positions, edges: Sequence[tuple[int, int]]) -> int:
    """Count the pairs of edges that cross."""
    ends = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return sum(
        int(_crossed(positions, ends[at : at + ROWS], ends[at:])[_later(len(ends) - at)].sum())
        for at in range(0, len(ends), ROWS)
    )


def _later(edges: int) -> NDArray[np.bool_]:
    """[rows, edges]: every pair of edges once."""
    return np.triu(np.ones((min(ROWS, edges), edges), dtype=bool), k=1)


def _component(graph: nx.Graph, nodes: list[int]) -> Positions:
    """A connected part of a graph, lying rather than standing."""
    count = len(nodes)
    if count == 1:
        return np.zeros((1, 2))
    number = {node: at for at, node in enumerate(nodes)}
    pairs = sorted(
        {(min(number[a], number[b]), max(number[a], number[b])) for a, b in graph.edges(nodes)}
    )
    ends = np.array(pairs, dtype=np.int64)
    distances = _distances(ends, count)
    starts = [_scaling(distances)]
    plane, embedding = False, None
    if len(pairs) <= (MOST_EDGES if count <= MOST_UNTANGLED else FEW_EDGES) * count:
        plane, embedding = nx.check_planarity(nx.Graph(pairs))
    if plane:
        planar = nx.combinatorial_embedding_to_pos(embedding)
        begun = np.array([planar[node] for node in range(count)], dtype=np.float64)
        starts.append(_scaled(begun, distances))
    if count <= MOST_UNTANGLED:
        starts += _random_starts(distances)
    found = _stressed(np.stack(starts), distances)
    placed = found[0]
    if plane and count <= MOST_UNTANGLED:
        most = MOST_STRESS * _stress(placed[None], distances)[0]
        near = found[_stress(found, distances) <= most]
        uncrossed = next((each for each in near if not crossings(each, pairs)), None)
        if uncrossed is None:
            uncrossed = _untangled(starts[1], distances, ends, most)
        placed = placed if uncrossed is None else uncrossed
    axes = np.linalg.svd(placed - placed.mean(axis=0), full_matrices=False)[2]
    return placed @ axes.T


def _distances(ends: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """[count, count]: edges on the shortest path."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import shortest_path

    adjacency = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(count, count))
    found: NDArray[np.float64] = shortest_path(adjacency.tocsr(), directed=False, unweighted=True)
    return found


def _scaling(distances: NDArray[np.float64]) -> Positions:
    """Classical scaling, and a small circle: it would put some nodes upon each other."""
    count = len(distances)
    centre = np.eye(count) - 1 / count
    values, vectors = np.linalg.eigh(-0.5 * centre @ distances**2 @ centre)
    angles = 2 * np.pi * np.arange(count) / count
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0)) + 0.1 * circle


def _random_starts(distances: NDArray[np.float64]) -> list[Positions]:
    """The same each time: what folds from one start, a roof into its house, opens from another."""
    random = np.random.default_rng(0)
    starts = random.normal(size=(RANDOM_STARTS, len(distances), 2))
    return [_scaled(start, distances) for start in starts]


def _scaled(start: Positions, distances: NDArray[np.float64]) -> Positions:
    return (start - start.mean(axis=0)) / np.ptp(start, axis=0).max() * distances.max()


def _stressed(starts: NDArray[np.float64], distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """[starts, nodes, 2]: distances in the plane as near to those in the graph as can be.

    The best comes first, and not all starts are followed to the end.
    """
    count = len(distances)
    weights = np.where(distances > 0, 1 / np.maximum(distances, 1) ** 2, 0)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    inverse = np.linalg.inv(laplacian + 1 / count) - 1 / count  # of what is orthogonal to shifts
    wanted = weights * distances
    positions = starts - starts.mean(axis=1, keepdims=True)
    for done in range(ROUNDS):
        if done == TRIAL_ROUNDS and len(positions) > FOLLOWED:
            positions = _by_stress(positions, distances)[:FOLLOWED]
        pull = wanted / np.maximum(_lengths(positions), 1e-9)
        pulled = pull.sum(axis=2, keepdims=True) * positions - pull @ positions
        before, positions = positions, inverse @ pulled
        if np.abs(positions - before).max() < STILL:
            break
    return _by_stress(positions, distances)


def _by_stress(
    positions: NDArray[np.float64], distances: NDArray[np.float64]
) -> NDArray[np.float64]:
    return positions[_stress(positions, distances).argsort(kind="stable")]


def _lengths(positions: NDArray[np.float64]) -> NDArray[np.float64]:
    """[starts, nodes, nodes]: how far nodes are from each other."""
    x, y = positions[:, :, None, 0], positions[:, :, None, 1]
    across, down = x - x.transpose(0, 2, 1), y - y.transpose(0, 2, 1)
    across *= across
    down *= down
    across += down
    lengths: NDArray[np.float64] = np.sqrt(across, out=across)
    return lengths


def _stress(positions: NDArray[np.float64], distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """[starts]: how far distances in the plane are from those in the graph."""
    off = (_lengths(positions) - distances) / np.maximum(distances, 1)
    return np.einsum("sij,sij->s", off, off)


def _untangled(
    begun: Positions, distances: NDArray[np.float64], ends: NDArray[Any], most: float
) -> Positions | None:
    """The same node by node; a step that would let edges cross is made shorter, or not at all.

    None where that leaves more stress than ``most``.
    """
    positions = begun.copy()
    weights = np.where(distances > 0, 1 / np.maximum(distances, 1) ** 2, 0)
    around = [_Around.of(node, ends) for node in range(len(positions))]
    for done in range(SINGLE_ROUNDS):
        if done == HOPEFUL_ROUNDS and _stress(positions[None], distances)[0] > 2 * most:
            return None  # the rounds that follow change much less than the first
        moved = 0.0
        for node in range(len(positions)):
            before = positions[node]
            apart = before - positions
            length = np.maximum(np.hypot(apart[:, 0], apart[:, 1]), 1e-9)
            goal = positions + apart * (distances[node] / length)[:, None]
            aim = weights[node] @ goal / weights[node].sum()
            steps = before + STEPS * (aim - before)
            free = ~around[node].crossed(positions, steps)
            if free.any():
                step = steps[free.argmax()]
                moved = max(moved, float(np.abs(step - before).max()))
                positions[node] = step
        if moved < STILL:
            break
    return positions if _stress(positions[None], distances)[0] <= most else None


@dataclass(frozen=True)
class _Around:
    """The edges of a node, and those that they may come to cross."""

    ends: NDArray[np.int64]
    """[own]: where the node's edges lead to."""
    others: NDArray[np.int64]
    """[others, 2]: all edges that the node is no end of."""
    apart: NDArray[np.bool_]
    """[own, others]: which of them share no end."""

    @classmethod
    def of(cls, node: int, edges: NDArray[np.int64]) -> "_Around":
        own = (edges == node).any(axis=1)
        ends, others = edges[own].sum(axis=1) - node, edges[~own]
        return cls(ends, others, (ends[:, None, None] != others).all(axis=2))

    def crossed(self, positions: Positions, places: Positions) -> NDArray[np.bool_]:
        """[places]: where the node cannot be without that edges cross."""
        c, d = positions[self.others[:, 0]], positions[self.others[:, 1]]
        p, q = places[:, None, None], positions[self.ends][:, None]
        of_others = _side(c, d, places[:, None])[:, None] * _side(c, d, q) < 0
        of_own = _side(p, q, c) * _side(p, q, d) < 0
        return np.asarray((of_others & of_own & self.apart).any(axis=(1, 2)))


def _crossed(positions: Positions, some: NDArray[Any], others: NDArray[Any]) -> NDArray[np.bool_]:
    """[some, others]: which edges cross; those that share an end do not."""
    a, b = positions[some[:, 0], None], positions[some[:, 1], None]
    c, d = positions[None, others[:, 0]], positions[None, others[:, 1]]
    shared = (some[:, None, :, None] == others[None, :, None, :]).any(axis=(2, 3))
    crossed = (_side(a, b, c) * _side(a, b, d) < 0) & (_side(c, d, a) * _side(c, d, b) < 0)
    return crossed & ~shared


def _side(p: Positions, q: Positions, r: Positions) -> NDArray[np.float64]:
    """On which side of the line from p to q the points r lie, by sign."""
    return (q[..., 0] - p[..., 0]) * (r[..., 1] - p[..., 1]) - (q[..., 1] - p[..., 1]) * (
        r[..., 0] - p[..., 0]
    )
