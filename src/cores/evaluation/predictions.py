"""Class probabilities of many graphs."""

from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch_geometric.data import Batch

EVALUATION_BATCH = 128
"""Graphs per forward pass where nothing is learnt."""


@torch.no_grad()
def predict_proba(
    classifier: nn.Module, batches: Iterable[Batch]
) -> Float[Tensor, "graphs classes"]:
    """Softmax of the classifier's logits, with dropout off; restores the classifier's mode."""
    was_training = classifier.training
    classifier.eval()
    probs = [classifier(batch).softmax(dim=-1) for batch in batches]
    classifier.train(was_training)
    return torch.cat(probs)
