"""Conformal prediction sets: scores, the finite-sample quantile and sets, Eqs. (3) and (4).

Pure functions of tensors; nothing here knows of models or data.
"""

import math
from fractions import Fraction

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def aps_scores(
    probs: Float[Tensor, "graphs classes"],
) -> Float[Tensor, "graphs classes"]:
    """APS score s(x, y) of every class y, Eq. (4): the mass of the classes at least as likely.

    The last rank is exactly 1, which a sum of floats may miss.

    >>> aps_scores(torch.tensor([[0.2, 0.5, 0.3]]))
    tensor([[1.0000, 0.5000, 0.8000]])
    """
    order = probs.argsort(dim=-1, descending=True, stable=True)  # [B, K] most likely first
    mass = probs.gather(-1, order).cumsum(dim=-1)  # [B, K] by rank
    mass[..., -1] = 1.0
    return torch.empty_like(mass).scatter_(-1, order, mass)  # [B, K] by class


def lac_scores(
    probs: Float[Tensor, "graphs classes"],
) -> Float[Tensor, "graphs classes"]:
    """LAC score 1 - p_y of every class (Sadinle et al. 2019).

    >>> lac_scores(torch.tensor([[0.25, 0.75]]))
    tensor([[0.7500, 0.2500]])
    """
    return 1 - probs


def randomised_aps_scores(
    probs: Float[Tensor, "graphs classes"], uniform: Float[Tensor, " graphs"]
) -> Float[Tensor, "graphs classes"]:
    """APS with the class's own mass counted in part, u in [0, 1) per graph (Romano et al. 2020).

    Deterministic APS takes few values when there are few classes; this one has no ties and its
    sets are as small as coverage allows.

    >>> randomised_aps_scores(torch.tensor([[0.2, 0.5, 0.3]]), torch.tensor([0.5]))
    tensor([[0.9000, 0.2500, 0.6500]])
    """
    return aps_scores(probs) - (1 - uniform[:, None]) * probs


def raps_scores(
    probs: Float[Tensor, "graphs classes"], penalty: float, free_rank: int
) -> Float[Tensor, "graphs classes"]:
    """APS plus a penalty for every rank beyond ``free_rank`` (Angelopoulos et al. 2020).

    >>> raps_scores(torch.tensor([[0.2, 0.5, 0.3]]), penalty=0.1, free_rank=1)
    tensor([[1.2000, 0.5000, 0.9000]])
    """
    order = probs.argsort(dim=-1, descending=True, stable=True)  # [B, K] most likely first
    ranks = order.argsort(dim=-1) + 1  # [B, K] by class, from 1
    return aps_scores(probs) + penalty * (ranks - free_rank).clamp(min=0)


