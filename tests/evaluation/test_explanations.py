"""Scores against ground truth, on graphs small enough to count by hand."""

import pytest
import torch

from cores.evaluation.explanations import ground_truth_metrics, roc_auc
from cores.evaluation.predictions import Predictions
from cores.graphs.store import GraphStore


def graphs() -> GraphStore:
    """A path of three nodes, a path of two, and one of two without a known reason."""
    ends = [[0, 1, 1, 2, 0, 1, 0, 1], [1, 0, 2, 1, 1, 0, 1, 0]]
    true_edges = [True, True, False, False, True, True, False, False]
    return GraphStore(
        x=torch.ones(7, 1),
        edge_index=torch.tensor(ends),
        y=torch.tensor([0, 1, 0]),
        node_ptr=torch.tensor([0, 3, 5, 7]),
        edge_ptr=torch.tensor([0, 4, 6, 8]),
        node_truth=torch.tensor([True, True, False, True, True, False, False]),
        edge_truth=torch.tensor(true_edges),
    )


def predictions(removed_nodes: list[bool], removed_edges: list[bool]) -> Predictions:
    return Predictions(
        probs=torch.tensor([[0.9, 0.1]] * 3),
        node_ratio=torch.ones(3),
        edge_ratio=torch.ones(3),
        removed_nodes=torch.tensor(removed_nodes),
        removed_edges=torch.tensor(removed_edges),
        node_scores=torch.tensor([0.9, 0.4, 0.5, 0.8, 0.7, 1.0, 1.0]),
        edge_scores=torch.tensor([0.9, 0.9, 0.2, 0.2, 0.8, 0.8, 1.0, 1.0]),
    )


def test_graphs_without_a_known_reason_do_not_count() -> None:
    removed = [False, True, False, False, False, False, False]
    metrics = ground_truth_metrics(predictions(removed, [True] * 4 + [False] * 4), graphs())
    assert metrics["node_auc"] == pytest.approx(3 / 4)  # of 0.9 0.4 0.8 0.7 against 0.5
    assert metrics["node_precision"] == pytest.approx(3 / 4)  # kept 0, 2, 3, 4
    assert metrics["node_recall"] == pytest.approx(3 / 4)
    assert metrics["edge_auc"] == 1.0


def test_where_all_nodes_stay_those_with_an_edge_count_as_kept() -> None:
    removed_edges = [False, False, True, True, True, True, False, False]
    metrics = ground_truth_metrics(predictions([False] * 7, removed_edges), graphs())
    assert metrics["node_precision"] == 1.0  # nodes 0 and 1 of the first graph
    assert metrics["node_recall"] == pytest.approx(2 / 4)


def test_a_model_that_does_not_choose_has_no_such_metrics() -> None:
    given = predictions([False] * 7, [False] * 8)
    silent = Predictions(**{**vars(given), "node_scores": None, "edge_scores": None})
    assert set(ground_truth_metrics(silent, graphs()).values()) == {None}


def test_without_ground_truth_there_is_nothing_to_tell() -> None:
    plain = GraphStore(**{**fields_of(graphs()), "node_truth": None, "edge_truth": None})
    assert ground_truth_metrics(predictions([False] * 7, [False] * 8), plain) == {}


def fields_of(store: GraphStore) -> dict[str, object]:
    return {name: getattr(store, name) for name in store.__dataclass_fields__}


def test_roc_auc_agrees_with_counting_pairs() -> None:
    torch.manual_seed(0)
    scores = torch.rand(40).mul(10).round()  # with ties
    truth = torch.rand(40) < 0.4
    above = scores[truth][:, None] - scores[~truth][None, :]
    expected = ((above > 0).double() + 0.5 * (above == 0).double()).mean()
    assert roc_auc(scores, truth) == pytest.approx(float(expected))
