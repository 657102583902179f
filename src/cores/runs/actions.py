"""Metrics of what a policy samples beside those of its mode: the two can be far apart."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from cores.config.spec import TaskName
from cores.evaluation.predictions import Predictions, predict
from cores.graphs.store import GraphStore
from cores.models.sparse import SparseClassifier
from cores.runs.fit import measure
from cores.runs.trained import TrainedModel
from cores.tasks import TASKS
from cores.training.judge import Judge
from cores.training.state import forked_rng


def measure_actions(
    trained: TrainedModel, graphs: GraphStore, judge: Judge | None, names: Sequence[str]
) -> dict[str, Any]:
    """The metrics of a model from the action that its settings predict from.

    At the published presets, accuracy and kept ratios of a sample stand beside them, and those of
    the mode where the metrics are a sample's: a policy that hardly moved from its start keeps
    everything by its mode, and 73 % in a sample. Samples have no prediction sets: what calibrates
    those is the mode.
    """
    model, config = trained.model, trained.config
    if not isinstance(model, SparseClassifier):
        return measure(trained, graphs, config.alpha, judge, names)
    mode = predict(model, graphs, names)
    samples = config.ppo.predict_from == "sample"  # Deviation D17
    if config.preset == "default" and not samples:
        return measure(trained, graphs, config.alpha, judge, names, mode)
    sample = sampled(model, graphs, config.seed, names)
    beside = _beside("sampled", sample, graphs.y, trained.task)
    if not samples:
        return measure(trained, graphs, config.alpha, judge, names, mode) | beside
    unset = trained.without_calibration()
    metrics = measure(unset, graphs, config.alpha, judge, names, sample)
    return metrics | beside | _beside("mode", mode, graphs.y, trained.task)


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


def _beside(
    action: str, predictions: Predictions, labels: Tensor, task: TaskName
) -> dict[str, Any]:
    row = TASKS[task]
    name = row.leading.metric
    return {
        f"{action}_{name}": row.quality[name](predictions.probs, labels),
        f"{action}_node_ratio": float(predictions.node_ratio.mean()),
        f"{action}_edge_ratio": float(predictions.edge_ratio.mean()),
    }
