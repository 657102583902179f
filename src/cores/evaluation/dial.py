"""What a model with a dial predicts at many settings, from few passes: a GPU waits for each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch_geometric.data import Batch

from cores.config.policy import SETTINGS
from cores.evaluation.predictions import check_predicted, evaluation_batch
from cores.graphs.store import GraphView
from cores.models.classifier import Classifier
from cores.models.sparse import SparseClassifier


@dataclass(frozen=True)
class DialPredictions:
    """Of some graphs, at every setting of a dial."""

    probs: Float[Tensor, "settings graphs classes"]
    """Of classes, or of labels; in a regression, the predicted number in the first column."""
    kept_ratio: Float[Tensor, "settings graphs"]
    """rho, of what the policy decides on."""


def at_settings(graphs: GraphView, settings: Sequence[float], size: int) -> Iterator[Batch]:
    """Every graph once for each value of lambda, in batches of so many."""
    values = torch.tensor(settings, device=graphs.store.device)
    index, of_graph = graphs.index.repeat(len(values)), values.repeat_interleave(len(graphs))
    for batch, lam in zip(graphs.store.each(index.split(size)), of_graph.split(size), strict=True):
        batch.lam = lam
        yield batch


@torch.no_grad()
def predict_settings(
    model: SparseClassifier,
    graphs: GraphView,
    settings: Sequence[float] = SETTINGS,
    classifier: Classifier | None = None,
    names: Sequence[str] = (),
) -> DialPredictions:
    """Predict graphs from the mode's subgraphs at every setting.

    Args:
        model: Its policy sees lambda.
        graphs: What to predict.
        settings: Values of lambda.
        classifier: Predicts in place of the model's own.
        names: What the data call the graphs.
    """
    model.eval()
    predicts = model.classifier if classifier is None else classifier
    probs, kept = [], []
    for batch in at_settings(graphs, settings, evaluation_batch(graphs.store.device)):
        choice = model.choose(batch)
        probs.append(predicts.outputs(predicts.logits(choice.subgraph.batch)))
        kept.append(choice.elements.kept_ratio(choice.removed))
    found = torch.cat(probs)
    check_predicted(model, found, list(names) * len(settings))
    shape = len(settings), len(graphs)
    return DialPredictions(found.unflatten(0, shape), torch.cat(kept).unflatten(0, shape))
