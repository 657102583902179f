"""One graph with what the model kept of it, as a report, a picture or a record shows it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, compress
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cores.data.labels import given_values, label_numbers, label_text
from cores.data.molecules import input_indices
from cores.evaluation.effects import element_effects
from cores.explain.atoms import AtomMap, elements_of, molecule_of
from cores.runs.predictor import PredictedGraphs
from cores.runs.records import Record
from cores.runs.trained import DataSchema, TrainedModel

MOST_NUMBERS = 3
"""Numbers of a node that are told."""


NUMBERS, SEVERAL = "a number", "several labels"
"""The one group of graphs for which numbers, or several labels, are predicted."""


@dataclass(frozen=True)
class ExplainedGraph:
    """A graph, what the model kept of it, and what it predicts from that."""

    position: int
    """In the input, or among the run's test graphs, from 0."""
    record: Record
    """As `cores predict` gives it."""
    label: str | None
    """The true class, or number; None where it is not known, or the class not to the model."""
    nodes: list[str]
    """Every node in a word: an atom's element, or its features."""
    numbers: list[int]
    """How the input counts the nodes."""
    edges: list[tuple[int, int]]
    """Each once, the smaller end first."""
    kept_nodes: list[bool]
    kept_edges: list[bool]
    node_scores: list[float] | None
    """Probabilities of keeping; None for a model that does not choose."""
    edge_scores: list[float] | None
    truth: list[bool] | None
    """Nodes that truly decide the class; None where that is not known."""
    molecule: Any
    """Of rdkit; None for other graphs."""
    values: dict[str, Any] = field(default_factory=dict)
    """Where graphs have several labels, the true values of those that are known."""
    node_effects: list[float] | None = None
    """What each contributes to the prediction; None where the model did not learn it."""
    edge_effects: list[float] | None = None
    unknown_label: str | None = None
    """The class that the input names and the model does not know."""

    @property
    def id(self) -> str:
        """What the input calls it."""
        return str(self.record["id"])

    @property
    def prediction(self) -> str:
        """The predicted class, or number; the values of several labels."""
        found = self.record["prediction"]
        if self.is_several:
            return ", ".join(f"{name}: {value}" for name, value in found.items())
        return f"{found:.4g}" if self.is_number else str(found)

    @property
    def is_number(self) -> bool:
        """Whether a number is predicted."""
        return "lower" in self.record

    @property
    def is_several(self) -> bool:
        """Whether several labels are predicted."""
        return isinstance(self.record["prediction"], dict)

    @property
    def of_label(self) -> list[tuple[str, Any, float, list[Any] | None, Any]]:
        """Of each of several labels: name, value, its probability, set, and the true value."""
        record, sets = self.record, self.record["prediction_set"]
        found = []
        for (name, value), second in zip(
            record["prediction"].items(), record["probabilities"].values(), strict=True
        ):
            probability = max(second, 1 - second)
            held = None if sets is None else sets[name]
            found.append((name, value, probability, held, self.values.get(name)))
        return found

    @property
    def group(self) -> str:
        """With which graphs it is counted: those of the same predicted class."""
        if self.is_several:
            return SEVERAL
        return NUMBERS if self.is_number else self.prediction

    @property
    def correct(self) -> bool | None:
        """Whether the prediction is the true class; None where that is not known, or a number.

        Of several labels, whether all that are known are right.
        """
        if self.is_several:
            predicted = self.record["prediction"]
            right = [str(predicted[name]) == str(value) for name, value in self.values.items()]
            return all(right) if right else None
        return None if self.label is None or self.is_number else self.label == self.prediction

    @property
    def sure(self) -> bool | None:
        """Whether the prediction set, or that of every label, holds one; None without a set."""
        labels = self.record.get("prediction_set")
        if isinstance(labels, dict):
            return all(len(held) == 1 for held in labels.values())
        return None if labels is None else len(labels) == 1

    @property
    def removes_edges(self) -> bool:
        """Whether edges were removed between nodes that are kept."""
        return any(
            self.kept_nodes[a] and self.kept_nodes[b] and not kept
            for (a, b), kept in zip(self.edges, self.kept_edges, strict=True)
        )

    @cached_property
    def marked(self) -> list[bool]:
        """Nodes to show as kept: where only edges are removed, those that a kept edge reaches."""
        if not all(self.kept_nodes) or not any(self.kept_edges) or not self.removes_edges:
            return self.kept_nodes
        reached = set(chain.from_iterable(compress(self.edges, self.kept_edges)))
        return [node in reached for node in range(len(self.nodes))]

    @property
    def full_record(self) -> Record:
        """The record with the true class, and every node and edge with its probability."""
        nobody, nowhere = [None] * len(self.nodes), [None] * len(self.edges)
        scores: Sequence[float | None] = self.node_scores or nobody
        effects: Sequence[float | None] = self.node_effects or nobody
        edge_scores: Sequence[float | None] = self.edge_scores or nowhere
        edge_effects: Sequence[float | None] = self.edge_effects or nowhere
        nodes = zip(self.numbers, self.nodes, scores, effects, self.kept_nodes, strict=True)
        edges = zip(self.edges, edge_scores, edge_effects, self.kept_edges, strict=True)
        return self.record | {
            "position": self.position,
            "label": self.label,
            "nodes": [
                {
                    "node": number,
                    "is": name,
                    "keep_probability": score,
                    "effect": effect,
                    "kept": kept,
                }
                for number, name, score, effect, kept in nodes
            ],
            "edges": [
                {
                    "ends": sorted((self.numbers[a], self.numbers[b])),
                    "keep_probability": score,
                    "effect": effect,
                    "kept": kept,
                }
                for (a, b), score, effect, kept in edges
            ],
        }


