"""`cores compare`: several models on one dataset; and what commands share that compare runs."""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast, get_args

from cores.cli import display
from cores.cli.command import Command, CommandParser
from cores.cli.options import add_columns, add_data_root, check_positive, names, numbers, own_file
from cores.cli.settings import SHORT, settings_file
from cores.config import merged
from cores.config.models import CONVS, MODELS, conv_spec, model_spec, need_task
from cores.config.run import AskedTask
from cores.config.spec import TaskName
from cores.data.catalogue import canonical_name
from cores.errors import failed


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
        help=f"{SHORT['task'].text}: {', '.join(get_args(AskedTask))} (default: auto).",
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
    asked = Comparison.of(options)
    for name in models:
        need_task(name, asked.task)
    task = TASKS[asked.task]
    runs = len(models) * len(asked.options["splits"])
    with display.runs_progress(runs, options.flags) as advance:
        rows = compare(asked.dataset, models, asked.out, **asked.options, done=asked.noted(advance))
    title = f"{Path(asked.dataset).name} ({CONVS[options.conv].title})"
    pictures = []
    if rows:
        from cores.explain.tradeoff import tradeoff_figure

        figures = tradeoff_figure(rows, title, asked.out / "comparison", task)
        pictures = [str(path) for path in figures]
    if rows and not options.json:
        unit = "percent" if task.leading.unit == "percent" else "kept in percent"
        caption = f"{title}, {unit}, mean ± deviation over the splits"
        display.print_columns(caption, comparison_columns(task), comparison_lines(rows, task))
        files = [f"Picture: {pictures[0]}", f"Rows: {asked.out / ROWS}"]
        display.print_lines([*comparison_legend(rows, task), *files])
    asked.check_failures()
    return {
        "dataset": asked.dataset,
        "task": asked.task,
        "rows": [as_measured(row, EVERY) for row in rows],
        "pictures": pictures,
    }


def add_comparison(parser: CommandParser, folder: str) -> None:
    """Add the options for many runs on one dataset, by default in ``runs/FOLDER-DATASET``."""
    parser.add_argument(
        "--dataset", required=True, metavar="NAME", help=f"{SHORT['dataset'].text}."
    )
    parser.add_argument(
        "--conv",
        default="gin",
        metavar="NAME",
        help=f"Message-passing layer: {', '.join(CONVS)} (default: gin).",
    )
    parser.add_argument(
        "--splits",
        default="1-3",
        metavar="NUMBERS",
        help="For example 1-5 or 1,3 (default: 1-3).",
    )
    parser.add_count(
        "--epochs", "Most epochs (default: 330 for cores-*, else 240; fewer for large files)."
    )
    parser.add_path("--settings", "FILE", "Settings of all models from a TOML or JSON file.")
    parser.add_count("--workers", "Processes (default: 1).", default=1)
    parser.add_path(
        "--out", "FOLDER", f"Folder of the run folders (default: runs/{folder}-DATASET)."
    )
    parser.set_defaults(folder=folder)
    add_columns(parser, split=True)
    add_data_root(parser)


@dataclass(frozen=True)
class Comparison:
    """A comparison that was asked for, checked before the first run."""

    dataset: str
    out: Path
    task: TaskName
    """Task of the data."""
    options: dict[str, Any]
    """Arguments of the library's functions."""
    failures: dict[Path, str] = field(default_factory=dict)
    """Folders of the runs that failed while the rest went on, and why."""

    @classmethod
    def of(cls, options: Namespace) -> "Comparison":
        """Check the options; what is wrong with all runs is told once.

        Only a command with ``--task`` takes data with more than classes.
        """
        from cores.data.dataset import need_classes
        from cores.data.datasets import load_dataset
        from cores.runs.device import choose_device

        check_positive(options, "workers")
        conv_spec(options.conv)
        splits = numbers(options.splits, "--splits", first=1)
        settings = {} if options.settings is None else settings_file(options.settings)
        if options.epochs is not None:
            settings = merged(settings, {"training": {"epochs": options.epochs}})
        if getattr(options, "task", None) is not None:
            settings = merged(settings, {"task": options.task})
        dataset = canonical_name(options.dataset)
        choose_device(options.device)
        asked = settings.get("task")  # an unknown one is refused by the runs
        task = cast(AskedTask, asked) if asked in get_args(AskedTask) else "auto"
        own = own_file(dataset, options, task)
        data = load_dataset(dataset, options.data_root, task=task) if own is None else own.dataset
        if "task" not in options:
            need_classes(data, "a comparison")
        if own is not None:
            settings = merged(own.settings, settings)
            own.note_unusable()
        named = {
            "conv": options.conv,
            "splits": splits,
            "settings": settings,
            "workers": options.workers,
            "device": options.device,
            "data_root": options.data_root,
            "columns": None if own is None else own.named,
        }
        out = Path(options.out or f"runs/{options.folder}-{Path(dataset).stem}")
        return cls(dataset, out, data.task, named)

    def noted(self, advance: Callable[[str, str | None], None]) -> Callable[[Any], None]:
        """Return what to call with every run as it ends."""

        def done(outcome: Any) -> None:
            if outcome.failure is not None:
                self.failures[outcome.folder] = outcome.failure
            advance(outcome.folder.name, outcome.failure)

        return done

    def check_failures(self) -> None:
        """Raise an error that counts the runs that failed, if there are any."""
        from cores.runs.runner import has_fault

        if self.failures:
            folder, reason = next(iter(self.failures.items()))
            raise failed(
                f"{len(self.failures)} runs failed, the first {folder.name}: {reason}",
                ours=any(has_fault(path) for path in self.failures),
            )


COMPARE = Command(
    "compare",
    "several models on one dataset",
    _parser,
    _compare,
    after_interrupt="the same command continues",
)
