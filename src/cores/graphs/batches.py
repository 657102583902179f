"""Any PyG graphs as one batch, with what our networks need of it; and a large batch cut to size."""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor
from torch_geometric.data import Batch, Data

from cores.errors import UserError
from cores.graphs.segments import owners, pointers

_EMPTY = Batch()


def new_batch(**attributes: Any) -> Batch:
    """A PyG batch of the given attributes, by copying one without any.

    PyG's own way defines a class and inspects a signature at every call, which for small graphs
    takes longer than a layer of a network.

    >>> new_batch(x=torch.ones(3, 1), ptr=torch.tensor([0, 1, 3])).num_graphs
    2
    """
    return copy(_EMPTY).update(attributes)


def as_batch(
    graphs: Any,
    edge_index: Tensor | None = None,
    edge_attr: Tensor | None = None,
    batch: Tensor | None = None,
) -> Batch:
    """A batch or a single graph of PyG's, or its plain tensors, as a batch.

    A batch is returned as it is, and nothing that was given is changed.

    >>> path = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    >>> as_batch(path).ptr.tolist()
    [0, 3]
    """
    if isinstance(graphs, Batch) and "ptr" in graphs:
        return graphs
    if isinstance(graphs, Tensor):
        if edge_index is None:
            raise UserError("`edge_index` is missing; give x and edge_index, or a PyG graph")
        graphs = Data(x=graphs, edge_index=edge_index, edge_attr=edge_attr, batch=batch)
    if not isinstance(graphs, Data):
        raise UserError(f"a network takes PyG graphs or tensors, got a {type(graphs).__name__}")
    if graphs.x is None or graphs.edge_index is None:
        raise UserError("a graph needs node features x and an edge_index; one of them is missing")
    given = graphs.to_dict()
    owner = given.pop("batch", None)
    if owner is None:
        owner = graphs.edge_index.new_zeros(graphs.x.size(0))
    ptr = given.pop("ptr", None)
    if ptr is None:
        if bool((owner.diff() < 0).any()):
            raise UserError("`batch` must be sorted: the nodes of a graph lie together")
        ptr = pointers(torch.bincount(owner, minlength=1))
    return new_batch(batch=owner, ptr=ptr, **given)


def with_pairs(batch: Batch) -> Batch:
    """A batch that knows its undirected edges: as it is, or a copy that does.

    A :class:`~cores.graphs.store.GraphStore` computes them once for all of its batches.

    >>> path = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    >>> with_pairs(as_batch(path)).pair_index.tolist()
    [[0, 1], [1, 2]]
    """
    if "pair_index" in batch:
        return batch
    known = copy(batch)
    known.pair_index, known.edge_pair = undirected_pairs(batch.edge_index, batch.x.size(0))
    return known


def undirected_pairs(
    edge_index: Int[Tensor, "2 edges"], num_nodes: int
) -> tuple[Int[Tensor, "2 pairs"], Int[Tensor, " edges"]]:
    """The undirected edges, sorted by their ends, and which of them each directed edge is.

    Both directions of an edge are one decision of a policy, and so are repeated edges.

    >>> ends, pair = undirected_pairs(torch.tensor([[0, 1, 2, 1], [1, 0, 1, 2]]), 3)
    >>> ends.tolist(), pair.tolist()
    ([[0, 1], [1, 2]], [0, 0, 1, 1])
    """
    first, second = edge_index.sort(dim=0).values  # [E], [E] smaller and larger end
    names, pair = torch.unique(first * num_nodes + second, return_inverse=True)
    ends = edge_index.new_zeros(2, names.size(0))
    return ends.index_copy(1, pair, torch.stack([first, second])), pair


def copies(batch: Batch, number: int) -> Batch:
    """Repeat a batch, all graphs of a copy together.

    >>> edge = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]))
    >>> twice = copies(as_batch(edge), 2)
    >>> twice.ptr.tolist(), twice.edge_index.tolist()
    ([0, 2, 4], [[0, 1, 2, 3], [1, 0, 3, 2]])
    """
    numbers = torch.arange(number, device=batch.batch.device)
    nodes, graphs = batch.x.size(0), batch.num_graphs
    ends = batch.edge_index[:, None] + numbers[:, None] * nodes  # [2, S, E]
    firsts = batch.ptr[:-1] + numbers[:, None] * nodes  # [S, B]
    features = {"edge_attr": batch.edge_attr.repeat(number, 1)} if "edge_attr" in batch else {}
    return new_batch(
        **marks(batch),
        x=batch.x.repeat(number, 1),
        edge_index=ends.flatten(1),
        batch=(batch.batch + numbers[:, None] * graphs).flatten(),
        ptr=torch.cat([firsts.flatten(), batch.ptr[-1:] * number]),
        **features,
    )


def marks(batch: Batch) -> dict[str, Any]:
    """Attributes of a whole batch, which every batch made from it inherits.

    ``rooted``: each graph is the neighbourhood of a node, whose last feature is 1, all others' 0.

    >>> marks(new_batch(x=torch.ones(3, 1))), marks(new_batch(rooted=True))
    ({}, {'rooted': True})
    """
    return {"rooted": True} if batch.get("rooted") else {}


