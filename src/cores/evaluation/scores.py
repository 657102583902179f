"""Scores of nodes and edges, by whatever method: how much each one matters."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch_geometric.data import Batch

from cores.graphs.batches import with_pairs
from cores.graphs.store import GraphStore


@dataclass(frozen=True)
class Scores:
    """Of all graphs of a store, laid end to end like the store itself; higher matters more.

    Most methods score nodes or edges, not both. One rule gives the others, for all methods: an edge
    is worth as much as the lesser of its ends, a node as much as the best of its edges. Minimum and
    maximum depend on the order of the scores alone, as an AUC does, and need no scale.
    """

    nodes: Float[Tensor, " nodes"]
    edges: Float[Tensor, " edges"]
    """Both directions of an undirected edge score the same."""

    @classmethod
    def of_nodes(cls, graphs: GraphStore, nodes: Float[Tensor, " nodes"]) -> "Scores":
        """An edge is worth as much as the lesser of its ends.

        >>> from cores.data.synthetic import ba_motifs
        >>> graphs = ba_motifs(num_graphs=2, seed=0)
        >>> scores = Scores.of_nodes(graphs, torch.rand(len(graphs.x)))
        >>> bool(scores.edges.max() <= scores.nodes.max())
        True
        """
        return cls(nodes, nodes[whole(graphs).edge_index].amin(dim=0))

    @classmethod
    def of_edges(cls, graphs: GraphStore, edges: Float[Tensor, " edges"]) -> "Scores":
        """A node is worth as much as the best of its edges; without any, it comes last.

        The directions of an undirected edge are averaged.
        """
        batch = whole(graphs)
        pairs = edges.new_zeros(batch.pair_index.size(1))
        pairs = pairs.scatter_reduce(0, batch.edge_pair, edges, "mean", include_self=False)  # [P]
        last = edges.new_full((batch.x.size(0),), -torch.inf)
        ends = batch.pair_index.flatten()
        return cls(last.scatter_reduce(0, ends, pairs.repeat(2), "amax"), pairs[batch.edge_pair])


def whole(graphs: GraphStore) -> Batch:
    """All graphs of a store as one batch that knows its undirected edges."""
    return with_pairs(graphs.batch(torch.arange(len(graphs))))
