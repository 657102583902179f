"""`cores compare`: several models on one dataset."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jsonargparse import Namespace

from cores.cli import display
from cores.cli.command import Command, CommandParser
from cores.cli.comparison import Comparison, Failures, add_comparison
from cores.cli.values import names
from cores.config.models import CONVS, MODELS, model_spec
from cores.runs.rows import Row


def _parser() -> CommandParser:
    parser = CommandParser(
        "Train several models on the same splits of one dataset and print one table: accuracy, "
        "balanced accuracy, kept ratio, an independent classifier (the judge) on the kept "
        "subgraphs and on random ones as small, in percent, and seconds of training. A picture "
        "shows accuracy over kept share. Finished runs are not repeated: the same command "
        "continues after an interruption.",
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
    from cores.runs.compare import COLUMNS, LEGEND, compare, comparison_lines
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
    title = f"{Path(asked.dataset).name} ({CONVS[options.conv].title})"
    pictures = [str(path) for path in _pictures(rows, title, asked.out)]
    if rows and not options.json:
        caption = f"{title}, percent, mean ± deviation over the splits"
        display.print_columns(caption, COLUMNS, comparison_lines(rows))
        display.print_lines([*LEGEND, f"Picture: {pictures[0]}"])
    failures.check()
    return {
        "dataset": asked.dataset,
        "rows": [as_measured(row) for row in rows],
        "pictures": pictures,
    }


def _pictures(rows: Sequence[Row], title: str, out: Path) -> list[Path]:
    """Draw what has been measured, into the folder of the runs."""
    if not rows:
        return []
    from cores.explain.tradeoff import tradeoff_figure

    return tradeoff_figure(rows, title, out / "comparison")


COMPARE = Command(
    "compare",
    "several models on one dataset",
    _parser,
    _compare,
    after_interrupt="the same command continues",
    takes_scripts=True,
)
