"""A model as one function of plain tensors, so that it can be traced into a file."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from cores.graphs.segments import pointers
from cores.graphs.subgraphs import Subgraph
from cores.models.classifier import Classifier
from cores.models.sparse import SparseClassifier, keep_scores


class Decision(NamedTuple):
    """Prediction, kept parts and scores of a batch."""

    probs: Tensor  # [B, K]
    node_kept: Tensor  # [N] bool
    edge_kept: Tensor  # [E] bool
    node_score: Tensor  # [N] probability of being kept
    edge_score: Tensor  # [E]


class TensorModel(nn.Module):
    """Policy, removal and classifier: tensors in, tensors out, by the code that predicts.

    Args:
        model: A classifier, behind its policy or alone.
    """

    def __init__(self, model: Classifier | SparseClassifier) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, x: Tensor, edge_index: Tensor, batch: Tensor, edge_attr: Tensor | None = None
    ) -> Decision:
        """Decide on graphs whose nodes lie together, at least one of each graph."""
        ptr = pointers(torch.bincount(batch))
        edges = {} if edge_attr is None else {"edge_attr": edge_attr}
        graphs = Batch(x=x, edge_index=edge_index, batch=batch, ptr=ptr, **edges)
        if isinstance(self.model, SparseClassifier):
            return _sparse(self.model, graphs)
        probs = self.model.logits(graphs).softmax(dim=-1)
        certain = x.new_ones(1)
        scores = certain.expand(x.size(0)), certain.expand(edge_index.size(1))
        return _decision(probs, Subgraph.full(graphs), *scores)


def _sparse(model: SparseClassifier, graphs: Batch) -> Decision:
    choice = model.choose(graphs)
    left = choice.subgraph.batch
    # The mode leaves a node of every graph. Whoever traces this cannot know, and asks.
    torch._check(left.x.size(0) > 0)
    probs = model.classifier.logits(left).softmax(dim=-1)
    scores = keep_scores(choice.elements, choice.keep_probability)
    return _decision(probs, choice.subgraph, *scores)


def _decision(probs: Tensor, subgraph: Subgraph, nodes: Tensor, edges: Tensor) -> Decision:
    return Decision(probs, ~subgraph.removed_nodes, ~subgraph.removed_edges, nodes, edges)
