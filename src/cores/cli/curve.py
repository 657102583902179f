"""`cores curve`: the parts of a model at several sufficiencies."""

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
        "Measure the parts that a trained model shows of its test graphs, at several "
        "sufficiencies and the run's own: how much is kept, how many graphs are weak, and how "
        "good an independent classifier (the judge) is on these parts and on random ones as "
        "small. A picture shows accuracy over kept share.",
    )
    add_run(parser)
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
    from cores.explain.curve import curve_figure
    from cores.files import make_folder
    from cores.runs.curve import LEGEND, curve_lines, full_line, sufficiency_curve

    run = options.run
    out = options.out or run
    with display.rows_progress("sufficiencies", None) as advance:
        curve = sufficiency_curve(
            run,
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
    pictures = [str(path) for path in curve_figure(curve, title, out / FILE)]
    if not options.json:
        caption = f"{title}: {curve.test_graphs} test graphs, percent"
        display.print_columns(caption, *curve_lines(curve))
        display.print_lines([*LEGEND, full_line(curve), f"Picture: {pictures[0]}"])
    return {"run": str(run), **asdict(curve), "pictures": pictures}


CURVE = Command("curve", "the parts of a model at several sufficiencies", _parser, _curve)
