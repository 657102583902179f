"""Attention that learns on graphs with a planted motif, whose nodes are known."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.optim import Adam

from cores.evaluation.predictions import predict
from cores.graphs.store import GraphStore
from cores_paper.models.gsat import GSAT

Learnt = Callable[[GSAT, GraphStore, int, int], tuple[float, float]]


@pytest.fixture
def learnt(unchecked: None) -> Learnt:
    """Trains a model; gives how much more it attends to the motif, before and after."""

    def gap(scores: Tensor, truth: Tensor) -> float:
        return float(scores[truth].mean() - scores[~truth].mean())

    def learn(model: GSAT, graphs: GraphStore, epochs: int, batch_size: int) -> tuple[float, float]:
        before = gap(predict(model, graphs).node_scores, graphs.node_truth)
        optimizer = Adam(model.parameters(), lr=3e-3, weight_decay=1e-4)
        order = torch.Generator().manual_seed(0)
        for epoch in range(epochs):
            model.begin_epoch((epoch + 1) / epochs)
            model.train()
            for batch in graphs.batches(batch_size, order):
                optimizer.zero_grad()
                model.loss(batch).backward()
                optimizer.step()
        return before, gap(predict(model, graphs).node_scores, graphs.node_truth)

    return learn
