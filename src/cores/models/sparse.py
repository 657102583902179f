"""The model: a policy proposes a part of a graph, search refines it, a committee answers."""

from copy import copy
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch_geometric.data import Batch

from cores.config import ExplanationConfig
from cores.data.dataset import Dims
from cores.graphs.batches import marks
from cores.graphs.components import count_pieces
from cores.graphs.segments import pointers
from cores.graphs.shares import of_elements
from cores.graphs.store import GraphStore
from cores.graphs.subgraphs import Elements, Subgraph
from cores.models.classifier import Classifier
from cores.models.committee import Committee
from cores.models.elements import EffectNetwork
from cores.models.network import GraphModel, PartFacts, Prediction
from cores.models.policy import Policy
from cores.parts import Parts, Units, cut_parts, minimal_parts, prefix_parts, proposed_order
from cores.tasks import TASKS


@dataclass(frozen=True)
class Choice:
    """The part of a batch that a policy keeps."""

    elements: Elements
    removed: Bool[Tensor, " elements"]
    """Never all of a graph."""
    keep_probability: Float[Tensor, " elements"]
    subgraph: Subgraph


class SparseClassifier(GraphModel):
    """f_theta(G_s), G_s = pi_phi(G): a policy that proposes a part, and a committee that is asked.

    With ``parts="policy"`` and the class from the part it is the paper's model: nothing of what the
    policy removes reaches the classifier.
    """

    def __init__(self, policy: Policy, classifier: Committee | Classifier) -> None:
        super().__init__(
            Dims(classifier.num_features, classifier.num_classes, task=classifier.task)
        )
        self.num_outputs = classifier.num_outputs
        self.policy = policy
        self.classifier = classifier
        self.scaler = policy.scaler = classifier.scaler
        self.register_module("effects", None)
        self.effects: EffectNetwork | None
        """Tells what each element contributes to a prediction; None where that was not learnt."""
        self.sampling = False
        """Whether predictions are made from samples of the policy in place of its mode."""
        self.shown = ExplanationConfig(parts="policy", class_from="part")
        """Which part is shown."""

    def showing(self, shown: ExplanationConfig) -> "SparseClassifier":
        """Return the model with other parts; weights are shared."""
        other = copy(self)
        other.shown = shown
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
        """Logits that tell the class.

        Deviation D27: from whole graphs, of which a part is searched that says the same alone; in
        the paper from what the policy keeps, its mode.
        """
        if self.shown.class_from == "whole":
            return self.classifier.logits(batch)
        elements = self._elements(batch)
        removed = self.policy.mode(elements, self.policy(elements.batch))
        return self.classifier.logits(elements.subgraph(removed).batch)

    def prediction(self, batch: Batch) -> Prediction:
        """Predict, and find the part that is shown for it."""
        choice = self.choose(batch, self.sampling)
        seen = choice.subgraph.batch if self.shown.class_from == "part" else choice.elements.batch
        told = self.outputs(self.classifier.logits(seen))
        nodes, edges = keep_scores(choice.elements, choice.keep_probability)
        if not isinstance(self.classifier, Committee):  # one classifier is not asked
            return Prediction(told, choice.subgraph, nodes, edges)
        questions = PartQuestions(self, choice, told)
        parts = questions.search(self.shown)
        facts = PartFacts(
            probability=TASKS[self.task].probability(parts.support, told),
            weak=parts.weak,
            minimal=parts.minimal,
            questions=parts.questions,
            std=self.classifier.spread(seen),
        )
        subgraph = choice.elements.subgraph(~questions.of_elements(parts.kept))
        return Prediction(told, subgraph, nodes, edges, facts)

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


class PartQuestions:
    """The graphs of a batch, to be asked about parts of them.

    Args:
        model: Its committee answers.
        choice: What its policy proposes.
        told: The prediction that a part has to support.
    """

    def __init__(
        self, model: SparseClassifier, choice: Choice, told: Float[Tensor, "graphs outputs"]
    ) -> None:
        self.model, self.told, self.elements = model, told, choice.elements
        self.task = TASKS[model.task]
        self.store = GraphStore.from_batch(choice.elements.batch)
        count = choice.elements.count
        self.ptr = pointers(count).cpu()
        # Units lie graph by graph; where nodes and edges go, elements do not.
        self.by_graph = choice.elements.owner.argsort(stable=True)  # [M] element of every unit
        owner = choice.elements.owner[self.by_graph]
        score = choice.keep_probability
        if model.shown.proposer == "effects" and model.effects is not None:
            score = choice.elements.of_spared(model.effects(choice.elements.batch), torch.inf)
        if choice.elements.removal == "both":  # without a node there is no graph
            nodes = score[: choice.elements.batch.x.size(0)]
            score = torch.cat([nodes + 1 + score.max(), score[len(nodes) :]])
        rank = torch.arange(len(owner), device=owner.device)
        order = proposed_order(score[self.by_graph], rank, owner)
        self.start: Tensor | None = None
        if model.shown.class_from == "part" or model.shown.parts == "policy":
            self.start = count - choice.elements.sum(choice.removed.long())
            later = order + count[owner] * choice.removed[self.by_graph]
            order = proposed_order(-later.double(), rank, owner)
        fixed = torch.full_like(count, int(choice.elements.removal != "edge"))
        self.units = Units(self.ptr, order, fixed.minimum(count))
        most = model.policy.max_pieces
        self.pieces = None
        if most:
            nothing = torch.zeros_like(choice.removed)
            self.pieces = count_pieces(choice.elements, nothing).clamp(min=most)

    def __call__(
        self, graphs: Int[Tensor, " questions"], kept: Bool[Tensor, " units"]
    ) -> Float[Tensor, " questions"]:
        """Support of parts, by the committee."""
        elements = self.model._elements(self.store.batch(graphs.cpu()))
        order = elements.owner.argsort(stable=True)
        removed = torch.empty_like(kept).index_copy(0, order, ~kept)
        probs = self.model.outputs(self.model.classifier.logits(elements.subgraph(removed).batch))
        support = self.task.support(probs, self.told[graphs])
        if self.pieces is None:
            return support
        shown = count_pieces(elements, removed) <= self.pieces[graphs]
        return support.where(shown, -torch.inf)

    def search(self, shown: ExplanationConfig) -> Parts:
        """Find the part of every graph that is shown."""
        wanted = self.task.wanted(shown.sufficiency, self.model.classifier.head.known_tolerance)
        least = self.task.least_support
        found = prefix_parts(self.units, self, wanted, self.start, least)
        if shown.parts != "policy":
            found = cut_parts(self.units, self, found)
        if shown.parts == "minimal":
            found = minimal_parts(self.units, self, found)
        return found

    def of_elements(self, values: Bool[Tensor, " units"]) -> Bool[Tensor, " elements"]:
        """The values of units as those of elements."""
        return torch.empty_like(values).index_copy(0, self.by_graph, values)


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
