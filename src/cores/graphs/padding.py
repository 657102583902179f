"""Batches of a fixed size: what a GPU needs to replay a step that it has recorded."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Batch

from cores.graphs.batches import new_batch

SPARE = 64
"""Nodes at least that are no graph's: edges that are none lie between them, each at another."""
NO_LABEL = -100
"""Of a graph that is none; torch's losses ignore it."""


@dataclass(frozen=True)
class Capacity:
    """How many graphs, nodes and edges a padded batch has."""

    graphs: int
    """One of them at least is none."""
    nodes: int
    edges: int
    pairs: int = 0
    """Undirected edges, where batches know them."""

    @classmethod
    def around(cls, batch: Batch) -> "Capacity":
        """For batches of at most as many graphs, which may be larger by half."""
        sizes = batch.x.size(0) + SPARE, batch.edge_index.size(1), _num_pairs(batch)
        return cls(batch.num_graphs + 1, *(size + size // 2 for size in sizes))

    def holds(self, batch: Batch) -> bool:
        """Whether a batch has room, and some is left."""
        return (
            batch.num_graphs < self.graphs
            and batch.x.size(0) + SPARE <= self.nodes
            and batch.edge_index.size(1) <= self.edges
            and _num_pairs(batch) <= self.pairs
        )


def _num_pairs(batch: Batch) -> int:
    return batch.pair_index.size(1) if "pair_index" in batch else 0


class PaddedBatch:
    """A batch in tensors that stay where they are, padded by graphs that are none.

    ``unpadded_nodes`` is 1 for nodes and ``unpadded_graphs`` for graphs that count, else 0.
    The last graph owns the other nodes; no edge leads from it to another. Undirected edges are
    those of a policy, which does not ask which directed edge is which of them.

    Args:
        capacity: Its size.
        like: A batch with the attributes of those to come.
    """

    def __init__(self, capacity: Capacity, like: Batch) -> None:
        self.capacity = capacity
        nodes, edges, graphs = capacity.nodes, capacity.edges, capacity.graphs
        most = max(edges, capacity.pairs)
        loops = nodes - 1 - torch.arange(most, device=like.x.device) % SPARE
        self._loops = loops.expand(2, -1)
        # A target that is a distribution is all zeros for what is no graph.
        self._no_target = 0.0 if like.y.is_floating_point() else NO_LABEL
        attributes = {
            "x": like.x.new_zeros(nodes, *like.x.shape[1:]),
            "edge_index": self._loops[:, :edges].clone(),
            "y": like.y.new_full((graphs, *like.y.shape[1:]), self._no_target),
            "batch": like.batch.new_full((nodes,), graphs - 1),
            "ptr": like.ptr.new_zeros(graphs + 1),  # only its length is read
            "unpadded_nodes": like.x.new_zeros(nodes, 1),
            "unpadded_graphs": like.x.new_zeros(graphs),
        }
        if "edge_attr" in like:
            attributes["edge_attr"] = like.edge_attr.new_zeros(edges, *like.edge_attr.shape[1:])
        if "pair_index" in like:
            attributes["pair_index"] = self._loops[:, : capacity.pairs].clone()
        self.batch = new_batch(**attributes)

    def holds(self, batch: Batch) -> bool:
        """Whether a batch has room."""
        labels = self.batch.y
        alike = batch.y.shape[1:] == labels.shape[1:] and batch.y.dtype == labels.dtype
        return alike and self.capacity.holds(batch)

    def load(self, batch: Batch) -> Batch:
        """Put a batch in the place of the one before."""
        nodes, edges, graphs = batch.x.size(0), batch.edge_index.size(1), batch.num_graphs
        padded = self.batch
        padded.x[:nodes].copy_(batch.x)
        padded.unpadded_nodes[:nodes].fill_(1)
        padded.unpadded_nodes[nodes:].zero_()
        padded.batch[:nodes].copy_(batch.batch)
        padded.batch[nodes:].fill_(self.capacity.graphs - 1)
        padded.y[:graphs].copy_(batch.y)
        padded.y[graphs:].fill_(self._no_target)
        padded.unpadded_graphs[:graphs].fill_(1)
        padded.unpadded_graphs[graphs:].zero_()
        self._load_ends(padded.edge_index, batch.edge_index)
        if "edge_attr" in padded:
            padded.edge_attr[:edges].copy_(batch.edge_attr)
        if "pair_index" in padded:
            self._load_ends(padded.pair_index, batch.pair_index)
        return padded

    def _load_ends(self, padded: Tensor, ends: Tensor) -> None:
        number = ends.size(1)
        padded[:, :number].copy_(ends)
        padded[:, number:].copy_(self._loops[:, number : padded.size(1)])
