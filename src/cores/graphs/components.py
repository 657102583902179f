"""Connected pieces of what is kept of a batch, and the best of them.

A *piece* is a connected component of the kept nodes and kept edges. Where nodes are removed, a kept
node without a kept edge is a piece of its own. Where only edges are removed every node stays, and
those without a kept edge are what is left over rather than chosen: there a piece has an edge.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch_geometric.data import Batch

from cores.config import Removal
from cores.graphs.subgraphs import Elements, roots_of

_DIGITS = 4
"""Of the scores by which pieces are ranked: of pieces that are alike, sums on a GPU differ in the
last digits, and the first one is to be kept on every machine."""


def component_labels(
    edge_index: Int[Tensor, "2 edges"],
    kept_edges: Bool[Tensor, "*samples edges"],
    num_nodes: int,
) -> Int[Tensor, "*samples nodes"]:
    """The smallest node of every node's component, over the kept edges.

    Every round hooks the label of an edge's one end onto that of the other, if that is smaller, and
    then halves the way to the smallest (pointer jumping): there are few rounds, also on long paths.

    >>> path = torch.tensor([[0, 1, 2], [1, 2, 3]])
    >>> component_labels(path, torch.tensor([True, False, True]), 4).tolist()
    [0, 0, 2, 2]
    """
    samples = kept_edges.shape[:-1]
    labels = torch.arange(num_nodes, device=edge_index.device).expand(*samples, num_nodes)
    source, target = (ends.expand(*samples, -1) for ends in edge_index)
    while True:
        first, second = labels.gather(-1, source), labels.gather(-1, target)  # [S, E]
        # What is not kept hooks nothing: no label is as large.
        smaller = torch.minimum(first, second).where(kept_edges, num_nodes)
        hooked = labels
        for places in (first, second, source, target):
            hooked = hooked.scatter_reduce(-1, places, smaller, "amin")
        hooked = hooked.gather(-1, hooked)
        if torch.equal(hooked, labels):
            return labels
        labels = hooked


def count_pieces(
    elements: Elements, removed: Bool[Tensor, "*samples elements"]
) -> Int[Tensor, "*samples graphs"]:
    """Pieces of each graph's kept part."""
    batch = elements.batch
    labels, inside = _pieces(elements, removed)
    counts = labels.new_zeros(*labels.shape[:-1], batch.num_graphs)
    return counts.index_add(-1, batch.batch, (_roots(labels) & inside).long())


def subgraph_pieces(subgraph: Batch, removal: Removal) -> Int[Tensor, " graphs"]:
    """Pieces of each graph of which this is left; what was removed decides what a piece is.

    >>> left = Batch(
    ...     x=torch.ones(3, 1),
    ...     edge_index=torch.tensor([[0, 1], [1, 0]]),
    ...     batch=torch.zeros(3, dtype=torch.int64),
    ...     ptr=torch.tensor([0, 3]),
    ... )
    >>> subgraph_pieces(left, "node").tolist(), subgraph_pieces(left, "edge").tolist()
    ([2], [1])
    """
    elements = Elements.of(subgraph, removal)
    return count_pieces(elements, torch.zeros_like(elements.owner, dtype=torch.bool))


def best_pieces(
    elements: Elements,
    removed: Bool[Tensor, "*samples elements"],
    scores: Float[Tensor, " elements"],
    most: int,
) -> Bool[Tensor, "*samples elements"]:
    """Also remove all but the best pieces of every graph.

    Args:
        elements: What is decided on.
        removed: What is removed already.
        scores: A piece is as good as the sum of these over its elements; of equal ones, that with
            the smallest node comes first. The one with the node that a graph is the neighbourhood
            of is the best.
        most: Pieces that a graph may have.
    """
    labels, inside = _pieces(elements, removed)
    piece = labels[..., _any_node(elements)]  # [S, M], the smallest node of an element's piece
    counted = scores.expand_as(piece).where(_present(elements, removed), 0.0)
    total = scores.new_zeros(labels.shape).scatter_add(-1, piece, counted)  # [S, N]
    if elements.batch.get("rooted"):  # a piece without the root tells the classifier nothing of it
        total = total.scatter(-1, labels[..., roots_of(elements.batch)], torch.inf)
    rank = _rank(elements, total, _roots(labels) & inside)
    return removed | (rank.gather(-1, piece) >= most)


def _pieces(elements: Elements, removed: Tensor) -> tuple[Tensor, Tensor]:
    """Smallest node of each node's component, and mask of nodes inside a piece."""
    batch = elements.batch
    nodes = batch.x.size(0)
    if elements.removal == "node":
        edges, kept = batch.edge_index, ~removed
        between = kept[..., edges[0]] & kept[..., edges[1]]
        return component_labels(edges, between, nodes), kept
    edges, there = batch.pair_index, _present(elements, removed)
    if elements.removal == "both":
        kept, between = there[..., :nodes], there[..., nodes:]
        return component_labels(edges, between, nodes), kept
    return component_labels(edges, there, nodes), _touched(edges, there, nodes)


def _touched(edge_index: Tensor, kept: Tensor, nodes: int) -> Tensor:
    """Nodes with a kept edge."""
    number = kept.new_zeros(*kept.shape[:-1], nodes, dtype=torch.int64)
    for ends in edge_index:
        number = number.index_add(-1, ends, kept.long())
    return number > 0


def _present(elements: Elements, removed: Tensor) -> Tensor:
    """Elements of the subgraph: an edge is gone with either of its ends."""
    if elements.removal != "both":
        return ~removed
    nodes = elements.batch.x.size(0)
    first, second = elements.batch.pair_index
    gone = removed[..., first] | removed[..., second]
    return ~torch.cat([removed[..., :nodes], removed[..., nodes:] | gone], dim=-1)


def _any_node(elements: Elements) -> Tensor:
    """A node of every element: itself, or an end."""
    nodes = torch.arange(elements.batch.x.size(0), device=elements.owner.device)
    if elements.removal == "node":
        return nodes
    ends: Tensor = elements.batch.pair_index[0]
    return ends if elements.removal == "edge" else torch.cat([nodes, ends])


def _roots(labels: Tensor) -> Tensor:
    """Nodes that are the smallest of their component."""
    return labels == torch.arange(labels.size(-1), device=labels.device)


def _rank(elements: Elements, total: Tensor, pieces: Tensor) -> Tensor:
    """Place of every piece among those of its graph, from 0, at its smallest node."""
    batch = elements.batch
    value = total.round(decimals=_DIGITS).masked_fill(~pieces, -torch.inf)
    order = value.argsort(dim=-1, descending=True, stable=True)
    order = order.gather(-1, batch.batch[order].argsort(dim=-1, stable=True))  # graph by graph
    place = torch.arange(total.size(-1), device=total.device) - batch.ptr[batch.batch]
    return torch.empty_like(order).scatter_(-1, order, place.expand_as(order))
