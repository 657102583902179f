"""Chosen subgraphs against ground truth: did the model keep what decides the class?"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from cores.evaluation.predictions import Predictions
from cores.graphs.segments import owners
from cores.graphs.store import GraphStore


def ground_truth_metrics(predictions: Predictions, graphs: GraphStore) -> dict[str, float | None]:
    """ROC-AUC of the scores; precision, recall and IoU of what is kept; nothing without truth.

    IoU, intersection over union, is also called Jaccard index. Pooled over the nodes or edges of
    the graphs that have an explanation. All null for a model that does not choose.
    """
    if graphs.node_truth is None:
        return {}
    metrics: dict[str, float | None] = dict.fromkeys(
        ("node_auc", "node_precision", "node_recall", "node_iou")
    )
    if graphs.edge_truth is not None:
        metrics |= dict.fromkeys(("edge_auc", "edge_iou"))
    if predictions.node_scores is None:
        return metrics
    metrics["node_auc"] = truth_auc(predictions.node_scores, graphs.node_truth, graphs.node_ptr)
    truth, explained = _explained(graphs.node_truth, graphs.node_ptr)
    touched = _touched(predictions, graphs)[explained]
    metrics["node_precision"] = _share(truth[touched])
    metrics["node_recall"] = _share(touched[truth])
    metrics["node_iou"] = _iou(touched, truth)
    if graphs.edge_truth is not None and predictions.edge_scores is not None:
        scores, truth = predictions.edge_scores, graphs.edge_truth
        metrics["edge_auc"] = truth_auc(scores, truth, graphs.edge_ptr)
        truth, explained = _explained(graphs.edge_truth, graphs.edge_ptr)
        kept = ~predictions.removed_edges[explained]
        metrics["edge_iou"] = _iou(kept, truth)
    return metrics


def truth_auc(
    scores: Float[Tensor, " items"], truth: Bool[Tensor, " items"], ptr: Tensor
) -> float | None:
    """ROC-AUC of scores over the nodes or edges of the graphs that have an explanation.

    >>> scores, truth = torch.tensor([0.1, 0.9, 1.0]), torch.tensor([False, True, False])
    >>> truth_auc(scores, truth, torch.tensor([0, 2, 3]))
    1.0
    """
    known, explained = _explained(truth, ptr)
    return roc_auc(scores[explained], known)


def roc_auc(scores: Float[Tensor, " items"], truth: Bool[Tensor, " items"]) -> float | None:
    """Probability that a true item scores above a false one, ties counting half.

    >>> roc_auc(torch.tensor([0.9, 0.4, 0.4, 0.1]), torch.tensor([True, True, False, False]))
    0.875
    >>> roc_auc(torch.tensor([0.9, 0.4]), torch.tensor([True, True])) is None
    True
    """
    if truth.all() or not truth.any():
        return None
    values, place = scores.unique(return_inverse=True)

    def rates(chosen: Bool[Tensor, " items"]) -> Float[Tensor, " thresholds"]:
        """Shares of some items at or above every threshold, the highest first."""
        counts = torch.bincount(place[chosen], minlength=len(values)).flip(0)
        above = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        return above / above[-1]

    return float(torch.trapezoid(rates(truth), rates(~truth)))


def _explained(
    truth: Bool[Tensor, " items"], ptr: Tensor
) -> tuple[Bool[Tensor, " explained"], Bool[Tensor, " items"]]:
    """The truth on graphs that have any, and which items those are."""
    counts = ptr.diff().to(truth.device)
    owner = owners(counts)
    marked = torch.bincount(owner[truth], minlength=len(counts)) > 0
    explained = marked[owner]
    return truth[explained], explained


def _touched(predictions: Predictions, graphs: GraphStore) -> Bool[Tensor, " nodes"]:
    """Nodes that are kept; where every node is, those that still have an edge."""
    kept = ~predictions.removed_nodes
    if not kept.all():
        return kept
    owner = owners(graphs.num_edges.to(kept.device))
    ends = graphs.edge_index.to(kept.device) + graphs.node_ptr.to(kept.device)[owner]  # [2, E]
    touched = torch.zeros_like(kept)
    touched[ends[:, ~predictions.removed_edges].flatten()] = True
    return touched


def _iou(kept: Bool[Tensor, " items"], truth: Bool[Tensor, " items"]) -> float | None:
    return _share((kept & truth)[kept | truth])


def _share(marks: Bool[Tensor, " items"]) -> float | None:
    return float(marks.double().mean()) if len(marks) else None
