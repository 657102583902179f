"""Base classes of all networks: they take any PyG graphs and scale node features themselves."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.data import Batch

from cores.data.dataset import Dims
from cores.graphs.batches import as_batch
from cores.graphs.subgraphs import Subgraph, roots_of
from cores.models.scaler import FeatureScaler
from cores.tasks import TASKS


class Network(nn.Module):
    """A network on graphs whose features are as the user gave them.

    Args:
        num_features: Columns of the node features.
    """

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.scaler: nn.Module = FeatureScaler(num_features)
        """Scales nothing until it is fitted; networks that are trained together share theirs."""

    def features(self, batch: Batch) -> Float[Tensor, "nodes features"]:
        """Scaled node features. Nothing else reads ``batch.x``."""
        return self.scaler(batch.x)

    def embed(self, encoder: nn.Module, batch: Batch) -> Float[Tensor, "nodes hidden"]:
        """Node embeddings of a batch."""
        inputs = self.features(batch), batch.edge_index, batch.get("edge_attr")
        if "unpadded_nodes" not in batch:
            return encoder(*inputs, sums=batch.get("edge_sums"))
        return encoder(*inputs, batch.unpadded_nodes)


@dataclass(frozen=True)
class Prediction:
    """Predictions for a batch, and the subgraphs they were made from."""

    probs: Float[Tensor, "graphs classes"]
    """Of classes, or of labels; in a regression, the predicted number in the first column, and its
    quantiles in two more where the model has them."""
    subgraph: Subgraph
    """What the model saw."""
    node_scores: Float[Tensor, " nodes"] | None = None
    """How much the model wants to keep each node of the batch; None if it does not choose."""
    edge_scores: Float[Tensor, " edges"] | None = None
    part: "PartFacts | None" = None
    """What is known of the subgraph; None for a model that nobody asks."""


@dataclass(frozen=True)
class PartFacts:
    """What a committee says of the part that is shown of every graph."""

    probability: Float[Tensor, " graphs"]
    """What it gives the prediction from the part alone; in a regression, the number itself."""
    weak: Bool[Tensor, " graphs"]
    """Whether the search began with less than was asked for."""
    minimal: Bool[Tensor, " graphs"]
    """Whether no single unit can go."""
    questions: Int[Tensor, " graphs"]
    std: Float[Tensor, " graphs"]
    """Standard deviation of the members' predictions."""


class GraphModel(Network):
    """A graph classifier that says what it saw of every graph.

    A subclass implements :meth:`logits`; one that looks at parts of graphs :meth:`prediction` and
    :meth:`full_logits`, too.

    Args:
        dims: Features and classes of the graphs.
    """

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims.num_features)
        self.num_features = dims.num_features
        self.num_classes = dims.num_classes
        self.num_outputs = dims.num_outputs
        self.task = dims.task

    def logits(self, batch: Batch) -> Float[Tensor, "graphs classes"]:
        """Class logits of every graph."""
        raise NotImplementedError

    def prediction(self, batch: Batch) -> Prediction:
        """Class probabilities, here from the full graphs."""
        return Prediction(self.outputs(self.logits(batch)), Subgraph.full(batch))

    def outputs(self, logits: Float[Tensor, "graphs classes"]) -> Float[Tensor, "graphs classes"]:
        """Turn logits into class probabilities, or numbers (see :mod:`cores.tasks`)."""
        return logits.softmax(dim=-1)

    def full_logits(self, batch: Batch) -> Float[Tensor, "graphs classes"]:
        """Class logits when nothing is removed."""
        return self.logits(batch)

    def loss(self, batch: Batch, class_weights: Tensor | None = None) -> Float[Tensor, ""]:
        """The cross-entropy, Eq. (6)."""
        return F.cross_entropy(self.logits(batch), batch.y, weight=class_weights)

    def loss_weight(self, y: Tensor, class_weights: Tensor | None) -> float | Tensor:
        """What the loss divides its sum over graphs by."""
        return TASKS[self.task].loss_weight(y, class_weights)

    def forward(
        self,
        x: Any,
        edge_index: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Float[Tensor, "graphs classes"]:
        """Class logits of PyG graphs, or of plain tensors as PyG's own models take them."""
        return self.logits(as_batch(x, edge_index, edge_attr, batch))

    def predict(self, graphs: Any) -> Prediction:
        """Class probabilities of PyG graphs, and what the model saw of them."""
        return self.prediction(as_batch(graphs))

    @property
    def scores_edges(self) -> bool:
        """Return whether its scores are of edges, and those of nodes follow from them."""
        return False

    def begin_epoch(self, progress: float) -> None:
        """Called before each epoch with the fraction of training that is complete after it."""

    @property
    def phase(self) -> int:
        """Of training; the learning rate begins anew when an epoch begins another one."""
        return 0

    @property
    def selectable(self) -> bool:
        """Return whether the weights as they are now may be selected for the returned model."""
        return True


def pooled(
    h: Float[Tensor, "nodes hidden"],
    owner: Tensor,
    num_graphs: int,
    pooling: tuple[str, ...],
) -> Float[Tensor, "graphs pooled"]:
    """The readouts over each graph's nodes, concatenated; zeros for a graph without nodes."""
    total = h.new_zeros(num_graphs, h.size(1)).index_add(0, owner, h)  # once for all readouts
    return torch.cat([READOUTS[name](total, owner) for name in pooling], dim=-1)


def of_roots(h: Float[Tensor, "nodes hidden"], batch: Batch) -> Float[Tensor, "graphs hidden"]:
    """The embedding of the node whose neighbourhood a graph is; zeros for a graph without it."""
    marked = h * roots_of(batch)[:, None]
    return h.new_zeros(batch.num_graphs, h.size(1)).index_add(0, batch.batch, marked)


def _mean(total: Tensor, owner: Tensor) -> Tensor:
    # Not by bincount: whoever traces a model cannot know how many graphs it will get.
    count = total.new_zeros(total.size(0)).index_add(0, owner, total.new_ones(owner.size(0)))
    return total / count.clamp(min=1)[:, None]


def _add(total: Tensor, owner: Tensor) -> Tensor:
    return total


READOUTS = {"mean": _mean, "add": _add}
"""Made of the sum over each graph's nodes and the graph of each node."""
