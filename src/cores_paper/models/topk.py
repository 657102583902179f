"""SAGPool and GPool: a score per node, the best of them kept, their states gated by the score."""

from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch_geometric.data import Batch

from cores import GraphModel
from cores.config import NetworkConfig
from cores.data.dataset import Dims
from cores.graphs.masks import largest, rounded_up, scattered
from cores.graphs.segments import place_within
from cores.graphs.subgraphs import Subgraph, remove_nodes
from cores.models.classifier import Classifier, xavier_linear
from cores.models.encoder import Encoder, build_layer
from cores.models.network import Prediction, pooled
from cores_paper.models.settings import PoolConfig


class TopK(GraphModel):
    """Keeps the share ``ratio`` of every graph's nodes that scores best.

    Args:
        dims: Features and classes of the graphs.
        pool: How many nodes are kept, and the factor on their gates.
    """

    def __init__(self, dims: Dims, pool: PoolConfig) -> None:
        super().__init__(dims)
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

    def logits(self, batch: Batch) -> Float[Tensor, "graphs classes"]:
        """Class logits from the kept nodes."""
        states, scores = self.scored(batch)
        return self.read(batch, states, self._gates(scores), self.removed(batch, scores))

    def full_logits(self, batch: Batch) -> Float[Tensor, "graphs classes"]:
        """Class logits when every node is kept; the gates stay."""
        return self.classify(batch, torch.zeros_like(batch.batch, dtype=torch.bool))

    def prediction(self, batch: Batch) -> Prediction:
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

    def __init__(self, dims: Dims, config: NetworkConfig, conv: str, pool: PoolConfig) -> None:
        super().__init__(dims, pool)
        width = config.hidden_dim
        self.input = nn.Linear(dims.num_features, width)
        self.projection = nn.Parameter(torch.empty(width))
        nn.init.uniform_(self.projection, -1, 1)
        self.classifier = Classifier(replace(dims, num_features=width), config, conv)
        self.classifier.scaler = nn.Identity()  # it reads embeddings

    def scored(self, batch: Batch) -> tuple[Tensor, Float[Tensor, " nodes"]]:
        """An embedding h of the node's own features, and h p / |p|."""
        h = self.input(self.features(batch))  # [N, H]
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
        return self.classifier.logits(subgraph)


class SAGPool(TopK):
    """Soft removal (Lee et al. 2019, their global variant; Knyazev et al. 2019).

    Embeddings and scores come from a GNN on the whole graph; only the readout is restricted to the
    best nodes. What was removed still speaks through the embeddings and gates of what was kept.
    """

    def __init__(self, dims: Dims, config: NetworkConfig, conv: str, pool: PoolConfig) -> None:
        super().__init__(dims, pool)
        width = config.hidden_dim
        self.encoder = Encoder(dims, config, conv)
        self.attention = build_layer(conv, config, dims.num_edge_features)
        self.score = nn.Linear(width, 1)
        self.pooling = config.pooling
        self.head = xavier_linear(len(config.pooling) * width, dims.num_classes)

    def scored(self, batch: Batch) -> tuple[Tensor, Float[Tensor, " nodes"]]:
        """Embeddings, and self-attention: one more round of messages, then one unit."""
        h = self.embed(self.encoder, batch)  # [N, H]
        attended = self.attention(h, batch.edge_index, batch.get("edge_attr"))  # [N, H]
        return h, self.score(attended).squeeze(-1)

    def read(
        self, batch: Batch, states: Tensor, gates: Tensor, removed: Bool[Tensor, " nodes"]
    ) -> Float[Tensor, "graphs classes"]:
        """Logits from the embeddings of the kept nodes, gated."""
        kept = states[~removed] * gates[~removed, None]
        owner = batch.batch[~removed]
        return self.head(pooled(kept, owner, batch.num_graphs, self.pooling))
