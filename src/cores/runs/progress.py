"""A bar over the epochs of a training, on standard error."""

from collections.abc import Iterator
from contextlib import contextmanager

from cores.training.supervised import Report

_SHOWN = {
    "loss": "loss",
    "reward": "reward",
    "selection_accuracy": "accuracy",
    "selection_ratio": "kept",
}
"""Metrics of an epoch beside the bar, in a word each."""


@contextmanager
def training_progress(title: str, epochs: int) -> Iterator[Report]:
    """A bar with the epoch's metrics, the rate and the time left.

    It appears with the first epoch, so that an error before it is one line on its own.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    progress = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[metrics]}"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
    task = progress.add_task(title, total=epochs, metrics="", rate="", start=False)

    def report(epoch: int, metrics: dict[str, float]) -> None:
        if not progress.live.is_started:
            progress.start()
            progress.start_task(task)
        speed = progress.tasks[0].speed
        progress.update(
            task,
            completed=epoch,
            metrics="  ".join(
                f"{words} {metrics[name]:.3f}" for name, words in _SHOWN.items() if name in metrics
            ),
            rate=f"{speed:.1f} epochs/s" if speed else "",
        )

    try:
        yield report
    finally:
        if progress.live.is_started:
            progress.stop()
