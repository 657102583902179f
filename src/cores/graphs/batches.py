"""Any PyG graphs as one batch, with what our networks need of it."""

from copy import copy
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor
from torch_geometric.data import Batch, Data

from cores.errors import UserError
from cores.graphs.segments import pointers


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
    return Batch(batch=owner, ptr=ptr, **given)


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
