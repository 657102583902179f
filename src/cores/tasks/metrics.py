"""Metrics of predictions; pure functions of tensors.

Where there are two classes, the second is the positive one. A metric is None where the labels are
all of one class, which leaves it undefined.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

LEAST_PROBABILITY = 1e-12
"""Below, a logarithm is of this."""
CALIBRATION_BINS = 10


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


def roc_auc(probs: Float[Tensor, "graphs classes"], labels: Int[Tensor, " graphs"]) -> float | None:
    """Probability that a graph of the class scores above another, ties counting half.

    With more than two classes, the mean over those in the labels, each against the rest.
    """
    return _one_against_rest(_binary_roc_auc, probs, labels)


def average_precision(
    probs: Float[Tensor, "graphs classes"], labels: Int[Tensor, " graphs"]
) -> float | None:
    """Area under the steps of precision over recall.

    With more than two classes, the mean over those in the labels, each against the rest.
    """
    return _one_against_rest(_binary_average_precision, probs, labels)


def f1(probs: Float[Tensor, "graphs classes"], labels: Int[Tensor, " graphs"]) -> float | None:
    """Harmonic mean of precision and recall; with more than two classes, its mean over them.

    Classes that are neither in the labels nor predicted do not count.
    """
    if _one_class(labels):
        return None
    table = _confusion(probs, labels)
    doubled = 2 * table.diagonal()
    found = table.sum(0) + table.sum(1)  # [K] predicted, and true
    scores = doubled / found.clamp(min=1)
    return float(scores[1] if len(scores) == 2 else scores[found > 0].mean())


def mcc(probs: Float[Tensor, "graphs classes"], labels: Int[Tensor, " graphs"]) -> float | None:
    """Matthews' correlation of labels and predictions; 0 where one class is always predicted."""
    if _one_class(labels):
        return None
    table = _confusion(probs, labels)
    total = table.sum()
    true, predicted = table.sum(1), table.sum(0)
    covariance = table.trace() * total - (true * predicted).sum()
    spread = (total**2 - (true**2).sum()) * (total**2 - (predicted**2).sum())
    return float(covariance / spread.sqrt()) if spread > 0 else 0.0


def _one_class(labels: Int[Tensor, " graphs"]) -> bool:
    return len(labels) == 0 or bool((labels == labels[0]).all())


def _confusion(
    probs: Float[Tensor, "graphs classes"], labels: Int[Tensor, " graphs"]
) -> Float[Tensor, "classes classes"]:
    """Confusion matrix: true classes in rows, predicted ones in columns."""
    classes = probs.size(-1)
    cells = labels * classes + probs.argmax(-1)
    return torch.bincount(cells, minlength=classes**2).view(classes, classes).double()


def _one_against_rest(
    binary: Callable[[Tensor, Tensor], float],
    probs: Float[Tensor, "graphs classes"],
    labels: Int[Tensor, " graphs"],
) -> float | None:
    if _one_class(labels):
        return None
    classes = [1] if probs.size(-1) == 2 else labels.unique().tolist()
    values = [binary(probs[:, label], labels == label) for label in classes]
    return sum(values) / len(values)


def _binary_roc_auc(scores: Float[Tensor, " graphs"], truth: Bool[Tensor, " graphs"]) -> float:
    true, false = _at_thresholds(scores, truth)
    above = true.cumsum(0) - true  # [T] positives with a higher score
    wins = (false * (above + true / 2)).sum()
    return float(wins / (true.sum() * false.sum()))


def _binary_average_precision(
    scores: Float[Tensor, " graphs"], truth: Bool[Tensor, " graphs"]
) -> float:
    true, false = _at_thresholds(scores, truth)
    precision = true.cumsum(0) / (true + false).cumsum(0)
    return float((true * precision).sum() / true.sum())


def _at_thresholds(
    scores: Float[Tensor, " graphs"], truth: Bool[Tensor, " graphs"]
) -> tuple[Float[Tensor, " thresholds"], Float[Tensor, " thresholds"]]:
    """Positives and negatives at every distinct score, the highest first."""
    values, place = scores.unique(return_inverse=True)
    true = torch.bincount(place[truth], minlength=len(values))
    false = torch.bincount(place[~truth], minlength=len(values))
    return true.flip(0).double(), false.flip(0).double()


def class_mean(values: Float[Tensor, " graphs"], labels: Int[Tensor, " graphs"]) -> float:
    """Mean over the classes of the mean over their graphs.

    >>> class_mean(torch.tensor([1.0, 1.0, 1.0, 0.0]), torch.tensor([0, 0, 0, 1]))
    0.5
    """
    counts = torch.bincount(labels)
    sums = torch.bincount(labels, weights=values.double())
    return float((sums / counts)[counts > 0].mean())


def log_loss(
    probs: Float[Tensor, "graphs classes"], labels: Int[Tensor, " graphs"], balanced: bool = False
) -> float:
    """Mean negative log-probability of the true class; balanced, the mean over the classes."""
    losses = -probs.clamp_min(LEAST_PROBABILITY).log().gather(-1, labels[:, None]).squeeze(-1)
    return class_mean(losses, labels) if balanced else float(losses.double().mean())


