"""Progress of a training on standard error: its phases, and the time left for all."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from statistics import fmean
from typing import TYPE_CHECKING, Any

from cores.config import RunConfig
from cores.files.escape import terminal
from cores.training import effects, judge
from cores.training.supervised import Report, no_report

if TYPE_CHECKING:
    from rich.console import Console

JUDGE = "judge"
TYPICAL_GRAPHS = 1000
"""Taken for the size of a dataset that is not read yet."""
LOG_SHARE, LOG_SECONDS = 0.1, 30.0
"""In a log there is a line whenever so much of all epochs, or of time, has passed."""
_SHOWN = {
    "loss": "loss",
    "reward": "reward",
    "selection_accuracy": "accuracy",
    "selection_roc_auc": "ROC-AUC",
    "selection_ratio": "kept",
}
"""Metrics of an epoch that are shown, in a word each."""


@dataclass(frozen=True)
class Phase:
    """Epochs of a training that cost about the same."""

    name: str
    epochs: int
    cost: float
    """Cost of an epoch in graphs that a network is trained on; a guess until one was timed."""


def phases_of(
    config: RunConfig, judged: bool = True, num_graphs: int = TYPICAL_GRAPHS
) -> list[Phase]:
    """List the phases of a training, in order.

    >>> [(phase.name, phase.epochs) for phase in phases_of(RunConfig())]
    [('classifier', 213), ('policy', 27), ('effects', 27), ('judge', 150)]
    """
    epochs, warm_up = config.training.epochs, config.warm_up_epochs
    phases = [Phase("training", epochs, float(num_graphs))]
    if config.spec.has_policy:
        classifiers = float(num_graphs * max(1, config.committee.members - 1))  # less one fold each
        policy = _policy_cost(config, num_graphs)
        phases = [Phase("classifier", warm_up, classifiers)]
        if warm_up:
            phases.append(Phase("policy", epochs - warm_up, policy))
        else:
            phases.append(Phase("classifier and policy", epochs, classifiers + policy))
    if config.effect_steps:
        phases.append(Phase("effects", epochs - warm_up, _effects_cost(config, num_graphs)))
    if judged and config.spec.removes is not None:
        seen = judge.epochs_for(num_graphs) * num_graphs
        phases.append(Phase(JUDGE, judge.EPOCHS, seen / judge.EPOCHS))
    return [phase for phase in phases if phase.epochs > 0]


def _policy_cost(config: RunConfig, num_graphs: int) -> float:
    """Estimate an epoch of the policy: samples are only predicted, a third of training's work."""
    rolled_out = min(config.committee.members * config.ppo.env_steps, num_graphs)
    selection = config.parts.selection * num_graphs
    return rolled_out * (config.ppo.ppo_epochs + config.ppo.samples / 3) + selection / 3


def _effects_cost(config: RunConfig, num_graphs: int) -> float:
    """Estimate the steps for the effects that belong to an epoch of the policy."""
    at_once = min(effects.GRAPHS, num_graphs / config.committee.members)
    return config.effects.steps * at_once * (1 + 2 / 3)


class Pace:
    """Estimates how far a training is, and how long the rest takes.

    An epoch of a phase takes as long as its epochs did so far, without the first, which also pays
    for what a phase prepares. Before a phase begins, it is taken to take as long per graph as the
    phase before it, and while only its first epoch is known, no longer than that.

    Args:
        phases: What the training consists of.
        now: The time in seconds.
    """

    def __init__(self, phases: Sequence[Phase], now: Callable[[], float] = time.monotonic) -> None:
        self.phases = phases
        self.done = [0] * len(phases)
        self._seconds: list[list[float]] = [[] for _ in phases]
        self._now = now
        self._last: float | None = None

    def skip(self, number: int) -> None:
        """Take a phase as done, by another run."""
        self.done[number] = self.phases[number].epochs

    def advance(self, number: int, epoch: int) -> None:
        """Take in that an epoch of a phase has ended; phases before it have ended, too."""
        for earlier in range(number):
            self.skip(earlier)  # patience may have run out
        now = self._now()
        if self._last is not None:  # when the first epoch of all began is not known
            self._seconds[number].append(now - self._last)
        self.done[number], self._last = epoch, now

    @property
    def share(self) -> float:
        """Share of all epochs that are done."""
        return sum(self.done) / sum(phase.epochs for phase in self.phases)

    @property
    def left(self) -> float | None:
        """Seconds until the last phase ends; None before an epoch was timed."""
        per_graph: float | None = None
        seconds = 0.0
        for number, phase in enumerate(self.phases):
            epochs = phase.epochs - self.done[number]
            first, others = self._seconds[number][:1], self._seconds[number][1:]
            guess = [] if per_graph is None else [per_graph * phase.cost]
            if known := [fmean(others)] if others else first + guess:
                seconds += epochs * min(known)
                per_graph = min(known) / phase.cost
            elif epochs:
                return None
        return None if per_graph is None else seconds


