"""GMT (Chen et al. 2024): attention learnt from the subgraphs that are drawn by it.

"How Interpretable Are Interpretable Graph Neural Networks?", ICML 2024. From the paper (GMT-sam):
the attention is a distribution over subgraphs, and what it predicts is the mean over them (the
subgraph multilinear extension); a soft mask, as of GSAT, is not that mean. So many subgraphs are
drawn by the attention in training, their predictions are averaged, and GSAT's information
constraint stays. Then the attention is fixed, and a new classifier learns from what it extracts.

Our reading, where the paper leaves a choice or we know no better: probabilities are averaged, not
logits; draws are hard, with the gradient of the relaxed ones (straight-through); what is drawn are
the elements that the attention weighs, nodes by default as for GSAT here, and an edge is there with
both of its ends; the new classifier sees the expected attention as weights of the messages; either
phase has half of the epochs, r falls to 0.7 in the first half of the first, and the constraint
weighs 0.1.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.data import Batch

from cores.config import NetworkConfig
from cores.data.dataset import Dims
from cores.graphs.batches import copies, with_pairs
from cores.models.classifier import Classifier
from cores_paper.models.gsat import (
    GSAT,
    MARGIN,
    information_loss,
    relaxed_draws,
    weighed_logits,
)
from cores_paper.models.settings import GMTConfig


class GMT(GSAT):
    """GSAT's attention with another way to learn it, and a classifier of its own at the end.

    Args:
        dims: Features and classes of the graphs.
        config: Shape of the network.
        conv: Message-passing layer.
        gmt: The attention, its constraint, and its draws.
    """

    gsat: GMTConfig
    retraining: Tensor

    def __init__(self, dims: Dims, config: NetworkConfig, conv: str, gmt: GMTConfig) -> None:
        super().__init__(dims, config, conv, gmt)
        # Two: the one that is returned begins with fresh weights, and so does its optimiser.
        self.drawn_classifier = Classifier(dims, config, conv)
        self.drawn_classifier.scaler = self.scaler
        self.register_buffer("retraining", torch.tensor(False))

    def begin_epoch(self, progress: float) -> None:
        """Go on to the new classifier when the attention has had its share of the epochs."""
        super().begin_epoch(min(progress / self.gsat.extraction, 1.0))
        self.retraining.fill_(progress > self.gsat.extraction)

    @property
    def phase(self) -> int:
        """First the attention, then the new classifier."""
        return int(self.retraining)

    @property
    def selectable(self) -> bool:
        """Return whether the classifier that is returned is being trained."""
        return bool(self.retraining)

    def train(self, mode: bool = True) -> "GMT":
        """As usual, but batch norms and dropout of an attention that is fixed are at rest."""
        super().train(mode)
        if self.retraining:
            self.extractor.eval()
        return self

    def attention_logits(self, batch: Batch) -> Float[Tensor, " elements"]:
        """Attention logits, without a gradient once they are fixed."""
        with torch.set_grad_enabled(torch.is_grad_enabled() and not bool(self.retraining)):
            return super().attention_logits(batch)

    def loss(self, batch: Batch, class_weights: Tensor | None = None) -> Float[Tensor, ""]:
        """Cross-entropy of the mean over drawn subgraphs, with the constraint; then the plain one.

        The constraint is the divergence of the attention from Bern(r), as for GSAT.
        """
        batch = with_pairs(batch)
        if self.retraining:
            return F.cross_entropy(self.logits(batch), batch.y, weight=class_weights)
        logits = self.attention_logits(batch)
        probs = self.mean_over_draws(batch, logits).clamp_min(MARGIN)
        loss = F.nll_loss(probs.log(), batch.y, weight=class_weights)
        return loss + self.gsat.information_weight * information_loss(logits.sigmoid(), self.r)

    def mean_over_draws(
        self, batch: Batch, logits: Float[Tensor, " elements"]
    ) -> Float[Tensor, "graphs classes"]:
        """Class probabilities, averaged over subgraphs that the attention draws."""
        samples = self.gsat.samples
        soft = relaxed_draws(logits.expand(samples, -1), self.gsat.temperature)  # [S, M]
        drawn = (soft > 0.5).float() - soft.detach() + soft
        weights = self._edge_attention(batch, drawn).flatten()  # [S * E]
        drawn_logits = weighed_logits(self.drawn_classifier, copies(batch, samples), weights)
        return drawn_logits.softmax(dim=-1).unflatten(0, (samples, -1)).mean(dim=0)

    def _attention(self, logits: Tensor) -> Tensor:
        return logits.sigmoid()

    def _classify(self, batch: Batch, attention: Tensor) -> Tensor:
        classifier = self.classifier if self.retraining else self.drawn_classifier
        return weighed_logits(classifier, batch, self._edge_attention(batch, attention))
