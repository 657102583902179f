"""What each node or edge contributes to a model's predictions, as its effect network tells it."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from cores.evaluation.explanations import truth_auc
from cores.evaluation.predictions import evaluation_batch
from cores.evaluation.scores import Scores
from cores.graphs.store import GraphStore
from cores.graphs.subgraphs import Elements
from cores.models.network import GraphModel
from cores.models.sparse import SparseClassifier


@dataclass(frozen=True)
class ElementEffects:
    """Of all graphs of a store, laid end to end like the store itself.

    In probability of the predicted class (of several labels, the mean over them); of a predicted
    number, in its unit.
    """

    nodes: Float[Tensor, " nodes"] | None
    """None where only edges are removed."""
    edges: Float[Tensor, " edges"] | None
    """Both directions of an undirected edge have its effect; None where only nodes are removed."""

    def cpu(self) -> "ElementEffects":
        """The same on the CPU."""
        return ElementEffects(
            *(None if part is None else part.cpu() for part in (self.nodes, self.edges))
        )

    def scores(self, graphs: GraphStore) -> Scores:
        """As scores of nodes and of edges; those that are missing follow from the others."""
        if self.edges is None:
            assert self.nodes is not None
            return Scores.of_nodes(graphs, self.nodes)
        if self.nodes is None:
            return Scores.of_edges(graphs, self.edges)
        return Scores(self.nodes, self.edges)


@torch.no_grad()
def element_effects(model: GraphModel, graphs: GraphStore) -> ElementEffects | None:
    """The effects of every node or edge of a store; None for a model that did not learn them."""
    if not isinstance(model, SparseClassifier) or model.effects is None:
        return None
    head, removal = model.classifier.head, model.effects.removal
    nodes, edges = [], []
    for batch in graphs.batches(evaluation_batch(graphs.device)):
        elements = Elements.of(batch, removal)
        effects = head.unit * model.effects(elements.batch)  # [M]
        effects = elements.fill_protected(
            effects, 0.0
        )  # no mask has ever told what they contribute
        nodes.append(elements.per_node(effects, 0.0))
        edges.append(elements.per_edge(effects, 0.0))
    return ElementEffects(
        None if removal == "edge" else torch.cat(nodes),
        None if removal == "node" else torch.cat(edges),
    )


def effect_metrics(model: GraphModel, graphs: GraphStore) -> dict[str, float | None]:
    """ROC-AUCs of the effects against ground truth, where there are both."""
    if graphs.node_truth is None or (effects := element_effects(model, graphs)) is None:
        return {}
    scores = effects.scores(graphs)
    found = {"effect_node_auc": truth_auc(scores.nodes, graphs.node_truth, graphs.node_ptr)}
    if graphs.edge_truth is not None:
        found["effect_edge_auc"] = truth_auc(scores.edges, graphs.edge_truth, graphs.edge_ptr)
    return found
