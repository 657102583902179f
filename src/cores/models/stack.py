"""Classifiers of one shape as a single network: their weights lie along a leading axis."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, TypeGuard, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.data import Batch
from torch_geometric.nn.dense import Linear as PyGLinear

from cores.models.classifier import BlindClassifier, Classifier
from cores.models.encoder import NodeNorm
from cores.tasks import TASKS

LINEAR = nn.Linear, PyGLinear
SMALLEST_WEIGHT = 1e-6
"""Of graphs that are some."""


class Stack(nn.Module):
    """Several classifiers, each on its row of :class:`~cores.graphs.stacked.StackedBatches`.

    Their weights become views of its own: who trains it trains them.
    """

    def __init__(self, classifiers: Sequence[Classifier]) -> None:
        super().__init__()
        self.models = len(classifiers)
        first = classifiers[0]
        self.network = deepcopy(first)
        self.network.scaler = first.scaler
        for name, module in first.named_modules():
            alike = [classifier.get_submodule(name) for classifier in classifiers]
            if isinstance(module, LINEAR):
                self.network.set_submodule(name, StackedLinear(alike))
            elif isinstance(module, NodeNorm):
                self.network.set_submodule(name, StackedNodeNorm(alike))
        self._shared = [
            (joined, [classifier.get_parameter(name) for classifier in classifiers])
            for name, joined in self.network.named_parameters()
        ]

    def losses(self, batch: Batch) -> Float[Tensor, " models"]:
        """Eq. (6) of every model on its graphs, which have distributions as targets.

        Those of a graph may sum to another weight than 1; the loss is the mean by weight, and 0 for
        a model that has no graphs.
        """
        log_probs = F.log_softmax(self.network.logits(batch), dim=-1)  # [M * B, K]
        targets = batch.y.view(self.models, -1)  # [M, B * K]
        total = -(targets * log_probs.view(self.models, -1)).sum(dim=1)
        return total / targets.sum(dim=1).clamp(min=SMALLEST_WEIGHT)

    def backward(self, losses: Float[Tensor, " models"]) -> None:
        """Give all weights of the classifiers their gradients, in place of those before."""
        joined = [weights for weights, _ in self._shared]
        for gradient, (_, own) in zip(
            torch.autograd.grad(losses.sum(), joined), self._shared, strict=True
        ):
            # As the weights lie: a fused Adam reads both in the order of memory.
            for weights, part in zip(own, gradient.contiguous(), strict=True):
                weights.grad = part


class StackedLinear(nn.Module):
    """Linear layers, each on as many rows as the others, one after the other."""

    def __init__(self, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.weight = _joined_weights(layers, "weight")  # [M, out, in]
        self.bias = _joined_weights(layers, "bias")  # [M, out]

    def forward(self, rows: Float[Tensor, "rows inputs"]) -> Float[Tensor, "rows outputs"]:
        """Each layer's rows through it."""
        parts = rows.unflatten(0, (self.weight.size(0), -1))  # [M, R, in]
        return torch.baddbmm(self.bias[:, None], parts, self.weight.mT).flatten(0, 1)


