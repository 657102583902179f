"""Batch norm and dropout over a batch that several processes share.

Both give what one process would compute from all of it.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from cores.ranks import Ranks


def normalised(
    norm: nn.BatchNorm1d, h: Float[Tensor, "nodes hidden"], group: Ranks
) -> Float[Tensor, "nodes hidden"]:
    """Batch norm by the nodes of all processes; a single one by what was seen before."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    count, mean, var = _moments(h.detach(), group)
    if count < 2:
        return F.batch_norm(
            h, norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=norm.eps
        )
    with torch.no_grad():
        assert norm.num_batches_tracked is not None
        assert norm.momentum is not None
        norm.num_batches_tracked.add_(1)
        norm.running_mean.lerp_(mean, norm.momentum)
        norm.running_var.lerp_(var * count / (count - 1), norm.momentum)
    scale = (var + norm.eps).rsqrt()
    return torch.addcmul(norm.bias, _Standardised.apply(h, mean, scale, count, group), norm.weight)


def dropped(h: Float[Tensor, "nodes hidden"], p: float, group: Ranks) -> Tensor:
    """Dropout, drawn for the nodes of all processes: random numbers stay the same everywhere."""
    if group.rows is None:
        raise RuntimeError("dropout outside of a gradient step on a share")
    mine, total = group.rows
    return h * F.dropout(h.new_ones(total, h.size(1)), p)[mine]


def _moments(h: Float[Tensor, "nodes hidden"], group: Ranks) -> tuple[float, Tensor, Tensor]:
    """Number, mean and variance of the rows of all processes.

    From the mean and the squared deviations of each: sums of squares would lose digits.
    """
    rows = h.size(0)
    mean = h.sum(dim=0) / max(rows, 1)  # [H]
    deviations = (h - mean).square().sum(dim=0)
    each = h.new_zeros(group.size, 2 * h.size(1) + 1)  # [processes, 2 H + 1]
    each[group.rank] = torch.cat([mean, deviations, h.new_tensor([rows])])
    means, squares, counts = group.sum(each).split([h.size(1), h.size(1), 1], dim=1)
    total = counts.sum()
    mean = (counts * means).sum(dim=0) / total.clamp(min=1)
    squares = squares.sum(dim=0) + (counts * (means - mean).square()).sum(dim=0)
    return float(total), mean, squares / total.clamp(min=1)


class _Standardised(torch.autograd.Function):
    """(h - mean) * scale, where both depend on the rows of all processes."""

    @staticmethod
    def forward(
        ctx: Any, h: Tensor, mean: Tensor, scale: Tensor, count: float, group: Ranks
    ) -> Tensor:
        standard = (h - mean) * scale
        ctx.save_for_backward(standard, scale)
        ctx.count, ctx.group = count, group
        return standard

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None, None]:
        standard, scale = ctx.saved_tensors
        sums = torch.cat([gradient.sum(dim=0), (gradient * standard).sum(dim=0)])
        level, slope = (ctx.group.sum(sums) / ctx.count).chunk(2)
        return scale * (gradient - level - standard * slope), None, None, None, None
