"""What is predicted of a graph: one row per task; everything else reads this table.

A row says how predictions are rewarded, selected, measured and calibrated. The last layer of a
network, with its size and its loss, is the task's other half (:mod:`cores.models.head`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Num
from torch import Tensor
from torch.nn import functional as F

from cores.config import RewardConfig, SetsConfig
from cores.config.spec import TaskName
from cores.conformal import (
    lac_scores,
    prediction_sets,
    residual_scores,
    value_probs,
)
from cores.evaluation import metrics as measures
from cores.evaluation.intervals import ValueCalibration, coverage_and_width
from cores.evaluation.label_sets import LabelCalibration, label_coverage_and_size
from cores.evaluation.predictions import true_scores
from cores.evaluation.sets import Calibration, coverage_and_size
from cores.reward import conformal_reward, interval_reward, performance_reward

Outputs = Float[Tensor, "graphs outputs"]
"""Probabilities of classes or labels, or predicted numbers."""
Labels = Num[Tensor, "graphs *labels"]
"""Numbers of classes, or targets; of several labels 0 or 1, NaN where one is not known."""
PerGraph = Float[Tensor, " graphs"]
Measured = dict[str, Any]
Metric = float | list[float | None] | None
"""One number, or one of every label."""
AnyCalibration = Calibration | ValueCalibration | LabelCalibration


@dataclass(frozen=True)
class Selection:
    """How good predictions for the selection part are."""

    metrics: Measured
    score: tuple[float, ...]
    """By which epochs are compared; higher is better."""
    balanced: Measured
    """What is measured beside the metrics where classes are balanced."""


@dataclass(frozen=True)
class ShownMetric:
    """A metric as tables and pictures of several models tell it."""

    metric: str
    """As `metrics.json` calls it."""
    title: str
    unit: Literal["percent", "target", "plain"] = "percent"
    """Told in percent, in the unit of the targets, or as it is."""
    higher_is_better: bool = True


@dataclass(frozen=True)
class Task:
    """A row of the table."""

    name: TaskName
    leading: ShownMetric
    """By which models are compared; a metric of predictions and of the judge."""
    beside: ShownMetric
    """Told beside it."""
    baseline: tuple[str, str] | None
    """The leading metric of a prediction that sees no graph, and its name; None: not measured."""
    conformal_scores: Callable[[Outputs, Labels], Float[Tensor, " scores"]]
    """Of the truth, one of every graph or known label; the reward's q-hat is their quantile."""
    reward: Callable[..., PerGraph]
    """Eq. (7), of outputs, labels, sparsity, q-hat, lambda and the settings; None for q-hat: the
    prediction alone is the set."""
    selection: Callable[[Outputs, Labels, bool], Selection]
    """Of outputs and labels; whether classes are balanced."""
    goodness: Callable[[Outputs, Labels, bool], float]
    """Of outputs, in one number; whether classes are balanced."""
    least_good: Callable[[float, float], float]
    """The goodness that is left of a first one when so much is lost, as ``max_loss`` counts it."""
    quality: Mapping[str, Callable[[Outputs, Labels], Metric]]
    """Metrics of predictions, by name."""
    compared: Callable[[Outputs, Outputs, Labels], Measured]
    """Metrics that also need the predictions from full graphs, which come second."""
    judged: Mapping[str, Callable[[Outputs, Labels], float]]
    """Metrics of the judge, by name."""
    calibration: type[Calibration] | type[ValueCalibration] | type[LabelCalibration]
    """What gives a user sets of labels, or intervals."""
    set_metrics: Callable[[AnyCalibration, Outputs, Labels, float, SetsConfig], Measured]
    """How good those are; None each without a calibration part."""


def reward_sets(
    probs: Float[Tensor, "graphs classes"], q_hat: Float[Tensor, ""]
) -> Bool[Tensor, "graphs classes"]:
    """Prediction sets of the reward, Eq. (3), by LAC scores (Deviation D11: the paper's are APS).

    Deviation D7: the predicted label stands in. When a classifier errs less often than alpha, its
    least sure graphs get empty sets, right or not; Eq. (7) as written punishes them, and since
    q-hat follows the policy, it would punish every subgraph that is less sure than the rest: only
    keeping everything is safe then.
    """
    sets = prediction_sets(lac_scores(probs), q_hat)
    empty = ~sets.any(dim=-1, keepdim=True)
    return sets | (empty & F.one_hot(probs.argmax(dim=-1), probs.size(-1)).bool())


def _class_scores(probs: Outputs, labels: Labels) -> PerGraph:
    return true_scores(lac_scores(probs), labels)


