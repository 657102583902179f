"""The page, the files that it asks for, and what it is told of graphs.

All files are the server's own. Graphs are plain data, and every text can be shown as it is.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from cores import __version__
from cores.data.inputs.sources import KINDS
from cores.explain.drawing import graph_svg
from cores.explain.explained import ExplainedGraph
from cores.explain.parts_view import PartWords
from cores.explain.report import (
    TEMPLATES,
    environment,
    graph_details,
    page_style,
    template_text,
)
from cores.files.escape import brief
from cores.files.limits import told_size
from cores.runs.card import description
from cores.runs.folder import METRICS
from cores.runs.rows import read_metrics
from cores.serve.explorer import Explorer, Found
from cores.serve.limits import MOST_BYTES, MOST_GRAPHS, Deadline
from cores.tasks import TASKS

OWN = Path(__file__).parent / "templates"
ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path d="M4 12L8 4L12 12" '
    'fill="none" stroke="#0072b2" stroke-width="2"/><circle cx="8" cy="4" r="3" fill="#0072b2"/>'
    "</svg>"
)


PARTS = {
    "minimal": "no single one can go",
    "cut": "faster, larger",
    "policy": "without a search",
}
"""Kinds of parts, in words."""


def page_files() -> dict[str, tuple[str, str]]:
    """Return kind and content of every file of the page, by name."""
    own = {path.name: path.read_text(encoding="utf-8") for path in OWN.iterdir()}
    scripts = {name: text for name, text in own.items() if name.endswith(".js")}
    scripts["details.js"] = template_text("details.js")
    return {
        "explorer.css": ("text/css", page_style() + own["explorer.css"]),
        "icon.svg": ("image/svg+xml", ICON),
        **{name: ("text/javascript", text) for name, text in scripts.items()},
    }


def explorer_page(explorer: Explorer) -> str:
    """Make the page of a run."""
    predictor, run = explorer.predictor, explorer.run
    config, task = predictor.trained.config, TASKS[predictor.trained.task]
    asked = predictor.trained.has_committee
    metrics = read_metrics(run / METRICS) if (run / METRICS).exists() else {}
    packed = [
        f"{kind}.gz" for kind in explorer.kinds if KINDS[kind].streamed and kind != ".parquet"
    ]
    return str(
        environment(OWN, TEMPLATES)
        .get_template("explorer.html.j2")
        .render(
            version=__version__,
            run=run.absolute().name,
            description=description(config, predictor.trained.task),
            task=task,
            part=explorer.words,
            asked=asked,
            verdicts=metrics.get("verdicts", []),
            molecules=explorer.draws_molecules,
            smiles=predictor.reads_molecules,
            truth=True,
            edges_alone=config.spec.removes == "edge",
            kinds=explorer.kinds,
            accepted=",".join((*explorer.kinds, *packed)),
            alpha=f"{predictor.alpha:g}",
            sufficiency=f"{config.explanation.sufficiency:g}" if asked and task.has_sets else None,
            kinds_of_parts=PARTS if asked else {},
            calibrated=bool(len(predictor.trained.calibration)),
            promise=predictor.promise,
            most=MOST_GRAPHS,
            most_bytes=MOST_BYTES,
            size=told_size(MOST_BYTES),
        )
    )


def answer(found: Found, words: PartWords, deadline: Deadline, *, drawings: bool) -> dict[str, Any]:
    """Tell all that was found; without drawings where only the sets may have changed.

    Drawing some graphs takes a second each: those that come after the deadline have none.
    """
    words = replace(words, shown=found.predictor.config.explanation)
    asked = found.predictor.trained.has_committee
    return {
        "alpha": found.predictor.alpha,
        "sufficiency": words.shown.sufficiency if asked else None,
        "parts": words.shown.parts if asked else None,
        "promise": found.predictor.promise,
        "first": found.first,
        "total": found.total,
        "most": MOST_GRAPHS,
        "graphs": [
            _card(graph, words) | (_drawing(graph, deadline) if drawings else {})
            for graph in found.graphs
        ],
        "failed": [brief(f"{record['id']}: {record['error']}") for record in found.failed.values()],
    }


def _card(graph: ExplainedGraph, words: PartWords) -> dict[str, Any]:
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
        "part": words.facts(record),
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
