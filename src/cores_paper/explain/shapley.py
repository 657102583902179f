"""Shapley values of nodes, by sampling orders in which they join the graph."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cores import GraphModel, GraphStore
from cores.evaluation.faithfulness import shuffled_nodes
from cores.graphs.segments import gathered, owners, place_within, pointers
from cores.graphs.subgraphs import remove_nodes

MOST_ITEMS = 2**17
"""Nodes and edges of the subgraphs that are classified at once."""


@torch.no_grad()
def shapley_values(
    model: GraphModel,
    graphs: GraphStore,
    classes: Int[Tensor, " graphs"],
    permutations: int,
    random: torch.Generator,
) -> Float[Tensor, " nodes"]:
    r"""What every node adds to the probability of a class, averaged over random orders of nodes.

    .. math:: \phi_i = E_\pi [ p(\{j : \pi_j \le \pi_i\}) - p(\{j : \pi_j < \pi_i\}) ]

    where p is the model's probability from the subgraph of some nodes and the edges between them,
    the empty one included (Castro et al., 2009). The values of a graph add up to the probability
    from the full graph without that from nothing, for any number of orders.

    Args:
        model: A classifier.
        graphs: What to explain.
        classes: The class of every graph whose probability is divided among its nodes.
        permutations: Orders per graph.
        random: Draws them, on the CPU.
    """
    model.eval()
    index = torch.arange(len(graphs))
    batch = graphs.batch(index)
    place = place_within(batch.batch, len(graphs))
    items = (graphs.num_nodes + 1) * (graphs.num_nodes + graphs.num_edges)
    at_once = max(1, MOST_ITEMS // max(1, int(items.sum())))  # small graphs, in all their orders
    total = torch.zeros_like(batch.x[:, 0])
    for first in range(0, permutations, at_once):
        number = min(at_once, permutations - first)
        order = torch.stack([shuffled_nodes(batch, random) for _ in range(number)])  # [P, N]
        rank = torch.empty_like(order).scatter_(1, order, place.expand(number, -1))
        repeated = graphs.subset(index.repeat(number))
        added = contributions(model, repeated, classes.repeat(number), rank.flatten())
        total += added.view(number, -1).sum(dim=0)
    return total / permutations


@torch.no_grad()
def contributions(
    model: GraphModel,
    graphs: GraphStore,
    classes: Int[Tensor, " graphs"],
    rank: Int[Tensor, " nodes"],
) -> Float[Tensor, " nodes"]:
    """What every node adds when the nodes of each graph join in the order of their ranks, from 0.

    A graph of n nodes is n + 1 subgraphs; those of all graphs are classified in large batches.
    """
    device = rank.device
    sizes = graphs.num_nodes
    copy_of = owners(sizes + 1)  # [C] the graph of every subgraph
    kept = place_within(copy_of, len(graphs))  # [C] how many of its nodes have joined
    items = graphs.num_nodes + graphs.num_edges
    chunk = items[copy_of].cumsum(0) // MOST_ITEMS
    counts = chunk.unique_consecutive(return_counts=True)[1].tolist()
    found = []
    for copies, joined in zip(copy_of.split(counts), kept.split(counts), strict=True):
        batch = graphs.batch(copies)
        nodes, _, _ = gathered(graphs.node_ptr, copies, device)
        outside = rank[nodes] >= joined.to(device)[batch.batch]
        probs = model.full_logits(remove_nodes(batch, outside)).softmax(dim=-1)
        found.append(probs.gather(1, classes[copies.to(device), None]).squeeze(1))
    values = torch.cat(found)  # [C]
    first = pointers(sizes + 1)[:-1].to(device)[owners(sizes.to(device))]  # [N]
    return values[first + rank + 1] - values[first + rank]