def explained_graphs(
    found: PredictedGraphs, trained: TrainedModel, atoms: AtomMap | None = None
) -> Iterator[ExplainedGraph]:
    """The graphs that the model has a prediction for, one by one.

    With ``atoms`` they are molecules of a benchmark dataset.
    """
    predictions, store, schema = found.predictions, found.graphs, trained.schema
    if predictions is None:
        return
    device = next(trained.model.parameters()).device
    effects = element_effects(trained.model, store.placed(device))
    effects = None if effects is None else effects.cpu()
    rejected = {row.position for row in found.rejected}
    for at, (record, position) in enumerate(zip(found.records, found.positions, strict=True)):
        if position in rejected:
            continue
        nodes = slice(int(store.node_ptr[at]), int(store.node_ptr[at + 1]))
        edges = slice(int(store.edge_ptr[at]), int(store.edge_ptr[at + 1]))
        ends, first = undirected(store.edge_index[:, edges])
        molecule = found.molecules[at] if found.molecules else None
        names = node_names(store.x[nodes], schema.feature_names)
        numbers = None
        if molecule is None and atoms is not None:
            names = elements_of(atoms, store.x[nodes], schema.feature_names)
            bonds = None if store.edge_attr is None else store.edge_attr[edges][first]
            molecule = molecule_of(atoms, names, ends, bonds, schema.edge_feature_names)
        elif molecule is not None:
            names = [atom.GetSymbol() for atom in molecule.GetAtoms()]
            numbers = input_indices(molecule)
        if store.node_id is not None:
            numbers = store.node_id[nodes].tolist()
        label = label_text(found.labels[at], schema.class_names, schema.task)
        known = schema.task != "classification" or label in schema.class_names
        yield ExplainedGraph(
            position=position,
            record=record,
            label=label if known else None,
            unknown_label=None if known else label,
            nodes=names,
            numbers=list(range(len(names))) if numbers is None else numbers,
            edges=ends,
            kept_nodes=(~predictions.removed_nodes[nodes]).tolist(),
            kept_edges=(~predictions.removed_edges[edges][first]).tolist(),
            node_scores=_rounded(predictions.node_scores, nodes),
            edge_scores=_rounded(predictions.edge_scores, edges, first),
            node_effects=_rounded(None if effects is None else effects.nodes, nodes),
            edge_effects=_rounded(None if effects is None else effects.edges, edges, first),
            truth=None if store.node_truth is None else store.node_truth[nodes].tolist(),
            molecule=molecule,
            values=known_values(found.labels[at], schema) if schema.task == "multilabel" else {},
        )


def known_values(label: Any, schema: DataSchema) -> dict[str, Any]:
    """The values of several labels that are known of a graph, as the model's own."""
    numbers = label_numbers([label], schema.class_names, schema.labels, "the input")
    (values,) = given_values(numbers, schema.class_names, schema.labels)
    return {name: value for name, value in values.items() if value is not None}


def undirected(edge_index: Tensor) -> tuple[list[tuple[int, int]], Tensor]:
    """Every undirected edge once, without loops, and the place of its first direction.

    >>> undirected(torch.tensor([[2, 1, 0, 1], [1, 2, 0, 0]]))
    ([(0, 1), (1, 2)], tensor([3, 0]))
    """
    between = (edge_index[0] != edge_index[1]).nonzero().flatten()
    ends = np.sort(edge_index[:, between].numpy(), axis=0)
    _, first = np.unique(ends[0] * (ends.max(initial=0) + 1) + ends[1], return_index=True)
    low, high = ends[:, first].tolist()
    return list(zip(low, high, strict=True)), between[torch.from_numpy(first)]


def _rounded(
    scores: Tensor | None, items: slice, chosen: Tensor | None = None
) -> list[float] | None:
    if scores is None:
        return None
    found = scores[items] if chosen is None else scores[items][chosen]
    rounded: list[float] = np.round(found.double().numpy(), 4).tolist()
    return rounded


def node_names(x: Tensor, columns: Sequence[str]) -> list[str]:
    """Every node in a word: the values of its one-hot columns, else its first numbers.

    >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> node_names(x, ["node label 0 = C", "node label 0 = N"]), node_names(x, ["a 0", "a 1"])
    (['C', 'N'], ['1, 0', '0, 1'])
    """
    one_hot = [(at, name.partition(" = ")[2]) for at, name in enumerate(columns) if " = " in name]
    if one_hot:
        kinds, kind = x[:, [at for at, _ in one_hot]].bool().unique(dim=0, return_inverse=True)
        words = [
            ", ".join(compress((value for _, value in one_hot), row)) for row in kinds.tolist()
        ]
        return [words[at] for at in kind.tolist()]
    if len(columns) == 1 and bool((x == x[:1]).all()):
        return [""] * len(x)
    more = ", …" if x.size(1) > MOST_NUMBERS else ""
    return [", ".join(f"{value:.3g}" for value in row[:MOST_NUMBERS]) + more for row in x.tolist()]
