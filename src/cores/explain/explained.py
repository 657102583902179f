"""One graph with what the model kept of it, as a report, a picture or a record shows it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, compress
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cores.config.spec import TaskName
from cores.data.inputs.labelled import known_values, label_text
from cores.data.molecules import input_indices
from cores.evaluation.effects import element_effects
from cores.explain.atoms import AtomMap, elements_of, molecule_of
from cores.runs.predictor import PredictedGraphs
from cores.runs.records import Record
from cores.runs.trained import TrainedModel
from cores.tasks import TASKS

MOST_NUMBERS = 3
"""Numbers of a node that are told."""


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
    task: TaskName = "classification"

    @property
    def id(self) -> str:
        """What the input calls it."""
        return str(self.record["id"])

    @property
    def prediction(self) -> str:
        """The predicted class, or number; the values of several labels."""
        return TASKS[self.task].told(self.record["prediction"])

    @property
    def of_label(self) -> list[tuple[str, Any, float, list[Any] | None, Any]]:
        """Of each of several labels: name, value, its probability, set, and the true value."""
        return TASKS[self.task].of_label(self.record, self.values)

    @property
    def group(self) -> str:
        """With which graphs it is counted: those of the same predicted class."""
        return TASKS[self.task].group or self.prediction

    @property
    def correct(self) -> bool | None:
        """Whether the prediction is the true class; None where that is not known, or a number.

        Of several labels, whether all that are known are right.
        """
        return TASKS[self.task].right(self.record["prediction"], self.label, self.values)

    @property
    def sure(self) -> bool | None:
        """Whether the prediction set, or that of every label, holds one; None without a set."""
        return TASKS[self.task].sure(self.record.get("prediction_set"))

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
        known = not TASKS[schema.task].has_classes or label in schema.class_names
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
            values=known_values(found.labels[at], schema.task, schema.class_names, schema.labels),
            task=schema.task,
        )


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
