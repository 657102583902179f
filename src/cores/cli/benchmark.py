"""`cores benchmark`: the speed ratios."""

from typing import Any

from jsonargparse import Namespace

from cores.cli import display
from cores.cli.command import Command, CommandParser
from cores.errors import UserError


def _parser() -> CommandParser:
    parser = CommandParser("Measure the speed ratios, in one process with one thread.")
    parser.add_argument(
        "--repeats",
        type=int,
        default=15,
        metavar="N",
        help="Interleaved repeats of each (default: 15).",
    )
    return parser


def _benchmark(options: Namespace) -> dict[str, Any]:
    from cores.runs.benchmark import benchmark

    if options.device == "cuda":
        raise UserError("the ratios are defined on one CPU thread; leave --device cuda out")
    ratios = benchmark(options.repeats)
    if not options.json:
        display.print_benchmark(ratios)
    return ratios


BENCHMARK = Command("benchmark", "measure the speed ratios", _parser, _benchmark)
