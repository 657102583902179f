"""What every model of graphs offers, and the classifier f_theta: encoder, readout, linear layer."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.data import Batch
from torch_geometric.nn import global_add_pool, global_mean_pool

from cores.config import NetworkConfig
from cores.graphs import Subgraph
from cores.models.encoder import Encoder, Layer

READOUTS = {"mean": global_mean_pool, "add": global_add_pool}


@dataclass(frozen=True)
class Prediction:
    """What a model says of a batch, and what it looked at."""

    probs: Float[Tensor, "graphs classes"]
    subgraph: Subgraph
    """What the model saw."""
    node_scores: Float[Tensor, " nodes"] | None = None
    """How much the model wants to keep each node of the whole batch; None if it does not choose."""
    edge_scores: Float[Tensor, " edges"] | None = None


class GraphModel(nn.Module):
    """Anything that classifies the graphs of a batch and says what it saw of them."""

    num_classes: int

    def forward(self, batch: Batch) -> Float[Tensor, "graphs classes"]:
        """Logits of every graph."""
        raise NotImplementedError

    def predict(self, batch: Batch) -> Prediction:
        """Class probabilities, here from the whole graphs."""
        return Prediction(self(batch).softmax(dim=-1), Subgraph.whole(batch))

    def whole(self, batch: Batch) -> Float[Tensor, "graphs classes"]:
        """Logits when all that the model can see is kept."""
        logits: Tensor = self(batch)
        return logits

    def loss(self, batch: Batch, class_weights: Tensor | None = None) -> Float[Tensor, ""]:
        """What training lowers: the cross-entropy, Eq. (6)."""
        return F.cross_entropy(self(batch), batch.y, weight=class_weights)

    def begin_epoch(self, progress: float) -> None:
        """Told before every epoch which share of the epochs will be over with it."""

    @property
    def settled(self) -> bool:
        """Whether the weights may be returned as they are now."""
        return True


class Classifier(GraphModel):
    """Class logits of every graph in a batch.

    Args:
        num_features: Columns of the node features.
        num_classes: Number of labels.
        config: Shape of the network.
        layer: Message-passing layer.
        num_edge_features: Columns of the edge features.
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        config: NetworkConfig,
        layer: Layer,
        num_edge_features: int = 0,
    ) -> None:
        super().__init__()
        self.encoder = Encoder(num_features, config, layer, num_edge_features)
        self.pooling = config.pooling
        self.num_classes = num_classes
        self.head = nn.Linear(len(config.pooling) * config.hidden_dim, num_classes)
        nn.init.xavier_uniform_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, batch: Batch) -> Float[Tensor, "graphs classes"]:
        """Logits; a graph that lost all its nodes gets the bias alone."""
        h = self.encoder(batch.x, batch.edge_index, batch.get("edge_attr"))  # [N, H]
        pooled = [
            READOUTS[each](h, batch.batch, size=batch.num_graphs)  # [B, H]
            for each in self.pooling
        ]
        logits: Tensor = self.head(torch.cat(pooled, dim=-1))  # [B, K]
        return logits
