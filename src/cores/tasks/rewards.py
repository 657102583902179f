"""The reward of Eq. (7) and its conformal scores, from outputs and labels, by task."""

import torch
from jaxtyping import Bool, Float, Num
from torch import Tensor
from torch.nn import functional as F

from cores.config import RewardConfig
from cores.conformal import (
    lac_scores,
    prediction_sets,
    residual_scores,
    true_scores,
    value_probs,
)
from cores.reward import conformal_reward, interval_reward, performance_reward

Outputs = Float[Tensor, "graphs outputs"]
"""Probabilities of classes or labels, or predicted numbers."""
Labels = Num[Tensor, "graphs *labels"]
"""Numbers of classes, or targets; of several labels 0 or 1, NaN where one is not known."""
PerGraph = Float[Tensor, " graphs"]
Quantile = Float[Tensor, ""] | None
"""q-hat; None: the prediction alone is the set."""


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


def class_scores(probs: Outputs, labels: Labels) -> PerGraph:
    """Conformal score of each graph's class."""
    return true_scores(lac_scores(probs), labels)


def class_reward(
    probs: Outputs,
    labels: Labels,
    sparsity: PerGraph,
    q_hat: Quantile,
    lam: float | PerGraph,
    config: RewardConfig,
) -> PerGraph:
    """Eq. (7) of every graph."""
    if q_hat is None:
        sets = F.one_hot(probs.argmax(-1), probs.size(-1)).bool()
    else:
        sets = reward_sets(probs, q_hat)
    performance = performance_reward(probs, labels)
    return conformal_reward(performance, sparsity, sets, labels, lam)


def value_scores(probs: Outputs, labels: Labels) -> PerGraph:
    """Conformal score of each graph's number: how far the predicted one is from it."""
    return residual_scores(probs[:, 0], labels)


def value_reward(
    probs: Outputs,
    labels: Labels,
    sparsity: PerGraph,
    q_hat: Quantile,
    lam: float | PerGraph,
    config: RewardConfig,
) -> PerGraph:
    """Deviation D20: Eq. (7) with an interval for a set (:func:`cores.reward.interval_reward`).

    Before the tolerance is known, there is no error that it does not cover.
    """
    tolerance = config.tolerance or float(torch.finfo(probs.dtype).max) / 4
    half_width = probs.new_zeros(()) if q_hat is None else q_hat
    error = labels - probs[:, 0]
    return interval_reward(error, sparsity, half_width, tolerance, lam)


def label_scores(probs: Outputs, labels: Labels) -> Float[Tensor, " scores"]:
    """Of the known labels of all graphs together: some have too few for a quantile of their own."""
    known = ~labels.isnan()
    return class_scores(value_probs(probs[known]), labels[known].long())


def label_reward(
    probs: Outputs,
    labels: Labels,
    sparsity: PerGraph,
    q_hat: Quantile,
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
    rewards = class_reward(pairs, values, sparse, q_hat, weights, config).view_as(labels)
    return (rewards * known).sum(dim=-1) / known.sum(dim=-1).clamp(min=1)
