"""Proximal policy optimisation in one step, Eq. (1); pure functions of tensors."""

import torch
from jaxtyping import Float
from torch import Tensor


def clipped_objective(
    log_prob: Float[Tensor, "*items"],
    old_log_prob: Float[Tensor, "*items"],
    advantage: Float[Tensor, "*items"],
    clip: float,
) -> Float[Tensor, "*items"]:
    """min(r A, clip(r, 1 - eps, 1 + eps) A) with r = pi / pi_old, Eq. (1), before the mean.

    >>> log_prob = torch.tensor([0.0, 1.0, 1.0])
    >>> clipped_objective(log_prob, torch.zeros(3), torch.tensor([2.0, 1.0, -1.0]), clip=0.2)
    tensor([ 2.0000,  1.2000, -2.7183])
    """
    ratio = (log_prob - old_log_prob).exp()
    return torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
