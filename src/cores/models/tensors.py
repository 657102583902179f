"""Committee and policy as functions of plain tensors, so that they can be traced into files."""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from cores.graphs.segments import pointers
from cores.models.classifier import Classifier
from cores.models.committee import Committee
from cores.models.sparse import SparseClassifier, keep_scores


class Answer(NamedTuple):
    """What a committee says of a batch."""

    log_probs: Tensor  # [B, K]


class Proposal(NamedTuple):
    """What a policy proposes to keep of a batch, and the order in which."""

    node_kept: Tensor  # [N] bool
    edge_kept: Tensor  # [E] bool
    node_score: Tensor  # [N] probability of being kept
    edge_score: Tensor  # [E]


class TensorFunction(nn.Module, ABC):
    """Tensors in, tensors out, by the code that predicts."""

    outputs: ClassVar[tuple[str, ...]]

    def forward(
        self, x: Tensor, edge_index: Tensor, batch: Tensor, edge_attr: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """Take graphs whose nodes lie together, at least one of each graph."""
        counts = torch.bincount(batch)
        torch._check(counts.size(0) > 0)  # whoever traces this cannot know, and asks
        ptr = pointers(counts)
        edges = {} if edge_attr is None else {"edge_attr": edge_attr}
        return self.of_batch(Batch(x=x, edge_index=edge_index, batch=batch, ptr=ptr, **edges))

    @abstractmethod
    def of_batch(self, graphs: Batch) -> tuple[Tensor, ...]:
        """Its outputs."""


class CommitteeTensors(TensorFunction):
    """Logarithms of a committee's probabilities, or of those of a single classifier.

    Args:
        classifier: Looks at graphs as they are.
    """

    outputs = Answer._fields

    def __init__(self, classifier: Committee | Classifier) -> None:
        super().__init__()
        self.classifier = classifier

    def of_batch(self, graphs: Batch) -> Answer:
        """Logarithms of the probabilities."""
        return Answer(self.classifier.logits(graphs).log_softmax(dim=-1))


class PolicyTensors(TensorFunction):
    """The part that a policy keeps, and its probabilities.

    Args:
        model: A committee behind its policy.
    """

    outputs = Proposal._fields

    def __init__(self, model: SparseClassifier) -> None:
        super().__init__()
        self.model = model

    def of_batch(self, graphs: Batch) -> Proposal:
        """Kept nodes and edges, and scores."""
        choice = self.model.choose(graphs)
        kept = ~choice.subgraph.removed_nodes, ~choice.subgraph.removed_edges
        return Proposal(*kept, *keep_scores(choice.elements, choice.keep_probability))
