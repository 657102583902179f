"""The neighbourhoods of many nodes of one large graph, each as a graph of its own.

The node in question is the *root* of its neighbourhood and comes first in it. Nothing is drawn at
random: the same node of the same graph has the same neighbourhood whenever it is asked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from cores.config import Reach
from cores.graphs.masks import hashed
from cores.graphs.segments import owners, place_within, pointers

CHUNK = 1024
"""Roots whose neighbourhoods are found at once: memory beyond the result does not grow."""


@dataclass(frozen=True)
class Neighbourhoods:
    """Graphs laid end to end as in a :class:`~cores.graphs.store.GraphStore`, one per root."""

    node: Int[Tensor, " nodes"]
    """The number of each node in the large graph; the first of a neighbourhood is its root."""
    node_ptr: Int[Tensor, " roots_plus_1"]
    edge: Int[Tensor, " edges"]
    """The number of each directed edge in the large graph, rising within a neighbourhood."""
    edge_index: Int[Tensor, "2 edges"]
    """Ends of each edge, counted from 0 within the neighbourhood."""
    edge_ptr: Int[Tensor, " roots_plus_1"]

    @property
    def is_root(self) -> Bool[Tensor, " nodes"]:
        """Mask of the roots."""
        found = torch.zeros_like(self.node, dtype=torch.bool)
        found[self.node_ptr[:-1]] = True
        return found

    @classmethod
    def joined(cls, parts: "list[Neighbourhoods]") -> "Neighbourhoods":
        """Those of several chunks end to end."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            torch.cat([part.node for part in parts]),
            pointers(torch.cat([part.node_ptr.diff() for part in parts])),
            torch.cat([part.edge for part in parts]),
            torch.cat([part.edge_index for part in parts], dim=1),
            pointers(torch.cat([part.edge_ptr.diff() for part in parts])),
        )


class LargeGraph:
    """A graph that knows the edges that point to each of its nodes.

    Args:
        edge_index: Ends of the directed edges.
        num_nodes: How many nodes it has.
    """

    def __init__(self, edge_index: Int[Tensor, "2 edges"], num_nodes: int) -> None:
        self.edge_index, self.num_nodes = edge_index, num_nodes
        source, target = edge_index
        # In no visible order: a few that follow each other are as good as drawn at random.
        shuffled = hashed(hashed(source) + target).argsort(stable=True)
        self._incoming = shuffled[target[shuffled].argsort(stable=True)]
        self._ptr = pointers(torch.bincount(target, minlength=num_nodes))
        self._degree = self._ptr.diff()
        names = source * num_nodes + target
        self._ordered, self._order = names.sort(stable=True)

    def neighbourhoods(self, roots: Int[Tensor, " roots"], reach: Reach) -> Neighbourhoods:
        """The neighbourhoods of some nodes, in their order.

        A neighbourhood has the nodes from which a message arrives at the root within so many hops,
        and the edges between them: what :func:`torch_geometric.utils.k_hop_subgraph` finds. With a
        fan-out, only so many of the edges that point to a node count, and their opposites.

        >>> path = LargeGraph(torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]), 4)
        >>> found = path.neighbourhoods(torch.tensor([0, 2]), Reach(hops=1, fan_out=0))
        >>> found.node.tolist(), found.node_ptr.tolist()
        ([0, 1, 2, 1, 3], [0, 2, 5])
        >>> found.edge_index.tolist()
        [[0, 1, 1, 0, 0, 2], [1, 0, 0, 1, 2, 0]]
        """
        return Neighbourhoods.joined([part for _, part in self.in_chunks(roots, reach, CHUNK)])

    def in_chunks(
        self, roots: Int[Tensor, " roots"], reach: Reach, size: int
    ) -> Iterator[tuple[Int[Tensor, " some"], Neighbourhoods]]:
        """Yield ``size`` roots at a time with their neighbourhoods; one empty chunk for none."""
        for some in roots.split(size):
            yield some, self._found(some, reach)

    def _found(self, roots: Int[Tensor, " roots"], reach: Reach) -> Neighbourhoods:
        # A node of a neighbourhood has one name: that of the neighbourhood, then its own number.
        frontier = torch.arange(len(roots)) * self.num_nodes + roots
        known, layers, taken = frontier, [frontier], []
        for hop in range(reach.hops + 1):
            owner, edge = self._pointing_to(frontier, roots, reach.fan_out)
            taken.append(torch.stack([owner, edge]))
            if hop < reach.hops:
                found = torch.unique(owner * self.num_nodes + self.edge_index[0][edge])
                frontier = found[~_among(found, known)]
                known = torch.cat([known, frontier]).sort().values
                layers.append(frontier)
        names = torch.cat(layers)
        names = names[(names // self.num_nodes).argsort(stable=True)]  # nearest to the root first
        node_owner = names // self.num_nodes
        owner, edge = self._between(known, torch.cat(taken, dim=1))
        by_name = names.argsort()
        place = place_within(node_owner, len(roots))[by_name]
        ends = owner * self.num_nodes + self.edge_index[:, edge]  # [2, E]
        return Neighbourhoods(
            names % self.num_nodes,
            pointers(torch.bincount(node_owner, minlength=len(roots))),
            edge,
            place[torch.searchsorted(names[by_name], ends)],
            pointers(torch.bincount(owner, minlength=len(roots))),
        )

    def _pointing_to(
        self, names: Int[Tensor, " items"], roots: Int[Tensor, " roots"], fan_out: int
    ) -> tuple[Int[Tensor, " taken"], Int[Tensor, " taken"]]:
        """The neighbourhood and number of edges that point to nodes of neighbourhoods.

        Those of a node lie in a circle; each root takes some that follow each other, from a place
        of its own, so that a node with very many costs no more than others.
        """
        owner, node = names // self.num_nodes, names % self.num_nodes
        degree = self._degree[node]
        count = degree.clamp(max=fan_out) if fan_out else degree
        first = hashed(hashed(roots[owner]) + node) % degree.clamp(min=1)
        item = owners(count)
        step = first[item] + place_within(item, len(names))
        return owner[item], self._incoming[self._ptr[node[item]] + step % degree[item]]

    def _between(
        self, known: Int[Tensor, " nodes"], taken: Int[Tensor, "2 taken"]
    ) -> tuple[Int[Tensor, " edges"], Int[Tensor, " edges"]]:
        """Those of the edges whose ends are both known, each once, with their opposites."""
        owner, edge = taken
        inside = _among(owner * self.num_nodes + self.edge_index[0][edge], known)
        owner, edge = owner[inside], edge[inside]
        source, target = self.edge_index[:, edge]
        if len(edge):
            name = target * self.num_nodes + source
            at = torch.searchsorted(self._ordered, name).clamp(max=len(self._ordered) - 1)
            there = self._ordered[at] == name
            owner = torch.cat([owner, owner[there]])
            edge = torch.cat([edge, self._order[at[there]]])
        total = max(1, self.edge_index.size(1))
        pairs = torch.unique(owner * total + edge)
        return pairs // total, pairs % total


def _among(names: Int[Tensor, " names"], known: Int[Tensor, " known"]) -> Bool[Tensor, " names"]:
    """Mask of names among the known ones, which are sorted and not empty."""
    return known[torch.searchsorted(known, names).clamp(max=len(known) - 1)] == names
