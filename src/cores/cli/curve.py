"""`cores curve`: a model with a dial, measured at several settings."""

from argparse import Namespace
from dataclasses import asdict
from typing import Any

from cores.cli import display
from cores.cli.command import Command, CommandParser
from cores.cli.options import add_data_root, add_run, add_sets

FILE = "curve"
"""Of the pictures, without a suffix."""


def _parser() -> CommandParser:
    parser = CommandParser(
        "Measure a model that was trained with reward.dial on its test graphs, at several "
        "settings of its dial: accuracy, kept share, an independent classifier (the judge) on "
        "the kept subgraphs and on random ones as small, and prediction sets. A picture shows "
        "accuracy over kept share.",
    )
    add_run(parser)
    parser.add_count(
        "--settings",
        "How many, evenly spaced: 2, 3, 5, 6, 11 or 21 (default: 11); the run's own is "
        "always among them.",
        default=11,
    )
    parser.add_path(
        "--plain", "RUN", "Run of a plain network (gnn) on the same split, to compare with."
    )
    add_sets(parser)
    parser.add_path(
        "--out", "FOLDER", "Folder for curve.png and curve.svg (default: the run folder)."
    )
    add_data_root(parser)
    return parser


def _curve(options: Namespace) -> dict[str, Any]:
    from cores.files import make_folder
    from cores.runs.curve import LEGEND, curve_lines, dial_curve, full_line
    from cores.tasks import TASKS

    run = options.run
    out = options.out or run
    with display.rows_progress("settings", None) as advance:
        curve = dial_curve(
            run,
            points=options.settings,
            plain=options.plain,
            data_root=options.data_root,
            device=options.device,
            alpha=options.alpha,
            score=options.score,
            per_class=options.per_class,
            advance=advance,
        )
    make_folder(out)
    title = f"{curve.model} ({curve.conv}) on {curve.dataset}"
    pictures = [str(path) for path in dial_figure(curve, title, out / FILE)]
    if not options.json:
        plain = TASKS[curve.task].plain
        unit = "percent" if plain.unit == "percent" else "percent; errors in their unit"
        caption = f"{title}: {curve.test_graphs} test graphs, {unit}"
        display.print_columns(caption, *curve_lines(curve))
        display.print_lines([*LEGEND, full_line(curve), f"Picture: {pictures[0]}"])
    return {"run": str(run), **asdict(curve), "pictures": pictures}


CURVE = Command("curve", "a model at several settings of its dial", _parser, _curve)
