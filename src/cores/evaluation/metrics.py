"""Accuracy, balanced accuracy, majority rate, coverage and set size; pure functions of tensors."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cores.conformal import conformal_quantile, lac_scores, prediction_sets


def accuracy(probs: Float[Tensor, "graphs classes"], labels: Int[Tensor, " graphs"]) -> float:
    """Share of graphs whose most likely class is the true one."""
    return float((probs.argmax(-1) == labels).double().mean())


def balanced_accuracy(
    probs: Float[Tensor, "graphs classes"], labels: Int[Tensor, " graphs"]
) -> float:
    """Mean over classes of the share recognised: what always guessing one class cannot raise."""
    graphs = torch.bincount(labels, minlength=probs.size(-1)).double()
    recognised = torch.bincount(labels[probs.argmax(-1) == labels], minlength=probs.size(-1))
    return float((recognised / graphs)[graphs > 0].mean())


def majority_rate(labels: Int[Tensor, " graphs"]) -> float:
    """Share of the most frequent class: the accuracy of always guessing it."""
    return int(torch.bincount(labels).max()) / len(labels)


def coverage_and_size(
    calibration_scores: Float[Tensor, " calibration"],
    probs: Float[Tensor, "graphs classes"],
    labels: Int[Tensor, " graphs"],
    alpha: float,
) -> tuple[float, float]:
    """How often the prediction set holds the true label, and how many labels it holds on average.

    ``calibration_scores`` are the LAC scores of the true labels of held-out graphs.

    Deviation D4: LAC scores rather than Eq. (4): with two classes, deterministic APS gives both
    labels to all graphs, or no label to the surest (docs/deviations.md).
    """
    sets = prediction_sets(lac_scores(probs), conformal_quantile(calibration_scores, alpha))
    covered = sets.gather(-1, labels[:, None]).squeeze(-1)
    return float(covered.double().mean()), float(sets.sum(-1).double().mean())
