"""Parts in words, and the parts of shown graphs at several sufficiencies."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cores.config import ExplanationConfig
from cores.explain.drawing import GraphSvg
from cores.explain.explained import ExplainedGraph, undirected
from cores.explain.survey import Survey
from cores.files.escape import html_json
from cores.graphs.store import GraphStore
from cores.runs.opened import Run
from cores.runs.trained import TrainedModel
from cores.tasks import TASKS, Task

SUFFICIENCIES = 0.5, 0.6, 0.7, 0.8, 0.9, 0.95
"""Values of the slider, with the run's own."""
MOST_BYTES = 2_500_000
"""Size of the parts at all values of a page; a thousand molecules need two thirds of it."""
CHUNK = 50
"""Graphs that the model is asked about at once."""


@dataclass(frozen=True)
class PartWords:
    """Words for the parts that a model shows."""

    shown: ExplanationConfig
    task: Task
    graph: str
    """Name of a graph: a molecule has atoms and bonds."""
    nodes: str
    edges: str
    unit: str
    """Name of what goes or stays as a whole."""
    most_pieces: int = 0
    """Most connected pieces of a part; 0: any number."""

    @classmethod
    def of(cls, trained: TrainedModel, *, molecules: bool) -> "PartWords":
        """Words for the parts of a model, whose graphs may be molecules."""
        graph, node, edge = ("molecule", "atom", "bond") if molecules else ("graph", "node", "edge")
        removes = trained.config.spec.removes
        unit = {"node": node, "edge": edge}.get(str(removes), f"{node} or {edge}")
        shown, task = trained.config.explanation, TASKS[trained.task]
        most_pieces = trained.config.reward.max_pieces
        return cls(shown, task, graph, f"{node}s", f"{edge}s", unit, most_pieces)

    def at(self, sufficiency: float) -> "PartWords":
        """Words for parts at another sufficiency."""
        return replace(self, shown=replace(self.shown, sufficiency=sufficiency))

    @property
    def units(self) -> str:
        """Plural of the unit."""
        return f"{self.unit.replace(' or ', 's or ')}s"

    @property
    def seen(self) -> str:
        """What the prediction is made from."""
        return f"whole {self.graph}" if self.shown.class_from == "whole" else "policy's part"

    @property
    def start(self) -> str:
        """What the search begins with."""
        if self.shown.parts == "policy" or self.shown.class_from == "part":
            return "policy's part"
        return f"connected part of the {self.graph}" if self.most_pieces else self.seen

    @property
    def wanted(self) -> str:
        """What a sufficient part gives the prediction."""
        if not self.task.has_sets:
            return "a number within the tolerance"
        what = "the predicted class" if self.task.has_classes else "every predicted label"
        return f"{what} a probability of at least {self.shown.sufficiency:g}"

    def kept(self, record: Mapping[str, Any]) -> str:
        """Kept shares."""
        nodes, edges = (f"{100 * record[f'{of}_ratio']:.0f} %" for of in ("node", "edge"))
        return f"{nodes} of {self.nodes}, {edges} of {self.edges}"

    def facts(self, record: Mapping[str, Any]) -> dict[str, str]:
        """What is known of the part of a record, by name; nothing of a model that nobody asks."""
        if record.get("part_probability") is None:
            return {}
        return {
            "part alone": self._alone(record["part_probability"]),
            "check": self._check(record),
            "questions": f"{record['questions']} parts were tried",
        }

    def _alone(self, found: float) -> str:
        if not self.task.has_sets:
            return f"{found:.4g}"
        return f"probability {found:.2f}" if self.task.has_classes else f"{found:.2f} or more each"

    def _check(self, record: Mapping[str, Any]) -> str:
        if not self.task.has_sets:
            off = "further off than" if record["weak"] else "within"
            found = f"{'weak' if record['weak'] else 'sufficient'}: {off} the tolerance"
        elif record["weak"]:
            also = "" if self.shown.parts == "policy" else ", too"
            found = (
                f"weak: on the {self.start}{also}, the model is less sure than "
                f"{self.shown.sufficiency:g}"
            )
        else:
            found = f"sufficient at {self.shown.sufficiency:g}"
        if record["minimal"]:
            return f"{found}; no single {self.unit} can go"
        return f"{found}; a smaller part may be enough"


