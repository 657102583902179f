"""One temperature for a committee, so that a probability means the same on every dataset."""

import torch
from torch import Tensor

from cores.evaluation.predictions import evaluation_batch
from cores.graphs.masks import smooth_masks
from cores.graphs.store import GraphStore
from cores.graphs.subgraphs import Elements
from cores.models.committee import Committee
from cores.models.sparse import SparseClassifier
from cores.tasks import TASKS
from cores.training.state import forked_rng

TEMPERATURES = torch.logspace(-1, 1, 81, base=4.0)
"""From a quarter to four."""
MASKS, SEED = 4, 7919
"""Random masks of every graph beside the full one, and their seed."""


@torch.no_grad()
def fit_temperature(model: SparseClassifier, graphs: GraphStore, balanced: bool) -> None:
    """Choose the temperature with the least loss on graphs that no member was trained on.

    Full graphs and random masks of them count: parts are asked, too. Where classes are balanced,
    every class has the same weight. Predicted numbers have no temperature.
    """
    committee, task = model.classifier, TASKS[model.task]
    assert isinstance(committee, Committee)
    if not len(graphs) or not task.has_sets:
        return
    logits, labels = [], []
    with forked_rng(graphs.device):
        torch.manual_seed(SEED)
        for batch in graphs.batches(evaluation_batch(graphs.device)):
            elements = Elements.of(batch, model.policy.removal)
            shares = [torch.rand(batch.num_graphs, device=batch.x.device) for _ in range(MASKS)]
            parts = [elements.subgraph(smooth_masks(elements, share)).batch for share in shares]
            logits += [committee.member_logits(part) for part in (batch, *parts)]
            labels += [batch.y] * (1 + MASKS)
    members, y = torch.cat(logits, dim=1), torch.cat(labels)

    def loss(temperature: Tensor) -> float:
        probs = committee.outputs(committee.head.combined(members, temperature))
        found = task.log_loss(probs, y, balanced)
        assert found is not None
        return found

    losses = [loss(temperature) for temperature in (torch.ones(()), *TEMPERATURES)]
    best = losses.index(min(losses))  # 1 where the temperature makes no difference
    committee.temperature.fill_(TEMPERATURES[best - 1] if best else 1.0)
