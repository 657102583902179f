"""A prediction that is NaN is none: it is told, and nothing is measured by it."""

from dataclasses import replace

import pytest
import torch

from cores.config import NetworkConfig
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.errors import UserError
from cores.evaluation.predictions import (
    EVALUATION_BATCH,
    evaluation_batch,
    predict,
    predict_any,
    predict_full,
    predict_proba,
    unpredicted,
)
from cores.graphs.store import GraphStore
from cores.models.classifier import Classifier

GRAPHS = ba_motifs(num_graphs=8, base_size=5)


def test_a_gpu_gets_more_graphs_at_once() -> None:
    assert evaluation_batch(torch.device("cpu")) == EVALUATION_BATCH
    assert evaluation_batch(torch.device("cuda")) > EVALUATION_BATCH


def too_large(graph: int) -> GraphStore:
    x = GRAPHS.x.clone()
    x[GRAPHS.node_ptr[graph] : GRAPHS.node_ptr[graph + 1]] = 3e38
    return replace(GRAPHS, x=x)


def classifier() -> Classifier:
    torch.manual_seed(0)
    return Classifier(Dims(10, 2), NetworkConfig(hidden_dim=8, num_layers=1), "gin").eval()


def test_a_graph_without_a_prediction_is_named() -> None:
    model, graphs = classifier(), too_large(5)
    assert unpredicted(predict_any(model, graphs).probs).nonzero().flatten().tolist() == [5]
    message = "no probabilities for graph 5: its features are too large"
    with pytest.raises(UserError, match=message):
        predict(model, graphs)
    with pytest.raises(UserError, match=message):
        predict_full(model, graphs)
    with pytest.raises(UserError, match=message):
        predict_proba(model, graphs.batches(EVALUATION_BATCH))
    with pytest.raises(UserError, match="for graph mol-f:"):
        predict(model, graphs, [f"mol-{letter}" for letter in "abcdefgh"])


@pytest.mark.parametrize("value", [torch.nan, -torch.inf, 1e30])
def test_weights_that_went_astray_are_told_as_such(value: float) -> None:
    model = classifier()
    with torch.no_grad():
        for weights in model.parameters():
            weights.fill_(value)
    with pytest.raises(UserError, match=r"weights reach .*; lower training.learning_rate, or get"):
        predict(model, too_large(0))
