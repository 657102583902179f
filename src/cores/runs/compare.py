"""Several models on one dataset, with the same splits: one compact table."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cores.config.models import MODELS
from cores.data.inputs.columns import ColumnNames
from cores.runs.rows import Row, Spread, kept_metric, matching, run_row, spread
from cores.runs.runner import Outcome
from cores.runs.series import Series
from cores.runs.table import Table

COLUMNS = ("model", "runs", "accuracy", "balanced", "kept", "judge", "random", "seconds")
LEGEND = (
    "kept: share of the nodes, or of the edges where only those are removed",
    "judge: an independent classifier on the kept subgraphs; random: on random ones",
)
"""What the columns are, in lines for a terminal."""


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

    Runs that are there already are not repeated.

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
    series = Series(dataset, out, conv, settings, workers, device, data_root, columns)
    configs = [
        series.config(model, {"split": split})
        for model in dict.fromkeys(models)
        for split in splits
    ]
    outcomes = series.run(configs, done).values()
    rows = [run_row(outcome.folder) for outcome in outcomes if outcome.failure is None]
    return [row for row in rows if row is not None]


def comparison_lines(rows: Sequence[Row]) -> list[list[str]]:
    """Every model's metrics over its runs, in percent: mean ± deviation, a line per model.

    *kept* is the share of nodes, or of edges where only those are removed; *judge* the accuracy of
    an independent classifier on the kept subgraphs, *random* its accuracy on random ones as small.
    """
    measured = {row["model"] for row in rows}
    lines = []
    for name in (name for name in MODELS if name in measured):
        runs = matching(rows, {"model": name})
        seconds = spread(runs, "seconds")
        lines.append(
            [
                MODELS[name].title,
                str(len(runs)),
                _percent(spread(runs, "accuracy")),
                _percent(spread(runs, "balanced_accuracy")),
                _percent(spread(runs, kept_metric(name))),
                _percent(spread(runs, "judge_accuracy")),
                _percent(spread(runs, "judge_random_accuracy")),
                "–" if seconds is None else f"{seconds.mean:.0f}",
            ]
        )
    return lines


def comparison_table(rows: Sequence[Row]) -> Table:
    """The same as a table."""
    return Table(COLUMNS, comparison_lines(rows))


def _percent(value: Spread | None) -> str:
    if value is None:
        return "–"
    deviation = "" if value.std is None else f"±{100 * value.std:.0f}"
    return f"{100 * value.mean:.1f}{deviation}"
