"""Conformal prediction sets: scores, the finite-sample quantile and sets, Eqs. (3) and (4).

Pure functions of tensors; nothing here knows of models or data.
"""

import math
from fractions import Fraction

import torch
from jaxtyping import Bool, Float
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
    scores: Float[Tensor, "graphs classes"], q_hat: Float[Tensor, ""]
) -> Bool[Tensor, "graphs classes"]:
    """C(x) = {y : s(x, y) <= q-hat}, Eq. (3).

    >>> prediction_sets(torch.tensor([[0.1, 0.9], [0.5, 0.5]]), torch.tensor(0.5))
    tensor([[ True, False],
            [ True,  True]])
    """
    return scores <= q_hat