def _class_reward(
    probs: Outputs,
    labels: Labels,
    sparsity: PerGraph,
    q_hat: Float[Tensor, ""] | None,
    lam: float | PerGraph,
    config: RewardConfig,
) -> PerGraph:
    if q_hat is None:
        sets = F.one_hot(probs.argmax(-1), probs.size(-1)).bool()
    else:
        sets = reward_sets(probs, q_hat)
    performance = performance_reward(probs, labels)
    return conformal_reward(performance, sparsity, sets, labels, lam)


def _class_selection(probs: Outputs, labels: Labels, balanced: bool) -> Selection:
    log_probs = probs.clamp_min(1e-12).log()
    right, loss = measures.accuracy(probs, labels), float(F.nll_loss(log_probs, labels))
    found = {"selection_accuracy": right, "selection_loss": loss}
    if not balanced:
        return Selection(found, (right, -loss), {})
    losses = F.nll_loss(log_probs, labels, reduction="none")
    right = measures.balanced_accuracy(probs, labels)
    score = (right, -measures.class_mean(losses, labels))
    return Selection(found, score, {"selection_balanced_accuracy": right})


def _class_goodness(probs: Outputs, labels: Labels, balanced: bool) -> float:
    measure = measures.balanced_accuracy if balanced else measures.accuracy
    return measure(probs, labels)


def _class_compared(probs: Outputs, full: Outputs, labels: Labels) -> Measured:
    return {
        "predicted_classes": len(probs.argmax(-1).unique()),
        "full_accuracy": measures.accuracy(full, labels),
    }


def _class_set_metrics(
    calibration: Any, probs: Outputs, labels: Labels, alpha: float, config: SetsConfig
) -> Measured:
    if not len(calibration):
        return {"coverage": None, "set_size": None}
    coverage, size = coverage_and_size(calibration.sets(probs, alpha, config), labels)
    return {"coverage": coverage, "set_size": size}


CLASSIFICATION = Task(
    name="classification",
    leading=ShownMetric("accuracy", "accuracy"),
    beside=ShownMetric("balanced_accuracy", "balanced"),
    baseline=("majority_rate", "largest class"),
    conformal_scores=_class_scores,
    reward=_class_reward,
    selection=_class_selection,
    goodness=_class_goodness,
    least_good=lambda full, lost: full - lost,
    quality={
        "accuracy": measures.accuracy,
        "balanced_accuracy": measures.balanced_accuracy,
        "majority_rate": lambda probs, labels: measures.majority_rate(labels),
        "roc_auc": measures.roc_auc,
        "average_precision": measures.average_precision,
        "f1": measures.f1,
        "mcc": measures.mcc,
    },
    compared=_class_compared,
    judged={"accuracy": measures.accuracy, "balanced_accuracy": measures.balanced_accuracy},
    calibration=Calibration,
    set_metrics=_class_set_metrics,
)


def _value_scores(values: Outputs, targets: Labels) -> PerGraph:
    return residual_scores(values[:, 0], targets)


def _value_reward(
    values: Outputs,
    targets: Labels,
    sparsity: PerGraph,
    q_hat: Float[Tensor, ""] | None,
    lam: float | PerGraph,
    config: RewardConfig,
) -> PerGraph:
    """Deviation D20: Eq. (7) with an interval for a set (:func:`cores.reward.interval_reward`).

    Before the tolerance is known, there is no error that it does not cover.
    """
    tolerance = config.tolerance or float(torch.finfo(values.dtype).max) / 4
    half_width = values.new_zeros(()) if q_hat is None else q_hat
    error = targets - values[:, 0]
    return interval_reward(error, sparsity, half_width, tolerance, lam)


def _value_selection(values: Outputs, targets: Labels, balanced: bool) -> Selection:
    error = measures.mean_absolute_error(values, targets)
    return Selection({"selection_mae": error}, (-error,), {})


def _value_goodness(values: Outputs, targets: Labels, balanced: bool) -> float:
    return -measures.mean_absolute_error(values, targets)


def _value_compared(values: Outputs, full: Outputs, targets: Labels) -> Measured:
    return {"full_mae": measures.mean_absolute_error(full, targets)}


def _value_set_metrics(
    calibration: Any, values: Outputs, targets: Labels, alpha: float, config: SetsConfig
) -> Measured:
    if not len(calibration):
        return {"coverage": None, "interval_width": None}
    intervals = calibration.sets(values, alpha, config)
    coverage, width = coverage_and_width(intervals, targets)
    return {"coverage": coverage, "interval_width": width}


REGRESSION = Task(
    name="regression",
    leading=ShownMetric("mae", "MAE", unit="target", higher_is_better=False),
    beside=ShownMetric("r2", "R2", unit="plain"),
    baseline=("constant_mae", "best constant"),
    conformal_scores=_value_scores,
    reward=_value_reward,
    selection=_value_selection,
    goodness=_value_goodness,
    least_good=lambda full, lost: full * (1 + lost),  # of an error: a share of it
    quality={
        "mae": measures.mean_absolute_error,
        "rmse": measures.root_mean_squared_error,
        "r2": measures.r2,
        "constant_mae": lambda values, targets: measures.mean_error_of_constant(targets),
    },
    compared=_value_compared,
    judged={"mae": measures.mean_absolute_error},
    calibration=ValueCalibration,
    set_metrics=_value_set_metrics,
)


