"""A graph with the part that a model kept, as reports, pictures and records show it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, compress
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cores.config.spec import TaskName
from cores.data.labels import known_values, label_text
from cores.data.molecules import input_indices
from cores.evaluation.effects import ElementEffects, element_effects
from cores.explain.atoms import AtomMap, elements_of, molecule_of
from cores.runs.opened import PredictedGraphs
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
    """Numbers of the nodes in the input."""
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
    """A molecule of rdkit's; None for other graphs."""
    values: dict[str, Any] = field(default_factory=dict)
    """True values by name, where graphs have several labels and they are known."""
    node_effects: list[float] | None = None
    """Contributions to the prediction; None where the model did not learn them."""
    edge_effects: list[float] | None = None
    unknown_label: str | None = None
    """The class that the input names and the model does not know."""
    task: TaskName = "classification"

    @property
    def id(self) -> str:
        """Its name in the input."""
        return str(self.record["id"])

    @property
    def prediction(self) -> str:
        """The predicted class, or number; the values of several labels."""
        return TASKS[self.task].told(self.record["prediction"])

    @property
    def of_label(self) -> list[tuple[str, Any, float, list[Any] | None, Any]]:
        """Name, value, probability, set and true value of each of several labels."""
        return TASKS[self.task].of_label(self.record, self.values)

    @property
    def group(self) -> str:
        """Graphs that it is counted with: those of the same predicted class."""
        return TASKS[self.task].group or self.prediction

    @property
    def correct(self) -> bool | None:
        """True if the prediction, or all known ones of several labels, is the true class.

        None where that is not known, and for a number.
        """
        return TASKS[self.task].right(self.record["prediction"], self.label, self.values)

    @property
    def sure(self) -> bool | None:
        """True if the prediction set, or that of every label, holds one; None without a set."""
        return TASKS[self.task].sure(self.record.get("prediction_set"))

    @property
    def removes_edges(self) -> bool:
        """True where edges were removed between nodes that are kept."""
        return any(
            self.kept_nodes[a] and self.kept_nodes[b] and not kept
            for (a, b), kept in zip(self.edges, self.kept_edges, strict=True)
        )

    @cached_property
    def marked(self) -> list[bool]:
        """Nodes to show as kept: where only edges are removed, those that a kept edge reaches."""
        return marked_nodes(self.kept_nodes, self.edges, self.kept_edges)

    @property
    def node_records(self) -> list[Record]:
        """Every node as records and pages have it."""
        nodes = [
            {"node": number, "is": name}
            for number, name in zip(self.numbers, self.nodes, strict=True)
        ]
        return _scored(nodes, self.node_scores, self.node_effects, self.kept_nodes)

    @property
    def edge_records(self) -> list[Record]:
        """Every edge as records and pages have it."""
        edges = [{"ends": sorted((self.numbers[a], self.numbers[b]))} for a, b in self.edges]
        return _scored(edges, self.edge_scores, self.edge_effects, self.kept_edges)

    @property
    def full_record(self) -> Record:
        """The record with the true class, and every node and edge with its probability."""
        return self.record | {
            "position": self.position,
            "label": self.label,
            "nodes": self.node_records,
            "edges": self.edge_records,
        }


def _scored(
    items: list[Record],
    scores: list[float] | None,
    effects: list[float] | None,
    kept: list[bool],
) -> list[Record]:
    missing = [None] * len(items)
    columns = zip(items, scores or missing, effects or missing, kept, strict=True)
    return [
        item | {"keep_probability": score, "effect": effect, "kept": is_kept}
        for item, score, effect, is_kept in columns
    ]


def explained_graphs(
    found: PredictedGraphs, trained: TrainedModel, atoms: AtomMap | None = None
) -> Iterator[ExplainedGraph]:
    """Yield the graphs that the model has a prediction for.

    With ``atoms`` they are molecules of a benchmark dataset.
    """
    predictions, store, schema = found.predictions, found.graphs, trained.schema
    if predictions is None:
        return
    device = next(trained.model.parameters()).device
    effects = element_effects(trained.model, store.placed(device))
    effects = ElementEffects(None, None) if effects is None else effects.cpu()
    rejected = {row.position for row in found.rejected}
    for at, (record, position) in enumerate(zip(found.records, found.positions, strict=True)):
        if position in rejected:
            continue
        nodes = slice(int(store.node_ptr[at]), int(store.node_ptr[at + 1]))
        edges = slice(int(store.edge_ptr[at]), int(store.edge_ptr[at + 1]))
        ends, first = undirected(store.edge_index[:, edges])
        molecule = found.molecules[at] if found.molecules else None
        names = node_names(store.x[nodes], schema.feature_names)
        numbers = list(range(len(names)))
        if molecule is None and atoms is not None:
            names = elements_of(atoms, store.x[nodes], schema.feature_names)
            bonds = None if store.edge_attr is None else store.edge_attr[edges][first]
            molecule = molecule_of(atoms, names, ends, bonds, schema.edge_feature_names)
        elif molecule is not None:
            names = [atom.GetSymbol() for atom in molecule.GetAtoms()]
            numbers = input_indices(molecule) or numbers
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
            numbers=numbers,
            edges=ends,
            kept_nodes=(~predictions.removed_nodes[nodes]).tolist(),
            kept_edges=(~predictions.removed_edges[edges][first]).tolist(),
            node_scores=_rounded(predictions.node_scores, nodes),
            edge_scores=_rounded(predictions.edge_scores, edges, first),
            node_effects=_rounded(effects.nodes, nodes),
            edge_effects=_rounded(effects.edges, edges, first),
            truth=None if store.node_truth is None else store.node_truth[nodes].tolist(),
            molecule=molecule,
            values=known_values(found.labels[at], schema.task, schema.class_names, schema.labels),
            task=schema.task,
        )


def marked_nodes(
    kept_nodes: list[bool], edges: Sequence[tuple[int, int]], kept_edges: Sequence[bool]
) -> list[bool]:
    """Mark the nodes to show as kept: of a model of edges, those that a kept edge reaches.

    >>> marked_nodes([True] * 3, [(0, 1), (1, 2)], [True, False])
    [True, True, False]
    """
    if not all(kept_nodes) or all(kept_edges) or not any(kept_edges):
        return kept_nodes
    reached = set(chain.from_iterable(compress(edges, kept_edges)))
    return [node in reached for node in range(len(kept_nodes))]


def undirected(edge_index: Tensor) -> tuple[list[tuple[int, int]], Tensor]:
    """List every undirected edge once, without loops, and the index of its first direction.

    >>> undirected(torch.tensor([[2, 1, 0, 1], [1, 2, 0, 0]]))
    ([(0, 1), (1, 2)], tensor([3, 0]))
    """
    between = (edge_index[0] != edge_index[1]).nonzero().flatten()
    ends = np.sort(edge_index[:, between].numpy(), axis=0)
    _, first = np.unique(ends[0] * (ends.max(initial=0) + 1) + ends[1], return_index=True)
    low, high = ends[:, first].tolist()
    return list(zip(low, high, strict=True)), between[torch.from_numpy(first)]


def _rounded(
    scores: Tensor | None, items: slice, chosen: Tensor | slice = slice(None)
) -> list[float] | None:
    if scores is None:
        return None
    rounded: list[float] = np.round(scores[items][chosen].double().numpy(), 4).tolist()
    return rounded


def node_names(x: Tensor, columns: Sequence[str]) -> list[str]:
    """Name every node by the values of its one-hot columns, else by its first numbers.

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