def label_log_loss(
    probs: Float[Tensor, "graphs labels"], labels: Float[Tensor, "graphs labels"]
) -> float:
    """Mean negative log-probability of the true values of the labels that are known."""
    of_truth = torch.where(labels > 0.5, probs, 1 - probs)[~labels.isnan()]
    if not len(of_truth):
        return 0.0
    return -float(of_truth.clamp_min(LEAST_PROBABILITY).log().double().mean())


def calibration_error(
    probs: Float[Tensor, "graphs classes"], labels: Int[Tensor, " graphs"]
) -> float:
    """How far the probability of the predicted class is from its accuracy, in 10 equal bins.

    >>> probs = torch.tensor([[0.75, 0.25], [0.75, 0.25]])
    >>> calibration_error(probs, torch.tensor([0, 1]))
    0.25
    """
    sure, predicted = probs.double().max(dim=-1)
    gap = sure - (predicted == labels).double()
    bins = (sure * CALIBRATION_BINS).long().clamp(max=CALIBRATION_BINS - 1)
    total = gap.new_zeros(CALIBRATION_BINS).index_add(0, bins, gap)
    return float(total.abs().sum() / len(labels))


def mean_absolute_error(
    values: Float[Tensor, "graphs outputs"], targets: Float[Tensor, " graphs"]
) -> float:
    """MAE: how far predicted numbers are off, on average."""
    return float((values[:, 0].double() - targets.double()).abs().mean())


def root_mean_squared_error(
    values: Float[Tensor, "graphs outputs"], targets: Float[Tensor, " graphs"]
) -> float:
    """RMSE: the same, where large errors count more."""
    return float((values[:, 0].double() - targets.double()).square().mean().sqrt())


def r2(values: Float[Tensor, "graphs outputs"], targets: Float[Tensor, " graphs"]) -> float | None:
    """Share of the targets' variance that is predicted; None where all targets are the same.

    >>> r2(torch.tensor([[0.0], [1.0]]), torch.tensor([0.0, 1.0]))
    1.0
    """
    spread = float((targets.double() - targets.double().mean()).square().sum())
    missed = float((values[:, 0].double() - targets.double()).square().sum())
    return 1 - missed / spread if spread > 0 else None


def mean_error_of_constant(targets: Float[Tensor, " graphs"]) -> float:
    """MAE of always predicting the median of the targets themselves: what no constant beats."""
    return float((targets.double() - targets.double().median()).abs().mean())


Probabilities = Float[Tensor, "graphs labels"]
"""Probability that each of several labels is 1."""
Values = Float[Tensor, "graphs labels"]
"""0 or 1, NaN where it is not known."""


def label_roc_auc(probs: Probabilities, labels: Values) -> list[float | None]:
    """ROC-AUC of every label, by the graphs of which it is known.

    >>> probs = torch.tensor([[0.2, 0.5], [0.7, 0.5], [0.4, 0.5]])
    >>> label_roc_auc(probs, torch.tensor([[0.0, 1.0], [1.0, 1.0], [torch.nan, 1.0]]))
    [1.0, None]
    """
    return _by_label(_binary_roc_auc, probs, labels)


def mean_label_roc_auc(probs: Probabilities, labels: Values) -> float | None:
    """Their mean, over the labels that have both values."""
    return _mean_known(label_roc_auc(probs, labels))


def mean_label_average_precision(probs: Probabilities, labels: Values) -> float | None:
    """Mean average precision of the labels that have both values."""
    return _mean_known(_by_label(_binary_average_precision, probs, labels))


def label_accuracy(probs: Probabilities, labels: Values) -> float:
    """Share of the known values of all labels that are predicted; 0 where none is known."""
    known = ~labels.isnan()
    right = ((probs > 0.5) == (labels == 1)) & known
    return int(right.sum()) / max(1, int(known.sum()))


def label_balanced_accuracy(probs: Probabilities, labels: Values) -> float:
    """Mean over labels and their values of the share recognised; 0 where none is known."""
    right = (probs > 0.5) == (labels == 1)  # [B, L]
    values = torch.stack([labels == 0, labels == 1])  # [2, B, L]
    counts = values.sum(dim=1).double()  # [2, L]
    recognised = (values & right).sum(dim=1) / counts.clamp(min=1)
    there = counts > 0
    of_label = (recognised * there).sum(dim=0) / there.sum(dim=0).clamp(min=1)  # [L]
    known = there.any(dim=0)
    return float((of_label * known).sum() / known.sum().clamp(min=1))


def label_majority_rate(labels: Values) -> float:
    """Accuracy of always predicting the more frequent value of every label."""
    counts = torch.stack([(labels == value).sum(dim=0) for value in (0, 1)])  # [2, L]
    return int(counts.amax(dim=0).sum()) / max(1, int(counts.sum()))


def _by_label(
    binary: Callable[[Tensor, Tensor], float], probs: Probabilities, labels: Values
) -> list[float | None]:
    found: list[float | None] = []
    for scores, column in zip(probs.T, labels.T, strict=True):
        known = ~column.isnan()
        truth = column[known] == 1
        found.append(None if _one_class(truth.long()) else binary(scores[known], truth))
    return found


def _mean_known(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
