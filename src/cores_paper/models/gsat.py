"""GSAT (Miao et al. 2022): stochastic attention that may tell little more than chance."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.data import Batch
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks
from torch_geometric.nn import InstanceNorm

from cores import GraphModel
from cores.config import NetworkConfig
from cores.data.dataset import Dims
from cores.graphs.batches import with_pairs
from cores.graphs.subgraphs import Subgraph
from cores.models.classifier import Classifier
from cores.models.encoder import Encoder
from cores.models.network import Prediction
from cores_paper.models.settings import GSATConfig

MARGIN = 1e-6
"""Keeps probabilities off 0 and 1, and the logistic noise finite."""


class GSAT(GraphModel):
    """A classifier whose messages are weighed by attention that it drew itself.

    The attention of an element is a relaxed Bernoulli; its information about the graph is bounded
    by the divergence from Bern(r), with r going down as training goes on. Nothing is removed: it is
    the soft-mask model a user would take instead.

    Args:
        dims: Features and classes of the graphs.
        config: Shape of the network.
        conv: Message-passing layer.
        gsat: The attention and its constraint.
    """

    r: Tensor

    def __init__(self, dims: Dims, config: NetworkConfig, conv: str, gsat: GSATConfig) -> None:
        super().__init__(dims)
        width = config.hidden_dim
        self.gsat = gsat
        # Of its own: batch norms shared by both would average over full and weighted graphs.
        self.extractor = Encoder(dims, config, conv)
        self.classifier = Classifier(dims, config, conv)
        self.scaler = self.classifier.scaler
        self.hidden = nn.Linear(width, 2 * width)
        self.norm = InstanceNorm(2 * width)
        self.attention = nn.Linear(2 * width, 1)
        self.register_buffer("r", torch.tensor(gsat.first_r))

    def begin_epoch(self, progress: float) -> None:
        """Take r from its first to its last value in the first half of training."""
        first, last = self.gsat.first_r, self.gsat.last_r
        self.r.fill_(first + (last - first) * min(2 * progress, 1.0))

    @property
    def selectable(self) -> bool:
        """Return whether r is down: attention that was hardly constrained explains little."""
        return bool(self.r == torch.tensor(self.gsat.last_r))

    def attention_logits(self, batch: Batch) -> Float[Tensor, " elements"]:
        """Attention logits: of the nodes, or of the undirected edges."""
        hidden = self.hidden(self.embed(self.extractor, batch))  # [N, 2H]
        owner = batch.batch
        if self.gsat.attention == "edge":  # the sum of both ends has no direction
            first, second = batch.pair_index
            hidden = hidden[first] + hidden[second]  # [P, 2H]
            owner = owner[first]
        hidden = torch.relu(self.norm(hidden, owner, batch.num_graphs))
        hidden = F.dropout(hidden, self.gsat.dropout, self.extractor.training)
        return self.attention(hidden).squeeze(-1)

    def logits(self, batch: Batch) -> Float[Tensor, "graphs classes"]:
        """Class logits; the attention is drawn in training and expected otherwise."""
        batch = with_pairs(batch)
        return self._classify(batch, self._attention(self.attention_logits(batch)))

    def loss(self, batch: Batch, class_weights: Tensor | None = None) -> Float[Tensor, ""]:
        """Cross-entropy, with the divergence of the attention from Bern(r)."""
        batch = with_pairs(batch)
        logits = self.attention_logits(batch)
        classes = self._classify(batch, self._attention(logits))
        loss = F.cross_entropy(classes, batch.y, weight=class_weights)
        return loss + self.gsat.information_weight * information_loss(logits.sigmoid(), self.r)

    @property
    def scores_edges(self) -> bool:
        """Return whether edges are weighed."""
        return self.gsat.attention == "edge"

    def prediction(self, batch: Batch) -> Prediction:
        """Class probabilities, and the attention as scores."""
        batch = with_pairs(batch)
        attention = self.attention_logits(batch).sigmoid()
        probs = self._classify(batch, attention).softmax(dim=-1)
        edges = self._edge_attention(batch, attention)  # [E]
        nodes = attention
        if self.gsat.attention == "edge":  # a node is worth as much as the best of its edges
            nodes = attention.new_zeros(batch.x.size(0))
            nodes = nodes.scatter_reduce(0, batch.edge_index[0], edges, "amax")
        return Prediction(probs, Subgraph.full(batch), nodes, edges)

    def _attention(self, logits: Tensor) -> Tensor:
        if not self.training:
            return logits.sigmoid()
        return relaxed_draws(logits, self.gsat.temperature)

    def _edge_attention(self, batch: Batch, attention: Tensor) -> Tensor:
        """Of every directed edge; with attention on nodes, the product of both ends."""
        if self.gsat.attention == "edge":
            return attention[..., batch.edge_pair]
        return attention[..., batch.edge_index].prod(dim=-2)

    def _classify(self, batch: Batch, attention: Tensor) -> Tensor:
        return weighed_logits(self.classifier, batch, self._edge_attention(batch, attention))


def weighed_logits(
    classifier: Classifier, batch: Batch, weights: Float[Tensor, " edges"]
) -> Float[Tensor, "graphs classes"]:
    """Class logits of a classifier whose messages are weighed, as PyG's explainers do it."""
    set_masks(classifier, weights, batch.edge_index, apply_sigmoid=False)
    try:
        return classifier.logits(batch)
    finally:
        clear_masks(classifier)


def relaxed_draws(
    logits: Float[Tensor, "*samples elements"], temperature: float
) -> Float[Tensor, "*samples elements"]:
    """Relaxed Bernoulli draws (binary concrete): in (0, 1), above a half with the probability."""
    uniform = torch.rand_like(logits).clamp(MARGIN, 1 - MARGIN)
    noise = uniform.log() - torch.log1p(-uniform)
    return ((logits + noise) / temperature).sigmoid()


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
