"""A model with a dial at all of its settings: its figures, and what it keeps of shown graphs."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool
from numpy.typing import NDArray

from cores.config.policy import SETTINGS
from cores.explain.drawing import GraphSvg
from cores.explain.explained import ExplainedGraph, undirected
from cores.explain.survey import Survey
from cores.files.escape import html_json
from cores.graphs.store import GraphStore
from cores.runs.opened import PredictedGraphs, Run
from cores.runs.records import Record
from cores.runs.trained import DialCalibration
from cores.tasks import TASKS
from cores.tasks.metrics import accuracy

MOST_BYTES = 2_500_000
"""Of a page, for what is kept at other settings; a thousand molecules need a quarter of it."""
CHUNK = 50
"""Graphs that the model is asked about at once."""


@dataclass(frozen=True)
class SettingFigures:
    """What a setting comes to on the calibration part."""

    lam: float
    accuracy: float
    kept_ratio: float
    set_size: float
    """Labels in a prediction set, on average."""


@dataclass(frozen=True)
class DialView:
    """What a page shows of a model's dial."""

    lam: float
    """Where it stands when the page is opened."""
    figures: list[SettingFigures]
    """At every setting; none where there is no calibration part."""
    full_accuracy: float | None
    """Of the model's classifier on the full calibration graphs."""
    calibration_graphs: int
    classes: int
    graphs: list[dict[str, Any] | None]
    """What is kept of each graph that is shown, and predicted from it; None where the model has no
    prediction at a setting, or the page no room."""

    @classmethod
    def of(cls, predictor: Run, survey: Survey) -> "DialView | None":
        """Of the graphs that are shown; None where the model has no dial, or only one setting.

        Also None where it predicts numbers: the page knows accuracies alone.
        """
        trained = predictor.trained
        if trained.lam is None or trained.dial is None or not TASKS[trained.task].has_classes:
            return None
        dial = trained.dial
        known = len(dial.labels) > 0
        return cls(
            trained.lam,
            _figures(dial, predictor) if known else [],
            accuracy(dial.full_probs, dial.labels) if known else None,
            len(dial.labels),
            len(trained.schema.labels),
            _graphs(predictor, survey),
        )

    @property
    def own(self) -> int:
        """Place of the setting at which the page is opened."""
        return SETTINGS.index(self.lam)


def add_settings(
    details: Sequence[dict[str, Any]],
    drawn: Sequence[tuple[ExplainedGraph, GraphSvg]],
    dial: DialView,
) -> None:
    """Add to the details of graphs what it takes to show them at every setting.

    A page of a thousand proteins would become too large: the last of them get nothing.
    """
    left = MOST_BYTES
    for each, (graph, drawing), settings in zip(details, drawn, dial.graphs, strict=True):
        if settings is None:
            continue
        edges = graph.edges
        if settings["parts"][0][1] is None:  # edges are only drawn
            edges = [(a, b) for a, b in edges if drawing.points[a] and drawing.points[b]]
        added = {"dial": settings, "ends": [end for edge in edges for end in edge]}
        left -= len(html_json(added))
        if left >= 0:
            each |= added


def _figures(dial: DialCalibration, predictor: Run) -> list[SettingFigures]:
    found = []
    for place, lam in enumerate(SETTINGS):
        probs = dial.probs[place]
        sets = dial.calibration(place).sets(probs, predictor.alpha, predictor.sets)
        found.append(
            SettingFigures(
                lam,
                accuracy(probs, dial.labels),
                float(dial.kept_ratio[place].mean()),
                float(sets.sum(dim=-1).double().mean()),
            )
        )
    return found


def _graphs(predictor: Run, survey: Survey) -> list[dict[str, Any] | None]:
    """Ask the model about the graphs that are shown, until the page has no room for more."""
    settings = [predictor.at(predictor.alpha, lam) for lam in SETTINGS]
    found: list[dict[str, Any] | None] = []
    left = MOST_BYTES
    for begin in range(0, len(survey.shown), CHUNK):
        if left < 0:
            break
        chunk = survey.shown[begin : begin + CHUNK]
        store = GraphStore.from_graphs([survey.data[graph.position] for graph in chunk])
        more = _chunk(settings, chunk, store)
        left -= len(html_json(more))
        found += more
    return found + [None] * (len(survey.shown) - len(found))


