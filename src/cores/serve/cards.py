"""What the page is told of graphs, as plain data: every text can be shown as it is."""

from typing import Any

from cores.explain.drawing import graph_svg
from cores.explain.explained import ExplainedGraph
from cores.explain.report import graph_details
from cores.files.escape import brief
from cores.runs.records import Record
from cores.serve.explorer import Found
from cores.serve.limits import MOST_GRAPHS, Deadline
from cores.serve.promise import IntervalPromise, LabelPromise, Promise, promise_of

AnyPromise = Promise | IntervalPromise | LabelPromise


def answer(found: Found, deadline: Deadline, *, drawings: bool) -> dict[str, Any]:
    """All that was found; without drawings where only the sets may have changed.

    Drawing some graphs takes a second each: those that come after the deadline have none.
    """
    promise = promise_of(found.predictor)
    return {
        "alpha": found.predictor.alpha,
        "lam": found.predictor.trained.lam,
        "promise": str(promise),
        "first": found.first,
        "total": found.total,
        "most": MOST_GRAPHS,
        "graphs": [
            _card(graph, promise) | (_drawing(graph, deadline) if drawings else {})
            for graph in found.graphs
        ],
        "failed": [_problem(record) for record in found.failed.values()],
    }


def _card(graph: ExplainedGraph, promise: AnyPromise) -> dict[str, Any]:
    record = graph.record
    return {
        "position": graph.position,
        "name": brief(graph.id),
        "prediction": brief(graph.prediction),
        "label": None if graph.label is None else brief(graph.label),
        "correct": graph.correct,
        **_predicted(graph, promise),
        "node_ratio": record["node_ratio"],
        "edge_ratio": record["edge_ratio"],
        "nodes": len(graph.nodes),
        "edges": len(graph.edges),
        "truth": graph.truth is not None,
        "kept_smiles": brief(record["kept_smiles"]) if record.get("kept_smiles") else None,
    }


def _predicted(graph: ExplainedGraph, promise: AnyPromise) -> dict[str, Any]:
    """What is predicted, and how sure that is: of one class, of a number, or of several labels."""
    if isinstance(promise, Promise):
        return _of_classes(graph.record, promise)
    if graph.is_several:
        return {"labels": [_of_label(*each) for each in graph.of_label]}
    lower, upper = graph.record["lower"], graph.record["upper"]
    return {"interval": None if lower is None else [f"{lower:.4g}", f"{upper:.4g}"]}


def _of_classes(record: Record, promise: Promise) -> dict[str, Any]:
    labels = record["prediction_set"]
    inside = set() if labels is None else {str(label) for label in labels}
    unusual = record["p_values"] or {}
    by_probability = sorted(record["probabilities"].items(), key=lambda item: -item[1])
    return {
        "probability": record["probability"],
        "set": None if labels is None else [brief(label) for label in labels],
        "promise": promise.of_set(labels),
        "classes": [
            {
                "name": brief(name),
                "probability": probability,
                "p_value": unusual.get(name),
                "in_set": name in inside,
            }
            for name, probability in by_probability
        ],
    }


def _of_label(
    name: str, value: Any, probability: float, held: list[Any] | None, known: Any
) -> dict[str, Any]:
    return {
        "name": brief(name),
        "prediction": brief(value),
        "probability": probability,
        "set": None if held is None else [brief(each) for each in held],
        "label": None if known is None else brief(known),
        "correct": None if known is None else str(known) == str(value),
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
