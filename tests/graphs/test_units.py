"""Units of a molecule-like graph: two fused rings with a tail, and a second graph without rings."""

import pytest
import torch
from torch_geometric.data import Batch, Data

from cores.graphs.batches import as_batch
from cores.graphs.subgraphs import Elements
from cores.graphs.units import unit_mean, unit_of_elements

FUSED = [(0, 1), (1, 2), (2, 0), (1, 3), (3, 2)]  # two triangles that share an edge
TAIL = [(3, 4), (4, 5)]


def batch() -> tuple[Batch, torch.Tensor]:
    first = torch.tensor([*FUSED, *TAIL]).T
    second = torch.tensor([(0, 1), (1, 2)]).T
    graphs = [
        Data(x=torch.ones(6, 1), edge_index=torch.cat([first, first.flip(0)], 1)),
        Data(x=torch.ones(3, 1), edge_index=torch.cat([second, second.flip(0)], 1)),
    ]
    of_first = torch.tensor([True] * 5 + [False] * 2)
    in_ring = torch.cat([of_first, of_first, torch.zeros(4, dtype=torch.bool)])
    return as_batch(Batch.from_data_list(graphs)), in_ring


def test_the_nodes_of_fused_rings_are_one_unit() -> None:
    graphs, in_ring = batch()
    unit = unit_of_elements(Elements.of(graphs, "node"), in_ring)
    assert unit.tolist() == [0, 0, 0, 0, 1, 2, 3, 4, 5]


def test_the_edges_of_a_ring_system_are_one_unit_where_edges_go() -> None:
    graphs, in_ring = batch()
    elements = Elements.of(graphs, "edge")
    unit = unit_of_elements(elements, in_ring)
    ends = [tuple(pair) for pair in elements.batch.pair_index.T.tolist()]
    ring = {tuple(sorted(pair)) for pair in FUSED}
    assert {int(unit[at]) for at, pair in enumerate(ends) if pair in ring} == {0}
    others = [int(unit[at]) for at, pair in enumerate(ends) if pair not in ring]
    assert others == [1, 2, 3, 4]


def test_where_nodes_and_edges_go_units_are_counted_graph_by_graph() -> None:
    graphs, in_ring = batch()
    elements = Elements.of(graphs, "both")
    unit = unit_of_elements(elements, in_ring)
    owner = torch.zeros(int(unit.max()) + 1, dtype=torch.long).index_copy(0, unit, elements.owner)
    assert bool((owner.diff() >= 0).all())
    assert len({int(each) for each in unit[:4]}) == 1
    assert len(set(unit[9:].tolist())) == len(unit) - 9


@pytest.mark.parametrize("removal", ["node", "edge", "both"])
def test_without_rings_every_element_is_a_unit(removal: str) -> None:
    graphs, _ = batch()
    elements = Elements.of(graphs, removal)
    unit = unit_of_elements(elements)
    assert sorted(unit.tolist()) == list(range(len(elements.owner)))
    assert torch.equal(elements.owner[unit.argsort()], elements.owner.sort().values)


def test_the_mean_of_units() -> None:
    values = unit_mean(torch.tensor([1.0, 3.0, 8.0]), torch.tensor([1, 1, 0]))
    assert values.tolist() == [8.0, 2.0]
