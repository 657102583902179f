"""The batches of several models side by side: what a GPU needs to train all of them in one step."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from jaxtyping import Int
from torch import Tensor
from torch_geometric.data import Batch

from cores.graphs.batches import Cuts, new_batch
from cores.graphs.padding import SPARE, Capacity

ROOM = 1.25
"""Capacity for batches that are larger than the largest so far."""


@dataclass(frozen=True)
class Chunk:
    """Graphs of one model, to be cut into batches of so many."""

    batch: Batch
    size: int

    @property
    def num_batches(self) -> int:
        """Known without asking a device."""
        return -(-self.batch.num_graphs // self.size)


class StackedBatches:
    """The batches of several models, padded to one capacity, in tensors that stay where they are.

    Every model has a row of batches. Those at one place of all rows are one batch, in which each
    model has as many nodes, edges and graphs as the others, one model after the other.

    Args:
        models: How many.
        places: Batches of a model at most.
        capacity: Of one batch.
        like: A chunk with the attributes of those to come; its targets are distributions.
    """

    def __init__(self, models: int, places: int, capacity: Capacity, like: Batch) -> None:
        self.models, self.places, self.capacity = models, places, capacity
        nodes, edges, graphs = capacity.nodes, capacity.edges, capacity.graphs
        rows = models, places
        device = like.x.device
        numbers = torch.arange(models, device=device)
        # Edges that are none lie between spare nodes, each at another.
        loops = nodes - 1 - torch.arange(edges, device=device) % SPARE
        self._loops = numbers[:, None] * nodes + loops  # [M, E]
        self._no_graph = numbers * graphs + graphs - 1  # [M]
        self._x = like.x.new_zeros(*rows, nodes, like.x.size(1))
        self._unpadded_nodes = like.x.new_zeros(*rows, nodes)
        self._owner = like.batch.new_zeros(*rows, nodes)
        self._ends = like.edge_index.new_zeros(2, *rows, edges)
        self._y = like.y.new_zeros(*rows, graphs, like.y.size(1))
        self._unpadded_graphs = like.x.new_zeros(*rows, graphs)
        self._ptr = like.ptr.new_zeros(models * graphs + 1)  # only its length is read
        self._edge_attr = None
        if "edge_attr" in like:
            self._edge_attr = like.edge_attr.new_zeros(*rows, edges, like.edge_attr.size(1))
        for model in range(models):
            self.clear(model)

    def clear(self, model: int) -> None:
        """Leave only batches without graphs in the row of a model."""
        self._unpadded_nodes[model].zero_()
        self._unpadded_graphs[model].zero_()
        self._owner[model].copy_(self._no_graph[model])
        self._ends[:, model].copy_(self._loops[model])
        self._y[model].zero_()

    def load(self, model: int, chunk: Chunk) -> None:
        """Put the batches of a chunk into the row of a model, in place of those before."""
        batch, size = chunk.batch, chunk.size
        cuts = Cuts.of(batch, size)
        nodes, edges, graphs = self.capacity.nodes, self.capacity.edges, self.capacity.graphs
        of_node = batch.batch // size  # [N], the batch of every node
        node = _places(of_node, cuts.node, nodes)
        edge = _places(cuts.batch_of_edge, cuts.edge, edges)
        numbers = torch.arange(batch.num_graphs, device=node.device)
        graph = _places(numbers // size, cuts.graph, graphs)
        self.clear(model)
        self._x[model].flatten(0, 1).index_copy_(0, node, batch.x)
        self._unpadded_nodes[model].flatten().index_fill_(0, node, 1)
        owner = batch.batch % size + model * graphs
        self._owner[model].flatten().index_copy_(0, node, owner)
        ends = batch.edge_index - cuts.node[cuts.batch_of_edge] + model * nodes
        for row, values in zip(self._ends[:, model], ends, strict=True):
            row.flatten().index_copy_(0, edge, values)
        if self._edge_attr is not None:
            self._edge_attr[model].flatten(0, 1).index_copy_(0, edge, batch.edge_attr)
        self._y[model].flatten(0, 1).index_copy_(0, graph, batch.y)
        self._unpadded_graphs[model].flatten().index_fill_(0, graph, 1)

    def at(self, place: Int[Tensor, " 1"]) -> Batch:
        """The batches at a place of all rows, as one."""
        attributes = {
            "x": self._x.index_select(1, place).flatten(0, 2),
            "edge_index": self._ends.index_select(2, place).flatten(1),
            "y": self._y.index_select(1, place).flatten(0, 2),
            "batch": self._owner.index_select(1, place).flatten(),
            "ptr": self._ptr,
            "unpadded_nodes": self._unpadded_nodes.index_select(1, place).view(-1, 1),
            "unpadded_graphs": self._unpadded_graphs.index_select(1, place).flatten(),
        }
        if self._edge_attr is not None:
            attributes["edge_attr"] = self._edge_attr.index_select(1, place).flatten(0, 2)
        return new_batch(**attributes)

    def holds(self, places: int, needed: Capacity) -> bool:
        """Whether there is room for so many batches of that size."""
        sizes = [(getattr(needed, each.name), getattr(self.capacity, each.name)) for each in _SIZES]
        return places <= self.places and all(wanted <= there for wanted, there in sizes)


_SIZES = fields(Capacity)


def needed_capacity(chunks: Sequence[Chunk]) -> Capacity:
    """What the largest batch of the chunks needs; asks their device once."""
    cuts = [Cuts.of(chunk.batch, chunk.size) for chunk in chunks]
    most = [torch.stack([each.node.diff().max(), each.edge.diff().max()]) for each in cuts]
    nodes, edges = torch.stack(most).amax(dim=0).tolist()
    return Capacity(max(chunk.size for chunk in chunks) + 1, nodes + SPARE, edges)


def with_room(needed: Capacity) -> Capacity:
    """A little larger."""
    return Capacity(needed.graphs, int(needed.nodes * ROOM), int(needed.edges * ROOM))


def _places(
    batch: Int[Tensor, " items"], first: Int[Tensor, " batches_plus_1"], room: int
) -> Int[Tensor, " items"]:
    """Where items go that lie end to end, batch by batch, when each batch has so much room."""
    return torch.arange(len(batch), device=batch.device) + batch * room - first[batch]
