"""The generated default: random trees with a motif, and its ground truth."""

import networkx as nx
import pytest
import torch
from torch_geometric.utils import to_networkx

from cores.data.synthetic import MOTIFS, ba_motifs


@pytest.mark.parametrize("label", [0, 1])
def test_ground_truth_is_exactly_the_motif_and_the_rest_is_a_tree(label: int) -> None:
    graphs = ba_motifs(num_graphs=10, base_size=20, motifs=("cycle", "house"), seed=1)
    shape = nx.Graph(MOTIFS[("cycle", "house")[label]])
    for index in range(label, 10, 2):
        graph = graphs.graph(index)
        assert graph.y.item() == label
        whole = to_networkx(graph, to_undirected=True)
        motif_edges = graph.edge_index[:, graph.edge_truth].T.tolist()
        assert nx.is_isomorphic(nx.Graph(motif_edges), shape)
        assert graph.node_truth.nonzero().flatten().tolist() == [20, 21, 22, 23, 24]
        assert nx.is_tree(whole.subgraph(range(20)))
        assert nx.is_connected(whole)
        assert whole.number_of_edges() == 19 + shape.number_of_edges() + 1


def test_the_same_seed_gives_the_same_graphs_and_another_does_not() -> None:
    first, same, other = (ba_motifs(num_graphs=20, seed=seed) for seed in (5, 5, 6))
    assert torch.equal(first.edge_index, same.edge_index)
    assert first.edge_index.shape != other.edge_index.shape or not torch.equal(
        first.edge_index, other.edge_index
    )


def test_attachment_is_preferential() -> None:
    """The oldest node collects many more neighbours than its share of 1.9."""
    graphs = ba_motifs(num_graphs=200, base_size=20)
    degrees = [int((graphs.graph(index).edge_index[0] == 0).sum()) for index in range(200)]
    assert sum(degrees) / 200 > 4