class StackedNodeNorm(nn.Module):
    """Batch norms over nodes, in training."""

    def __init__(self, norms: Sequence[nn.Module]) -> None:
        super().__init__()
        first = cast(NodeNorm, norms[0])
        self.momentum, self.eps = cast(float, first.momentum), first.eps
        self.weight = _joined_weights(norms, "weight")  # [M, H]
        self.bias = _joined_weights(norms, "bias")
        for name in ("running_mean", "running_var", "num_batches_tracked"):
            self.register_buffer(name, _joined_buffers(norms, name))
        self.running_mean: Tensor
        self.running_var: Tensor
        self.num_batches_tracked: Tensor

    def forward(
        self, h: Float[Tensor, "nodes hidden"], unpadded: Float[Tensor, "nodes 1"]
    ) -> Float[Tensor, "nodes hidden"]:
        """Normalise the nodes of each model by those of them that are not padding.

        Where there is one at most, by what was seen before. Nothing depends on how many there are:
        a GPU can replay it.
        """
        models = self.weight.size(0)
        h, unpadded = h.unflatten(0, (models, -1)), unpadded.unflatten(0, (models, -1))  # [M, N, .]
        with torch.no_grad():
            count = unpadded.sum(dim=1, keepdim=True)  # [M, 1, 1]
            several = count > 1
            mean = torch.bmm(unpadded.mT, h) / count.clamp(min=1)  # [M, 1, H]
            mean = torch.where(several, mean, self.running_mean[:, None])
            centred = (h - mean).mul_(unpadded)
            var = centred.square().sum(dim=1, keepdim=True) / count.clamp(min=1)
            var = torch.where(several, var, self.running_var[:, None])
            learning = several[:, 0] * self.momentum  # [M, 1], how much to learn from this
            unbiased = var * (count / (count - 1).clamp(min=1))
            self.running_mean.lerp_(mean[:, 0], learning)
            self.running_var.lerp_(unbiased[:, 0], learning)
            self.num_batches_tracked.add_(several[:, 0, 0])
            scale = (var + self.eps).rsqrt()
            standard = centred.mul_(scale)
            # Over how many nodes mean and variance were taken; over none if they were known before.
            share = several / count.clamp(min=1)
        standard = _Standardised.apply(h, standard, scale, share, unpadded)
        return torch.addcmul(self.bias[:, None], standard, self.weight[:, None]).flatten(0, 1)


class _Standardised(torch.autograd.Function):
    """(h - mean) * scale, of nodes that are not padding; mean and scale depend on h.

    By hand: autograd would launch thrice as many kernels.
    """

    @staticmethod
    def forward(
        ctx: Any, h: Tensor, standard: Tensor, scale: Tensor, share: Tensor, unpadded: Tensor
    ) -> Tensor:
        """The values as they were computed."""
        ctx.save_for_backward(standard, scale, share, unpadded)
        return standard

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Padding has no gradient, nor any part in those of others."""
        standard, scale, share, unpadded = ctx.saved_tensors
        level = torch.bmm(unpadded.mT, gradient) * share  # [M, 1, H]
        slope = (gradient * standard).sum(dim=1, keepdim=True) * share
        moved = (gradient - level).addcmul_(standard, slope, value=-1)
        return moved.mul_(scale).mul_(unpadded), None, None, None, None


def stackable(models: Sequence[nn.Module]) -> TypeGuard[Sequence[Classifier]]:
    """Return whether a stack of models computes what each of them would."""
    known = (*LINEAR, NodeNorm)
    first = models[0]
    # Another class may have a loss of its own.
    if not isinstance(first, Classifier) or type(first) not in (Classifier, BlindClassifier):
        return False
    if not TASKS[first.task].has_classes:  # the loss of a stack is the cross-entropy
        return False
    stacked = {
        id(weights)
        for module in first.modules()
        if isinstance(module, known)
        for weights in module.parameters(recurse=False)
    }
    return (
        first.encoder.fixed_shapes
        and all(model.scaler is first.scaler for model in models)
        and all(id(weights) in stacked for weights in first.parameters())
    )


def _joined_weights(modules: Sequence[nn.Module], name: str) -> nn.Parameter:
    """The weights of modules with a leading axis; theirs become views."""
    weights = [module.get_parameter(name) for module in modules]
    joined = nn.Parameter(torch.stack([each.detach() for each in weights]))
    for each, values in zip(weights, joined.detach(), strict=True):
        each.data = values
    return joined


def _joined_buffers(modules: Sequence[nn.Module], name: str) -> Tensor:
    joined = torch.stack([module.get_buffer(name) for module in modules])
    for module, values in zip(modules, joined, strict=True):
        setattr(module, name, values)
    return joined
