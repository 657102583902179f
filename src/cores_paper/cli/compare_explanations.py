"""`cores compare-explanations`: methods of explaining on one dataset."""

from argparse import Namespace
from typing import Any

from cores.cli import display
from cores.cli.command import Command, CommandParser
from cores.cli.compare import Comparison, add_comparison
from cores.cli.options import check_positive, names, numbers
from cores.config.models import CONVS
from cores_paper.explain.comparison_rows import (
    METHODS,
    METRICS,
    faithfulness_table,
    method_of,
    summary_table,
    told_share,
)


def _parser() -> CommandParser:
    parser = CommandParser(
        "Compare ways to explain a classifier, on the same test graphs: AUC of their scores "
        "against ground truth, where there is any; what an independent classifier (the judge) "
        "and the explained model itself make of the best-scored part, of every graph as much as "
        "CORES keeps; milliseconds per graph. Rows are written to explanations.csv as they come, "
        "and the same command continues after an interruption.",
        usage="cores compare-explanations --dataset NAME [options]",
    )
    parser.add_argument(
        "--models",
        default=",".join(METHODS),
        metavar="NAMES",
        help=f"Methods, names with commas (default: all), of {', '.join(METHODS)}.",
    )
    parser.add_argument(
        "--seeds",
        default="0",
        metavar="NUMBERS",
        help="Seeds, of every split, such as 0-2 (default: 0).",
    )
    parser.add_count(
        "--graphs",
        "Explain at most so many test graphs, evenly chosen, by every method (default: all).",
    )
    add_comparison(parser, "explanations")
    return parser


def _compare(options: Namespace) -> dict[str, Any]:
    methods, seeds = names(options.models, "--models"), numbers(options.seeds, "--seeds", first=0)
    for name in methods:
        method_of(name)
    check_positive(options, "graphs")
    asked = Comparison.of(options)
    from cores.runs.rows import as_measured
    from cores_paper.explain.comparison import ROWS, compare_explanations, models_of

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
            done=asked.noted(advance),
            explained=lambda name: advance(name, None),
        )
    if rows and not options.json:
        explained = (
            f"{asked.dataset} ({CONVS[options.conv].title}), {rows[0]['graphs']} test graphs"
        )
        display.print_table(f"{explained}, percent", summary_table(rows).markdown())
        display.print_table("Asked of the explained model", faithfulness_table(rows).markdown())
        display.print_lines([told_share(rows), f"Rows: {asked.out / ROWS}"])
    asked.check_failures()
    measured = [as_measured(row, METRICS) for row in rows]
    return {"dataset": asked.dataset, "out": str(asked.out / ROWS), "rows": measured}


COMPARE_EXPLANATIONS = Command(
    "compare-explanations",
    "ways to explain, on one dataset",
    _parser,
    _compare,
    after_interrupt="the same command continues",
)
