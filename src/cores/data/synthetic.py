"""Graphs by code, with ground truth: BA-2Motifs (Fig. 1), and BA-Shapes and Tree-Cycles.

The motif alone decides the class, so a good subgraph is known exactly. In the last two it is the
class of nodes, in one graph that PyG generates.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.datasets import ExplainerDataset
from torch_geometric.datasets.graph_generator import BAGraph, GraphGenerator, TreeGraph
from torch_geometric.datasets.motif_generator import CycleMotif, HouseMotif, MotifGenerator

from cores.graphs.neighbourhoods import Neighbourhoods
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


@dataclass(frozen=True)
class MotifTruth:
    """The ground truth where what decides a node's class is the motif that it belongs to."""

    motif_of_node: Int[Tensor, " nodes"]
    """-1 for a node of none."""
    in_motif: Bool[Tensor, " edges"]
    """Edges that lie within a motif."""

    def of(self, found: Neighbourhoods, source: Int[Tensor, " edges"]) -> dict[str, Tensor]:
        """The nodes and edges of each root's own motif; ``source`` is of the found edges."""
        own = self.motif_of_node[found.node[found.node_ptr[:-1]]]  # [B]
        node_motif = own.repeat_interleave(found.node_ptr.diff())
        edge_motif = own.repeat_interleave(found.edge_ptr.diff())
        same = self.motif_of_node[source] == edge_motif
        return {
            "node_truth": (self.motif_of_node[found.node] == node_motif) & (node_motif >= 0),
            "edge_truth": self.in_motif[found.edge] & same & (edge_motif >= 0),
        }


@dataclass(frozen=True)
class MotifGraph:
    """One graph with motifs attached to it; the place in a motif is the class of a node."""

    data: Data
    class_names: tuple[str, ...]
    truth: MotifTruth


def motif_graph(
    base: Callable[[], GraphGenerator],
    motif: Callable[[], MotifGenerator],
    class_names: tuple[str, ...],
    motifs: int = 80,
    seed: int = 0,
) -> MotifGraph:
    """A graph of PyG's ``ExplainerDataset``, whose nodes have one constant feature.

    >>> graph = motif_graph(partial(BAGraph, 30, 1), HouseMotif, ("a", "b", "c", "d"), motifs=2)
    >>> graph.data.num_nodes, graph.truth.motif_of_node[-6:].tolist()
    (40, [0, 1, 1, 1, 1, 1])
    """
    state = random.getstate(), np.random.get_state()  # PyG draws by all three
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)
        found = ExplainerDataset(base(), motif(), num_motifs=motifs)[0]
    random.setstate(state[0])
    np.random.set_state(state[1])
    added = (found.node_mask > 0).cumsum(0) - 1
    size = int(found.node_mask.sum()) // motifs
    return MotifGraph(
        Data(torch.ones(found.num_nodes, 1), found.edge_index, y=found.y),
        class_names,
        MotifTruth(torch.where(found.node_mask > 0, added // size, -1), found.edge_mask > 0),
    )


NODE_GRAPHS: dict[str, Callable[[], MotifGraph]] = {
    "BA_Shapes": partial(
        motif_graph, partial(BAGraph, 300, 5), HouseMotif, ("base", "middle", "bottom", "top")
    ),
    "Tree_Cycles": partial(
        motif_graph,
        partial(TreeGraph, depth=8, undirected=True),
        partial(CycleMotif, 6),
        ("tree", "cycle"),
    ),
}
"""Graphs whose nodes are classified, by the name of the dataset."""
