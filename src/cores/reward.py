"""The conformal-based reward, Eq. (7), from its parts; pure functions of tensors."""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def performance_reward(
    probs: Float[Tensor, "graphs classes"], labels: Int[Tensor, " graphs"]
) -> Float[Tensor, " graphs"]:
    """R_p: the probability of the true class on the subgraph, in [0, 1]."""
    return probs.gather(-1, labels[:, None]).squeeze(-1)


def sparsity_reward(
    kept_ratio: Float[Tensor, " graphs"], desired_ratio: float
) -> Float[Tensor, " graphs"]:
    """R_s = 1 - ratio^d~ with d~ = log 0.05 / log d, so that R_s = 0.95 at the desired ratio d.

    >>> sparsity_reward(torch.tensor([0.0, 0.3, 1.0]), desired_ratio=0.3)
    tensor([1.0000, 0.9500, 0.0000])
    """
    exponent = math.log(0.05) / math.log(desired_ratio)
    return 1 - kept_ratio**exponent


def conformal_reward(
    performance: Float[Tensor, " graphs"],
    sparsity: Float[Tensor, " graphs"],
    sets: Bool[Tensor, "graphs classes"],
    labels: Int[Tensor, " graphs"],
    lam: float | Float[Tensor, " graphs"],
) -> Float[Tensor, " graphs"]:
    """R, Eq. (7): sure and right, unsure and right, wrong (an empty set included).

    >>> sets = torch.tensor([[True, False], [True, True], [True, False]])
    >>> labels = torch.tensor([0, 0, 1])
    >>> parts = torch.tensor([0.9, 0.6, 0.2]), torch.tensor([0.5, 0.5, 0.5])
    >>> conformal_reward(*parts, sets, labels, lam=0.5)
    tensor([ 0.7000,  0.3000, -0.5000])
    """
    size = sets.sum(-1)  # [B] |C(G_s)|
    covered = sets.gather(-1, labels[:, None]).squeeze(-1)  # [B] y in C(G_s)
    sure = lam * performance + (1 - lam) * sparsity
    unsure = performance / size.clamp(min=1)
    return torch.where(covered, torch.where(size == 1, sure, unsure), -sparsity)
