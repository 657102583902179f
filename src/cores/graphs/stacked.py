"""Many batches in tensors that stay where they are: a GPU finds the next one by itself."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import torch
from jaxtyping import Int
from torch import Tensor
from torch_geometric.data import Batch

from cores.graphs.batches import Cuts, new_batch

SPARE = 64
"""Nodes at least that are no graph's: edges that are none lie between them, each at another."""
ROOM = 1.25
"""Capacity for batches that are larger than the largest so far."""
NODE_VALUES, PAIR_VALUES = "node_values", "pair_values"
"""Attributes with more about nodes, and about undirected edges."""


@dataclass(frozen=True)
class Capacity:
    """How many graphs, nodes and edges a padded batch has."""

    graphs: int
    """One of them at least is none."""
    nodes: int
    edges: int
    pairs: int = 0
    """Undirected edges, where batches know them."""


@dataclass(frozen=True)
class Chunk:
    """Graphs to be cut into batches of so many."""

    batch: Batch
    size: int

    @property
    def num_batches(self) -> int:
        """Known without asking a device."""
        return -(-self.batch.num_graphs // self.size)


class StackedBatches:
    """Rows of batches, padded to one capacity, in tensors that stay where they are.

    The batches at one place of all rows are one batch, in which each row has as many nodes, edges
    and graphs as the others, one row after the other: several models can each have their own row.
    ``unpadded_nodes`` is 1 for nodes and ``unpadded_graphs`` for graphs that count, else 0. The
    last graph of a row owns the other nodes; no edge leads from it to another.

    Args:
        rows: How many.
        places: Batches of a row at most.
        capacity: Of one batch.
        like: A chunk with the attributes of those to come.
    """

    def __init__(self, rows: int, places: int, capacity: Capacity, like: Batch) -> None:
        self.rows, self.places, self.capacity = rows, places, capacity
        self._room = {
            "x": capacity.nodes,
            NODE_VALUES: capacity.nodes,
            "edge_attr": capacity.edges,
            PAIR_VALUES: capacity.pairs,
            "y": capacity.graphs,
        }
        shape = rows, places
        self._values = {
            name: like[name].new_zeros(*shape, room, *like[name].shape[1:])
            for name, room in self._room.items()
            if name in like
        }
        device = like.x.device
        self._owner = like.batch.new_zeros(*shape, capacity.nodes)
        self._unpadded_nodes = like.x.new_zeros(*shape, capacity.nodes)
        self._unpadded_graphs = like.x.new_zeros(*shape, capacity.graphs)
        self._ptr = like.ptr.new_zeros(rows * capacity.graphs + 1)  # only its length is read
        numbers = torch.arange(rows, device=device)
        self._no_graph = numbers * capacity.graphs + capacity.graphs - 1  # [R]
        ends = {"edge_index": capacity.edges}
        if "pair_index" in like:
            ends["pair_index"] = capacity.pairs
        # Edges that are none lie between spare nodes, each at another.
        spare = capacity.nodes - 1 - torch.arange(max(ends.values()), device=device) % SPARE
        self._loops = numbers[:, None] * capacity.nodes + spare  # [R, E]
        self._ends = {name: like.ptr.new_zeros(2, *shape, room) for name, room in ends.items()}
        for row in range(rows):
            self.clear(row)

    def clear(self, row: int) -> None:
        """Leave only batches without graphs in a row."""
        self._unpadded_nodes[row].zero_()
        self._unpadded_graphs[row].zero_()
        self._owner[row].copy_(self._no_graph[row])
        for ends in self._ends.values():
            ends[:, row].copy_(self._loops[row, : ends.size(-1)])
        self._values["y"][row].zero_()

    def load(self, row: int, chunks: Sequence[Chunk]) -> None:
        """Put the batches of some chunks into a row, in place of those before."""
        self.clear(row)
        first = 0
        for chunk in chunks:
            self._add(row, chunk, first)
            first += chunk.num_batches

    def _add(self, row: int, chunk: Chunk, first: int) -> None:
        batch, size, capacity = chunk.batch, chunk.size, self.capacity
        cuts = Cuts.of(batch, size)
        graph = torch.arange(batch.num_graphs, device=batch.x.device)
        of_node = batch.batch // size
        nodes = _slots(of_node, cuts.node, capacity.nodes, first)
        edges = _slots(cuts.batch_of_edge, cuts.edge, capacity.edges, first)
        graphs = _slots(graph // size, cuts.graph, capacity.graphs, first)
        ends = {"edge_index": (edges, cuts.batch_of_edge)}
        slots = {"x": nodes, NODE_VALUES: nodes, "edge_attr": edges, "y": graphs}
        if cuts.pair is not None and cuts.batch_of_pair is not None:
            pairs = _slots(cuts.batch_of_pair, cuts.pair, capacity.pairs, first)
            ends["pair_index"] = pairs, cuts.batch_of_pair
            slots[PAIR_VALUES] = pairs
        for name, values in self._values.items():
            values[row].flatten(0, 1).index_copy_(0, slots[name], batch[name])
        for name, (slot, of_edge) in ends.items():
            numbered = batch[name] - cuts.node[of_edge] + row * capacity.nodes
            self._ends[name][:, row].view(2, -1).index_copy_(1, slot, numbered)
        owner = batch.batch % size + row * capacity.graphs
        self._owner[row].flatten().index_copy_(0, nodes, owner)
        self._unpadded_nodes[row].flatten().index_fill_(0, nodes, 1)
        self._unpadded_graphs[row].flatten().index_fill_(0, graphs, 1)

    def at(self, place: Int[Tensor, " 1"]) -> Batch:
        """The batches at a place of all rows, as one."""
        chosen = {
            name: values.index_select(1, place).flatten(0, 2)
            for name, values in self._values.items()
        }
        chosen |= {
            name: ends.index_select(2, place).flatten(1) for name, ends in self._ends.items()
        }
        return new_batch(
            batch=self._owner.index_select(1, place).flatten(),
            ptr=self._ptr,
            unpadded_nodes=self._unpadded_nodes.index_select(1, place).view(-1, 1),
            unpadded_graphs=self._unpadded_graphs.index_select(1, place).flatten(),
            **chosen,
        )

    def holds(self, places: int, needed: Capacity) -> bool:
        """Whether there is room for so many batches of that size."""
        sizes = zip(astuple(needed), astuple(self.capacity), strict=True)
        return places <= self.places and all(wanted <= there for wanted, there in sizes)


def needed_capacity(chunks: Sequence[Chunk]) -> Capacity:
    """What the largest batch of the chunks needs; asks their device once."""
    most = []
    for chunk in chunks:
        cuts = Cuts.of(chunk.batch, chunk.size)
        pair = torch.zeros_like(cuts.node) if cuts.pair is None else cuts.pair
        most.append(torch.stack([cuts.node, cuts.edge, pair]).diff().amax(dim=1))
    nodes, edges, pairs = torch.stack(most).amax(dim=0).tolist()
    return Capacity(max(chunk.size for chunk in chunks) + 1, nodes + SPARE, edges, pairs)


def with_room(needed: Capacity) -> Capacity:
    """A little larger."""
    nodes, edges, pairs = (int(size * ROOM) for size in (needed.nodes, needed.edges, needed.pairs))
    return Capacity(needed.graphs, nodes, edges, pairs)


def _slots(
    batch: Int[Tensor, " items"],
    first_item: Int[Tensor, " batches_plus_1"],
    room: int,
    first_place: int,
) -> Int[Tensor, " items"]:
    """Where items go that lie end to end, batch by batch, when each batch has so much room."""
    within = torch.arange(len(batch), device=batch.device) - first_item[batch]
    return (batch + first_place) * room + within
