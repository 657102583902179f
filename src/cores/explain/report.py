"""Explained graphs as files: a page that stands on its own, JSON lines, a folder of pictures."""

import gzip
import hashlib
import json
import re
import shutil
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from cores import __version__
from cores.errors import UserError
from cores.explain.drawing import STYLE, GraphSvg, graph_svg
from cores.explain.explained import ExplainedGraph
from cores.explain.learning import training_charts
from cores.explain.parts_view import PartsView, PartWords, add_parts
from cores.explain.plotting import COLOURS, PAGE_WIDTH, Chart, page_chart
from cores.explain.survey import BINS, ClassCounts, Conditions, Survey
from cores.files import make_folder, write_atomically
from cores.files.escape import figure as figure_text
from cores.files.escape import html, html_json, json_text
from cores.runs.card import description
from cores.runs.folder import METRICS
from cores.runs.opened import Run
from cores.runs.rows import read_metrics, shown_metrics
from cores.tasks import TASKS

REPORT = "report.html"
"""Name of the page in a run folder."""
TEMPLATES = Path(__file__).parent / "templates"


def template_text(name: str) -> str:
    """Read a file of the templates as it is."""
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


def graph_details(graph: ExplainedGraph, drawing: GraphSvg) -> dict[str, Any]:
    """Collect the nodes of a graph for its details, and the edges where some were removed."""
    edges = {"edges": graph.edge_records} if graph.removes_edges else {}
    return {"nodes": graph.node_records, "points": drawing.points} | edges


def report_page(run: Path, predictor: Run, survey: Survey, choice: Conditions, source: str) -> str:
    """Make the page of an input called ``source``; nothing in it asks for another file."""
    trained = predictor.trained
    metrics = read_metrics(run / METRICS) if (run / METRICS).exists() else {}
    molecules, removes_edges = survey.chemistry is not None, trained.config.spec.removes != "node"
    words = PartWords.of(trained, molecules=molecules)
    view = PartsView.of(predictor, survey, words)
    scripts = ("details.js", "report.js", *(() if view is None else ("parts.js",)))
    script = "".join(map(template_text, scripts))
    drawn = [(graph, graph_svg(graph, apart=view is not None)) for graph in survey.shown]
    details = [graph_details(*each) for each in drawn]
    if view is not None:
        add_parts(details, drawn, view, removes_edges=removes_edges)
    page = environment(TEMPLATES).get_template("report.html.j2")
    return page.render(
        version=__version__,
        run=run.absolute().name,
        description=description(trained.config, trained.task),
        metrics=metrics,
        shown_metrics=shown_metrics(metrics),
        charts=training_charts(run, trained.config),
        shares=shares_chart(survey.classes, words.edges if survey.removes_edges else words.nodes),
        survey=survey,
        choice=choice,
        source=source,
        alpha=f"{predictor.alpha:g}",
        sufficiency=f"{trained.config.explanation.sufficiency:g}",
        molecules=molecules,
        part=words,
        asked=trained.has_committee,
        task=TASKS[trained.task],
        calibrated=bool(len(trained.calibration)) and TASKS[trained.task].has_sets,
        intervals=bool(len(trained.calibration)) and not TASKS[trained.task].has_sets,
        labelled=survey.right + survey.wrong,
        truth=any(graph.truth is not None for graph in survey.shown),
        effects=trained.effects is not None,
        cards=[(graph, drawing, drawing.inline()) for graph, drawing in drawn],
        details=b64encode(gzip.compress(html_json(details).encode(), mtime=0)).decode(),
        view=view,
        view_data=None if view is None else html_json(_view_data(view, words, survey)),
        style=page_style(),
        script=script,
        script_hash=b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def shares_chart(classes: Mapping[str, ClassCounts], what: str) -> Chart:
    """Draw histograms of the kept share, a row for every predicted class."""
    from matplotlib.figure import Figure

    rows = [(name, counts) for name, counts in classes.items() if counts.graphs]
    height = 0.3 + 0.7 * len(rows)
    axis = Figure(figsize=(PAGE_WIDTH, height)).add_axes(
        (0.04, 0.3 / height, 0.9, 1 - 0.3 / height)
    )
    for row, (name, counts) in enumerate(rows):
        most = max(counts.shares.values())
        for place, graphs in sorted(counts.shares.items()):
            at, tall = (place + 0.5) / BINS, 0.6 * graphs / most
            axis.bar(at, tall, 0.9 / BINS, bottom=-row, color=COLOURS[0])
            axis.text(at, tall - row, f"{graphs}", ha="center", va="bottom", fontsize=7)
        short = name if len(name) <= 40 else f"{name[:39]}…"
        axis.text(0, 0.75 - row, figure_text(f"{short}: {counts.graphs} graphs"), fontsize=9)
        axis.axhline(-row, color="#b0b0b0", linewidth=0.8)
    ticks = (0, 0.25, 0.5, 0.75, 1)
    axis.set(xlim=(0, 1), ylim=(1 - len(rows), 1), xticks=ticks, yticks=())
    axis.set_xticklabels([f"{100 * tick:.0f} %" for tick in ticks], fontsize=9)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    title = f"Share of the {what} that is kept"
    return page_chart(axis.figure, title, f"{title}, by predicted class")


def _view_data(view: PartsView, words: PartWords, survey: Survey) -> dict[str, Any]:
    """Collect what the script must know of the slider, beside the parts of each graph."""
    nodes = words.edges if survey.removes_edges else words.nodes
    return {
        "own": view.own,
        "edgesAlone": survey.removes_edges,
        "told": [
            f"At {value:g}: {100 * kept:.0f} % of {nodes} kept, {100 * weak:.0f} % of graphs weak"
            for value, (kept, weak) in zip(view.values, view.figures, strict=True)
        ],
    }


def json_lines(graphs: Sequence[ExplainedGraph]) -> bytes:
    """The records of graphs, with every node and edge."""
    dumped = (
        json.dumps(graph.full_record, ensure_ascii=False, separators=(",", ":")) for graph in graphs
    )
    return "".join(f"{json_text(line)}\n" for line in dumped).encode()


def write_pictures(graphs: Sequence[ExplainedGraph], folder: Path) -> None:
    """One SVG for every graph in a new folder, which is there with all of them or not at all."""
    make_folder(folder.absolute().parent)
    temporary = folder.with_name(f".{folder.name}.{uuid4().hex[:12]}.tmp")
    try:
        temporary.mkdir()
        for graph in graphs:
            drawing = graph_svg(graph).standalone()
            write_atomically(temporary / picture_name(graph), drawing)
        temporary.replace(folder)
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def picture_name(graph: ExplainedGraph) -> str:
    """Position and name of a graph as the name of a file, without anything that is a path."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", graph.id)[:60].strip("_")
    number = f"{graph.position:06d}"
    return f"{number}.svg" if name in ("", str(graph.position)) else f"{number}-{name}.svg"
