"""Units: elements of a graph that go or stay together, such as the atoms of a ring system."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cores.graphs.components import component_labels
from cores.graphs.subgraphs import Elements


def unit_of_elements(
    elements: Elements, in_ring: Bool[Tensor, " edges"] | None = None
) -> Int[Tensor, " elements"]:
    """Number the unit of every element, graph by graph.

    With the edges that are in rings, the nodes of a ring system are one unit, or its edges where
    only edges are removed. Rings that share a node or an edge are one system. All other elements
    are units of their own.
    """
    owner, batch = elements.owner, elements.batch
    name = torch.arange(len(owner), device=owner.device)
    if in_ring is not None:
        nodes = batch.x.size(0)
        system = component_labels(batch.edge_index, in_ring, nodes)  # [N] its first node
        if elements.removal == "edge":
            pair_in_ring = torch.zeros_like(owner, dtype=torch.bool)
            pair_in_ring[batch.edge_pair[in_ring]] = True
            of_pair = system[batch.pair_index[0]]  # [P]
            first = name.new_full((nodes,), len(name))
            first = first.scatter_reduce(0, of_pair[pair_in_ring], name[pair_in_ring], "amin")
            name = torch.where(pair_in_ring, first[of_pair], name)
        else:
            name = torch.cat([system, name[nodes:]])
    _, unit = torch.unique(owner * len(name) + name, return_inverse=True)
    return unit


def unit_mean(
    values: Float[Tensor, " elements"], unit: Int[Tensor, " elements"]
) -> Float[Tensor, " units"]:
    """Mean over the elements of each unit.

    >>> unit_mean(torch.tensor([1.0, 3.0, 5.0]), torch.tensor([0, 0, 1])).tolist()
    [2.0, 5.0]
    """
    number = int(unit.max()) + 1 if len(unit) else 0
    total = values.new_zeros(number).index_add(0, unit, values)
    return total / torch.bincount(unit, minlength=number)