def _label_scores(probs: Outputs, labels: Labels) -> Float[Tensor, " scores"]:
    """Of the known labels of all graphs together: some have too few for a quantile of their own."""
    known = ~labels.isnan()
    return _class_scores(value_probs(probs[known]), labels[known].long())


def _label_reward(
    probs: Outputs,
    labels: Labels,
    sparsity: PerGraph,
    q_hat: Float[Tensor, ""] | None,
    lam: float | PerGraph,
    config: RewardConfig,
) -> PerGraph:
    """Deviation D24: the mean of Eq. (7) over the known labels, each with two classes.

    A graph of which no label is known has none.
    """
    known, number = ~labels.isnan(), labels.size(1)
    values = labels.nan_to_num().long().flatten()  # [B * L]
    weights = lam.repeat_interleave(number) if isinstance(lam, Tensor) else lam
    sparse = sparsity.repeat_interleave(number)
    pairs = value_probs(probs.flatten())  # [B * L, 2]
    rewards = _class_reward(pairs, values, sparse, q_hat, weights, config).view_as(labels)
    return (rewards * known).sum(dim=-1) / known.sum(dim=-1).clamp(min=1)


CHANCE = 0.5
"""The ROC-AUC of guessing; also of graphs that leave it undefined, where epochs are compared."""


def _label_goodness(probs: Outputs, labels: Labels, balanced: bool = False) -> float:
    found = measures.mean_label_roc_auc(probs, labels)
    return CHANCE if found is None else found


def _label_selection(probs: Outputs, labels: Labels, balanced: bool) -> Selection:
    known = ~labels.isnan()
    of_truth = value_probs(probs[known]).gather(-1, labels[known].long()[:, None])
    loss = -float(of_truth.clamp_min(1e-12).log().mean()) if len(of_truth) else 0.0
    ranked = _label_goodness(probs, labels)
    return Selection({"selection_roc_auc": ranked, "selection_loss": loss}, (ranked, -loss), {})


def _label_compared(probs: Outputs, full: Outputs, labels: Labels) -> Measured:
    return {
        "full_roc_auc": measures.mean_label_roc_auc(full, labels),
        "full_accuracy": measures.label_accuracy(full, labels),
    }


def _label_set_metrics(
    calibration: Any, probs: Outputs, labels: Labels, alpha: float, config: SetsConfig
) -> Measured:
    if not len(calibration):
        return {"coverage": None, "set_size": None, "label_coverage": None}
    covered, size = label_coverage_and_size(calibration.sets(probs, alpha, config), labels)
    known = [share for share in covered if share is not None]
    mean = sum(known) / len(known) if known else None
    return {"coverage": mean, "set_size": size, "label_coverage": covered}


MULTILABEL = Task(
    name="multilabel",
    leading=ShownMetric("roc_auc", "ROC-AUC"),
    beside=ShownMetric("accuracy", "accuracy"),
    baseline=None,  # the majority rate is an accuracy
    conformal_scores=_label_scores,
    reward=_label_reward,
    selection=_label_selection,
    goodness=_label_goodness,
    least_good=lambda full, lost: full - lost,
    quality={
        "roc_auc": measures.mean_label_roc_auc,
        "average_precision": measures.mean_label_average_precision,
        "accuracy": measures.label_accuracy,
        "balanced_accuracy": measures.label_balanced_accuracy,
        "majority_rate": lambda probs, labels: measures.label_majority_rate(labels),
        "label_roc_auc": measures.label_roc_auc,
    },
    compared=_label_compared,
    judged={
        "roc_auc": _label_goodness,
        "accuracy": measures.label_accuracy,
        "balanced_accuracy": measures.label_balanced_accuracy,
    },
    calibration=LabelCalibration,
    set_metrics=_label_set_metrics,
)
TASKS: dict[TaskName, Task] = {row.name: row for row in (CLASSIFICATION, REGRESSION, MULTILABEL)}
"""Every task by name."""


def selection_score(found: Mapping[str, float]) -> float:
    """How good an epoch was on the selection part, by its metrics; higher is better.

    >>> selection_score({"selection_accuracy": 0.9}), selection_score({"selection_mae": 0.25})
    (0.9, -0.25)
    """
    if "selection_mae" in found:
        return -found["selection_mae"]
    if "selection_roc_auc" in found:
        return found["selection_roc_auc"]
    return found.get("selection_balanced_accuracy", found["selection_accuracy"])
