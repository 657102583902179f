"""A classifier that sees only the subgraph its policy chose."""

from copy import copy
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch_geometric.data import Batch

from cores.data.dataset import Dims
from cores.graphs.batches import marks
from cores.graphs.shares import of_elements
from cores.graphs.subgraphs import Elements, Subgraph
from cores.models.classifier import Classifier
from cores.models.elements import EffectNetwork
from cores.models.network import GraphModel, Prediction
from cores.models.policy import Policy


@dataclass(frozen=True)
class Choice:
    """The part of a batch that a policy keeps."""

    elements: Elements
    removed: Bool[Tensor, " elements"]
    """Never all of a graph."""
    keep_probability: Float[Tensor, " elements"]
    subgraph: Subgraph


class SparseClassifier(GraphModel):
    """f_theta(G_s), G_s = pi_phi(G): nothing of what was removed reaches the classifier."""

    def __init__(self, policy: Policy, classifier: Classifier) -> None:
        features, classes = classifier.encoder.input.in_features, classifier.num_classes
        dims = Dims(features, classes, task=classifier.task)
        super().__init__(dims)
        self.num_outputs = classifier.num_outputs
        self.policy = policy
        self.classifier = classifier
        self.scaler = policy.scaler = classifier.scaler
        self.register_module("effects", None)
        self.effects: EffectNetwork | None
        """Tells what each element contributes to a prediction; None where that was not learnt."""
        self.sampling = False
        """Whether predictions are made from samples of the policy in place of its mode."""

    def at(self, lam: float) -> "SparseClassifier":
        """Return the model with its dial at another lambda; weights are shared."""
        if self.policy.lam is None:
            raise ValueError("the policy does not see lambda")
        other, policy = copy(self), copy(self.policy)
        # A copy of a module shares its dictionaries of buffers and of modules.
        policy._buffers = policy._buffers | {"lam": torch.full_like(self.policy.lam, lam)}
        other._modules = other._modules | {"policy": policy}
        return other

    def choose(self, batch: Batch, sample: bool = False) -> Choice:
        """The policy's mode, which leaves something of every graph.

        Or a sample, in which a graph that lost everything is restored.
        """
        elements = self._elements(batch)
        logits = of_elements(self.policy, elements)  # [M]
        probability = self.policy.probabilities(logits)  # [M]
        if sample:
            drawn = elements.removable(probability > torch.rand_like(probability))
            removed, _ = elements.restored(drawn)
            removed = self.policy.connected(elements, removed, 1 - probability)
        else:
            removed = self.policy.mode(elements, logits)
        keep = elements.of_spared(1 - probability, 1.0)
        return Choice(elements, removed, keep, elements.subgraph(removed))

    def _elements(self, batch: Batch) -> Elements:
        if self.classifier.rooted and not marks(batch):  # whoever gave tensors did not say so
            batch = copy(batch).update({"rooted": True})
        return Elements.of(batch, self.policy.removal)

    def logits(self, batch: Batch) -> Float[Tensor, "graphs classes"]:
        """Class logits from the mode's subgraphs."""
        elements = self._elements(batch)
        removed = self.policy.mode(elements, self.policy(elements.batch))
        return self.classifier.logits(elements.subgraph(removed).batch)

    def prediction(self, batch: Batch) -> Prediction:
        """Class probabilities from the chosen subgraphs, and the probabilities of keeping."""
        choice = self.choose(batch, self.sampling)
        probs = self.outputs(self.classifier.logits(choice.subgraph.batch))
        nodes, edges = keep_scores(choice.elements, choice.keep_probability)
        return Prediction(probs, choice.subgraph, nodes, edges)

    def outputs(self, logits: Float[Tensor, "graphs classes"]) -> Float[Tensor, "graphs classes"]:
        """Apply the classifier's output layer."""
        return self.classifier.outputs(logits)

    @property
    def scores_edges(self) -> bool:
        """Return whether the policy decides on edges alone."""
        return self.policy.removal == "edge"

    def full_logits(self, batch: Batch) -> Float[Tensor, "graphs classes"]:
        """Class logits of the classifier on the full graphs."""
        return self.classifier.logits(batch)


def keep_scores(
    elements: Elements, keep: Float[Tensor, " elements"]
) -> tuple[Float[Tensor, " nodes"], Float[Tensor, " edges"]]:
    """Probability that each node and edge of the batch is kept.

    Where only nodes are removed, an edge is kept with both of its ends; where only edges are, a
    node scores as much as the best of its edges.
    """
    batch = elements.batch
    nodes = elements.per_node(keep, 1.0)  # [N]
    edges = elements.per_edge(keep, 1.0)  # [E]
    if elements.removal == "edge":
        ends = batch.pair_index.flatten()
        pairs = elements.per_pair(keep)  # [P]
        best = torch.zeros_like(nodes).scatter_reduce(0, ends, pairs.repeat(2), "amax")
        return best, edges
    source, target = batch.edge_index
    return nodes, edges * nodes[source] * nodes[target]
