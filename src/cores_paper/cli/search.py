"""`cores search`: good settings for a model on a dataset."""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from cores.cli import display
from cores.cli.command import Command, CommandParser
from cores.cli.options import add_columns, add_data_root, check_positive
from cores.cli.settings import add_settings, asked_run

if TYPE_CHECKING:
    from cores_paper.search import Tried


def _parser() -> CommandParser:
    parser = CommandParser(
        "Search for settings. Every trial is a run with settings from the published search space, "
        "scored on the selection part of its split: by accuracy, for CORES by the reward of the "
        "parts that it shows, at the d and lambda given here. Other settings come from preset, "
        "--settings and options, as with `cores train`. The same command continues after an "
        "interruption; several may share --out.",
        usage="cores search [options]",
    )
    parser.add_path(
        "--out",
        "FOLDER",
        "Folder of the study (default: runs/search-DATASET-MODEL-CONV); the best settings "
        "come to settings.toml there, for `cores train --settings`.",
    )
    parser.add_count("--trials", "Trials in all (default: 20).", default=20)
    parser.add_argument(
        "--sampler",
        choices=("tpe", "random"),
        default="tpe",
        help="tpe learns from earlier trials; random is the paper's (default: tpe).",
    )
    parser.add_count("--workers", "Processes (default: 1).", default=1)
    add_columns(parser, split=True, hidden=True)
    add_data_root(parser)
    add_settings(parser)
    return parser


def _search(options: Namespace) -> dict[str, Any]:
    from cores_paper import search as searching

    check_positive(options, "trials", "workers")
    base, own = asked_run(options)
    if own is not None:
        own.note_unusable()
    dataset = Path(base.dataset).stem
    folder = Path(options.out or f"runs/search-{dataset}-{base.model}-{base.conv}")
    with display.runs_progress(options.trials, options.flags, "trials") as advance:
        tried = searching.search(
            base,
            folder,
            trials=options.trials,
            sampler=options.sampler,
            workers=options.workers,
            device=options.device,
            data_root=options.data_root,
            columns=None if own is None else own.named,
            done=lambda trial: advance(f"trial {trial.number}", trial.failure),
        )
    settings = str(folder / searching.SETTINGS)
    if not options.json:
        _print_trials(tried, settings)
    return {"settings": settings, "trials": [asdict(trial) for trial in tried]}


def _print_trials(trials: Sequence["Tried"], settings: str) -> None:
    """Print the best trials of a search, and where its settings are."""
    table = Table()
    table.add_column("trial", justify="right")
    table.add_column("score", justify="right")
    table.add_column("settings")
    for trial in trials[:_BEST]:
        changed = [
            f"{group}.{name} {value:.3g}" if isinstance(value, float) else f"{group}.{name} {value}"
            for group, values in trial.settings.items()
            for name, value in values.items()
        ]
        score = "failed" if trial.score is None else f"{trial.score:.4f}"
        table.add_row(str(trial.number), score, display.plain_text(", ".join(changed)))
    console = Console()
    console.print(table)
    console.print(display.plain_text(f"Best settings: {settings}"), soft_wrap=True)


_BEST = 5
"""Trials of a search that are shown."""


SEARCH = Command(
    "search",
    "search for good settings",
    _parser,
    _search,
    after_interrupt="the same command continues",
)
