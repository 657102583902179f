"""GSAT (Miao et al. 2022): stochastic attention that may tell little more than chance."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.data import Batch
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks
from torch_geometric.nn import InstanceNorm

from cores.config import Conv, GSATConfig, NetworkConfig
from cores.graphs import Subgraph
from cores.models.classifier import Classifier, GraphModel, Prediction
from cores.models.encoder import Encoder

MARGIN = 1e-6
"""Keeps probabilities off 0 and 1, and the logistic noise finite."""


class GSAT(GraphModel):
    """A classifier whose messages are weighed by attention that it drew itself.

    The attention of an element is a relaxed Bernoulli; its information about the graph is bounded
    by the divergence from Bern(r), with r going down as training goes on. Nothing is removed: it is
    the soft-mask model a user would take instead.

    Args:
        num_features: Columns of the node features.
        num_classes: Number of labels.
        network: Shape of the network.
        gsat: The attention and its constraint.
        conv: Message-passing layer.
        num_edge_features: Columns of the edge features.
    """

    r: Tensor

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        network: NetworkConfig,
        gsat: GSATConfig,
        conv: Conv,
        num_edge_features: int = 0,
    ) -> None:
        super().__init__()
        width = network.hidden_dim
        self.num_classes = num_classes
        self.config = gsat
        # Of its own: batch norms shared by both would average over whole and weighed graphs.
        self.extractor = Encoder(num_features, network, conv, num_edge_features)
        self.classifier = Classifier(num_features, num_classes, network, conv, num_edge_features)
        self.hidden = nn.Linear(width, 2 * width)
        self.norm = InstanceNorm(2 * width)
        self.attention = nn.Linear(2 * width, 1)
        self.register_buffer("r", torch.tensor(gsat.first_r))

    def begin_epoch(self, progress: float) -> None:
        """Take r from its first to its last value in the first half of training."""
        first, last = self.config.first_r, self.config.last_r
        self.r.fill_(first + (last - first) * min(2 * progress, 1.0))

    @property
    def settled(self) -> bool:
        """Whether r is down: attention that was hardly constrained explains little."""
        return bool(self.r == torch.tensor(self.config.last_r))

    def logits(self, batch: Batch) -> Float[Tensor, " elements"]:
        """Attention logits: of the nodes, or of the undirected edges."""
        h = self.extractor(batch.x, batch.edge_index, batch.get("edge_attr"))  # [N, H]
        owner = batch.batch
        hidden = self.hidden(h)  # [N, 2H]
        if self.config.attention == "edge":  # the sum of both ends has no direction
            hidden = hidden[batch.pair_index[0]] + hidden[batch.pair_index[1]]  # [P, 2H]
            owner = owner[batch.pair_index[0]]
        hidden = torch.relu(self.norm(hidden, owner, batch.num_graphs))
        hidden = F.dropout(hidden, self.config.dropout, self.training)
        logits: Tensor = self.attention(hidden).squeeze(-1)
        return logits

    def forward(self, batch: Batch) -> Float[Tensor, "graphs classes"]:
        """Logits of the classes; the attention is drawn in training and expected otherwise."""
        return self._classify(batch, self._attention(self.logits(batch)))

    def loss(self, batch: Batch, class_weights: Tensor | None = None) -> Float[Tensor, ""]:
        """Cross-entropy, with the divergence of the attention from Bern(r)."""
        logits = self.logits(batch)
        classes = self._classify(batch, self._attention(logits))
        loss = F.cross_entropy(classes, batch.y, weight=class_weights)
        return loss + self.config.information_weight * information_loss(logits.sigmoid(), self.r)

    def predict(self, batch: Batch) -> Prediction:
        """Class probabilities, and the attention as scores."""
        attention = self.logits(batch).sigmoid()
        probs = self._classify(batch, attention).softmax(dim=-1)
        edges = self._edge_attention(batch, attention)  # [E]
        nodes = attention
        if self.config.attention == "edge":  # a node is worth as much as the best of its edges
            nodes = attention.new_zeros(batch.x.size(0))
            nodes = nodes.scatter_reduce(0, batch.edge_index[0], edges, "amax")
        return Prediction(probs, Subgraph.whole(batch), nodes, edges)

    def _attention(self, logits: Tensor) -> Tensor:
        if not self.training:
            return logits.sigmoid()
        uniform = torch.rand_like(logits).clamp(MARGIN, 1 - MARGIN)
        noise = uniform.log() - torch.log1p(-uniform)
        return ((logits + noise) / self.config.temperature).sigmoid()

    def _edge_attention(self, batch: Batch, attention: Tensor) -> Tensor:
        """Of every directed edge; with attention on nodes, the product of both ends."""
        if self.config.attention == "edge":
            return attention[batch.edge_pair]
        return attention[batch.edge_index].prod(dim=0)

    def _classify(self, batch: Batch, attention: Tensor) -> Tensor:
        set_masks(
            self.classifier,
            self._edge_attention(batch, attention),
            batch.edge_index,
            apply_sigmoid=False,
        )
        try:
            logits: Tensor = self.classifier(batch)
        finally:
            clear_masks(self.classifier)
        return logits


def information_loss(
    probability: Float[Tensor, " elements"], r: Float[Tensor, ""]
) -> Float[Tensor, ""]:
    """KL(Bern(p) || Bern(r)), averaged over the elements: an upper bound of what they tell.

    >>> round(float(information_loss(torch.tensor([0.7, 0.7]), torch.tensor(0.7))), 6)
    0.0
    """
    p = probability.clamp(MARGIN, 1 - MARGIN)
    divergence = p * (p / r).log() + (1 - p) * ((1 - p) / (1 - r)).log()
    return divergence.sum() / max(len(p), 1)
