"""`cores compare`: several models on one dataset."""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from cores.cli import display
from cores.cli.command import Command, CommandParser
from cores.cli.comparison import Comparison, Failures, add_comparison
from cores.cli.settings import BRIEF
from cores.cli.values import names
from cores.config.models import CONVS, MODELS, model_spec, need_task
from cores.config.run import AskedTask
from cores.runs.rows import Row

if TYPE_CHECKING:
    from cores.tasks import Task


def _parser() -> CommandParser:
    parser = CommandParser(
        "Train several models on the same splits of one dataset and print one table: accuracy and "
        "balanced accuracy (of numbers mean error and R2, of several labels ROC-AUC and "
        "accuracy), kept ratio, an independent model (the judge) on the kept subgraphs and on "
        "random ones as small, and seconds of training. A picture shows accuracy, mean error or "
        "ROC-AUC over kept share; comparison.csv has every metric of every run. Finished runs are "
        "not repeated: the same command continues after an interruption.",
        usage="cores compare --dataset NAME [options]",
    )
    parser.add_argument(
        "--models",
        default="gnn,cores-node,cores-edge",
        metavar="NAMES",
        help=f"Names with commas (default: gnn,cores-node,cores-edge), of {', '.join(MODELS)}.",
    )
    parser.add_argument(
        "--task",
        choices=get_args(AskedTask),
        metavar="NAME",
        help=f"{BRIEF['task']}: {', '.join(get_args(AskedTask))} (default: auto).",
    )
    add_comparison(parser, "compare")
    return parser


def _compare(options: Namespace) -> dict[str, Any]:
    from cores.runs.compare import (
        ROWS,
        compare,
        comparison_columns,
        comparison_legend,
        comparison_lines,
    )
    from cores.runs.rows import EVERY, as_measured
    from cores.tasks import TASKS

    models = names(options.models, "--models")
    for name in models:
        model_spec(name)
    asked = Comparison.of(options, any_task=True)
    for name in models:
        need_task(name, asked.task)
    task = TASKS[asked.task]
    failures = Failures()
    runs = len(models) * len(asked.options["splits"])
    with display.runs_progress(runs, options.flags) as advance:
        rows = compare(
            asked.dataset, models, asked.out, **asked.options, done=failures.noted(advance)
        )
    title = f"{Path(asked.dataset).name} ({CONVS[options.conv].title})"
    pictures = [str(path) for path in _pictures(rows, title, asked.out, task)]
    if rows and not options.json:
        unit = "percent" if task.leading.unit == "percent" else "kept in percent"
        caption = f"{title}, {unit}, mean ± deviation over the splits"
        display.print_columns(caption, comparison_columns(task), comparison_lines(rows, task))
        files = [f"Picture: {pictures[0]}", f"Rows: {asked.out / ROWS}"]
        display.print_lines([*comparison_legend(rows, task), *files])
    failures.check()
    return {
        "dataset": asked.dataset,
        "task": asked.task,
        "rows": [as_measured(row, EVERY) for row in rows],
        "pictures": pictures,
    }


def _pictures(rows: Sequence[Row], title: str, out: Path, task: "Task") -> list[Path]:
    """Draw what has been measured, into the folder of the runs."""
    if not rows:
        return []
    from cores.explain.tradeoff import tradeoff_figure

    return tradeoff_figure(rows, title, out / "comparison", task)


COMPARE = Command(
    "compare",
    "several models on one dataset",
    _parser,
    _compare,
    after_interrupt="the same command continues",
    takes_scripts=True,
)
