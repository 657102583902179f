"""SAGPool and GPool: a score per node, the best of them kept, their states gated by the score."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch_geometric.data import Batch

from cores.config import NetworkConfig, PoolConfig
from cores.graphs import Subgraph, remove_nodes
from cores.masks import largest, place_within, rounded_up, scattered
from cores.models.classifier import READOUTS, Classifier, GraphModel, Prediction
from cores.models.encoder import LAYERS, Encoder, Layer


class TopK(GraphModel):
    """Keeps the share ``ratio`` of every graph's nodes that scores best.

    Args:
        num_classes: Number of labels.
        pool: How many nodes are kept, and the factor on their gates.
    """

    def __init__(self, num_classes: int, pool: PoolConfig) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.ratio = pool.ratio
        self.multiplier = pool.multiplier

    def scored(self, batch: Batch) -> tuple[Tensor, Float[Tensor, " nodes"]]:
        """What the readout will use of every node, and how much the node is worth."""
        raise NotImplementedError

    def read(
        self, batch: Batch, states: Tensor, gates: Tensor, removed: Bool[Tensor, " nodes"]
    ) -> Float[Tensor, "graphs classes"]:
        """Logits from the nodes that are not removed, their states gated."""
        raise NotImplementedError

    def classify(
        self, batch: Batch, removed: Bool[Tensor, " nodes"]
    ) -> Float[Tensor, "graphs classes"]:
        """Logits with a given mask in place of the best nodes."""
        states, scores = self.scored(batch)
        return self.read(batch, states, self._gates(scores), removed)

    def removed(self, batch: Batch, scores: Float[Tensor, " nodes"]) -> Bool[Tensor, " nodes"]:
        """All but the best nodes of every graph, at least one of which is kept."""
        wanted = rounded_up(self.ratio * torch.bincount(batch.batch, minlength=batch.num_graphs))
        scores, ties = self.compared(batch, scores)
        return ~largest(scores, batch.batch, wanted, ties)

    def compared(
        self, batch: Batch, scores: Float[Tensor, " nodes"]
    ) -> tuple[Float[Tensor, " nodes"], Int[Tensor, " nodes"]]:
        """The scores by which nodes are ranked, and a fixed draw that decides between equals."""
        return scores, scattered(place_within(batch.batch, batch.num_graphs))

    def forward(self, batch: Batch) -> Float[Tensor, "graphs classes"]:
        """Logits from the kept nodes."""
        states, scores = self.scored(batch)
        return self.read(batch, states, self._gates(scores), self.removed(batch, scores))

    def whole(self, batch: Batch) -> Float[Tensor, "graphs classes"]:
        """Logits when every node is kept; the gates stay."""
        return self.classify(batch, torch.zeros_like(batch.batch, dtype=torch.bool))

    def predict(self, batch: Batch) -> Prediction:
        """Class probabilities, the kept nodes, and all scores; an edge is worth its lesser end."""
        states, scores = self.scored(batch)
        removed = self.removed(batch, scores)
        logits = self.read(batch, states, self._gates(scores), removed)
        no_edges = removed.new_zeros(batch.edge_index.size(1))
        subgraph = Subgraph.without(batch, removed, no_edges)
        edge_scores = scores[batch.edge_index].amin(dim=0)
        return Prediction(logits.softmax(dim=-1), subgraph, scores, edge_scores)

    def _gates(self, scores: Tensor) -> Tensor:
        return self.multiplier * scores.tanh()


class GPool(TopK):
    """Hard removal (Gao and Ji 2019; Cangea et al. 2018): a node's score reads its features alone.

    The classifier sees the kept nodes, gated, and the edges between them: nothing of a removed node
    reaches it once the mask is given.
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        network: NetworkConfig,
        pool: PoolConfig,
        layer: Layer,
        num_edge_features: int = 0,
    ) -> None:
        super().__init__(num_classes, pool)
        self.embed = nn.Linear(num_features, network.hidden_dim)
        self.projection = nn.Parameter(torch.empty(network.hidden_dim))
        nn.init.uniform_(self.projection, -1, 1)
        self.classifier = Classifier(
            network.hidden_dim, num_classes, network, layer, num_edge_features
        )

    def scored(self, batch: Batch) -> tuple[Tensor, Float[Tensor, " nodes"]]:
        """An embedding h of the node's own features, and h p / |p|."""
        h = self.embed(batch.x)  # [N, H]
        return h, h @ (self.projection / self.projection.norm())

    def compared(
        self, batch: Batch, scores: Float[Tensor, " nodes"]
    ) -> tuple[Float[Tensor, " nodes"], Int[Tensor, " nodes"]]:
        """Scores to four decimals; of equal ones the better connected node comes first.

        Equal scores are the rule here, where a score reads a node's features alone: an end shall go
        before it cuts a graph in two. The last digits depend on what else is in the batch.
        """
        scores, draw = super().compared(batch, scores)
        degree = torch.bincount(batch.edge_index[0], minlength=len(scores))
        return scores.round(decimals=4), draw - degree * 2**32

    def read(
        self, batch: Batch, states: Tensor, gates: Tensor, removed: Bool[Tensor, " nodes"]
    ) -> Float[Tensor, "graphs classes"]:
        """Logits from the subgraph between the kept nodes, their embeddings gated."""
        subgraph = remove_nodes(batch, removed)
        subgraph.x = states[~removed] * gates[~removed, None]
        logits: Tensor = self.classifier(subgraph)
        return logits


class SAGPool(TopK):
    """Soft removal (Lee et al. 2019, their global variant; Knyazev et al. 2019).

    Embeddings and scores come from a GNN on the whole graph; only the readout is restricted to the
    best nodes. What was removed still speaks through the embeddings and gates of what was kept.
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        network: NetworkConfig,
        pool: PoolConfig,
        layer: Layer,
        num_edge_features: int = 0,
    ) -> None:
        super().__init__(num_classes, pool)
        width = network.hidden_dim
        self.encoder = Encoder(num_features, network, layer, num_edge_features)
        self.attention = LAYERS[layer](network, num_edge_features if network.edge_features else 0)
        self.score = nn.Linear(width, 1)
        self.pooling = network.pooling
        self.head = nn.Linear(len(network.pooling) * width, num_classes)
        nn.init.xavier_uniform_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def scored(self, batch: Batch) -> tuple[Tensor, Float[Tensor, " nodes"]]:
        """Embeddings, and self-attention: one more round of messages, then one unit."""
        edge_attr = batch.get("edge_attr")
        h = self.encoder(batch.x, batch.edge_index, edge_attr)  # [N, H]
        attended = self.attention(h, batch.edge_index, edge_attr)  # [N, H]
        return h, self.score(attended).squeeze(-1)

    def read(
        self, batch: Batch, states: Tensor, gates: Tensor, removed: Bool[Tensor, " nodes"]
    ) -> Float[Tensor, "graphs classes"]:
        """Logits from the embeddings of the kept nodes, gated."""
        kept = states[~removed] * gates[~removed, None]
        owner = batch.batch[~removed]
        pooled = [READOUTS[each](kept, owner, size=batch.num_graphs) for each in self.pooling]
        logits: Tensor = self.head(torch.cat(pooled, dim=-1))
        return logits