_OF_NODES, _OF_EDGES, _OF_GRAPHS = ("x", "node_truth"), ("edge_attr", "edge_truth"), ("y",)


def cut(batch: Batch, size: int | Sequence[int]) -> Iterator[Batch]:
    """Split a batch into batches of one size, or of the given sizes.

    Whatever is done to many graphs at once costs each batch little then. Features are views, and a
    device is asked once, for the sizes.

    >>> edge = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]))
    >>> pieces = cut(Batch.from_data_list([edge, edge, edge]), 2)
    >>> [(piece.ptr.tolist(), piece.edge_index[0].tolist()) for piece in pieces]
    [([0, 2, 4], [0, 1, 2, 3]), ([0, 2], [0, 1])]
    """
    sizes = batch_sizes(batch.num_graphs, size) if isinstance(size, int) else size
    if len(sizes) <= 1:
        yield batch
        return
    cuts = Cuts.of(batch, sizes)
    graph, node, edge = cuts.graph, cuts.node, cuts.edge
    whole = {
        "edge_index": (batch.edge_index - node[cuts.batch_of_edge], edge, 1),
        "batch": (batch.batch - graph[cuts.batch_of_graph[batch.batch]], node, 0),
        **{name: (batch[name], node, 0) for name in _OF_NODES if name in batch},
        **{name: (batch[name], edge, 0) for name in _OF_EDGES if name in batch},
        **{name: (batch[name], graph, 0) for name in _OF_GRAPHS if name in batch},
    }
    if cuts.pair is not None:
        whole["pair_index"] = (batch.pair_index - node[cuts.batch_of_pair], cuts.pair, 1)
        whole["edge_pair"] = (batch.edge_pair - cuts.pair[cuts.batch_of_edge], edge, 0)
    firsts = torch.stack([first for _, first, _ in whole.values()])
    counts = dict(zip(whole, firsts.diff().tolist(), strict=True))
    parts = {name: values.split(counts[name], dim) for name, (values, _, dim) in whole.items()}
    for end, graphs, *chosen in zip(accumulate(sizes), sizes, *parts.values(), strict=True):
        ptr = batch.ptr[end - graphs : end + 1]
        yield new_batch(ptr=ptr - ptr[0], **marks(batch), **dict(zip(parts, chosen, strict=True)))


def batch_sizes(graphs: int, size: int) -> list[int]:
    """Sizes of batches of ``size`` graphs, of which the last may have fewer.

    >>> batch_sizes(7, 3)
    [3, 3, 1]
    """
    full, rest = divmod(graphs, size)
    return [size] * full + [rest] * (rest > 0)


def between(batch: Batch, first: int, last: int) -> Batch:
    """Slice ``[first:last]`` of the graphs of a batch.

    >>> edge = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]))
    >>> some = between(Batch.from_data_list([edge, edge, edge]), 1, 3)
    >>> some.ptr.tolist(), some.edge_index[0].tolist()
    ([0, 2, 4], [0, 1, 2, 3])
    """
    _, chosen, _ = cut(batch, [first, last - first, batch.num_graphs - last])
    return chosen


@dataclass(frozen=True)
class Cuts:
    """Offsets at which a large batch is cut into smaller ones.

    The edges of a graph lie together, like its nodes.
    """

    graph: Int[Tensor, " batches_plus_1"]
    batch_of_graph: Int[Tensor, " graphs"]
    node: Int[Tensor, " batches_plus_1"]
    edge: Int[Tensor, " batches_plus_1"]
    batch_of_edge: Int[Tensor, " edges"]
    pair: Int[Tensor, " batches_plus_1"] | None
    """Offsets of undirected edges, where the batch knows them."""
    batch_of_pair: Int[Tensor, " pairs"] | None

    @classmethod
    def of(cls, batch: Batch, sizes: Sequence[int]) -> "Cuts":
        """Cut a batch; no device is asked.

        >>> edge = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]))
        >>> Cuts.of(Batch.from_data_list([edge, edge, edge]), [2, 1]).node.tolist()
        [0, 4, 6]
        """
        counts = torch.tensor(sizes, dtype=torch.long)
        graph = pointers(counts).to(batch.ptr.device)
        batch_of_graph = owners(counts).to(batch.ptr.device)
        owner = batch.batch[batch.edge_index[0]]  # [E]
        edge, pair, batch_of_pair = torch.searchsorted(owner, graph), None, None
        if "pair_index" in batch:
            pair_owner = batch.batch[batch.pair_index[0]]  # [P]
            pair = torch.searchsorted(pair_owner, graph)
            batch_of_pair = batch_of_graph[pair_owner]
        node, batch_of_edge = batch.ptr[graph], batch_of_graph[owner]
        return cls(graph, batch_of_graph, node, edge, batch_of_edge, pair, batch_of_pair)
