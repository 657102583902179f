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
from cores.graphs.segments import gathered, pointers
from cores.graphs.shares import of_elements
from cores.graphs.store import GraphStore
from cores.graphs.subgraphs import Elements, Subgraph
from cores.graphs.units import unit_mean, unit_of_elements
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

    def __init__(
        self, policy: Policy, classifier: Committee | Classifier, molecules: bool = False
    ) -> None:
        super().__init__(
            Dims(classifier.num_features, classifier.num_classes, task=classifier.task)
        )
        self.num_outputs = classifier.num_outputs
        self.policy = policy
        self.classifier = classifier
        self.molecules = molecules
        """Whether the last edge feature says which bonds are in rings."""
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
        if (unit := self.units(elements)) is not None:
            logits = unit_mean(logits, unit)[unit]
        probability = self.policy.probabilities(logits)  # [M]
        if sample:
            drawn = elements.removable(probability > torch.rand_like(probability))
            removed, _ = elements.restored(drawn)
            removed = self.policy.connected(elements, removed, 1 - probability)
        else:
            removed = self.policy.mode(elements, logits)
        keep = elements.fill_protected(1 - probability, 1.0)
        return Choice(elements, removed, keep, elements.subgraph(removed))

    def units(self, elements: Elements) -> Int[Tensor, " elements"] | None:
        """Number the unit of every element; None where each is its own."""
        rings = self.molecules and self.shown.units in ("auto", "rings")
        if not rings or not isinstance(self.classifier, Committee):
            return None
        return unit_of_elements(elements, elements.batch.edge_attr[:, -1] > 0)

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
        nodes, edges = keep_scores(choice.elements, choice.keep_probability)
        if not isinstance(self.classifier, Committee):  # one classifier is not asked
            told = self.outputs(self.classifier.logits(seen))
            return Prediction(told, choice.subgraph, nodes, edges)
        members = self.classifier.member_logits(seen)
        told = self.outputs(self.classifier.combined(members))
        questions = PartQuestions(self, choice, told)
        parts = questions.search()
        subgraph = choice.elements.subgraph(~questions.of_elements(parts.kept))
        probability = TASKS[self.task].probability(parts.support)
        if probability is None:  # support tells how far a number is off, not to which side
            probability = self.outputs(self.classifier.logits(subgraph.batch))[:, 0]
        facts = PartFacts(
            probability=probability,
            weak=parts.weak,
            minimal=parts.minimal,
            questions=parts.questions,
            std=self.classifier.spread(members),
        )
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
        self.model, self.told = model, told
        self.task, self.tolerance = TASKS[model.task], model.classifier.head.known_tolerance
        self.removal, self.most_pieces = model.policy.removal, model.policy.max_pieces
        elements = choice.elements
        self.store = GraphStore.from_batch(elements.batch)
        unit = model.units(elements)
        self.unit = unit_of_elements(elements) if unit is None else unit  # [M] of every element
        owner = elements.owner.new_zeros(int(self.unit.max()) + 1 if len(self.unit) else 0)
        owner = owner.index_copy(0, self.unit, elements.owner)  # [U]
        count = torch.bincount(owner, minlength=elements.batch.num_graphs)  # [B]
        ptr, self.element_ptr = pointers(count), pointers(elements.count).cpu()
        # [M] place of every element's unit within its graph, graph by graph: where nodes and edges
        # go, the elements of a graph do not lie together.
        place = self.unit - ptr[elements.owner]
        self.place = place[elements.owner.argsort(stable=True)]
        # Where the search begins: the other units are the first to go.
        outside = choice.removed  # [M]
        if model.shown.class_from == "whole" and model.shown.parts != "policy":
            nothing = torch.zeros_like(outside)
            outside = model.policy.connected(elements, nothing, choice.keep_probability)
        gone = unit_mean(outside.float(), self.unit) > 0.5  # [U]
        self.start = count - torch.bincount(owner[gone], minlength=len(count))  # [B]
        later = self._order(choice, owner, count) + count[owner] * gone
        rank = torch.arange(len(owner), device=owner.device)
        order = proposed_order(-later.double(), rank, owner)
        roots = elements.fill_protected(torch.zeros_like(choice.keep_probability), 1.0)
        fixed = torch.bincount(owner[unit_mean(roots, self.unit) > 0], minlength=len(count))
        self.units = Units(ptr.cpu(), order, fixed, fewest=int(self.removal != "edge"))

    def _order(
        self, choice: Choice, owner: Int[Tensor, " units"], count: Int[Tensor, " graphs"]
    ) -> Int[Tensor, " units"]:
        """Place of every unit by the proposer's scores, the last to go first."""
        elements, score = choice.elements, choice.keep_probability
        if self.model.shown.proposer == "effects" and self.model.effects is not None:
            score = self.model.effects(elements.batch)
        score = elements.fill_protected(score, torch.inf)
        place = torch.arange(len(owner), device=owner.device)
        order = proposed_order(unit_mean(score, self.unit), place, owner)
        if elements.removal != "both":
            return order
        # An edge goes before its ends, so that the units that are left are always a subgraph.
        score = unit_mean(score, self.unit)[self.unit]
        nodes, pairs = elements.per_node(score, 0.0), elements.per_pair(score)
        ends = nodes[elements.batch.pair_index].amin(dim=0)
        score = unit_mean(torch.cat([nodes, pairs.minimum(ends)]), self.unit)
        is_edge = torch.zeros_like(owner)
        is_edge[self.unit[len(nodes) :]] = 1
        return proposed_order(score, order + count[owner] * is_edge, owner)

    def __call__(
        self, graphs: Int[Tensor, " questions"], kept: Bool[Tensor, " units"]
    ) -> Float[Tensor, " questions"]:
        """Support of parts, by the committee."""
        elements = Elements.of(self.store.batch(graphs.cpu()), self.removal)
        rows, question, _ = gathered(self.element_ptr, graphs.cpu(), graphs.device)
        first = pointers(self.units.count[graphs])[:-1]
        removed = ~kept[self.place[rows] + first[question]]  # [M] graph by graph
        if self.removal == "both":
            order = elements.owner.argsort(stable=True)
            removed = torch.empty_like(removed).index_copy(0, order, removed)
        probs = self.model.outputs(self.model.classifier.logits(elements.subgraph(removed).batch))
        support = self.task.support(probs, self.told[graphs], self.tolerance)
        if self.removal == "both":  # edges without a node are no part
            support = support.masked_fill(elements.kept_ratio(removed) == 0, -torch.inf)
        if self.most_pieces:
            many = count_pieces(elements, removed) > self.most_pieces
            support = support.masked_fill(many, -torch.inf)
        return support

    def search(self) -> Parts:
        """Find the part of every graph that is shown."""
        shown, task = self.model.shown, self.task
        wanted = task.wanted(shown.sufficiency, self.tolerance)
        found = prefix_parts(self.units, self, wanted, self.start, task.least_support)
        if shown.parts != "policy":
            found = cut_parts(self.units, self, found)
        if shown.parts == "minimal":
            found = minimal_parts(self.units, self, found)
        return found

    def of_elements(self, values: Bool[Tensor, " units"]) -> Bool[Tensor, " elements"]:
        """The values of units as those of elements."""
        return values[self.unit]


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
