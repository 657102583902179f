"""Sums of rows along the edges of a batch, each made in one pass: what a CPU is quickest at.

Gathered first and added then, the rows of all edges would be written and read once more. Terms are
added in the order of the edges, so that not a bit of a sum depends on how it is made.
"""

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.data import Batch

from cores.graphs.segments import pointers

FEW_EDGES = 512
"""Up to this number, gathering and adding takes less time than preparing sums."""
_PLACE_BITS = 32
"""Of a number that is sorted: the place that it came from."""


@dataclass(frozen=True)
class Sums:
    """Which rows of a matrix are added: sum i takes ``rows[ptr[i]:ptr[i + 1]]``, in this order."""

    rows: Int[Tensor, " terms"]
    ptr: Int[Tensor, " sums_plus_1"]

    @classmethod
    def by_owner(cls, owner: Int[Tensor, " terms"], number: int) -> "Sums":
        """Add each row to the sum of its owner, of which there are ``number``.

        >>> sums = Sums.by_owner(torch.tensor([1, 0, 1]), 2)
        >>> sums.of(torch.tensor([[1.0], [2.0], [4.0]])).tolist()
        [[2.0], [5.0]]
        """
        return cls(_order(owner), pointers(torch.bincount(owner, minlength=number)))

    def of(self, values: Float[Tensor, "rows hidden"]) -> Float[Tensor, "sums hidden"]:
        """The sums."""
        return F.embedding_bag(self.rows, values, self.ptr, mode="sum", include_last_offset=True)


class EdgeSums:
    """The sums along edges, each kind prepared when it is first asked for.

    Args:
        edge_index: Ends of the edges, on the CPU.
        num_nodes: Nodes of the batch.
    """

    def __init__(self, edge_index: Int[Tensor, "2 edges"], num_nodes: int) -> None:
        self.source, self.target = edge_index
        self.num_nodes = num_nodes

    def of_neighbours(self, h: Float[Tensor, "nodes hidden"]) -> Float[Tensor, "nodes hidden"]:
        """Sum each node and the sources of the edges that point to it.

        >>> path = EdgeSums(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
        >>> path.of_neighbours(torch.tensor([[1.0], [2.0], [4.0]])).tolist()
        [[3.0], [7.0], [6.0]]
        """
        return _NeighbourSum.apply(h, self) if _differentiated(h) else self.neighbours.of(h)

    def of_messages(
        self, h: Float[Tensor, "nodes hidden"], features: Float[Tensor, "edges hidden"]
    ) -> Float[Tensor, "nodes hidden"]:
        """Sum each node and relu(source + features) of the edges that point to it."""
        return _MessageSum.apply(h, features, self)

    def of_ends(self, h: Float[Tensor, "nodes hidden"]) -> Float[Tensor, "edges hidden"]:
        """Sum both ends of every edge."""
        return _EndSum.apply(h, self) if _differentiated(h) else self.ends.of(h)

    @cached_property
    def neighbours(self) -> Sums:
        """Sums of node rows: itself, then the sources of the edges that point to it."""
        terms = torch.cat([torch.arange(self.num_nodes), self.source])
        return Sums(terms.index_select(0, self.messages.rows), self.messages.ptr)

    @cached_property
    def messages(self) -> Sums:
        """Sums of node rows and edge rows: itself, then the edges that point to it."""
        owner = torch.cat([torch.arange(self.num_nodes), self.target])
        return Sums.by_owner(owner, self.num_nodes)

    @cached_property
    def ends(self) -> Sums:
        """Sums of node rows: source and target of each edge."""
        terms = torch.stack([self.source, self.target], dim=1).flatten()
        return Sums(terms, torch.arange(0, len(terms) + 1, 2))

    @cached_property
    def targets(self) -> Sums:
        """Sums of node rows: the targets of the edges that a node is the source of."""
        return Sums(self.target.index_select(0, self.outgoing.rows), self.outgoing.ptr)

    @cached_property
    def outgoing(self) -> Sums:
        """Sums of edge rows: those that a node is the source of."""
        return Sums.by_owner(self.source, self.num_nodes)

    @cached_property
    def incoming(self) -> Sums:
        """Sums of edge rows: those that a node is the target of."""
        return Sums.by_owner(self.target, self.num_nodes)


class _NeighbourSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, sums: EdgeSums) -> Tensor:
        ctx.sums = sums
        return sums.neighbours.of(h)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.sums.targets.of(gradient) + gradient, None


class _MessageSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, features: Tensor, sums: EdgeSums) -> Tensor:
        rows = h.new_empty(len(h) + len(features), h.size(1))
        rows[: len(h)] = h
        messages = rows[len(h) :]
        torch.index_select(h, 0, sums.source, out=messages)
        torch.relu_(messages.add_(features))
        ctx.save_for_backward(messages)
        ctx.sums = sums
        return sums.messages.of(rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        (messages,) = ctx.saved_tensors
        along = gradient.index_select(0, ctx.sums.target)
        along = torch.where(messages > 0, along, 0.0)
        return ctx.sums.outgoing.of(along) + gradient, along, None


class _EndSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, sums: EdgeSums) -> Tensor:
        ctx.sums = sums
        return sums.ends.of(h)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.sums.outgoing.of(gradient) + ctx.sums.incoming.of(gradient), None


def edge_sums(edge_index: Int[Tensor, "2 edges"], rows: Tensor) -> EdgeSums | None:
    """The sums of nodes' rows along edges, where a device makes them best this way.

    A GPU is quicker at gathering and adding, and whoever traces a network sees no sorting.
    """
    if rows.device.type != "cpu" or torch.compiler.is_compiling():
        return None
    return EdgeSums(edge_index, rows.size(0)) if edge_index.size(1) > FEW_EDGES else None


def with_sums(batch: Batch) -> Batch:
    """A copy of a batch that keeps its sums: for networks that pass over it several times."""
    kept = copy(batch)
    for ends, name in (("edge_index", "edge_sums"), ("pair_index", "pair_sums")):
        if ends in batch and (sums := edge_sums(batch[ends], batch.x)) is not None:
            kept[name] = sums
    return kept


def _differentiated(h: Tensor) -> bool:
    return torch.is_grad_enabled() and h.requires_grad


def _order(owner: Int[Tensor, " terms"]) -> Int[Tensor, " terms"]:
    """The places of the terms by their owners; those of one stay in their order."""
    keys = (owner << _PLACE_BITS) | torch.arange(len(owner))
    keys.numpy().sort()  # in place; of whole numbers, several times as fast as torch's argsort
    return keys & ((1 << _PLACE_BITS) - 1)
