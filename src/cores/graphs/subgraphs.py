"""Subgraphs G_s of a batch: remove nodes or edges, and nothing of what was removed is left.

Sec. 4.2.1 of the paper. A policy decides on *elements*: nodes, undirected edges, or both. Both
directions of an undirected edge are one element, so they share their fate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor
from torch_geometric.data import Batch

from cores.config import Removal
from cores.graphs.batches import new_batch, with_pairs
from cores.graphs.segments import pointers

_PER_GRAPH = ("y", "ptr")
_NOT_CARRIED = ("pair_index", "edge_pair", "edge_sums", "pair_sums", "num_nodes")
"""Attributes of a batch that are no longer true of a subgraph."""


def remove_nodes(batch: Batch, removed: Bool[Tensor, " nodes"]) -> Batch:
    """V_s = kept nodes, E_s = edges between them; every graph stays in the batch, maybe empty.

    >>> path = Batch(
    ...     x=torch.arange(3.0)[:, None],
    ...     edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
    ...     batch=torch.zeros(3, dtype=torch.int64),
    ...     ptr=torch.tensor([0, 3]),
    ... )
    >>> subgraph = remove_nodes(path, torch.tensor([True, False, False]))
    >>> subgraph.x.tolist(), subgraph.edge_index.tolist()
    ([[1.0], [2.0]], [[0, 1], [1, 0]])
    """
    return _subgraph(batch, ~removed, ~_any_end(removed, batch.edge_index))


def remove_edges(batch: Batch, removed: Bool[Tensor, " edges"]) -> Batch:
    """V_s = all nodes, E_s = kept edges.

    >>> path = Batch(
    ...     x=torch.arange(3.0)[:, None],
    ...     edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
    ...     batch=torch.zeros(3, dtype=torch.int64),
    ...     ptr=torch.tensor([0, 3]),
    ... )
    >>> remove_edges(path, torch.tensor([True, True, False, False])).edge_index.tolist()
    [[1, 2], [2, 1]]
    """
    kept = _positions(~removed)
    return _filtered(batch, None, kept, edge_index=batch.edge_index.index_select(1, kept))


def roots_of(batch: Batch) -> Bool[Tensor, " nodes"]:
    """The nodes whose neighbourhoods the graphs of a batch are; their last feature says so."""
    return batch.x[:, -1] > 0


def node_ratio(batch: Batch, removed: Bool[Tensor, " nodes"]) -> Float[Tensor, " graphs"]:
    """Share of each graph's nodes that is kept; 1 for a graph without nodes."""
    return _kept_share(removed, batch.batch, batch.num_graphs)


def edge_ratio(batch: Batch, removed: Bool[Tensor, " edges"]) -> Float[Tensor, " graphs"]:
    """Share of each graph's edges that is kept; 1 for a graph without edges."""
    return _kept_share(removed, batch.batch[batch.edge_index[0]], batch.num_graphs)


