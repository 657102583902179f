"""Explained graphs as files: a page that stands on its own, JSON lines, a folder of pictures."""

import hashlib
import json
import re
import shutil
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from cores import __version__
from cores.config.policy import SETTINGS
from cores.errors import UserError
from cores.explain.curves import shares_chart, training_charts
from cores.explain.dial_chart import dial_charts
from cores.explain.dial_view import DialView, add_settings
from cores.explain.explained import ExplainedGraph
from cores.explain.packing import packed_details
from cores.explain.page import TEMPLATES, environment, graph_details, page_style, template_text
from cores.explain.survey import Choice, Survey
from cores.explain.svg import picture
from cores.files import make_folder, write_atomically
from cores.files.escape import html_json, json_text
from cores.runs.card import description
from cores.runs.folder import METRICS
from cores.runs.predictor import Predictor
from cores.runs.rows import read_metrics, shown_metrics
from cores.tasks import TASKS

REPORT = "report.html"
"""In a run folder."""


def report_page(
    run: Path, predictor: Predictor, survey: Survey, choice: Choice, source: str
) -> str:
    """The page; nothing in it asks for another file.

    Args:
        run: The run folder.
        predictor: Its model, with the error rate of the prediction sets.
        survey: The graphs.
        choice: Which of them were asked for.
        source: What to call the input.
    """
    from markupsafe import Markup

    trained = predictor.trained
    metrics = read_metrics(run / METRICS) if (run / METRICS).exists() else {}
    dial = DialView.of(predictor, survey)
    scripts = ("details.js", "report.js", *(() if dial is None else ("dial.js",)))
    script = "".join(map(template_text, scripts))
    what = "edges" if survey.removes_edges else "nodes"
    drawn = [(graph, picture(graph, apart=dial is not None)) for graph in survey.shown]
    details = [graph_details(*each) for each in drawn]
    if dial is not None:
        add_settings(details, drawn, dial)
    charts = training_charts(run, trained.config)
    page = environment(TEMPLATES).get_template("report.html.j2")
    return page.render(
        version=__version__,
        run=run.absolute().name,
        config=trained.config,
        description=description(trained.config, trained.task),
        metrics=metrics,
        shown_metrics=shown_metrics(metrics),
        charts=[(chart.title, Markup(chart.svg)) for chart in charts],
        shares=_marked_up(shares_chart(survey.classes, what)),
        survey=survey,
        choice=choice,
        source=source,
        alpha=f"{predictor.alpha:g}",
        lam=None if trained.lam is None else f"{trained.lam:g}",
        what=what,
        molecules=survey.chemistry is not None,
        atoms="atoms" if survey.chemistry is not None else "nodes",
        task=TASKS[trained.task],
        calibrated=bool(len(trained.calibration)) and TASKS[trained.task].has_sets,
        intervals=bool(len(trained.calibration)) and not TASKS[trained.task].has_sets,
        labelled=survey.right + survey.wrong,
        truth=any(graph.truth is not None for graph in survey.shown),
        effects=trained.effects is not None,
        cards=[(graph, drawing, Markup(drawing.inline())) for graph, drawing in drawn],
        details=Markup(html_json([packed_details(each) for each in details])),
        follows=["dial" in each for each in details],
        dial=dial,
        dial_charts=[] if dial is None else [_marked_up(chart) for chart in dial_charts(dial)],
        dial_data=None if dial is None else Markup(html_json(_dial_data(dial, survey))),
        style=Markup(page_style()),
        script=Markup(script),
        script_hash=b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _dial_data(dial: DialView, survey: Survey) -> dict[str, Any]:
    """What the script must know of the dial, beside what is kept of each graph."""
    return {
        "own": dial.own,
        "classes": list(survey.classes),
        "atoms": "nodes" if survey.chemistry is None else "atoms",
        "edgesAlone": survey.removes_edges,
        "settings": [f"{lam:g}" for lam in SETTINGS],
        "figures": [
            f"accuracy {100 * each.accuracy:.1f} %, kept {100 * each.kept_ratio:.1f} %, "
            f"{each.set_size:.2f} labels in a set"
            for each in dial.figures
        ],
    }


def _marked_up(chart: Any) -> tuple[str, Any]:
    from markupsafe import Markup

    return chart.title, Markup(chart.svg)


def json_lines(graphs: Sequence[ExplainedGraph]) -> bytes:
    """The records of graphs, with every node and edge."""
    lines = [
        json_text(json.dumps(graph.full_record, ensure_ascii=False, separators=(",", ":")))
        for graph in graphs
    ]
    return "".join(f"{line}\n" for line in lines).encode()


def write_pictures(graphs: Sequence[ExplainedGraph], folder: Path) -> None:
    """One SVG for every graph in a new folder, which is there with all of them or not at all."""
    make_folder(folder.absolute().parent)
    temporary = folder.with_name(f".{folder.name}.{uuid4().hex[:12]}.tmp")
    try:
        temporary.mkdir()
        for graph in graphs:
            drawing = picture(graph).standalone()
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