@dataclass(frozen=True)
class PartsView:
    """The parts of the graphs of a page at several sufficiencies."""

    values: tuple[float, ...]
    own: int
    """Place of the value at which the page is opened."""
    figures: list[tuple[float, float]]
    """Mean kept share and share of weak graphs at every value."""
    graphs: list[list[dict[str, Any]] | None]
    """Parts of each graph that is shown; None where the page has no room for them."""

    @classmethod
    def of(cls, predictor: Run, survey: Survey, words: PartWords) -> "PartsView | None":
        """Ask about the graphs that are shown; None where the model has no sufficiency."""
        trained = predictor.trained
        if not (trained.has_committee and TASKS[trained.task].has_sets):
            return None
        own = trained.config.explanation.sufficiency
        values = tuple(sorted({*SUFFICIENCIES, own}))
        graphs: list[list[dict[str, Any]] | None] = []
        sums, left = np.zeros((len(values), 2)), MOST_BYTES
        for begin in range(0, len(survey.shown), CHUNK):
            chunk = survey.shown[begin : begin + CHUNK]
            store = GraphStore.from_graphs([survey.data[graph.position] for graph in chunk])
            found = [_explained(predictor, value, chunk, store) for value in values]
            more = [list(parts) for parts in zip(*found, strict=True)]
            told = [
                [_part(part, words.at(value)) for part, value in zip(parts, values, strict=True)]
                for parts in more
            ]
            left -= len(html_json(told))
            if left < 0:
                break
            graphs += told
            ratio = "edge_ratio" if survey.removes_edges else "node_ratio"
            sums += np.array(
                [[(part.record[ratio], part.record["weak"]) for part in parts] for parts in more]
            ).sum(axis=0)
        figures = [(float(kept), float(weak)) for kept, weak in sums / max(1, len(graphs))]
        missing: list[None] = [None] * (len(survey.shown) - len(graphs))
        return cls(values, values.index(own), figures, [*graphs, *missing])

    @property
    def follows(self) -> int:
        """Graphs that follow the slider."""
        return sum(parts is not None for parts in self.graphs)


def add_parts(
    details: Sequence[dict[str, Any]],
    drawn: Sequence[tuple[ExplainedGraph, GraphSvg]],
    view: PartsView,
    *,
    removes_edges: bool,
) -> None:
    """Add to the details of graphs their parts, and what it takes to draw them.

    Where edges are removed, the details list them all; else an edge is kept with its ends.
    """
    for each, (graph, drawing), parts in zip(details, drawn, view.graphs, strict=True):
        if parts is None:
            continue
        edges = graph.edges
        if removes_edges:
            each["edges"] = graph.edge_records
        else:
            edges = [(a, b) for a, b in edges if drawing.points[a] and drawing.points[b]]
            parts = [{**part, "edges": None} for part in parts]
        each |= {"parts": parts, "ends": [end for edge in edges for end in edge]}


def _explained(
    predictor: Run, sufficiency: float, shown: Sequence[ExplainedGraph], store: GraphStore
) -> list[ExplainedGraph]:
    """Find the parts of graphs again, at another sufficiency."""
    other = replace(predictor, trained=predictor.trained.showing(sufficiency=sufficiency))
    positions = [graph.position for graph in shown]
    found = other.predicted_graphs(
        store,
        [graph.id for graph in shown],
        positions,
        [position + 1 for position in positions],
        [graph.label for graph in shown],
        [graph.molecule for graph in shown] if other.reads_molecules else [],
        parts=False,
    )
    assert found.predictions is not None
    nodes = (~found.predictions.removed_nodes).split(store.num_nodes.tolist())
    edges = (~found.predictions.removed_edges).split(store.edge_ptr.diff().tolist())
    return [
        replace(
            graph,
            record=record,
            kept_nodes=nodes[at].tolist(),
            kept_edges=edges[at][undirected(store.graph(at).edge_index)[1]].tolist(),
        )
        for at, (graph, record) in enumerate(zip(shown, found.records, strict=True))
    ]


def _part(graph: ExplainedGraph, words: PartWords) -> dict[str, Any]:
    """Bits of the nodes and edges of a part, and its words."""
    return {
        "nodes": bit_string(graph.marked),
        "edges": bit_string(graph.kept_edges),
        "told": {
            "kept": words.kept(graph.record),
            **({"SMILES": smiles} if (smiles := graph.record.get("kept_smiles")) else {}),
            **words.facts(graph.record),
        },
    }


def bit_string(values: Sequence[Any]) -> str:
    """Truth values as base64, eight to a byte, the first in the lowest bit.

    >>> bit_string([True, False, False, True]), bit_string([])
    ('CQ==', '')
    """
    packed = np.packbits(np.asarray(values, dtype=bool), bitorder="little")
    return b64encode(packed.tobytes()).decode()
