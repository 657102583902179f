"""A control: a random part of every graph, and nothing is chosen."""

from jaxtyping import Float
from torch import Tensor
from torch_geometric.data import Batch

from cores.config import NetworkConfig, PoolConfig
from cores.graphs import Elements, Subgraph
from cores.masks import drawn_once, largest, rounded_up, smooth_masks, smoothed
from cores.models.classifier import Classifier, GraphModel, Prediction
from cores.models.encoder import Layer


class RandomSubgraph(GraphModel):
    """A classifier that learns from random masks of one kept share, and is tested on such masks.

    What a model that chooses is worth shows against it.
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
        super().__init__()
        self.num_classes = num_classes
        self.ratio = pool.ratio
        self.classifier = Classifier(num_features, num_classes, network, layer, num_edge_features)

    def subgraph(self, batch: Batch) -> Subgraph:
        """A random part of every graph; in evaluation drawn once for each, whatever the batch."""
        elements = Elements.of(batch, "node")
        ratio = batch.x.new_full((batch.num_graphs,), self.ratio)
        if self.training:
            return elements.subgraph(smooth_masks(elements, ratio))
        values = smoothed(batch, *drawn_once(batch))  # [N]
        wanted = rounded_up(ratio * elements.count)
        return elements.subgraph(~largest(values, elements.owner, wanted))

    def forward(self, batch: Batch) -> Float[Tensor, "graphs classes"]:
        """Logits from the random part."""
        logits: Tensor = self.classifier(self.subgraph(batch).batch)
        return logits

    def whole(self, batch: Batch) -> Float[Tensor, "graphs classes"]:
        """Logits of the classifier on whole graphs."""
        logits: Tensor = self.classifier(batch)
        return logits

    def predict(self, batch: Batch) -> Prediction:
        """Class probabilities and the random part; there are no scores."""
        subgraph = self.subgraph(batch)
        return Prediction(self.classifier(subgraph.batch).softmax(dim=-1), subgraph)
