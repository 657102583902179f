"""`cores compare`: several models on one dataset."""

from typing import Any

from jsonargparse import Namespace

from cores.cli import display
from cores.cli.command import Command, CommandParser
from cores.cli.comparison import Comparison, Failures, add_comparison
from cores.cli.values import names
from cores.config.models import CONVS, MODELS, model_spec


def _parser() -> CommandParser:
    parser = CommandParser(
        "Train several models on the same splits of one dataset and print one table: accuracy, "
        "balanced accuracy, kept ratio, an independent classifier (the judge) on the kept "
        "subgraphs and on random ones as small, in percent, and seconds of training. Finished runs "
        "are not repeated: the same command continues after an interruption.",
        usage="cores compare --dataset NAME [options]",
    )
    parser.add_argument(
        "--models",
        type=str,
        default="gnn,cores-node,cores-edge",
        metavar="NAMES",
        help=f"Names with commas (default: gnn,cores-node,cores-edge), of {', '.join(MODELS)}.",
    )
    add_comparison(parser, "compare")
    return parser


def _compare(options: Namespace) -> dict[str, Any]:
    from cores.runs.compare import compare, comparison_table
    from cores.runs.rows import as_measured

    models = names(options.models, "--models")
    for name in models:
        model_spec(name)
    asked = Comparison.of(options)
    failures = Failures()
    runs = len(models) * len(asked.options["splits"])
    with display.runs_progress(runs, options.flags) as advance:
        rows = compare(
            asked.dataset, models, asked.out, **asked.options, done=failures.noted(advance)
        )
    if rows and not options.json:
        caption = f"{asked.dataset} ({CONVS[options.conv].title}), percent"
        display.print_table(caption, comparison_table(rows).markdown())
    failures.check()
    return {"dataset": asked.dataset, "rows": [as_measured(row) for row in rows]}


COMPARE = Command(
    "compare",
    "several models on one dataset",
    _parser,
    _compare,
    after_interrupt="the same command continues",
    takes_scripts=True,
)
