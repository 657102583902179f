"""`cores compare-explanations`: methods of explaining on one dataset."""

from argparse import Namespace
from typing import Any

from cores import UserError
from cores.cli import display
from cores.cli.command import Command, CommandParser
from cores.cli.comparison import Comparison, Failures, add_comparison, add_methods
from cores.cli.values import names, numbers
from cores.config.models import CONVS
from cores_paper.explain.comparison_rows import (
    METHODS,
    METRICS,
    faithfulness_table,
    method_of,
    summary_table,
    told_share,
)

FOLDER = "explanations"


def _parser() -> CommandParser:
    parser = CommandParser(
        "Compare ways to explain a classifier, on the same test graphs: AUC of their scores "
        "against ground truth, where there is any; what an independent classifier (the judge) "
        "and the explained model itself make of the best-scored part, of every graph as much as "
        "CORES keeps; milliseconds per graph. Rows are written to explanations.csv as they come, "
        "and the same command continues after an interruption.",
        usage="cores compare-explanations --dataset NAME [options]",
    )
    add_methods(parser, METHODS)
    parser.add_argument(
        "--graphs",
        type=int,
        default=None,
        metavar="N",
        help="Explain at most so many test graphs, evenly chosen, by every method (default: all).",
    )
    add_comparison(parser, FOLDER)
    return parser


def _compare(options: Namespace) -> dict[str, Any]:
    methods = names(options.models, "--models")
    for name in methods:
        method_of(name)
    seeds = numbers(options.seeds, "--seeds", first=0)
    if options.graphs is not None and options.graphs < 1:
        raise UserError(f"--graphs must be positive, got {options.graphs}")
    asked = Comparison.of(options, FOLDER)
    from cores.runs.rows import as_measured
    from cores_paper.explain.comparison import ROWS, compare_explanations, models_of

    failures = Failures()
    cases = len(asked.options["splits"]) * len(seeds)
    steps = cases * (len(models_of(methods)) + len(methods))
    with display.runs_progress(steps, options.flags, "runs and rows") as advance:
        rows = compare_explanations(
            asked.dataset,
            methods,
            asked.out,
            **asked.options,
            seeds=seeds,
            graphs=options.graphs,
            done=failures.noted(advance),
            explained=lambda name: advance(name, None),
        )
    if rows and not options.json:
        explained = (
            f"{asked.dataset} ({CONVS[options.conv].title}), {rows[0]['graphs']} test graphs"
        )
        display.print_table(f"{explained}, percent", summary_table(rows).markdown())
        display.print_table("Asked of the explained model", faithfulness_table(rows).markdown())
        display.print_lines([told_share(rows), f"Rows: {asked.out / ROWS}"])
    failures.check()
    measured = [as_measured(row, METRICS) for row in rows]
    return {"dataset": asked.dataset, "out": str(asked.out / ROWS), "rows": measured}


COMPARE_EXPLANATIONS = Command(
    "compare-explanations",
    "ways to explain, on one dataset",
    _parser,
    _compare,
    after_interrupt="the same command continues",
    takes_scripts=True,
)
