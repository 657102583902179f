"""Metrics of what a policy samples beside those of its mode: the two can be far apart."""

from collections.abc import Sequence
from typing import Any

import torch

from cores import GraphStore
from cores.evaluation.predictions import Predictions, predict
from cores.models.sparse import SparseClassifier
from cores.runs.fit import measure
from cores.runs.trained import TrainedModel
from cores.tasks.metrics import accuracy
from cores.training.judge import Judge
from cores.training.state import forked_rng


def measure_actions(
    trained: TrainedModel, graphs: GraphStore, judge: Judge | None, names: Sequence[str]
) -> dict[str, Any]:
    """The metrics of a model from the action that its preset predicts from.

    Accuracy and kept ratios of a sample stand beside them, and those of the mode where the metrics
    are a sample's: a policy that hardly moved from its start keeps everything by its mode, and 73 %
    in a sample. Samples have no prediction sets: what calibrates those is the mode.
    """
    model, config = trained.model, trained.config
    if not isinstance(model, SparseClassifier):
        return measure(trained, graphs, config.alpha, judge, names)
    mode, sample = predict(model, graphs, names), sampled(model, graphs, config.seed, names)
    beside = _beside("sampled", sample, graphs)
    if not config.samples:
        return measure(trained, graphs, config.alpha, judge, names, mode) | beside
    unset = trained.without_calibration()  # Deviation D17
    metrics = measure(unset, graphs, config.alpha, judge, names, sample)
    return metrics | beside | _beside("mode", mode, graphs)


def sampled(
    model: SparseClassifier, graphs: GraphStore, seed: int, names: Sequence[str] = ()
) -> Predictions:
    """Predictions from one sample of the policy per graph, the same for equal seeds."""
    with forked_rng(graphs.device):
        torch.manual_seed(seed)
        model.sampling = True
        try:
            return predict(model, graphs, names)
        finally:
            model.sampling = False


def _beside(action: str, predictions: Predictions, graphs: GraphStore) -> dict[str, float]:
    return {
        f"{action}_accuracy": accuracy(predictions.probs, graphs.y),
        f"{action}_node_ratio": float(predictions.node_ratio.mean()),
        f"{action}_edge_ratio": float(predictions.edge_ratio.mean()),
    }
