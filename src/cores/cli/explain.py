"""`cores explain`: what a model kept of graphs, as a page, records or pictures."""

from argparse import Namespace
from time import perf_counter
from typing import Any

from cores.cli import display
from cores.cli.command import Command, CommandParser
from cores.cli.options import (
    add_predict_options,
    add_run,
    column_names,
    numbers,
    predict_options,
)
from cores.data.inputs.columns import ColumnNames
from cores.errors import UserError


def _parser() -> CommandParser:
    parser = CommandParser(
        "Show what a trained model kept of graphs: one HTML page that works offline, records, or "
        "pictures. Conditions add up: a graph must meet all of them.",
        usage="cores explain RUN [INPUT] [options]",
    )
    add_run(parser)
    parser.add_argument(
        "input",
        metavar="INPUT",
        nargs="?",
        help="Graphs, as for `cores predict` (default: the run's test graphs).",
    )
    parser.add_path(
        "--out",
        "PATH",
        "Page (.html), records (.jsonl), or a folder for an SVG of every graph (default: "
        "report.html in the run folder).",
    )
    parser.add_argument(
        "--graphs",
        metavar="N,…",
        help="Only the graphs at these positions, from 0, such as 0,5 or 0-9.",
    )
    parser.add_argument("--class", metavar="NAME", help="Only this predicted class.")
    parser.add_argument(
        "--errors", action="store_true", help="Only wrong predictions; needs labels."
    )
    parser.add_argument(
        "--uncertain",
        action="store_true",
        help="Only graphs with no label, or several, in the prediction set.",
    )
    parser.add_count("--top", "Only the N graphs with the smallest kept share.")
    parser.add_count("--largest", "Only the N graphs with the largest kept share.")
    parser.add_count(
        "--count", "At most so many (default: 100; with --top or --largest, all of these)."
    )
    add_predict_options(parser)
    return parser


def _explain(options: Namespace) -> dict[str, Any]:
    if options.input is None and column_names(options) != ColumnNames():
        raise UserError("the run knows its own columns; naming others needs an INPUT")
    positions = None
    if options.graphs is not None:
        positions = frozenset(numbers(options.graphs, "--graphs", first=0))
    from cores.explain.run import explain_run
    from cores.explain.survey import Conditions

    begin = perf_counter()
    out, survey = explain_run(
        options.run,
        options.input,
        options.out,
        Conditions(
            positions,
            vars(options)["class"],
            options.errors,
            options.uncertain,
            options.count,
            options.top,
            options.largest,
        ),
        predict_options(options),
        device=options.device,
        data_root=options.data_root,
    )
    display.note_unusable(survey.errors, survey.first_errors)
    if survey.unknown_label is not None:
        display.print_note(f"labels such as {survey.unknown_label} count as none")
    if not options.json:
        display.print_lines([f"{len(survey.shown)} of {survey.graphs:,} graphs explained: {out}"])
    return {
        "out": str(out),
        "graphs": survey.graphs,
        "chosen": survey.chosen,
        "shown": len(survey.shown),
        "right": survey.right,
        "wrong": survey.wrong,
        "errors": survey.errors,
        "first_errors": survey.first_errors,
        "seconds": round(perf_counter() - begin, 3),
    }


EXPLAIN = Command("explain", "show what a model kept of graphs", _parser, _explain)
