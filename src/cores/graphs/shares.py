"""The share of a batch that a process works on, where several train one model together."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor
from torch_geometric.data import Batch

from cores import ranks
from cores.graphs.batches import between
from cores.graphs.subgraphs import Elements
from cores.ranks import Ranks


@contextmanager
def own_share(batch: Batch, group: Ranks) -> Iterator[Batch]:
    """The graphs of this process; inside, networks know which nodes of the whole batch they see."""
    first, last = group.bounds(batch.num_graphs)
    nodes = batch.ptr[[first, last, -1]].tolist()
    group.rows = slice(nodes[0], nodes[1]), nodes[2]
    try:
        yield between(batch, first, last)
    finally:
        group.rows = None


@torch.no_grad()
def of_graphs(
    network: Callable[[Batch], Float[Tensor, "some *values"]], batch: Batch
) -> Float[Tensor, "graphs *values"]:
    """Outputs of a network per graph; each process computes its share."""
    group = ranks.current()
    if group is None:
        return network(batch)
    first, last = group.bounds(batch.num_graphs)
    place = torch.arange(batch.num_graphs, device=batch.ptr.device)
    mine = (place >= first) & (place < last)
    return group.gathered(network(between(batch, first, last)), mine)


def of_elements(
    network: Callable[[Batch], Float[Tensor, " some"]], elements: Elements
) -> Float[Tensor, " elements"]:
    """Outputs of a network per element; without gradients if there are several processes."""
    group = ranks.current()
    if group is None:
        return network(elements.batch)
    first, last = group.bounds(elements.batch.num_graphs)
    mine = (elements.owner >= first) & (elements.owner < last)
    with torch.no_grad():
        return group.gathered(network(between(elements.batch, first, last)), mine)
