"""Tables on standard output, progress on standard error."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from rich.console import Console, JustifyMethod
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from cores.cli.command import with_flags
from cores.files.escape import brief, terminal
from cores.runs.rows import shown_metrics
from cores.verdict import promise_sentence


def plain_text(line: object, style: str = "") -> Text:
    """A line as it is: neither rich nor the terminal obeys what stands in it."""
    return Text(terminal(line), style)


def print_metrics(
    metrics: Mapping[str, Any],
    folder: str,
    flags: Mapping[str, str],
    of_train: Mapping[str, str] | None = None,
) -> None:
    """Print a run's metrics with their meaning, and its verdicts with the command's options.

    What is no option of the command may be one of ``cores train``.
    """
    title = f"{metrics['model']} ({metrics['conv']}) on {metrics['dataset']}"
    table = Table(title=plain_text(title), title_justify="left", show_edge=False, pad_edge=False)
    table.add_column("metric")
    table.add_column("value", justify="right")
    table.add_column("meaning")
    for row in shown_metrics(metrics):
        table.add_row(*map(plain_text, row))
    console = Console()
    console.print(table)
    for line in metrics.get("verdicts", ()):
        console.print(plain_text(with_flags(line, flags, of_train)))
    if metrics.get("promise") is not None:
        console.print(plain_text(promise_sentence(metrics["promise"])))
    console.print(plain_text(f"Run folder: {folder}"), soft_wrap=True)


def print_table(caption: str, table: str) -> None:
    """Print a Markdown table below its caption."""
    from rich.markdown import Markdown  # slow to import, and rarely needed

    console = Console()
    console.print(plain_text(caption, style="bold"))
    lines = map(terminal, table.splitlines())
    console.print(Markdown("\n".join(lines)))


def print_columns(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print names and numbers below a caption, as narrow as they are."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for number, name in enumerate(head):
        justify: JustifyMethod = "right" if number else "left"
        table.add_column(plain_text(name), justify=justify, no_wrap=number > 0)
    for row in rows:
        table.add_row(*map(plain_text, row))
    console = Console()
    console.print(plain_text(caption, style="bold"))
    console.print(table)


def print_lines(lines: Sequence[str]) -> None:
    """Print sentences and file names as they are; Markdown's bold is for files."""
    for line in lines:
        Console().print(plain_text(line.replace("**", "")), soft_wrap=True)


def print_note(line: str) -> None:
    """Print a remark beside the result, on standard error."""
    Console(stderr=True).print(Text(brief(f"note: {line}")), soft_wrap=True)


def note_unusable(errors: int, first: Sequence[str], rows: int | None = None) -> None:
    """Remark how many rows could not be used, if any, and why the first of them."""
    if errors:
        many = f"{errors:,}" if rows is None else f"{errors:,} of {rows:,}"
        reasons = " ".join("; ".join(first).split())
        more = "; …" if errors > len(first) else ""
        print_note(f"{many} rows could not be used: {reasons}{more}")


def print_failure(
    name: str, reason: str, flags: Mapping[str, str], console: Console | None = None
) -> None:
    """Print what failed while the rest continues, on standard error, with the command's options."""
    line = Text(brief(f"failed: {name}: {with_flags(reason, flags)}"))
    (console or Console(stderr=True)).print(line, soft_wrap=True)


@contextmanager
def runs_progress(
    total: int, flags: Mapping[str, str], what: str = "runs"
) -> Iterator[Callable[[str, str | None], None]]:
    """A bar over many runs with the time left; in a log, a line for every run that ends.

    Failed runs are printed as they come, with the command's options in place of arguments. An
    error before the first leaves nothing on the screen.
    """
    # Runs take minutes: the last 30 seconds tell nothing.
    progress = _bar(TimeElapsedColumn(), speed_estimate_period=math.inf)
    console = progress.console
    task = progress.add_task(what, total=total)

    def advance(name: str, failure: str | None) -> None:
        progress.advance(task)
        if failure is not None:
            print_failure(name, failure, flags, console)
        elif not console.is_terminal:
            state = progress.tasks[0]
            spent = timedelta(seconds=round(state.elapsed or 0))
            left = state.time_remaining
            ahead = f", {timedelta(seconds=round(left))} left" if left else ""
            line = f"{state.completed:g}/{total} {what} after {spent}{ahead}: {name}"
            console.print(plain_text(line), soft_wrap=True)

    with progress:
        try:
            yield advance
        except BaseException:
            progress.live.transient = not progress.tasks[0].completed  # an empty bar goes
            raise


@contextmanager
def rows_progress(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar over rows or files with rate and time left, on standard error of a terminal."""
    progress = _bar(TextColumn("{task.fields[rate]}"), transient=True)
    task = progress.add_task(what, total=total, rate="")

    def advance(rows: int) -> None:
        progress.advance(task, rows)
        speed = progress.tasks[0].speed
        progress.update(task, rate=f"{speed:,.0f} {what}/s" if speed else "")

    with progress:
        yield advance


def _bar(column: ProgressColumn, **options: Any) -> Progress:
    """A bar on standard error, with a column before the time left; hidden in a log."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        column,
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        **options,
    )
