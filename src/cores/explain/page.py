"""What all pages share: templates that escape every text, the style, and the details of a graph."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cores.explain.explained import ExplainedGraph
from cores.explain.svg import STYLE, Picture
from cores.files.escape import html

TEMPLATES = Path(__file__).parent / "templates"


def template_text(name: str) -> str:
    """A file of the templates as it is."""
    return (TEMPLATES / name).read_text(encoding="utf-8")


def page_style() -> str:
    """The style of a page with drawings."""
    return template_text("report.css") + STYLE


def environment(*folders: Path) -> Any:
    """Templates of folders, in which every text goes through :func:`cores.files.escape.html`."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def escaped(value: Any) -> Any:
        return value if isinstance(value, Markup) else Markup(html(value))

    return Environment(
        loader=FileSystemLoader(folders),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=escaped,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def graph_details(graph: ExplainedGraph, drawing: Picture) -> dict[str, Any]:
    """What the page shows of a graph when it is asked for: nodes, and edges where they differ."""

    def short(scores: Sequence[float] | None, at: int) -> float | None:
        return None if scores is None else round(scores[at], 3)

    def effect(effects: Sequence[float] | None, at: int) -> list[float]:
        return [] if effects is None else [float(f"{effects[at]:.2g}")]

    details: dict[str, Any] = {
        "nodes": [
            [
                number,
                name,
                short(graph.node_scores, at),
                int(graph.kept_nodes[at]),
                *effect(graph.node_effects, at),
            ]
            for at, (number, name) in enumerate(zip(graph.numbers, graph.nodes, strict=True))
        ],
        "points": drawing.points,
    }
    if graph.removes_edges:
        details["edges"] = [
            [
                *sorted((graph.numbers[a], graph.numbers[b])),
                short(graph.edge_scores, at),
                int(kept),
                *effect(graph.edge_effects, at),
            ]
            for at, ((a, b), kept) in enumerate(zip(graph.edges, graph.kept_edges, strict=True))
        ]
    return details