def value_probs(probs: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape 2"]:
    """Probabilities of both values of a label, from that of the second: those of two classes.

    >>> value_probs(torch.tensor([0.25]))
    tensor([[0.7500, 0.2500]])
    """
    return torch.stack([1 - probs, probs], dim=-1)


def conformal_quantile(scores: Float[Tensor, " graphs"], alpha: float) -> Float[Tensor, ""]:
    """q-hat: the k-th smallest calibration score, k = ceil((n + 1)(1 - alpha)); +inf when k > n.

    The rank is computed exactly from the decimal that ``alpha`` was written as: in floats
    ceil((n + 1)(1 - alpha)) can be one too high, for example at n = 149, alpha = 0.18.

    >>> conformal_quantile(torch.arange(1.0, 20.0), alpha=0.1)
    tensor(18.)
    >>> conformal_quantile(torch.arange(1.0, 9.0), alpha=0.1)
    tensor(inf)
    """
    n = scores.numel()
    rank = math.ceil((n + 1) * (1 - Fraction(str(alpha))))
    if rank > n:
        return scores.new_tensor(torch.inf)
    return scores.kthvalue(rank).values


def prediction_sets(
    scores: Float[Tensor, "graphs classes"], q_hat: Float[Tensor, ""] | Float[Tensor, " classes"]
) -> Bool[Tensor, "graphs classes"]:
    """C(x) = {y : s(x, y) <= q-hat}, Eq. (3); one q-hat for all classes, or one per class.

    >>> prediction_sets(torch.tensor([[0.1, 0.9], [0.5, 0.5]]), torch.tensor(0.5))
    tensor([[ True, False],
            [ True,  True]])
    """
    return scores <= q_hat


def class_conditional_quantiles(
    scores: Float[Tensor, " graphs"],
    labels: Int[Tensor, " graphs"],
    num_classes: int,
    alpha: float,
) -> Float[Tensor, " classes"]:
    """A quantile per class, from the calibration graphs of that class alone.

    Sets with ``scores[:, y] <= q[y]`` then hold the true label as often in every class.

    >>> scores, labels = torch.tensor([0.1, 0.2, 0.9]), torch.tensor([0, 0, 1])
    >>> class_conditional_quantiles(scores, labels, num_classes=2, alpha=0.5)
    tensor([0.2000, 0.9000])
    """
    return torch.stack(
        [conformal_quantile(scores[labels == label], alpha) for label in range(num_classes)]
    )


def p_values(
    calibration_scores: Float[Tensor, " calibration"], scores: Float[Tensor, "graphs classes"]
) -> Float[Tensor, "graphs classes"]:
    """Conformal p-value of each label: (1 + #{calibration scores at least as large}) / (n + 1).

    A label is in the prediction set at level alpha exactly when its p-value exceeds alpha.

    >>> p_values(torch.tensor([0.1, 0.5, 0.9]), torch.tensor([[0.5, 1.0]]))
    tensor([[0.7500, 0.2500]])
    """
    ordered = calibration_scores.sort().values  # [n]
    smaller = torch.searchsorted(ordered, scores.contiguous())  # [B, K] scores below
    n = len(ordered)
    return (1 + n - smaller) / (n + 1)


def true_scores(
    scores: Float[Tensor, "graphs classes"], labels: Int[Tensor, " graphs"]
) -> Float[Tensor, " graphs"]:
    """Score of each graph's true label."""
    return scores.gather(-1, labels[:, None]).squeeze(-1)


def residual_scores(
    values: Float[Tensor, " graphs"], targets: Float[Tensor, " graphs"]
) -> Float[Tensor, " graphs"]:
    """s(x, y) = |y - f(x)|: the score of Eq. (3) where a number is predicted (Lei et al. 2018).

    >>> residual_scores(torch.tensor([1.0, 2.0]), torch.tensor([1.5, 0.0]))
    tensor([0.5000, 2.0000])
    """
    return (targets - values).abs()


def prediction_intervals(
    values: Float[Tensor, " graphs"], q_hat: Float[Tensor, ""]
) -> Float[Tensor, "graphs 2"]:
    """C(x) = {y : |y - f(x)| <= q-hat}, Eq. (3) for numbers: the lower and the upper end.

    >>> prediction_intervals(torch.tensor([1.0, 2.0]), torch.tensor(0.5))
    tensor([[0.5000, 1.5000],
            [1.5000, 2.5000]])
    """
    return torch.stack([values - q_hat, values + q_hat], dim=-1)


def cqr_scores(
    quantiles: Float[Tensor, "graphs 2"], targets: Float[Tensor, " graphs"]
) -> Float[Tensor, " graphs"]:
    """s(x, y) = max(lower(x) - y, y - upper(x)): how far y is outside of predicted quantiles.

    The score of conformalised quantile regression (Romano, Patterson and Candès 2019); negative
    inside.

    >>> cqr_scores(torch.tensor([[0.0, 4.0], [0.0, 4.0]]), torch.tensor([1.0, 6.0]))
    tensor([-1.,  2.])
    """
    lower, upper = quantiles.unbind(-1)
    return torch.maximum(lower - targets, targets - upper)


def cqr_intervals(
    values: Float[Tensor, " graphs"], quantiles: Float[Tensor, "graphs 2"], q_hat: Float[Tensor, ""]
) -> Float[Tensor, "graphs 2"]:
    """C(x) = {y : max(lower(x) - y, y - upper(x)) <= q-hat}, and the predicted number.

    A negative q-hat moves the ends inwards, and those of a narrow interval past each other. They
    stop at the number: what is added to an interval cannot make it miss more often.

    >>> quantiles = torch.tensor([[0.0, 4.0], [1.0, 2.0]])
    >>> cqr_intervals(torch.tensor([2.0, 1.5]), quantiles, torch.tensor(0.5))
    tensor([[-0.5000,  4.5000],
            [ 0.5000,  2.5000]])
    >>> cqr_intervals(torch.tensor([2.0, 1.5]), quantiles, torch.tensor(-1.0))
    tensor([[1.0000, 3.0000],
            [1.5000, 1.5000]])
    """
    lower, upper = quantiles.unbind(-1)
    ends = torch.minimum(lower - q_hat, values), torch.maximum(upper + q_hat, values)
    return torch.stack(ends, dim=-1)
