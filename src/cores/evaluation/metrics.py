"""Accuracy, balanced accuracy and majority rate; pure functions of tensors."""

import torch
from jaxtyping import Float, Int
from torch import Tensor


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
