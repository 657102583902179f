"""Cross-validation: a run per fold, in folders of their own, and their mean and deviation."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from cores import ranks
from cores.config import RunConfig
from cores.data.dataset import Dataset, need_classes
from cores.data.inputs.columns import ColumnNames
from cores.data.splits import split_dataset
from cores.errors import UserError, failed
from cores.files import make_folder, unlinked, write_json
from cores.runs.folder import CONFIG, METRICS
from cores.runs.progress import Reports
from cores.runs.rows import markdown_table, read_metrics
from cores.runs.run import load_data, train_run
from cores.runs.runner import Outcome, has_fault, train_in_worker
from cores.runs.workers import in_workers

FOLDS = "folds.json"
AVERAGED = (
    *("accuracy", "balanced_accuracy", "majority_rate", "roc_auc", "average_precision", "f1"),
    *("mcc", "node_ratio", "edge_ratio", "full_accuracy", "judge_accuracy", "judge_full_accuracy"),
    *("judge_random_accuracy", "node_auc", "node_precision", "node_recall", "node_iou"),
    *("edge_auc", "edge_iou"),
    *("coverage", "set_size", "epochs", "seconds"),
)
"""Metrics whose mean and deviation over the folds are told."""
SHOWN = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced",
    "roc_auc": "ROC-AUC",
    "f1": "F1",
    "mcc": "MCC",
    "node_ratio": "nodes",
    "edge_ratio": "edges",
    "judge_accuracy": "judge",
    "coverage": "coverage",
}
"""Metrics in the table, and the heads of their columns; all are shares."""


def fold_configs(config: RunConfig, folds: int) -> list[RunConfig]:
    """The runs of a cross-validation: split k tests on fold k."""
    parts = replace(config.parts, folds=folds)
    return [replace(config, parts=parts, split=number) for number in range(1, folds + 1)]


def train_folds(
    config: RunConfig,
    folds: int,
    out: Path,
    *,
    data_root: Path | None = None,
    columns: ColumnNames | None = None,
    dataset: Dataset | None = None,
    device: str = "auto",
    progress: Callable[[RunConfig], AbstractContextManager[Reports]] = lambda fold: nullcontext(
        Reports()
    ),
    workers: int = 1,
    done: Callable[[Outcome], None] = lambda outcome: None,
) -> dict[str, Any]:
    """Train a run per fold into ``fold1``, ``fold2``, … of a folder.

    Runs that are there already are not repeated, and interrupted ones go on. The metrics of all,
    and their means and deviations, are returned and written to ``folds.json``.

    Args:
        config: Of every fold, but for the split.
        folds: How many.
        out: Folder of the run folders.
        data_root: Folder of the datasets.
        columns: Of a file, which hold what.
        dataset: What was read from it, if that was done already.
        device: Of the runs.
        progress: Shows the progress of a fold, where there is one at a time.
        workers: Processes; with several, so many folds are trained at a time.
        done: Called with every fold that a process has ended.
    """
    configs = fold_configs(config, folds)
    if (out / CONFIG).exists():
        raise UserError(f"{out} holds a run of its own; choose another `out`")
    if dataset is None:
        dataset = load_data(config, data_root, columns)
    need_classes(dataset, "`folds`")
    for fold in configs:  # what is wrong with one fold is told before the first is trained
        split_dataset(dataset, fold.split, fold.parts)
    if ranks.leads():
        make_folder(out)
    if workers > 1:
        measured = _at_once(configs, out, device, data_root, columns, workers, done)
    else:
        measured = []
        for fold in configs:
            with progress(fold) as reports:
                metrics = train_run(
                    fold,
                    fold_folder(out, fold),
                    data_root=data_root,
                    columns=columns,
                    dataset=dataset,
                    device=device,
                    resume=True,
                    report=reports.training,
                    judge_report=reports.judge,
                )
            measured.append(metrics)
    found = {"folds": measured, **spread_of(measured)}
    if ranks.leads():
        write_json(out / FOLDS, found)
    return found


def fold_folder(out: Path, fold: RunConfig) -> Path:
    """Return the folder of a fold's run."""
    return unlinked(out / f"fold{fold.split}")


def _at_once(
    configs: Sequence[RunConfig],
    out: Path,
    device: str,
    data_root: Path | None,
    columns: ColumnNames | None,
    workers: int,
    done: Callable[[Outcome], None],
) -> list[dict[str, Any]]:
    """Train the folds in processes; returns their metrics."""
    job = train_in_worker(out, device, data_root, columns, fold_folder)
    failures: list[Outcome] = []
    with in_workers(configs, job, device, workers) as ended:
        for fold, failure in ended:
            outcome = Outcome(fold, fold_folder(out, fold), failure)
            failures += [outcome] if failure is not None else []
            done(outcome)
    if failures:
        first = failures[0]
        raise failed(
            f"{len(failures)} folds failed, the first {first.folder.name}: {first.failure}",
            ours=any(has_fault(outcome.folder) for outcome in failures),
        )
    return [read_metrics(fold_folder(out, fold) / METRICS) for fold in configs]


def spread_of(measured: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float | None]]:
    """Mean and sample standard deviation of the metrics; None where no fold has one.

    >>> spread_of([{"accuracy": 0.5, "mcc": None}, {"accuracy": 1.0, "mcc": None}])["mean"]
    {'accuracy': 0.75, 'mcc': None}
    """
    means: dict[str, float | None] = {}
    deviations: dict[str, float | None] = {}
    for name in (name for name in AVERAGED if any(name in metrics for metrics in measured)):
        values = [metrics[name] for metrics in measured if metrics.get(name) is not None]
        means[name] = mean(values) if values else None
        deviations[name] = stdev(values) if len(values) > 1 else None
    return {"mean": means, "std": deviations}


def folds_table(found: Mapping[str, Any]) -> str:
    """Write a line per fold, then mean and deviation in percent, as a Markdown table.

    Metrics that no fold has are left out. Deviations have a line of their own, so that 80 columns
    hold the table.
    """
    names = [name for name in SHOWN if found["mean"].get(name) is not None]

    def line(metrics: Mapping[str, Any]) -> Iterator[str]:
        for name in names:
            value = metrics.get(name)
            yield "–" if value is None else f"{100 * value:.1f}"

    rows = [[str(number), *line(fold)] for number, fold in enumerate(found["folds"], start=1)]
    spread = [["mean", *line(found["mean"])], ["±", *line(found["std"])]]
    return markdown_table(["fold", *(SHOWN[name] for name in names)], [*rows, *spread])