@dataclass(frozen=True)
class Elements:
    """Elements of a batch: its nodes, its undirected edges, or nodes and then edges."""

    batch: Batch
    removal: Removal
    owner: Int[Tensor, " elements"]
    """The graph of every element."""

    @classmethod
    def of(cls, batch: Batch, removal: Removal) -> "Elements":
        """The elements of a batch."""
        if removal != "node":
            batch = with_pairs(batch)
        owners = []
        if removal != "edge":
            owners.append(batch.batch)
        if removal != "node":
            owners.append(batch.batch[batch.pair_index[0]])
        return cls(batch, removal, torch.cat(owners) if len(owners) > 1 else owners[0])

    def mean(self, values: Float[Tensor, "*samples elements"]) -> Float[Tensor, "*samples graphs"]:
        """Mean over the elements of each graph; 0 for a graph without."""
        return self.sum(values) / self.count.clamp(min=1)

    def sum(self, values: Shaped[Tensor, "*samples elements"]) -> Shaped[Tensor, "*samples graphs"]:
        """Sum over the elements of each graph."""
        total = values.new_zeros(*values.shape[:-1], self.batch.num_graphs)
        return total.index_add(-1, self.owner, values)

    def mean_over_graphs(self, values: Float[Tensor, " elements"]) -> Float[Tensor, ""]:
        """Mean over the elements of each graph, then over the graphs that are not padding."""
        means, real = self.mean(values), self.batch.get("unpadded_graphs")
        return means.mean() if real is None else (means * real).sum() / real.sum()

    @cached_property
    def protected(self) -> Bool[Tensor, " elements"] | None:
        """Elements that are never removed: a node whose neighbourhood a graph is; None: none.

        Deviation D22: the paper removes from graphs that are classified as a whole.
        """
        if not self.batch.get("rooted") or self.removal == "edge":
            return None
        roots = roots_of(self.batch)
        if self.removal == "node":
            return roots
        return torch.cat([roots, roots.new_zeros(self.batch.pair_index.size(1))])

    def removable(
        self, removed: Bool[Tensor, "*samples elements"]
    ) -> Bool[Tensor, "*samples elements"]:
        """Clear the removal of elements that are never removed."""
        return removed if self.protected is None else removed & ~self.protected

    def fill_protected(
        self, values: Float[Tensor, "*some elements"], value: float
    ) -> Float[Tensor, "*some elements"]:
        """The values of elements, with another one for those that are never removed."""
        return values if self.protected is None else values.masked_fill(self.protected, value)

    @cached_property
    def count(self) -> Int[Tensor, " graphs"]:
        """Elements of each graph."""
        return self.sum(torch.ones_like(self.owner))

    def kept_ratio(
        self, removed: Bool[Tensor, "*samples elements"]
    ) -> Float[Tensor, "*samples graphs"]:
        """rho: share of each graph's elements that is kept; 1 for a graph without any.

        Where nodes and edges are removed, an edge is gone with either of its ends.
        """
        if self.removal == "both":
            nodes = removed[..., : self.batch.x.size(0)]
            pairs = removed[..., self.batch.x.size(0) :]
            gone = pairs | nodes[..., self.batch.pair_index].any(dim=-2)
            removed = torch.cat([nodes, gone], dim=-1)
        return 1 - self.mean(removed.float())

    def restored(
        self, removed: Bool[Tensor, "*samples elements"]
    ) -> tuple[Bool[Tensor, "*samples elements"], Bool[Tensor, "*samples graphs"]]:
        """Give a graph that lost everything all of it back; also returns which graphs those are.

        Everything is every node, or every edge where only edges are removed.
        """
        empty = self.kept_ratio(removed) == 0  # where nodes are removed: without any, no edges
        return removed & ~empty[..., self.owner], empty

    def mode(self, logits: Float[Tensor, " elements"]) -> Bool[Tensor, " elements"]:
        """The mode of the policy: elements removed with probability above a half.

        The node of a graph with the smallest logit is kept whatever its probability, or its edge
        where only edges are removed; elements with the same logit share their fate.
        """
        logits = self.fill_protected(logits, -torch.inf)
        count = logits.size(0) if self.removal == "edge" else self.batch.x.size(0)
        none = logits.new_full((self.batch.num_graphs,), torch.inf)
        least = none.scatter_reduce(0, self.owner[:count], logits[:count], "amin")
        removed = logits[:count] > least.clamp(min=0)[self.owner[:count]]
        return removed if self.removal != "both" else torch.cat([removed, logits[count:] > 0])

    def flattened(self, values: Shaped[Tensor, "samples elements"]) -> Shaped[Tensor, " copies"]:
        """The values of several samples as those of one batch that holds a copy for each sample."""
        nodes = 0 if self.removal == "edge" else self.batch.x.size(0)
        return torch.cat([values[:, :nodes].flatten(), values[:, nodes:].flatten()])

    def split(
        self, values: Shaped[Tensor, "some elements"], pieces: "Sequence[Elements]"
    ) -> list[Tensor]:
        """The values of a batch as those of the batches that it was cut into."""
        if self.removal != "both":
            return list(values.split([len(piece.owner) for piece in pieces], dim=1))
        total = self.batch.x.size(0)
        nodes = values[:, :total].split([piece.batch.x.size(0) for piece in pieces], dim=1)
        number = [piece.batch.pair_index.size(1) for piece in pieces]
        pairs = values[:, total:].split(number, dim=1)
        return [torch.cat(both, dim=1) for both in zip(nodes, pairs, strict=True)]

    def per_node(self, values: Tensor, otherwise: float | bool) -> Tensor:
        """The values of the nodes; the same value for all where nodes are not decided on."""
        if self.removal == "edge":
            return values.new_full((self.batch.x.size(0),), otherwise)
        return values[: self.batch.x.size(0)]

    def per_edge(self, values: Tensor, otherwise: float | bool) -> Tensor:
        """The values of the directed edges; the same value for all where not decided on."""
        if self.removal == "node":
            return values.new_full((self.batch.edge_index.size(1),), otherwise)
        return self.per_pair(values).index_select(0, self.batch.edge_pair)

    def per_pair(self, values: Tensor) -> Tensor:
        """The values of the undirected edges, where these are decided on."""
        return values[self.batch.x.size(0) :] if self.removal == "both" else values

    def subgraph(self, removed: Bool[Tensor, " elements"]) -> "Subgraph":
        """G_s after removing elements; an edge goes with either of its ends."""
        batch, nodes = self.batch, self.per_node(removed, False)
        if self.removal == "node":
            return Subgraph.without(batch, nodes)
        edges = self.per_edge(removed, False)
        if self.removal == "edge":  # no node is renumbered
            return Subgraph(remove_edges(batch, edges), nodes, edges)
        return Subgraph.without(batch, nodes, edges)