def _chunk(
    settings: Sequence[Run], shown: Sequence[ExplainedGraph], store: GraphStore
) -> list[dict[str, Any] | None]:
    """What a model with a dial keeps of some graphs at its settings."""
    trained = settings[0].trained
    positions = [graph.position for graph in shown]
    rows = (
        [graph.id for graph in shown],
        positions,
        [position + 1 for position in positions],
        [graph.label for graph in shown],
        [graph.molecule for graph in shown] if settings[0].reads_molecules else [],
    )
    found = [predictor.predicted_graphs(store, *rows, parts=False) for predictor in settings]
    missing = {row.position for each in found for row in each.rejected}
    names = [str(label) for label in trained.schema.labels]
    removes_edges = trained.config.spec.removes != "node"
    return [
        None
        if graph.position in missing
        else _graph(graph, at, store, found, names, removes_edges=removes_edges)
        for at, graph in enumerate(shown)
    ]


def _graph(
    graph: ExplainedGraph,
    at: int,
    store: GraphStore,
    found: Sequence[PredictedGraphs],
    names: Sequence[str],
    *,
    removes_edges: bool,
) -> dict[str, Any]:
    """Different kept parts once each, with what is predicted from them; the part of every setting.

    What one setting keeps need not be kept by the next, so no order among them is used.
    """
    nodes = slice(int(store.node_ptr[at]), int(store.node_ptr[at + 1]))
    edges = slice(int(store.edge_ptr[at]), int(store.edge_ptr[at + 1]))
    _, first = undirected(store.edge_index[:, edges])
    predictions = [each.predictions for each in found if each.predictions is not None]
    kept = np.stack(
        [
            np.concatenate(
                [~each.removed_nodes[nodes].numpy(), ~each.removed_edges[edges][first].numpy()]
            )
            for each in predictions
        ]
    )  # [settings, nodes + edges]
    _, example, part = np.unique(kept, axis=0, return_index=True, return_inverse=True)
    records = [each.records[at] for each in found]
    parts = [_part(graph, kept[place], records[place], names) for place in example.tolist()]
    if not removes_edges:  # an edge is kept with its ends
        parts = [[nodes, None, *others] for nodes, _, *others in parts]
    return {
        "part": part.flatten().tolist(),
        "parts": parts,
        "sets": [_labels(record, names) for record in records],
    }


def _part(
    graph: ExplainedGraph,
    kept: Bool[NDArray[Any], " elements"],
    record: Record,
    names: Sequence[str],
) -> list[Any]:
    """Bits of nodes and edges that are shown as kept; prediction, probability, shares, SMILES."""
    nodes, edges = np.split(kept, [len(graph.nodes)])
    turned = replace(graph, kept_nodes=nodes.tolist(), kept_edges=edges.tolist())
    return [
        bit_string(turned.marked),
        bit_string(turned.kept_edges),
        names.index(str(record["prediction"])),
        round(record["probability"], 2),
        record["node_ratio"],
        record["edge_ratio"],
        *([record["kept_smiles"]] if "kept_smiles" in record else []),
    ]


def bit_string(values: Sequence[Any]) -> str:
    """Truth values as base64, eight to a byte, the first in the lowest bit.

    >>> bit_string([True, False, False, True]), bit_string([])
    ('CQ==', '')
    """
    packed = np.packbits(np.asarray(values, dtype=bool), bitorder="little")
    return b64encode(packed.tobytes()).decode()


def _labels(record: Record, names: Sequence[str]) -> str | None:
    """Bits of the labels in the prediction set; None where there is none."""
    if record["prediction_set"] is None:
        return None
    inside = {str(label) for label in record["prediction_set"]}
    return bit_string([name in inside for name in names])
