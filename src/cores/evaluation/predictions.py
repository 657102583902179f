"""A model's predictions for many graphs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch_geometric.data import Batch

from cores.config import Removal
from cores.errors import UserError
from cores.graphs.components import subgraph_pieces
from cores.graphs.shares import of_graphs
from cores.graphs.store import GraphStore
from cores.graphs.subgraphs import Subgraph, edge_ratio, node_ratio
from cores.models.network import GraphModel, PartFacts, Prediction
from cores.models.sparse import SparseClassifier

EVALUATION_BATCH = 128
"""Graphs per forward pass outside of training."""


def evaluation_batch(device: torch.device) -> int:
    """Graphs per forward pass on a device: a GPU has room for more, and waits for each."""
    return 8 * EVALUATION_BATCH if device.type == "cuda" else EVALUATION_BATCH


def unpredicted(probs: Float[Tensor, "graphs classes"]) -> Bool[Tensor, " graphs"]:
    """The graphs for which a model gives NaN; their largest probability would look like a class."""
    return ~probs.isfinite().all(dim=-1)


def check_predicted(
    model: nn.Module, probs: Float[Tensor, "graphs classes"], names: Sequence[str] = ()
) -> None:
    """Refuse predictions that are none, before a metric is computed from them.

    Args:
        model: What made them; its weights tell whose fault it is.
        probs: Its probabilities, for all graphs at once: asking for each batch would make a GPU
            wait as often.
        names: What the data call the graphs; their numbers, from 0, if not given.
    """
    missing = unpredicted(probs)
    if not bool(missing.any()):
        return
    largest = torch.stack([weights.detach().abs().max() for weights in model.parameters()]).max()
    if not largest < HUGE_WEIGHT:  # NaN is not, either
        raise UserError(
            f"the model's weights reach {float(largest):g}; lower training.learning_rate, or get "
            "the model anew"
        )
    first, count = int(missing.nonzero()[0]), int(missing.sum())
    others = f" and {count - 1} more" if count > 1 else ""
    raise UserError(
        f"the model gives no probabilities for graph {names[first] if names else first}{others}: "
        f"{TOO_LARGE}; scale or remove it"
    )


HUGE_WEIGHT = 1e6
"""Of a model that goes astray; trained ones have weights of about 1."""
TOO_LARGE = "its features are too large for it"
"""Why a model whose weights are numbers has no prediction for a graph."""


@torch.no_grad()
def predict_proba(
    classifier: GraphModel, batches: Iterable[Batch]
) -> Float[Tensor, "graphs classes"]:
    """What a classifier predicts, with dropout off; restores its mode."""
    was_training = classifier.training
    classifier.eval()
    probs = [classifier.outputs(of_graphs(classifier, batch)) for batch in batches]
    classifier.train(was_training)
    found = torch.cat(probs)
    check_predicted(classifier, found)
    return found


@dataclass(frozen=True)
class Predictions:
    """Of all graphs of a store, laid end to end like the store itself."""

    probs: Float[Tensor, "graphs classes"]
    """Of classes, or of labels; in a regression, the predicted number in the one column."""
    node_ratio: Float[Tensor, " graphs"]
    edge_ratio: Float[Tensor, " graphs"]
    removed_nodes: Bool[Tensor, " nodes"]
    removed_edges: Bool[Tensor, " edges"]
    node_scores: Float[Tensor, " nodes"] | None
    """None for a model that does not choose."""
    edge_scores: Float[Tensor, " edges"] | None
    pieces: Int[Tensor, " graphs"] | None = None
    """Connected pieces of what the model saw of each graph (:mod:`cores.graphs.components`)."""
    part: PartFacts | None = None
    """What is known of the parts; None for a model that nobody asks."""

    def cpu(self) -> "Predictions":
        """The same on the CPU."""
        part = self.part
        if part is not None:
            part = PartFacts(**{name: value.cpu() for name, value in vars(part).items()})
        moved = {
            name: value.cpu() for name, value in vars(self).items() if isinstance(value, Tensor)
        }
        return Predictions(**{**vars(self), **moved, "part": part})

    def kept_ratio(self, graphs: GraphStore, removal: Removal) -> Float[Tensor, " graphs"]:
        """rho: share of each graph's nodes, of its edges, or of both together, that is kept."""
        if removal == "node":
            return self.node_ratio
        if removal == "edge":
            return self.edge_ratio
        device = self.node_ratio.device
        nodes, pairs = graphs.num_nodes.to(device), graphs.pairs.ptr.diff().to(device)
        kept = self.node_ratio * nodes + self.edge_ratio * pairs
        return kept / (nodes + pairs).clamp(min=1)

    def subgraphs(self, graphs: GraphStore) -> Iterator[Batch]:
        """The subgraphs the model saw."""
        for _, subgraph, _ in self.batches(graphs):
            yield subgraph.batch

    def batches(self, graphs: GraphStore) -> Iterator[tuple[Batch, Subgraph, Tensor]]:
        """The graphs batch by batch, with what the model saw of them and their probabilities."""
        for index in torch.arange(len(graphs)).split(EVALUATION_BATCH):
            first, last = index[0], index[-1] + 1
            nodes = slice(int(graphs.node_ptr[first]), int(graphs.node_ptr[last]))
            edges = slice(int(graphs.edge_ptr[first]), int(graphs.edge_ptr[last]))
            batch = graphs.batch(index)
            seen = Subgraph.without(batch, self.removed_nodes[nodes], self.removed_edges[edges])
            yield batch, seen, self.probs[first:last]


