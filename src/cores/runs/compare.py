"""Several models on one dataset, with the same splits: one compact table."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cores.config import merged
from cores.config.models import MODELS
from cores.config.presets import preset_config
from cores.data.catalogue import canonical_name
from cores.data.inputs.columns import ColumnNames
from cores.files import make_folder
from cores.runs.rows import (
    EVERY,
    MEANINGS,
    Row,
    Spread,
    kept_metric,
    markdown_table,
    matching,
    run_row,
    spread,
    write_rows,
)
from cores.runs.runner import Outcome, run_all
from cores.tasks import CLASSIFICATION, ShownMetric, Task

ROWS = "comparison.csv"
"""File of the rows, beside the run folders."""
LEAST, MOST = 0.1, 10_000
"""Between these, errors are told as they are; else in a power of thousand."""


def compare(
    dataset: str,
    models: Sequence[str],
    out: Path,
    *,
    conv: str = "gin",
    splits: Sequence[int] = (1, 2, 3),
    settings: Mapping[str, Any] | None = None,
    workers: int = 1,
    device: str = "auto",
    data_root: Path | None = None,
    columns: ColumnNames | None = None,
    done: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Row]:
    """Train every model on every split into folders under ``out``; returns a row per finished run.

    Runs that are there already are not repeated. The rows are also written beside the folders,
    as a CSV file with all that was measured.

    Args:
        dataset: A name or a path.
        models: Names of models, built-in or registered.
        out: Folder of the run folders.
        conv: Message-passing layer.
        splits: Numbers of the splits.
        settings: Changes to the default settings, nested.
        workers: Processes.
        device: Of the runs.
        data_root: Folder of the datasets.
        columns: Which columns of a file hold what.
        done: Called with every run as it ends.
    """
    make_folder(out)
    configs = [
        preset_config(
            *(canonical_name(dataset), model, conv, "default"),
            merged(settings or {}, {"split": split}),
        )
        for model in dict.fromkeys(models)
        for split in splits
    ]
    outcomes = run_all(
        configs,
        out,
        workers=workers,
        device=device,
        data_root=data_root,
        columns=columns,
        done=done,
    )
    found = [run_row(outcome.folder, EVERY) for outcome in outcomes if outcome.failure is None]
    rows = [row for row in found if row is not None]
    if rows:
        measured = {name for row in rows for name, value in row.items() if value}
        write_rows(out / ROWS, rows, [name for name in rows[0] if name in measured])
    return rows


def comparison_columns(task: Task = CLASSIFICATION) -> tuple[str, ...]:
    """The names of the columns."""
    measured = task.leading.title, task.beside.title
    return ("model", "runs", *measured, "kept", "judge", "random", "seconds")


def comparison_legend(rows: Sequence[Row], task: Task = CLASSIFICATION) -> list[str]:
    """Explain the columns, in lines for a terminal."""
    leading, beside = task.leading, task.beside
    means = MEANINGS | task.meanings
    better = "higher" if leading.higher_is_better else "lower"
    power = _power(rows, task)
    scale = f", in units of 1e{power:+d}" if power else ""
    return [
        f"{leading.title}: {means[leading.metric]}{scale}; {better} is better",
        f"{beside.title}: {means[beside.metric]}",
        "kept: share of the nodes, or of the edges where only those are removed",
        f"judge: {leading.title} of an independent model on the kept subgraphs;",
        "random: on random ones as small",
    ]


def comparison_table(rows: Sequence[Row], task: Task = CLASSIFICATION) -> str:
    """A comparison as a Markdown table."""
    return markdown_table(comparison_columns(task), comparison_lines(rows, task))


def comparison_lines(rows: Sequence[Row], task: Task = CLASSIFICATION) -> list[list[str]]:
    """Every model's metrics over its runs: mean ± deviation, a line per model.

    *kept* is the share of nodes, or of edges where only those are removed, in percent; *judge* the
    leading metric of an independent model on the kept subgraphs, *random* on random ones as small.
    """
    measured = {row["model"] for row in rows}
    leading, power = task.leading, _power(rows, task)
    lines = []
    for name in (name for name in MODELS if name in measured):
        runs = matching(rows, {"model": name})
        seconds = spread(runs, "seconds")
        lines.append(
            [
                MODELS[name].title,
                str(len(runs)),
                _told(spread(runs, leading.metric), leading, power),
                _told(spread(runs, task.beside.metric), task.beside, power),
                _percent(spread(runs, kept_metric(name))),
                _told(spread(runs, f"judge_{leading.metric}"), leading, power),
                _told(spread(runs, f"judge_random_{leading.metric}"), leading, power),
                "–" if seconds is None else f"{seconds.mean:.0f}",
            ]
        )
    return lines


def _power(rows: Sequence[Row], task: Task) -> int:
    """The power of ten in which errors are told: 0, or one of thousand for very small or large."""
    if task.leading.unit != "target":
        return 0
    models = {row["model"] for row in rows}
    found = [spread(rows, task.leading.metric, model=name) for name in models]
    largest = max((each.mean for each in found if each is not None), default=0)
    if largest <= 0 or LEAST <= largest < MOST:
        return 0
    return 3 * math.floor(math.log10(largest) / 3)


def _told(value: Spread | None, metric: ShownMetric, power: int) -> str:
    if value is None:
        return "–"
    if metric.unit == "percent":
        return _percent(value)
    return f"{value.mean:.2f}" if metric.unit == "plain" else _error(value, power)


def _error(value: Spread, power: int) -> str:
    """An error in three digits, and its deviation in one fewer.

    >>> _error(Spread(12.345, 0.678, 3), 0), _error(Spread(0.00012, None, 1), -6)
    ('12.3±1', '120')
    """
    mean, std = value.mean / 10**power, value.std
    digits = 2 - math.floor(math.log10(mean)) if mean > 0 else 2
    places = min(max(digits, 0), 3)
    deviation = "" if std is None else f"±{std / 10**power:.{max(places - 1, 0)}f}"
    return f"{mean:.{places}f}{deviation}"


def _percent(value: Spread | None) -> str:
    if value is None:
        return "–"
    deviation = "" if value.std is None else f"±{100 * value.std:.0f}"
    return f"{100 * value.mean:.1f}{deviation}"
