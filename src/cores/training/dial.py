"""A policy that sees lambda (Deviation D16): one training, and every trade-off afterwards."""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float, Num
from torch import Tensor
from torch_geometric.data import Batch

from cores.config.policy import SETTINGS
from cores.evaluation.predictions import evaluation_batch
from cores.graphs.store import GraphStore, GraphView
from cores.models.classifier import Classifier
from cores.models.sparse import SparseClassifier
from cores.tasks import TASKS
from cores.training.learner import Learner

SELECTION_SETTINGS = 5
"""Values of lambda at which a policy is measured after every epoch."""
MOST_GRAPHS = 2000
"""Graphs that tell what a setting loses: with more, the answer hardly changes."""


def at_every_setting(graphs: GraphStore, size: int) -> Iterator[Batch]:
    """Every graph once for each of a few values of lambda, in batches of so many."""
    values = torch.linspace(0, 1, SELECTION_SETTINGS, device=graphs.device)
    order = torch.arange(len(graphs)).repeat(len(values))
    of_graph = values.repeat_interleave(len(graphs))
    for batch, lam in zip(graphs.each(order.split(size)), of_graph.split(size), strict=True):
        batch.lam = lam
        yield batch


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
    full = [task.goodness(*_predicted(model, group, None)[:2], balanced) for group in groups]
    least = [task.least_good(goodness, max_loss) for goodness in full]
    kept_least, chosen = 1.0, 1.0
    for lam in SETTINGS:
        found = [_predicted(model, group, lam) for group in groups]
        kept = float(torch.cat([ratio for _, _, ratio in found]).mean())
        enough = all(
            task.goodness(probs, labels, balanced) >= bound
            for (probs, labels, _), bound in zip(found, least, strict=True)
        )
        if enough and kept < kept_least:
            kept_least, chosen = kept, lam
    return chosen


def _spread(graphs: GraphView, most: int) -> GraphView:
    """So many of the graphs at most, evenly: they lie class by class."""
    places = torch.linspace(0, len(graphs) - 1, min(most, len(graphs))).round().long()
    return graphs.store.view(graphs.index[places])


@torch.no_grad()
def _predicted(
    model: SparseClassifier, parts: Sequence[tuple[Classifier, GraphView]], lam: float | None
) -> tuple[
    Float[Tensor, "graphs classes"], Num[Tensor, "graphs *labels"], Float[Tensor, " graphs"]
]:
    """Probabilities, labels and kept ratios at a setting; of full graphs at None."""
    model.eval()
    probs, labels, kept = [], [], []
    for classifier, graphs in parts:
        for batch in graphs.batches(evaluation_batch(graphs.store.device)):
            labels.append(batch.y)
            if lam is None:
                kept.append(batch.x.new_ones(batch.num_graphs))
                probs.append(classifier.outputs(classifier(batch)))
                continue
            batch.lam = batch.x.new_full((batch.num_graphs,), lam)
            choice = model.choose(batch)
            kept.append(choice.elements.kept_ratio(choice.removed))
            probs.append(classifier.outputs(classifier(choice.subgraph.batch)))
    return torch.cat(probs), torch.cat(labels), torch.cat(kept)