@dataclass(frozen=True)
class Subgraph:
    """Rest of a batch, and what was removed from it."""

    batch: Batch
    removed_nodes: Bool[Tensor, " nodes"]
    removed_edges: Bool[Tensor, " edges"]
    """Mask over the whole batch; an edge that lost an end is removed."""

    @classmethod
    def full(cls, batch: Batch) -> "Subgraph":
        """Everything kept."""
        nothing = batch.batch.new_zeros(1, dtype=torch.bool)
        return cls(batch, nothing.expand(batch.x.size(0)), nothing.expand(batch.edge_index.size(1)))

    @classmethod
    def without(
        cls,
        batch: Batch,
        nodes: Bool[Tensor, " nodes"],
        edges: Bool[Tensor, " edges"] | None = None,
    ) -> "Subgraph":
        """Without some nodes, and maybe edges; an edge goes with either of its ends."""
        gone = _any_end(nodes, batch.edge_index)
        gone = gone if edges is None else gone | edges
        return cls(_subgraph(batch, ~nodes, ~gone), nodes, gone)


def _kept_share(removed: Tensor, owner: Tensor, num_graphs: int) -> Tensor:
    total = torch.bincount(owner, minlength=num_graphs)
    kept = torch.bincount(owner[~removed], minlength=num_graphs)
    return torch.where(total > 0, kept / total.clamp(min=1), 1.0)


def _subgraph(batch: Batch, nodes: Tensor, edges: Tensor) -> Batch:
    """The batch with some of its nodes, renumbered, and some of its edges."""
    kept_before = pointers(nodes.long())  # [N + 1], the new number of a node that is kept
    kept = _positions(edges)
    ends = batch.edge_index.index_select(1, kept)  # [2, E_s]
    return _filtered(
        batch,
        _positions(nodes),
        kept,
        edge_index=kept_before.index_select(0, ends.flatten()).view_as(ends),
        ptr=kept_before[batch.ptr],
    )


def _any_end(nodes: Tensor, edge_index: Tensor) -> Tensor:
    """Edges with an end among the nodes."""
    source, target = edge_index
    return nodes.index_select(0, source) | nodes.index_select(0, target)


def _positions(mask: Tensor) -> Tensor:
    """Indices of true values: found once for all that is selected by them."""
    return mask.nonzero().squeeze(1)


def _filtered(batch: Batch, nodes: Tensor | None, edges: Tensor, **replaced: Tensor) -> Batch:
    """The batch with only some nodes (None: all) and edges, and some attributes replaced."""
    chosen = dict(replaced)
    for name, value in batch.to_dict().items():
        if name in chosen or name in _NOT_CARRIED:
            continue
        if name in _PER_GRAPH or not isinstance(value, Tensor):
            pass  # PyG goes by length, which may happen to be that of the nodes or edges
        elif batch.is_edge_attr(name):
            value = value.index_select(0, edges)
        elif nodes is not None and batch.is_node_attr(name):
            value = value.index_select(0, nodes)
        chosen[name] = value
    return new_batch(**chosen)
