"""`cores benchmark`: the speed ratios."""

from pathlib import Path
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
    parser.add_argument(
        "--compare",
        type=Path,
        metavar="FILE",
        help="Tell which ratios are worse by more than a tenth than in this file, which an earlier "
        "`cores benchmark --json` has printed.",
    )
    return parser


def _benchmark(options: Namespace) -> dict[str, Any]:
    from cores.runs.benchmark import benchmark, read_ratios, slower

    if options.device == "cuda":
        raise UserError("the ratios are defined on one CPU thread; leave --device cuda out")
    before = None if options.compare is None else read_ratios(options.compare)
    ratios = benchmark(options.repeats)
    worse = None if before is None else slower(ratios, before)
    if not options.json:
        display.print_benchmark(ratios, before or {})
        if worse is not None:
            display.print_slower(worse)
    return ratios if worse is None else {**ratios, "slower": worse}


BENCHMARK = Command("benchmark", "measure the speed ratios", _parser, _benchmark)
