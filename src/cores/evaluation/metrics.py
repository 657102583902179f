"""Accuracy, balanced accuracy, majority rate, coverage and set size; pure functions of tensors."""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torchmetrics.functional.classification import multiclass_accuracy

from cores.conformal import conformal_quantile, lac_scores, prediction_sets


def accuracy(probs: Float[Tensor, "graphs classes"], labels: Int[Tensor, " graphs"]) -> float:
    """Share of graphs whose most likely class is the true one."""
    return float((probs.argmax(-1) == labels).double().mean())


def balanced_accuracy(
    probs: Float[Tensor, "graphs classes"], labels: Int[Tensor, " graphs"]
) -> float:
    """Mean over classes of the share recognised: what always guessing one class cannot raise."""
    recall = multiclass_accuracy(probs.argmax(-1), labels, probs.size(-1), average="none")
    present = torch.bincount(labels, minlength=probs.size(-1)) > 0
    return float(recall[present].double().mean())


def majority_rate(labels: Int[Tensor, " graphs"]) -> float:
    """Share of the most frequent class: the accuracy of always guessing it."""
    return float(torch.bincount(labels).max() / len(labels))


def coverage_and_size(
    calibration_scores: Float[Tensor, " calibration"],
    probs: Float[Tensor, "graphs classes"],
    labels: Int[Tensor, " graphs"],
    alpha: float,
) -> tuple[float, float]:
    """How often the prediction set holds the true label, and how many labels it holds on average.

    ``calibration_scores`` are the LAC scores of the true labels of held-out graphs.

    Deviation D4: LAC scores rather than Eq. (4): with two classes, deterministic APS gives every
    graph both labels or none a choice (docs/deviations.md).
    """
    sets = prediction_sets(lac_scores(probs), conformal_quantile(calibration_scores, alpha))
    covered = sets.gather(-1, labels[:, None]).squeeze(-1)
    return float(covered.double().mean()), float(sets.sum(-1).double().mean())
