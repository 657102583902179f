"""Gradients of the predicted class as scores of nodes."""

from copy import copy

import torch
from jaxtyping import Float
from torch import Tensor

from cores import GraphModel, GraphStore
from cores.evaluation.predictions import EVALUATION_BATCH


def saliency(model: GraphModel, graphs: GraphStore) -> Float[Tensor, " nodes"]:
    """Length of the gradient of the predicted logit by each node's features (Simonyan, 2014)."""
    return _gradients(model, graphs).norm(dim=-1)


def gradient_input(model: GraphModel, graphs: GraphStore) -> Float[Tensor, " nodes"]:
    """That gradient times the features, summed (Shrikumar et al., 2017): what speaks for the class.

    The features are as the user gave them, before the network scales them.
    """
    return (_gradients(model, graphs) * graphs.x).sum(dim=-1)


def _gradients(model: GraphModel, graphs: GraphStore) -> Float[Tensor, "nodes features"]:
    model.eval()
    found = []
    for batch in graphs.batches(EVALUATION_BATCH):
        watched = copy(batch)
        watched.x = batch.x.detach().clone().requires_grad_()
        predicted = model.full_logits(watched).amax(dim=-1)
        found.append(torch.autograd.grad(predicted.sum(), watched.x)[0])
    return torch.cat(found)
