"""A policy that sees lambda (Deviation D16): one training, and every trade-off afterwards."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from cores.config.policy import SETTINGS
from cores.evaluation.dial import DialPredictions, predict_settings
from cores.evaluation.predictions import evaluation_batch
from cores.graphs.store import GraphStore, GraphView
from cores.models.classifier import Classifier
from cores.models.sparse import SparseClassifier
from cores.tasks import TASKS
from cores.training.learner import Learner

SELECTION_SETTINGS = tuple(step / 4 for step in range(5))
"""Values of lambda at which a policy is measured after every epoch."""
MOST_GRAPHS = 2000
"""Graphs that tell what a setting loses: with more, the answer hardly changes."""


def sparsest_setting(
    model: SparseClassifier,
    referees: Sequence[Learner],
    selection_graphs: GraphStore,
    max_loss: float,
    balanced: bool,
) -> float:
    """The value of lambda that keeps least and loses no more accuracy than it may.

    Neither on the graphs that the referees were not trained on, nor in the model's own predictions
    of the selection part: the former are many, but the policy was trained on them; the latter are
    new to both, but few. Epochs were selected by them, though, and so this is no promise. Where
    classes are balanced, their mean accuracy counts; in a regression, the mean error; of several
    labels, the mean ROC-AUC.
    """
    share = -(-MOST_GRAPHS // len(referees))
    task = TASKS[model.task]
    groups = [
        [(referee.classifier, _spread(referee.policy_graphs, share)) for referee in referees],
        [(model.classifier, selection_graphs.view())],
    ]
    model.eval()
    found = [_at_every_setting(model, group) for group in groups]
    labels = [torch.cat([graphs.y for _, graphs in group]) for group in groups]
    least = [
        task.least_good(task.goodness(_from_full_graphs(group), true, balanced), max_loss)
        for group, true in zip(groups, labels, strict=True)
    ]
    kept = torch.cat([each.kept_ratio for each in found], dim=1).mean(dim=1).tolist()  # [S]
    kept_least, chosen = 1.0, 1.0
    for place, lam in enumerate(SETTINGS):
        enough = all(
            task.goodness(each.probs[place], true, balanced) >= bound
            for each, true, bound in zip(found, labels, least, strict=True)
        )
        if enough and kept[place] < kept_least:
            kept_least, chosen = kept[place], lam
    return chosen


def _spread(graphs: GraphView, most: int) -> GraphView:
    """So many of the graphs at most, evenly: they lie class by class."""
    places = torch.linspace(0, len(graphs) - 1, min(most, len(graphs))).round().long()
    return graphs.store.view(graphs.index[places])


def _at_every_setting(
    model: SparseClassifier, parts: Sequence[tuple[Classifier, GraphView]]
) -> DialPredictions:
    """What classifiers predict from what the model keeps, each of its own graphs."""
    found = [predict_settings(model, graphs, SETTINGS, classifier) for classifier, graphs in parts]
    return DialPredictions(
        torch.cat([each.probs for each in found], dim=1),
        torch.cat([each.kept_ratio for each in found], dim=1),
    )


@torch.no_grad()
def _from_full_graphs(
    parts: Sequence[tuple[Classifier, GraphView]],
) -> Float[Tensor, "graphs classes"]:
    """What classifiers predict from the full graphs."""
    return torch.cat(
        [
            classifier.outputs(classifier(batch))
            for classifier, graphs in parts
            for batch in graphs.batches(evaluation_batch(graphs.store.device))
        ]
    )
