"""Many graphs as flat tensors; a mini-batch is index arithmetic, with no Python per graph."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor
from torch_geometric.data import Batch, Data

from cores.graphs.batches import cut, new_batch, undirected_pairs
from cores.graphs.segments import gathered, owners, pointers

CHUNK = 1024
"""Graphs that are gathered at once for the next mini-batches."""
GPU_CHUNK = 8192
"""Chunk size on a GPU, which waits for Python at every chunk."""
ROOM_ON_GPU = 0.3
"""Share of a GPU's free memory that graphs may take; those that need more stream to it."""
_STREAMED = "x", "edge_index", "edge_attr"
"""Attributes that stream: those that take much memory."""
_OF_NODES, _OF_EDGES = ("x", "node_truth", "node_id"), ("edge_attr", "edge_truth")
Item = TypeVar("Item")
Value = TypeVar("Value")


class Neighbourhood(Data):
    """Neighbourhood of a node in a larger graph; ``node_id`` holds the numbers of nodes there.

    A class of its own: graphs of users may have a ``node_id``, too, and mean something else.
    """


@dataclass(frozen=True)
class GraphStore:
    """Graphs laid end to end: graph i owns nodes ``node_ptr[i]:node_ptr[i + 1]``, edges likewise.

    Collating small graphs one by one costs more than training on them; kept flat, on the device,
    a split pays for its batches only what the gathers cost.
    """

    x: Float[Tensor, "nodes features"]
    edge_index: Int[Tensor, "2 edges"]
    """Ends of every directed edge, counted from 0 within its graph."""
    y: Num[Tensor, "graphs *labels"]
    """Numbers of classes, or the targets of a regression; where graphs have several labels, 0 or 1
    in a column for each, NaN where it is not known."""
    node_ptr: Int[Tensor, " graphs_plus_1"]
    """On the CPU always, like ``edge_ptr``: batch sizes are known without asking the device."""
    edge_ptr: Int[Tensor, " graphs_plus_1"]
    edge_attr: Float[Tensor, "edges edge_features"] | None = None
    node_truth: Bool[Tensor, " nodes"] | None = None
    """Nodes of the ground-truth explanation."""
    edge_truth: Bool[Tensor, " edges"] | None = None
    node_id: Int[Tensor, " nodes"] | None = None
    """The number of each node in a larger graph, where these are neighbourhoods of its nodes. The
    last column of ``x`` is 1 for the root then, the node that is classified, and 0 for others."""
    paired: bool = False
    """Batches come with their undirected edges; see :meth:`with_pairs`."""
    streams_to: torch.device | None = None
    """Device of the batches, where the graphs stay in the host's memory."""

    def __post_init__(self) -> None:
        # Choosing columns of a matrix that lies transposed takes thirty times as long.
        object.__setattr__(self, "edge_index", self.edge_index.contiguous())

    @classmethod
    def from_graphs(cls, graphs: Sequence[Data], y: Tensor | None = None) -> "GraphStore":
        """Lay PyG graphs end to end; each has ``x``, ``edge_index`` and, unless given, one ``y``.

        Edge features and ground truth are taken where all graphs have them.

        >>> path = Data(torch.ones(2, 1), torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([1]))
        >>> store = GraphStore.from_graphs([path, path])
        >>> store.edge_index.tolist(), store.node_ptr.tolist()
        ([[0, 1, 0, 1], [1, 0, 1, 0]], [0, 2, 4])
        """

        def joined(name: str) -> Tensor | None:
            values = [graph.get(name) for graph in graphs]
            known = [value for value in values if value is not None]
            return torch.cat(known) if known and len(known) == len(values) else None

        labels = y if y is not None else torch.cat([graph.y.view(-1) for graph in graphs])
        return cls(
            x=torch.cat([graph.x for graph in graphs]),
            edge_index=torch.cat([graph.edge_index for graph in graphs], dim=1),
            y=labels,
            node_ptr=pointers(torch.tensor([graph.x.size(0) for graph in graphs])),
            edge_ptr=pointers(torch.tensor([graph.edge_index.size(1) for graph in graphs])),
            edge_attr=joined("edge_attr"),
            node_truth=joined("node_truth"),
            edge_truth=joined("edge_truth"),
            node_id=joined("node_id"),
        )

    @classmethod
    def from_batch(cls, batch: Batch) -> "GraphStore":
        """Take a batch apart again, so that some of its graphs can be chosen many times."""
        owner = batch.batch[batch.edge_index[0]]  # [E]
        edges = torch.bincount(owner, minlength=batch.num_graphs)
        return cls(
            x=batch.x,
            edge_index=batch.edge_index - batch.ptr[owner],
            y=batch.ptr[1:],  # nobody asks for labels
            node_ptr=batch.ptr.cpu(),
            edge_ptr=pointers(edges).cpu(),
            edge_attr=batch.get("edge_attr"),
            node_id=batch.batch if batch.get("rooted") else None,
            paired="pair_index" in batch,
        )

    def to_graphs(self) -> list[Data]:
        """The graphs as PyG records."""
        return [self.graph(index) for index in range(len(self))]

    def __len__(self) -> int:
        return len(self.y)

    @property
    def device(self) -> torch.device:
        """Device of batches and labels."""
        return self.y.device if self.streams_to is None else self.streams_to

    @property
    def rooted(self) -> bool:
        """Return whether each graph is the neighbourhood of a node."""
        return self.node_id is not None

    @property
    def num_features(self) -> int:
        """Columns of ``x``."""
        return self.x.size(1)

    @property
    def num_edge_features(self) -> int:
        """Columns of ``edge_attr``, 0 without."""
        return 0 if self.edge_attr is None else self.edge_attr.size(1)

    @property
    def num_nodes(self) -> Int[Tensor, " graphs"]:
        """Nodes of each graph."""
        return self.node_ptr.diff()

    @property
    def num_edges(self) -> Int[Tensor, " graphs"]:
        """Directed edges of each graph."""
        return self.edge_ptr.diff()

    @cached_property
    def pairs(self) -> "EdgePairs":
        """The undirected edges: what a policy decides on, both directions at once."""
        device = self.x.device
        first_node = self.node_ptr[:-1].to(device)
        graph_of_edge = owners(self.num_edges.to(device))
        ends, pair = undirected_pairs(self.edge_index + first_node[graph_of_edge], len(self.x))
        graph = owners(self.num_nodes.to(device))[ends[0]]  # [P], never falling
        ptr = pointers(torch.bincount(graph, minlength=len(self)))
        return EdgePairs(ends - first_node[graph], pair - ptr[graph_of_edge], ptr.cpu())

    def with_pairs(self) -> "GraphStore":
        """Return a store whose batches know their undirected edges.

        A batch without them finds them when asked, every time anew.
        """
        return replace(self, paired=True)

    def to(self, device: torch.device) -> "GraphStore":
        """Move the graphs to a device; the pointers stay on the CPU."""
        return self._moved(device, stays=())

    def streamed(self, device: torch.device) -> "GraphStore":
        """Keep the graphs here, and send each batch to a device when it is asked for."""
        return replace(self._moved(device, stays=_STREAMED), streams_to=device)

    def placed(self, device: torch.device) -> "GraphStore":
        """Move the graphs to a device, or stream them to a GPU whose memory they would fill."""
        if device.type == "cuda" and not self.fits(torch.cuda.mem_get_info(device)[0]):
            return self.streamed(device)
        return self.to(device)

    def fits(self, free: int) -> bool:
        """Return whether the graphs fit beside a training into a GPU's free bytes."""
        sizes = (getattr(self, name) for name in _STREAMED)
        return sum(values.nbytes for values in sizes if values is not None) <= ROOM_ON_GPU * free

    def _moved(self, device: torch.device, stays: Sequence[str]) -> "GraphStore":
        moved: dict[str, Any] = {
            field.name: value.to(device)
            for field in fields(self)
            if field.name not in ("node_ptr", "edge_ptr", *stays)
            and isinstance(value := getattr(self, field.name), Tensor)
        }
        return replace(self, **moved)

    def batch(self, index: Int[Tensor, " chosen"]) -> Batch:
        """The chosen graphs as one PyG batch; ``index`` lives on the CPU."""
        batch = self._gathered(index)
        if self.streams_to is None:
            return batch
        return new_batch(
            **{name: _sent(value, self.streams_to) for name, value in batch.to_dict().items()}
        )

    def _gathered(self, index: Int[Tensor, " chosen"]) -> Batch:
        device = self.x.device
        nodes, graph_of_node, node_ptr = gathered(self.node_ptr, index, device)
        edges, graph_of_edge, _ = gathered(self.edge_ptr, index, device)
        picked: dict[str, Any] = {
            "edge_index": self.edge_index.index_select(1, edges) + node_ptr[graph_of_edge],
            "y": self.y[index.to(self.y.device)],
            **self._chosen(("x", "node_truth"), nodes),
            **self._chosen(_OF_EDGES, edges),
        }
        if self.paired:
            pairs, graph_of_pair, pair_ptr = gathered(self.pairs.ptr, index, device)
            picked["pair_index"] = self.pairs.ends.index_select(1, pairs) + node_ptr[graph_of_pair]
            picked["edge_pair"] = self.pairs.pair[edges] + pair_ptr[graph_of_edge]
        if self.rooted:
            picked["rooted"] = True
        return new_batch(batch=graph_of_node, ptr=node_ptr, **picked)

    def _chosen(self, names: Sequence[str], items: Int[Tensor, " items"]) -> dict[str, Any]:
        """The attributes of some nodes or edges, where there are any.

        They may lie on another device than these. By ``index_select``: for rows of a matrix, it is
        four times as fast as indexing.
        """
        given = {name: getattr(self, name) for name in names}
        return {
            name: values.index_select(0, items.to(values.device))
            for name, values in given.items()
            if values is not None
        }

    def batches(self, batch_size: int, generator: torch.Generator | None = None) -> Iterator[Batch]:
        """Mini-batches that visit every graph once, shuffled where a generator is given."""
        return self.view().batches(batch_size, generator)

    def chunks(self, batch_size: int, generator: torch.Generator | None = None) -> Iterator[Batch]:
        """The same graphs in the same order as large batches, to be cut."""
        return self.view().chunks(batch_size, generator)

    def in_order(self, order: Int[Tensor, " chosen"], batch_size: int) -> Iterator[Batch]:
        """The chosen graphs in chunks of several batches; ``order`` lives on the CPU."""
        yield from self.each(order.split(self.chunk_size(batch_size)))

    def each(self, indices: Iterable[Int[Tensor, " _"]]) -> Iterator[Batch]:
        """A batch for each index; one that streams is made while that before it is used."""
        return (
            map(self.batch, indices) if self.streams_to is None else one_ahead(self.batch, indices)
        )

    def chunk_size(self, batch_size: int) -> int:
        """Graphs in a chunk: those of whole batches."""
        chunk = GPU_CHUNK if self.device.type == "cuda" else CHUNK
        return batch_size * max(1, chunk // batch_size)

    def view(self, index: Int[Tensor, " chosen"] | None = None) -> "GraphView":
        """Some of the graphs, or all, which stay where they are; ``index`` lives on the CPU."""
        return GraphView(self, torch.arange(len(self)) if index is None else index)

    def subset(self, index: Int[Tensor, " chosen"]) -> "GraphStore":
        """A store of the chosen graphs alone, in that order."""
        device = self.x.device
        nodes, _, node_ptr = gathered(self.node_ptr, index, device)
        edges, _, edge_ptr = gathered(self.edge_ptr, index, device)
        return replace(
            self,
            edge_index=self.edge_index[:, edges],
            y=self.y[index.to(self.y.device)],
            node_ptr=node_ptr.cpu(),
            edge_ptr=edge_ptr.cpu(),
            **self._chosen(_OF_NODES, nodes),
            **self._chosen(_OF_EDGES, edges),
        )

    def graph(self, index: int) -> Data:
        """One graph as a PyG record."""
        nodes = slice(int(self.node_ptr[index]), int(self.node_ptr[index + 1]))
        edges = slice(int(self.edge_ptr[index]), int(self.edge_ptr[index + 1]))
        items = dict.fromkeys(_OF_NODES, nodes) | dict.fromkeys(_OF_EDGES, edges)
        known = {name: values for name in items if (values := getattr(self, name)) is not None}
        kind = Neighbourhood if self.rooted else Data
        return kind(
            edge_index=self.edge_index[:, edges],
            y=self.y[index : index + 1],
            **{name: values[items[name]] for name, values in known.items()},
        )


@dataclass(frozen=True)
class GraphView:
    """Some graphs of a store, in an order; nothing is copied."""

    store: GraphStore
    index: Int[Tensor, " graphs"]
    """On the CPU."""

    def __len__(self) -> int:
        return len(self.index)

    @cached_property
    def y(self) -> Num[Tensor, "graphs *labels"]:
        """Their labels."""
        return self.store.y[self.index.to(self.store.y.device)]

    def batch(self, chosen: Int[Tensor, " chosen"]) -> Batch:
        """Some of them as one PyG batch; ``chosen`` counts within the view, on the CPU."""
        return self.store.batch(self.index[chosen])

    def batches(self, batch_size: int, generator: torch.Generator | None = None) -> Iterator[Batch]:
        """Mini-batches that visit every graph once, shuffled where a generator is given."""
        for chunk in self.chunks(batch_size, generator):
            yield from cut(chunk, batch_size)

    def chunks(self, batch_size: int, generator: torch.Generator | None = None) -> Iterator[Batch]:
        """The same graphs in the same order as large batches, to be cut."""
        yield from self.store.in_order(self.order(generator), batch_size)

    def order(self, generator: torch.Generator | None = None) -> Int[Tensor, " graphs"]:
        """Their places in the store, shuffled where a generator is given."""
        return self.index[_order(len(self), generator)]


def _sent(values: Any, device: torch.device) -> Any:
    if not isinstance(values, Tensor):
        return values
    if device.type == "cuda" and not values.is_cuda:
        values = values.pin_memory()  # else the host waits for the copy
    return values.to(device, non_blocking=True)


def _order(number: int, generator: torch.Generator | None) -> Int[Tensor, " items"]:
    return (
        torch.arange(number) if generator is None else torch.randperm(number, generator=generator)
    )


def one_ahead(function: Callable[[Item], Value], items: Iterable[Item]) -> Iterator[Value]:
    """``map`` by a thread that is one item ahead of the caller.

    >>> list(one_ahead(len, ["a", "bc"]))
    [1, 2]
    """
    with ThreadPoolExecutor(max_workers=1) as thread:
        waiting: Future[Value] | None = None
        for item in items:
            coming = thread.submit(function, item)
            if waiting is not None:
                yield waiting.result()
            waiting = coming
        if waiting is not None:
            yield waiting.result()


@dataclass(frozen=True)
class EdgePairs:
    """Undirected edges, each standing for both of its directions."""

    ends: Int[Tensor, "2 pairs"]
    """Counted from 0 within the graph."""
    pair: Int[Tensor, " edges"]
    """The undirected edge of every directed one, counted from 0 within the graph."""
    ptr: Int[Tensor, " graphs_plus_1"]
