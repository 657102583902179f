"""Scores against ground truth, on graphs small enough to count by hand."""

import pytest
import torch
from torch_geometric.explain.metric import groundtruth_metrics
from torchmetrics.functional.classification import binary_jaccard_index

from cores.data.synthetic import ba_motifs
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
    assert metrics["node_iou"] == pytest.approx(3 / 5)  # 0, 3, 4 of all five
    assert metrics["edge_auc"] == 1.0
    assert metrics["edge_iou"] == pytest.approx(2 / 4)  # one edge of two, in both directions


def test_where_all_nodes_stay_those_with_an_edge_count_as_kept() -> None:
    removed_edges = [False, False, True, True, True, True, False, False]
    metrics = ground_truth_metrics(predictions([False] * 7, removed_edges), graphs())
    assert metrics["node_precision"] == 1.0  # nodes 0 and 1 of the first graph
    assert metrics["node_recall"] == pytest.approx(2 / 4)
    assert metrics["node_iou"] == pytest.approx(2 / 4)
    assert metrics["edge_iou"] == pytest.approx(2 / 4)


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


@pytest.mark.parametrize("seed", range(5))
def test_the_metrics_are_those_of_pyg(seed: int) -> None:
    """PyG has no IoU, but F1 tells it: IoU = F1 / (2 - F1); torchmetrics calls it Jaccard index."""
    store, random = ba_motifs(num_graphs=30, base_size=9, seed=seed), torch.Generator()
    random.manual_seed(seed)
    nodes, edges = store.x.size(0), store.edge_index.size(1)
    node_scores, edge_scores = (torch.rand(count, generator=random) for count in (nodes, edges))
    found = Predictions(
        probs=torch.full((30, 2), 0.5),
        node_ratio=torch.ones(30),
        edge_ratio=torch.ones(30),
        removed_nodes=node_scores < 0.5,
        removed_edges=edge_scores < 0.5,
        node_scores=node_scores,
        edge_scores=edge_scores,
    )
    metrics = ground_truth_metrics(found, store)
    assert store.node_truth is not None
    assert store.edge_truth is not None
    asked = ["auroc", "precision", "recall", "f1_score"]
    auc, precision, recall, f1 = groundtruth_metrics(node_scores, store.node_truth.float(), asked)
    assert metrics["node_auc"] == pytest.approx(auc)
    assert metrics["node_precision"] == pytest.approx(precision)
    assert metrics["node_recall"] == pytest.approx(recall)
    assert metrics["node_iou"] == pytest.approx(f1 / (2 - f1))
    auc, f1 = groundtruth_metrics(edge_scores, store.edge_truth.float(), ["auroc", "f1_score"])
    assert metrics["edge_auc"] == pytest.approx(auc)
    assert metrics["edge_iou"] == pytest.approx(f1 / (2 - f1))
    jaccard = binary_jaccard_index(edge_scores, store.edge_truth.long())
    assert metrics["edge_iou"] == pytest.approx(float(jaccard))