@dataclass(frozen=True)
class Reports:
    """Callbacks for the epochs of a training, and for those of its judge."""

    training: Report = no_report
    judge: Report = no_report


@contextmanager
def training_progress(title: str, phases: Sequence[Phase]) -> Iterator[Reports]:
    """A bar for every phase, the epoch's metrics and the time left for all; in a log, lines.

    It appears with the first epoch, so that an error before it is one line on its own. A judge
    from the cache is not shown.
    """
    from rich.console import Console

    console = Console(stderr=True)
    live = console.is_terminal or console.is_jupyter
    view = _Bars(console, title, phases) if live else _Lines(console, title)
    pace = Pace(phases)
    training = [number for number, phase in enumerate(phases) if phase.name != JUDGE]

    def report_training(epoch: int, metrics: dict[str, float]) -> None:
        before = 0
        for number in training:
            if epoch <= before + phases[number].epochs:
                return report(number, epoch - before, metrics)
            before += phases[number].epochs
        return None

    def report_judge(epoch: int, metrics: dict[str, float]) -> None:
        number = len(phases) - 1
        if epoch == phases[number].epochs and not pace.done[number]:
            pace.skip(number)
        else:
            report(number, epoch, metrics)

    def report(number: int, epoch: int, metrics: dict[str, float]) -> None:
        pace.advance(number, epoch)
        view.show(pace, number, _words(metrics))

    try:
        yield Reports(report_training, report_judge)
    finally:
        view.close()


def _words(metrics: Mapping[str, float]) -> list[str]:
    return [f"{word} {metrics[name]:.3f}" for name, word in _SHOWN.items() if name in metrics]


def _time(seconds: float) -> str:
    return f"{timedelta(seconds=round(seconds))} left"


class _Bars:
    """For a terminal: a bar for every phase that has begun."""

    def __init__(self, console: "Console", title: str, phases: Sequence[Phase]) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        width = max(len(phase.name) for phase in phases)
        self._title = title
        self._progress = Progress(
            TextColumn(f"{{task.description:{width}}}", markup=False),
            BarColumn(bar_width=12),
            MofNCompleteColumn(),
            TextColumn("{task.fields[metrics]}"),
            TextColumn("{task.fields[left]}"),
            console=console,
        )
        self._tasks: dict[int, Any] = {}

    def show(self, pace: Pace, number: int, words: Sequence[str]) -> None:
        """Move the bar of a phase."""
        from rich.text import Text

        phase, progress = pace.phases[number], self._progress
        if not progress.live.is_started:
            progress.start()
            progress.console.print(Text(terminal(self._title)))
        if number not in self._tasks:
            for task in self._tasks.values():
                progress.update(task, left="")
            new = progress.add_task(phase.name, total=phase.epochs, metrics="", left="")
            self._tasks[number] = new
        left = "" if not pace.left else _time(pace.left)
        progress.update(
            self._tasks[number],
            completed=pace.done[number],
            metrics="  ".join(words),
            left=left,
        )

    def close(self) -> None:
        """Leave the bars as they are."""
        if self._progress.live.is_started:
            self._progress.stop()


class _Lines:
    """For a log: a line now and then, and at the end of a phase."""

    def __init__(self, console: "Console", title: str) -> None:
        self._console, self._title = console, title
        self._share, self._at = 0.0, time.monotonic()

    def show(self, pace: Pace, number: int, words: Sequence[str]) -> None:
        """Print a line, if it is time."""
        from rich.text import Text

        phase, epoch, now = pace.phases[number], pace.done[number], time.monotonic()
        advanced = round(pace.share - self._share, 9)
        waited = advanced >= LOG_SHARE or now - self._at >= LOG_SECONDS
        if not waited and epoch < phase.epochs:
            return
        self._share, self._at = pace.share, now
        left = [_time(pace.left)] if pace.left else []
        line = ", ".join([f"{phase.name} {epoch}/{phase.epochs}", *words, *left])
        self._console.print(Text(terminal(f"{self._title}: {line}")), soft_wrap=True)

    def close(self) -> None:
        """Nothing is left on the screen."""
