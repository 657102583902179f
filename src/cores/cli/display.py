"""What a person sees: tables on standard output, progress on standard error."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markdown import Markdown
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from cores.config import RunConfig

if TYPE_CHECKING:
    from cores.runs.search import Tried

MEANINGS = {
    "accuracy": "test graphs classified correctly",
    "balanced_accuracy": "the same, every class counting alike",
    "majority_rate": "accuracy of guessing the largest class",
    "node_ratio": "share of the nodes the classifier sees",
    "edge_ratio": "share of the edges the classifier sees",
    "full_accuracy": "its accuracy on the whole graphs",
    "judge_accuracy": "one that never met the policy, same view",
    "judge_full_accuracy": "that judge on the whole graphs",
    "judge_random_accuracy": "that judge on random parts as small",
    "node_auc": "true nodes rank above others (ROC-AUC)",
    "node_precision": "kept nodes that are true ones",
    "node_recall": "true nodes that are kept",
    "edge_auc": "true edges rank above others (ROC-AUC)",
    "coverage": "prediction sets that hold the true label",
    "set_size": "labels per prediction set, on average",
    "alpha": "error rate the sets were calibrated for",
    "test_graphs": "graphs held out for these figures",
    "epochs": "epochs trained",
    "seconds": "time spent on training",
}
"""One line per figure, for a reader who is new here."""


def print_metrics(metrics: Mapping[str, Any], folder: str) -> None:
    """A run's figures with their meaning."""
    title = f"{metrics['model']} ({metrics['conv']}) on {metrics['dataset']}"
    table = Table(title=Text(title), title_justify="left")
    table.add_column("figure")
    table.add_column("value", justify="right")
    table.add_column("meaning")
    for name, meaning in MEANINGS.items():
        value = metrics.get(name)
        if value is not None:
            shown = f"{value:.3f}" if isinstance(value, float) else str(value)
            table.add_row(name, shown, meaning)
    console = Console()
    console.print(table)
    console.print(Text(f"Run folder: {folder}"), soft_wrap=True)


def print_datasets(rows: Sequence[Mapping[str, Any]]) -> None:
    """Table 1."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("dataset", no_wrap=True)
    counts = ("graphs", "node\nfeat.", "edge\nfeat.", "classes", "undi-\nrected")
    for name in (*counts, "nodes", "edges"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            Text(row["dataset"]),
            *(str(row[name]) for name in ("graphs", "node_features", "edge_features", "classes")),
            "yes" if row["undirected"] else "no",
            f"{row['nodes_mean']:.2f} ± {row['nodes_std']:.2f}",
            f"{row['edges_mean']:.2f} ± {row['edges_std']:.2f}",
        )
    Console().print(table)


def print_benchmark(figures: Mapping[str, float]) -> None:
    """Ratios first, then the seconds they come from."""
    table = Table()
    table.add_column("figure")
    table.add_column("value", justify="right")
    for name in sorted(figures, key=lambda each: "seconds" in each):
        table.add_row(name, f"{figures[name]:.4g}")
    Console().print(table)


def print_trials(trials: Sequence["Tried"], settings: str) -> None:
    """The best trials of a search, and where its settings are."""
    table = Table()
    table.add_column("trial", justify="right")
    table.add_column("score", justify="right")
    table.add_column("settings")
    for each in trials[:_BEST]:
        changed = [
            f"{group}.{name} {value:.3g}" if isinstance(value, float) else f"{group}.{name} {value}"
            for group, values in each.settings.items()
            for name, value in values.items()
        ]
        score = "failed" if each.score is None else f"{each.score:.4f}"
        table.add_row(str(each.number), score, Text(", ".join(changed)))
    console = Console()
    console.print(table)
    console.print(Text(f"Best settings: {settings}"), soft_wrap=True)


_BEST = 5
"""Trials of a search that are shown."""


def print_table(caption: str, table: str) -> None:
    """A Markdown table, drawn, below its caption."""
    console = Console()
    console.print(Text(caption, style="bold"))
    console.print(Markdown(table))


def print_lines(lines: Sequence[str]) -> None:
    """Sentences and file names as they are; Markdown's bold is for files."""
    for line in lines:
        Console().print(Text(line.replace("**", "")), soft_wrap=True)


def print_note(line: str) -> None:
    """What a user may want to know beside the result, on standard error."""
    Console(stderr=True).print(Text(f"note: {line}"), soft_wrap=True)


def print_failure(name: str, reason: str, console: Console | None = None) -> None:
    """What failed while the rest goes on, on standard error."""
    line = Text(f"failed: {name}: {reason}")
    (console or Console(stderr=True)).print(line, soft_wrap=True)


_SHOWN = {
    "loss": "loss",
    "reward": "reward",
    "selection_accuracy": "accuracy",
    "selection_ratio": "kept",
}
"""Figures of an epoch beside the bar, in a word each."""


@contextmanager
def training_progress(config: RunConfig) -> Iterator[Callable[[int, dict[str, float]], None]]:
    """A bar over the epochs with loss, accuracy, rate and time left, on standard error.

    It appears with the first epoch: what is wrong before that is told in one line alone.
    """
    progress = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
    task = progress.add_task(
        f"{config.model} on {config.dataset}",
        total=config.training.epochs,
        figures="",
        rate="",
        start=False,
    )

    def report(epoch: int, figures: dict[str, float]) -> None:
        if not progress.live.is_started:
            progress.start()
            progress.start_task(task)
        speed = progress.tasks[0].speed
        progress.update(
            task,
            completed=epoch,
            figures="  ".join(
                f"{words} {figures[name]:.3f}" for name, words in _SHOWN.items() if name in figures
            ),
            rate=f"{speed:.1f} epochs/s" if speed else "",
        )

    try:
        yield report
    finally:
        if progress.live.is_started:
            progress.stop()


@contextmanager
def runs_progress(total: int, what: str = "runs") -> Iterator[Callable[[str, str | None], None]]:
    """A bar over many runs with the time left; in a log, a line for every run that ends.

    Failed runs are told as they come. What is wrong before the first is told in one line alone.
    """
    console = Console(stderr=True)
    progress = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        speed_estimate_period=math.inf,  # runs take minutes: the last 30 seconds tell nothing
    )
    task = progress.add_task(what, total=total)

    def advance(name: str, failure: str | None) -> None:
        progress.advance(task)
        if failure is not None:
            print_failure(name, failure, console)
        elif not console.is_terminal:
            state = progress.tasks[0]
            spent = timedelta(seconds=round(state.elapsed or 0))
            left = state.time_remaining
            ahead = f", {timedelta(seconds=round(left))} left" if left else ""
            line = f"{state.completed:g}/{total} {what} after {spent}{ahead}: {name}"
            console.print(Text(line), soft_wrap=True)

    with progress:
        try:
            yield advance
        except BaseException:
            progress.live.transient = not progress.tasks[0].completed  # an empty bar goes
            raise
