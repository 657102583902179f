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
    scale: float = 1.0,
) -> Float[Tensor, " graphs"]:
    """R, Eq. (7): sure and right, unsure and right, wrong (an empty set included).

    ``scale`` is a factor on the first of these cases, 1 in the paper's equation and 1 or 5 in its
    published settings.

    >>> sets = torch.tensor([[True, False], [True, True], [True, False]])
    >>> labels = torch.tensor([0, 0, 1])
    >>> parts = torch.tensor([0.9, 0.6, 0.2]), torch.tensor([0.5, 0.5, 0.5])
    >>> conformal_reward(*parts, sets, labels, lam=0.5)
    tensor([ 0.7000,  0.3000, -0.5000])
    >>> conformal_reward(*parts, sets, labels, lam=0.5, scale=5.0)
    tensor([ 3.5000,  0.3000, -0.5000])
    """
    size = sets.sum(-1)  # [B] |C(G_s)|
    covered = sets.gather(-1, labels[:, None]).squeeze(-1)  # [B] y in C(G_s)
    sure = scale * (lam * performance + (1 - lam) * sparsity)
    unsure = performance / size.clamp(min=1)
    return torch.where(covered, torch.where(size == 1, sure, unsure), -sparsity)


def value_performance_reward(
    error: Float[Tensor, " graphs"], tolerance: float
) -> Float[Tensor, " graphs"]:
    """R_p of a predicted number: 1 - |error| / (2 tolerance), in [0, 1].

    R_p of two classes, the probability of the true one, is above one half exactly where the
    prediction is right; so is this one, where right means within the tolerance.

    >>> value_performance_reward(torch.tensor([0.0, -0.5, 3.0]), tolerance=0.5)
    tensor([1.0000, 0.5000, 0.0000])
    """
    return (1 - error.abs() / (2 * tolerance)).clamp(min=0)


def interval_reward(
    error: Float[Tensor, " graphs"],
    sparsity: Float[Tensor, " graphs"],
    half_width: Float[Tensor, ""] | Float[Tensor, " graphs"],
    tolerance: float,
    lam: float | Float[Tensor, " graphs"],
) -> Float[Tensor, " graphs"]:
    """R, Eq. (7), where a number is predicted: the set C(G_s) is an interval.

    Its size |C| is counted in tolerances: it is sure where it reaches no farther than the tolerance
    to either side, and a narrower one tells nobody more. Right: the interval holds the target, a
    narrow one widened to the tolerance.

    >>> error, sparsity = torch.tensor([0.0, 0.2, 0.8]), torch.tensor([0.5, 0.5, 0.5])
    >>> interval_reward(error, sparsity, torch.tensor(0.1), tolerance=0.4, lam=0.5)
    tensor([ 0.7500,  0.6250, -0.5000])
    >>> interval_reward(error, sparsity, torch.tensor(0.8), tolerance=0.4, lam=0.5)
    tensor([0.5000, 0.3750, 0.0000])
    """
    performance = value_performance_reward(error, tolerance)
    size = (half_width / tolerance).clamp(min=1)  # |C(G_s)|
    covered = error.abs() <= size * tolerance  # y in C(G_s)
    sure = lam * performance + (1 - lam) * sparsity
    return torch.where(covered, torch.where(size <= 1, sure, performance / size), -sparsity)


def pieces_penalty(
    pieces: Int[Tensor, "*samples graphs"],
    num_nodes: Int[Tensor, " graphs"],
    most: int = 1,
) -> Float[Tensor, "*samples graphs"]:
    """Pieces of a kept part beyond so many, as a share of the graph's nodes, in [0, 1).

    A share, as the kept ratio is one: in a graph of any size a piece too many costs as much as a
    node that is kept.

    >>> pieces_penalty(torch.tensor([1, 3, 0]), torch.tensor([4, 10, 2]))
    tensor([0.0000, 0.2000, 0.0000])
    """
    return (pieces - most).clamp(min=0) / num_nodes.clamp(min=1)
