"""A control: a random part of every graph, and nothing is chosen."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch_geometric.data import Batch

from cores.config import NetworkConfig, RandomConfig
from cores.data.dataset import Dims
from cores.graphs.masks import (
    drawn_once,
    largest,
    rounded_up,
    scattered,
    smooth_masks,
    smoothed,
)
from cores.graphs.segments import place_within
from cores.graphs.subgraphs import Elements, Subgraph
from cores.models.classifier import Classifier
from cores.models.network import GraphModel, Prediction


class RandomSubgraph(GraphModel):
    """A classifier that learns from random masks of one kept share, and is tested on such masks.

    What a model that chooses is worth shows against it.
    """

    def __init__(self, dims: Dims, config: NetworkConfig, conv: str, own: RandomConfig) -> None:
        super().__init__(dims)
        self.ratio = own.ratio
        self.classifier = Classifier(dims, config, conv)
        self.scaler = self.classifier.scaler

    def subgraph(self, batch: Batch) -> Subgraph:
        """A random part of every graph; in evaluation drawn once for each, whatever the batch."""
        elements = Elements.of(batch, "node")
        batch = elements.batch
        ratio = batch.x.new_full((batch.num_graphs,), self.ratio)
        if self.training:
            return elements.subgraph(smooth_masks(elements, ratio))
        values = smoothed(batch, *drawn_once(batch))  # [N]
        values = elements.fill_protected(values, torch.inf)
        wanted = rounded_up(ratio * elements.count)
        ties = scattered(place_within(batch.batch, batch.num_graphs))
        return elements.subgraph(~largest(values, elements.owner, wanted, ties))

    def logits(self, batch: Batch) -> Float[Tensor, "graphs classes"]:
        """Class logits from the random part."""
        return self.classifier.logits(self.subgraph(batch).batch)

    def full_logits(self, batch: Batch) -> Float[Tensor, "graphs classes"]:
        """Class logits of the classifier on the full graphs."""
        return self.classifier.logits(batch)

    def prediction(self, batch: Batch) -> Prediction:
        """Class probabilities and the random part; there are no scores."""
        subgraph = self.subgraph(batch)
        return Prediction(self.classifier.logits(subgraph.batch).softmax(dim=-1), subgraph)
