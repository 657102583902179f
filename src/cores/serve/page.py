"""The page, and the files that it asks for; all of them are the server's own."""

from collections.abc import Callable
from pathlib import Path

from cores import __version__
from cores.config.policy import SETTINGS
from cores.data.inputs.sources import KINDS
from cores.explain.report import TEMPLATES, environment, page_style, template_text
from cores.files.limits import told_size
from cores.runs.card import description
from cores.runs.folder import METRICS
from cores.runs.rows import read_metrics
from cores.serve.explorer import Explorer
from cores.serve.limits import MOST_BYTES, MOST_GRAPHS
from cores.tasks import TASKS

OWN = Path(__file__).parent / "templates"
ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path d="M4 12L8 4L12 12" '
    'fill="none" stroke="#0072b2" stroke-width="2"/><circle cx="8" cy="4" r="3" fill="#0072b2"/>'
    "</svg>"
)


def _own(name: str) -> str:
    return (OWN / name).read_text(encoding="utf-8")


FILES: dict[str, tuple[str, Callable[[], str]]] = {
    "explorer.css": ("text/css", lambda: page_style() + _own("explorer.css")),
    "details.js": ("text/javascript", lambda: template_text("details.js")),
    "explorer.js": ("text/javascript", lambda: _own("explorer.js")),
    "molecule.js": ("text/javascript", lambda: _own("molecule.js")),
    "editor.js": ("text/javascript", lambda: _own("editor.js")),
    "icon.svg": ("image/svg+xml", lambda: ICON),
}
"""Kind and content of each, by name."""


def explorer_page(explorer: Explorer) -> str:
    """The page of a run."""
    predictor, run = explorer.predictor, explorer.run
    config = predictor.trained.config
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
            words=TASKS[predictor.trained.task].words,
            verdicts=metrics.get("verdicts", []),
            molecules=explorer.draws_molecules,
            smiles=predictor.reads_molecules,
            truth=True,
            edges_alone=config.spec.removes == "edge",
            kinds=explorer.kinds,
            accepted=",".join((*explorer.kinds, *packed)),
            alpha=f"{predictor.alpha:g}",
            lam=None if predictor.trained.lam is None else f"{predictor.trained.lam:g}",
            lam_step=f"{SETTINGS[1]:g}",
            calibrated=bool(len(predictor.trained.calibration)),
            promise=predictor.promise,
            most=MOST_GRAPHS,
            most_bytes=MOST_BYTES,
            size=told_size(MOST_BYTES),
        )
    )
