"""Random masks that know nothing of any policy: what the classifier learns from, and the judge.

A classifier that learns only from a policy's subgraphs learns the policy's private code
(docs/honesty.md). Masks drawn independently for every node would not do either: a whole motif in a
sparse subgraph would be too rare to learn from. These are smooth over the graph, so that connected
pieces survive together.
"""

from collections.abc import Iterable, Iterator

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor
from torch_geometric.data import Batch

from cores.config import Removal
from cores.graphs.batches import cut
from cores.graphs.segments import place_within
from cores.graphs.store import GraphStore
from cores.graphs.subgraphs import Elements

RECIPE = 4
"""Version of these masks: what was trained on other masks is not comparable."""
MOST_ROUNDS = 8
"""Each graph's random values are averaged over neighbours 0 to this many times.

With few rounds the pieces are smaller than a motif, and a classifier does not know a motif that
stands alone; with many they are larger, and a policy has less reason to keep the motif only.
"""


def masked(batches: Iterable[Batch], removal: Removal) -> Iterator[Batch]:
    """The batches with a random part of every graph removed."""
    for batch in batches:
        elements = Elements.of(batch, removal)
        yield elements.subgraph(smooth_masks(elements, random_ratios(elements))).batch


def masked_batches(
    graphs: GraphStore, batch_size: int, removal: Removal, generator: torch.Generator
) -> Iterator[Batch]:
    """An epoch of shuffled mini-batches with a random part of every graph removed.

    Masks are drawn for many batches at once: for a single one they would take as long as a network.
    """
    for chunk in masked(graphs.chunks(batch_size, generator), removal):
        yield from cut(chunk, batch_size)


def random_ratios(elements: Elements) -> Float[Tensor, " graphs"]:
    """A kept share for every graph, anything between nothing and all; large ones more often.

    The root of a uniform number: twice as many masks near 1 as a uniform one has, because a
    classifier that rarely sees most of a graph is a worse one.
    """
    return torch.rand(elements.batch.num_graphs, device=elements.owner.device).sqrt()


def smooth_masks(
    elements: Elements, kept_ratio: Float[Tensor, " graphs"]
) -> Bool[Tensor, " elements"]:
    """Removes a random part of every graph, smooth over it, down to the given share.

    At least one element of a graph is kept. Where nodes and edges are removed, a little less may be
    kept than was asked for: an edge needs its ends.
    """
    batch = elements.batch
    values = _smooth_values(batch)  # [N]
    wanted = rounded_up(kept_ratio * elements.count)  # [B]
    if elements.removal == "node":
        return ~largest(elements.fill_protected(values, torch.inf), elements.owner, wanted)
    ends = values[batch.pair_index]  # [2, P]
    owner = batch.batch[batch.pair_index[0]]  # [P]
    noise = _deviation(values, batch)[owner] * torch.rand_like(ends[0])
    pair_values = ends.amin(dim=0) + noise / 2  # [P]
    if elements.removal == "edge":
        return ~largest(pair_values, owner, wanted)
    # Between half and all of what is kept are nodes; edges between them make up the rest.
    total = torch.bincount(batch.batch, minlength=batch.num_graphs)
    share = (1 + torch.rand_like(kept_ratio)) / 2
    nodes_wanted = rounded_up(share * wanted).clamp(max=total)
    first = Elements.of(batch, "node").fill_protected(values, torch.inf)
    nodes = largest(first, batch.batch, nodes_wanted)
    joined = nodes[batch.pair_index].all(dim=0)  # [P]
    pairs = largest(pair_values.where(joined, -torch.inf), owner, wanted - nodes_wanted)
    return ~torch.cat([nodes, pairs & joined])


def rounded_up(numbers: Float[Tensor, " graphs"]) -> Int[Tensor, " graphs"]:
    """At least one; a ratio k / n times n is k, not k + 1, whatever floats make of it."""
    return (numbers - 1e-4).ceil().long().clamp(min=1)


def _smooth_values(batch: Batch) -> Float[Tensor, " nodes"]:
    """A random value per node, averaged over its neighbours a random number of times per graph."""
    values = torch.rand(batch.x.size(0), device=batch.x.device)
    return smoothed(
        batch, values, torch.randint(MOST_ROUNDS + 1, (batch.num_graphs,), device=values.device)
    )


def smoothed(
    batch: Batch, values: Float[Tensor, " nodes"], rounds: Int[Tensor, " graphs"]
) -> Float[Tensor, " nodes"]:
    """Values averaged over a node and its neighbours, up to ``MOST_ROUNDS`` times in each graph."""
    source, target = batch.edge_index
    share = 1 / (1 + torch.bincount(target, minlength=len(values)))  # [N]
    for number in range(MOST_ROUNDS):
        around = values.index_add(0, target, values[source]) * share
        values = torch.where((rounds > number)[batch.batch], around, values)
    return values


def drawn_once(batch: Batch) -> tuple[Float[Tensor, " nodes"], Int[Tensor, " graphs"]]:
    """Values and rounds as for a random mask, but decided by each graph: its edges are the seed.

    A graph gets the same draw in every batch and on every device, another graph another one.
    """
    place = place_within(batch.batch, batch.num_graphs)
    source, target = batch.edge_index
    named = hashed(hashed(place[source]) + place[target])  # [E] in no order
    sizes = torch.bincount(batch.batch, minlength=batch.num_graphs)
    seeds = hashed(sizes.index_add(0, batch.batch[source], named))  # [B]
    values = hashed(seeds[batch.batch] + place) % 2**24 / 2**24  # exact in 32 bits
    return values, hashed(seeds - 1) % (MOST_ROUNDS + 1)


def hashed(numbers: Int[Tensor, " items"]) -> Int[Tensor, " items"]:
    """Whole numbers scattered over 64 bits: multiplied, overflow and all, and folded, twice."""
    for _ in range(2):
        numbers = numbers * -7046029254386353131
        numbers = numbers ^ (numbers >> 32)
    return numbers


def _deviation(values: Float[Tensor, " nodes"], batch: Batch) -> Float[Tensor, " graphs"]:
    """Standard deviation of the values within each graph."""
    nodes = Elements.of(batch, "node")
    return nodes.mean((values - nodes.mean(values)[batch.batch]) ** 2).sqrt()


def largest(
    values: Shaped[Tensor, " elements"],
    owner: Int[Tensor, " elements"],
    number: Int[Tensor, " graphs"],
    ties: Int[Tensor, " elements"] | None = None,
) -> Bool[Tensor, " elements"]:
    """Marks so many of each graph's elements, the largest values first.

    Among equal values a smaller tie comes first; without ties, any.

    >>> owner = torch.tensor([0, 0, 0, 1])
    >>> largest(torch.tensor([0.1, 0.9, 0.5, 0.3]), owner, torch.tensor([2, 1])).tolist()
    [False, True, True, True]
    """
    if ties is None:
        order = values.argsort(descending=True)
    else:
        order = ties.argsort(stable=True)
        order = order[values[order].argsort(descending=True, stable=True)]
    order = order[owner[order].argsort(stable=True)]  # by graph, the largest first
    rank = torch.empty_like(owner)
    rank[order] = place_within(owner[order], len(number))
    return rank < number[owner]


def scattered(place: Int[Tensor, " elements"]) -> Int[Tensor, " elements"]:
    """A fixed number in [0, 2^32) per place within a graph, in no visible order: breaks ties.

    The same graph gets the same numbers in every batch and on every device.
    """
    return (place + 1) * 2654435761 % 2**32