def predict(model: GraphModel, graphs: GraphStore, names: Sequence[str] = ()) -> Predictions:
    """Predict every graph of a store; refuses one that the model has no prediction for."""
    predictions = predict_any(model, graphs)
    check_predicted(model, predictions.probs, names)
    return predictions


@torch.no_grad()
def predict_any(model: GraphModel, graphs: GraphStore) -> Predictions:
    """Predict every graph of a store; see :func:`unpredicted` for those without a prediction."""
    model.eval()
    found: list[Prediction] = []
    ratios: list[tuple[Tensor, Tensor]] = []
    pieces: list[Tensor] = []
    for batch in graphs.batches(evaluation_batch(graphs.device)):
        prediction = model.prediction(batch)
        found.append(prediction)
        subgraph = prediction.subgraph
        ratios.append(
            (node_ratio(batch, subgraph.removed_nodes), edge_ratio(batch, subgraph.removed_edges))
        )
        pieces.append(subgraph_pieces(subgraph.batch, "edge" if model.scores_edges else "node"))
    return Predictions(
        probs=torch.cat([prediction.probs for prediction in found]),
        node_ratio=torch.cat([nodes for nodes, _ in ratios]),
        edge_ratio=torch.cat([edges for _, edges in ratios]),
        removed_nodes=torch.cat([prediction.subgraph.removed_nodes for prediction in found]),
        removed_edges=torch.cat([prediction.subgraph.removed_edges for prediction in found]),
        node_scores=_joined([prediction.node_scores for prediction in found]),
        edge_scores=_joined([prediction.edge_scores for prediction in found]),
        pieces=torch.cat(pieces),
        part=_joined_facts([prediction.part for prediction in found]),
    )


@torch.no_grad()
def predict_told(
    model: GraphModel, graphs: GraphStore, names: Sequence[str] = ()
) -> Float[Tensor, "graphs classes"]:
    """Predict every graph of a store, without the search for a part."""
    model.eval()
    if isinstance(model, SparseClassifier) and not model.sampling:
        batches = graphs.batches(evaluation_batch(graphs.device))
        probs = model.outputs(torch.cat([model.logits(batch) for batch in batches]))
        check_predicted(model, probs, names)
        return probs
    return predict(model, graphs, names).probs


@torch.no_grad()
def predict_full(
    model: GraphModel, graphs: GraphStore, names: Sequence[str] = ()
) -> Float[Tensor, "graphs classes"]:
    """What is predicted of every graph of a store when nothing is removed."""
    model.eval()
    logits = [model.full_logits(batch) for batch in graphs.batches(evaluation_batch(graphs.device))]
    probs = model.outputs(torch.cat(logits))
    check_predicted(model, probs, names)
    return probs


def _joined(parts: list[Tensor | None]) -> Tensor | None:
    known = [part for part in parts if part is not None]
    return torch.cat(known) if known else None


def _joined_facts(parts: Sequence[PartFacts | None]) -> PartFacts | None:
    known = [part for part in parts if part is not None]
    if not known:
        return None
    return PartFacts(
        **{name: torch.cat([vars(part)[name] for part in known]) for name in vars(known[0])}
    )
