"""Scores of nodes from those of edges, and the other way round."""

import torch

from cores.evaluation.scores import Scores
from cores.graphs.store import GraphStore

GRAPHS = GraphStore(
    x=torch.ones(6, 1),
    edge_index=torch.tensor([[0, 1, 1, 2, 0, 1], [1, 0, 2, 1, 1, 0]]),
    y=torch.tensor([0, 1]),
    node_ptr=torch.tensor([0, 3, 6]),
    edge_ptr=torch.tensor([0, 4, 6]),
)
"""A path of three nodes, and an edge with a node beside it."""


def test_an_edge_is_worth_as_much_as_the_lesser_of_its_ends() -> None:
    nodes = torch.tensor([0.9, -0.2, 0.5, 0.3, 0.4, 1.0])
    scores = Scores.of_nodes(GRAPHS, nodes)
    assert torch.equal(scores.nodes, nodes)
    assert torch.equal(scores.edges, torch.tensor([-0.2, -0.2, -0.2, -0.2, 0.3, 0.3]))


def test_a_node_is_worth_as_much_as_the_best_of_its_edges() -> None:
    edges = torch.tensor([0.25, 0.75, 0.0, 0.25, 0.5, 0.5])  # by direction; their means count
    scores = Scores.of_edges(GRAPHS, edges)
    assert torch.equal(scores.edges, torch.tensor([0.5, 0.5, 0.125, 0.125, 0.5, 0.5]))
    assert scores.nodes.tolist() == [0.5, 0.5, 0.125, 0.5, 0.5, -torch.inf]


def test_graphs_without_edges_have_scores() -> None:
    alone = GRAPHS.subset(torch.tensor([], dtype=torch.int64))
    scores = Scores.of_edges(alone, torch.empty(0))
    assert (len(scores.nodes), len(scores.edges)) == (0, 0)
