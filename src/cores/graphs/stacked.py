"""Many batches in tensors that stay where they are: a GPU finds the next one by itself."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cached_property

import torch
from jaxtyping import Int
from torch import Tensor
from torch_geometric.data import Batch

from cores.config import Removal
from cores.graphs.batches import Cuts, batch_sizes, marks, new_batch

SPARE = 64
"""Nodes at least that are no graph's: edges that are none lie between them, each at another."""
ROOM = 1.25
"""Capacity for batches that are larger than the largest so far."""
NODE_VALUES, PAIR_VALUES = "node_values", "pair_values"
"""Attributes with more about nodes, and about undirected edges."""


def element_values(removal: Removal) -> str:
    """The attribute with more about what is removed: nodes or undirected edges, not both."""
    return NODE_VALUES if removal == "node" else PAIR_VALUES


@dataclass(frozen=True)
class Capacity:
    """Numbers of graphs, nodes and edges of a padded batch."""

    graphs: int
    """One of them at least is none."""
    nodes: int
    edges: int
    pairs: int = 0
    """Undirected edges, where batches know them."""


@dataclass(frozen=True)
class Chunk:
    """Graphs of several rows, one row after the other, to be cut into batches of so many."""

    batch: Batch
    size: int
    graphs: Sequence[int]
    """Number of graphs in each row; 0 in further ones."""

    @classmethod
    def of(cls, batch: Batch, size: int) -> "Chunk":
        """Chunk of the first row alone."""
        return cls(batch, size, [batch.num_graphs])

    @property
    def num_batches(self) -> list[int]:
        """Number of batches in each row, known without asking a device."""
        return [-(-graphs // self.size) for graphs in self.graphs]

    @cached_property
    def cuts(self) -> Cuts:
        """Offsets of its batches."""
        return Cuts.of(
            self.batch, [size for graphs in self.graphs for size in batch_sizes(graphs, self.size)]
        )


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
        self._marks = marks(like)
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
        self._clear()

    def _clear(self) -> None:
        """Leave only batches without graphs."""
        self._unpadded_nodes.zero_()
        self._unpadded_graphs.zero_()
        self._owner.copy_(self._no_graph[:, None, None])
        for ends in self._ends.values():
            ends.copy_(self._loops[:, None, : ends.size(-1)])
        self._values["y"].zero_()

    def load(self, chunks: Sequence[Chunk]) -> None:
        """Put the batches of some chunks into their rows, in place of all batches before."""
        self._clear()
        filled = [0] * self.rows
        for chunk in chunks:
            rows: list[int] = []
            places: list[int] = []
            for row, batches in enumerate(chunk.num_batches):
                rows += [row] * batches
                places += range(filled[row], filled[row] + batches)
                filled[row] += batches
            device = chunk.batch.x.device
            self._add(chunk, torch.tensor(rows).to(device), torch.tensor(places).to(device))

    def _add(
        self, chunk: Chunk, row: Int[Tensor, " batches"], place: Int[Tensor, " batches"]
    ) -> None:
        batch, cuts, capacity = chunk.batch, chunk.cuts, self.capacity
        at = row * self.places + place
        of_node = cuts.batch_of_graph[batch.batch]  # [N], the batch of every node
        nodes = _slots(at, of_node, cuts.node, capacity.nodes)
        edges = _slots(at, cuts.batch_of_edge, cuts.edge, capacity.edges)
        graphs = _slots(at, cuts.batch_of_graph, cuts.graph, capacity.graphs)
        ends = {"edge_index": (edges, cuts.batch_of_edge)}
        slots = {"x": nodes, NODE_VALUES: nodes, "edge_attr": edges, "y": graphs}
        if cuts.pair is not None and cuts.batch_of_pair is not None:
            pairs = _slots(at, cuts.batch_of_pair, cuts.pair, capacity.pairs)
            ends["pair_index"] = pairs, cuts.batch_of_pair
            slots[PAIR_VALUES] = pairs
        for name, values in self._values.items():
            values.flatten(0, 2).index_copy_(0, slots[name], batch[name])
        first_node = row * capacity.nodes - cuts.node[:-1]  # of a batch, there less here
        for name, (slot, of_edge) in ends.items():
            self._ends[name].view(2, -1).index_copy_(1, slot, batch[name] + first_node[of_edge])
        first_graph = row * capacity.graphs - cuts.graph[:-1]
        self._owner.view(-1).index_copy_(0, nodes, batch.batch + first_graph[of_node])
        self._unpadded_nodes.view(-1).index_fill_(0, nodes, 1)
        self._unpadded_graphs.view(-1).index_fill_(0, graphs, 1)

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
            **self._marks,
            batch=self._owner.index_select(1, place).flatten(),
            ptr=self._ptr,
            unpadded_nodes=self._unpadded_nodes.index_select(1, place).view(-1, 1),
            unpadded_graphs=self._unpadded_graphs.index_select(1, place).flatten(),
            **chosen,
        )

    def holds(self, places: int, needed: Capacity) -> bool:
        """Return whether there is room for ``places`` batches of that size."""
        sizes = zip(astuple(needed), astuple(self.capacity), strict=True)
        return places <= self.places and all(wanted <= there for wanted, there in sizes)


def needed_capacity(chunks: Sequence[Chunk]) -> Capacity:
    """Capacity for the largest batch of the chunks; asks their device once."""
    most = []
    for chunk in chunks:
        cuts = chunk.cuts
        pair = torch.zeros_like(cuts.node) if cuts.pair is None else cuts.pair
        most.append(torch.stack([cuts.node, cuts.edge, pair]).diff().amax(dim=1))
    nodes, edges, pairs = torch.stack(most).amax(dim=0).tolist()
    return Capacity(max(chunk.size for chunk in chunks) + 1, nodes + SPARE, edges, pairs)


def with_room(needed: Capacity) -> Capacity:
    """A little larger."""
    nodes, edges, pairs = (int(size * ROOM) for size in (needed.nodes, needed.edges, needed.pairs))
    return Capacity(needed.graphs, nodes, edges, pairs)


def _slots(
    at: Int[Tensor, " batches"],
    batch: Int[Tensor, " items"],
    first_item: Int[Tensor, " batches_plus_1"],
    room: int,
) -> Int[Tensor, " items"]:
    """Slots of items, laid end to end batch by batch, when each batch has this room."""
    shift = at * room - first_item[:-1]
    return torch.arange(len(batch), device=batch.device) + shift[batch]
