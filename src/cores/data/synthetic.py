"""BA-2Motifs by code: random trees with a motif attached, and which nodes and edges it is (Fig. 1).

The motif alone decides the class, so a good subgraph is known exactly.
"""

from collections.abc import Sequence

import numpy as np
import torch

from cores.errors import UserError, nearest
from cores.graphs.segments import owners, place_within, pointers
from cores.graphs.store import GraphStore

MOTIFS: dict[str, tuple[tuple[int, int], ...]] = {
    "cycle": ((0, 1), (1, 2), (2, 3), (3, 4), (4, 0)),
    "house": ((0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4)),
    "star": ((0, 1), (0, 2), (0, 3), (0, 4)),
    "clique": tuple((i, j) for i in range(4) for j in range(i)),
}
"""Undirected edges of every motif, nodes counted from 0."""


def ba_motifs(
    num_graphs: int = 1000,
    base_size: int = 20,
    motifs: Sequence[str] = ("cycle", "house"),
    seed: int = 0,
) -> GraphStore:
    """Graphs of a Barabási-Albert tree and one motif, joined by an edge; class = which motif.

    As in the original BA-2Motifs, the node features are constant (ten times 0.1) and the motif's
    nodes come last. Classes take turns, so they are balanced.

    >>> graphs = ba_motifs(num_graphs=4, base_size=10)
    >>> graphs.y.tolist(), graphs.num_nodes.tolist()
    ([0, 1, 0, 1], [15, 15, 15, 15])
    """
    unknown = [name for name in motifs if name not in MOTIFS]
    if unknown:
        raise UserError(f"unknown motif {unknown[0]!r}; {nearest(unknown[0], MOTIFS)}")
    if len(motifs) < 2:
        raise UserError(f"a task needs at least two motifs, got {len(motifs)}")
    if base_size < 2:
        raise UserError(f"base_size must be at least 2, got {base_size}")
    if num_graphs < len(motifs):
        raise UserError(f"num_graphs must be at least the {len(motifs)} motifs, got {num_graphs}")
    random = np.random.default_rng(seed)

    # Preferential attachment for all graphs at once: a random end of a random earlier edge is a
    # node drawn in proportion to its degree.
    ends = np.zeros((num_graphs, 2 * (base_size - 1)), dtype=np.int64)
    ends[:, 1] = 1
    everyone = np.arange(num_graphs)
    for node in range(2, base_size):
        drawn = random.integers(0, 2 * (node - 1), size=num_graphs)
        ends[:, 2 * node - 2] = ends[everyone, drawn]
        ends[:, 2 * node - 1] = node
    base = ends.reshape(num_graphs, base_size - 1, 2)
    anchor = random.integers(0, base_size, size=num_graphs)

    labels = everyone % len(motifs)
    shapes = [np.array(MOTIFS[name]) + base_size for name in motifs]
    sizes = np.array([shape.max() + 1 for shape in shapes])[labels]
    edges, truths = [], []
    for graph in everyone:  # once per dataset, not in training
        shape = shapes[labels[graph]]
        link = [(anchor[graph], random.integers(base_size, sizes[graph]))]
        undirected = np.concatenate([base[graph], shape, link])
        both = np.concatenate([undirected, undirected[:, ::-1]])
        order = np.lexsort((both[:, 1], both[:, 0]))
        edges.append(both[order])
        truths.append((both[order] >= base_size).all(axis=1))

    num_nodes = torch.from_numpy(sizes)
    place = place_within(owners(num_nodes), num_graphs)
    return GraphStore(
        x=torch.full((len(place), 10), 0.1),
        edge_index=torch.from_numpy(np.concatenate(edges).T.copy()),
        y=torch.from_numpy(labels),
        node_ptr=pointers(num_nodes),
        edge_ptr=pointers(torch.tensor([len(ends) for ends in edges])),
        node_truth=place >= base_size,
        edge_truth=torch.from_numpy(np.concatenate(truths)),
    )
