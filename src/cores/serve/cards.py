"""What the page is told of graphs, as plain data: every text can be shown as it is."""

from typing import Any

from cores.explain.drawing import graph_svg
from cores.explain.explained import ExplainedGraph
from cores.explain.report import graph_details
from cores.files.escape import brief
from cores.runs.records import Record
from cores.serve.explorer import Found
from cores.serve.limits import MOST_GRAPHS, Deadline
from cores.tasks import TASKS


def answer(found: Found, deadline: Deadline, *, drawings: bool) -> dict[str, Any]:
    """All that was found; without drawings where only the sets may have changed.

    Drawing some graphs takes a second each: those that come after the deadline have none.
    """
    return {
        "alpha": found.predictor.alpha,
        "lam": found.predictor.trained.lam,
        "promise": found.predictor.promise,
        "first": found.first,
        "total": found.total,
        "most": MOST_GRAPHS,
        "graphs": [
            _card(graph) | (_drawing(graph, deadline) if drawings else {}) for graph in found.graphs
        ],
        "failed": [_problem(record) for record in found.failed.values()],
    }


def _card(graph: ExplainedGraph) -> dict[str, Any]:
    record = graph.record
    return {
        "position": graph.position,
        "name": brief(graph.id),
        "prediction": brief(graph.prediction),
        "label": None if graph.label is None else brief(graph.label),
        "correct": graph.correct,
        **TASKS[graph.task].card(record, graph.values),
        "node_ratio": record["node_ratio"],
        "edge_ratio": record["edge_ratio"],
        "nodes": len(graph.nodes),
        "edges": len(graph.edges),
        "truth": graph.truth is not None,
        "kept_smiles": brief(record["kept_smiles"]) if record.get("kept_smiles") else None,
    }


def _drawing(graph: ExplainedGraph, deadline: Deadline) -> dict[str, Any]:
    if deadline.passed:
        return {"drawing": None, "note": "not drawn: there was no time left", "details": None}
    drawn = graph_svg(graph)
    details = graph_details(graph, drawn)
    for node in details["nodes"]:
        node["is"] = brief(node["is"])
    return {"drawing": drawn.inline(), "note": drawn.note, "details": details}


def _problem(record: Record) -> str:
    return brief(f"{record['id']}: {record['error']}")
