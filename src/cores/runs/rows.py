"""Measured runs as rows of a CSV file, and mean and deviation over runs. Needs no torch."""

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from cores.config.models import model_spec
from cores.errors import UserError
from cores.files import escape, read_json, write_atomically

ACTIONS = (
    *("sampled_accuracy", "sampled_node_ratio", "sampled_edge_ratio"),
    *("mode_accuracy", "mode_node_ratio", "mode_edge_ratio"),
)
"""Metrics of the published presets; files of rows of before version 0.3 have no such columns."""
METRICS = (
    *("accuracy", "balanced_accuracy", "majority_rate", "node_ratio", "edge_ratio"),
    *("full_accuracy", "judge_accuracy", "judge_full_accuracy", "judge_random_accuracy"),
    *("node_auc", "node_precision", "node_recall", "edge_auc"),
    *("coverage", "set_size", "alpha", "lam", "desired_ratio", "test_graphs"),
    *("epochs", "best_epoch", "seconds", *ACTIONS),
)
MEANINGS = {
    "accuracy": "share of test graphs classified correctly",
    "balanced_accuracy": "mean accuracy over the classes",
    "majority_rate": "accuracy of predicting the largest class",
    "roc_auc": "ROC-AUC of the class probabilities",
    "average_precision": "area under precision and recall",
    "f1": "mean of precision and recall (harmonic)",
    "mcc": "Matthews correlation of labels and predictions",
    "mae": "mean absolute error",
    "rmse": "root of the mean squared error",
    "r2": "share of the variance that is predicted",
    "constant_mae": "mean error of the best constant",
    "node_ratio": "share of nodes kept in the subgraphs",
    "edge_ratio": "share of edges kept in the subgraphs",
    "pieces": "mean number of connected pieces kept of a graph",
    "sampled_accuracy": "accuracy from a sample of the policy",
    "sampled_node_ratio": "share of nodes kept in that sample",
    "sampled_edge_ratio": "share of edges kept in that sample",
    "mode_accuracy": "accuracy from the mode of the policy",
    "mode_node_ratio": "share of nodes kept by that mode",
    "mode_edge_ratio": "share of edges kept by that mode",
    "full_accuracy": "the classifier on the full graphs",
    "full_roc_auc": "ROC-AUC on the full graphs",
    "judge_roc_auc": "ROC-AUC of a judge on the same subgraphs",
    "judge_full_roc_auc": "ROC-AUC of that judge on the full graphs",
    "judge_random_roc_auc": "its ROC-AUC on random subgraphs as small",
    "full_mae": "mean error on the full graphs",
    "judge_mae": "mean error of a judge on the same subgraphs",
    "judge_full_mae": "mean error of that judge on the full graphs",
    "judge_random_mae": "its mean error on random subgraphs as small",
    "judge_accuracy": "an independent classifier on the same subgraphs",
    "judge_full_accuracy": "that classifier on the full graphs",
    "judge_random_accuracy": "that classifier on random subgraphs as small",
    "node_auc": "ROC-AUC of the node scores, ground truth",
    "node_precision": "share of kept nodes in the ground truth",
    "node_recall": "share of ground-truth nodes kept",
    "node_iou": "kept and true nodes, intersection over union",
    "edge_auc": "ROC-AUC of the edge scores, ground truth",
    "edge_iou": "kept and true edges, intersection over union",
    "effect_node_auc": "ROC-AUC of what nodes contribute, ground truth",
    "effect_edge_auc": "ROC-AUC of what edges contribute, ground truth",
    "sufficiency_loss": "probability lost if only the kept part is left",
    "comprehensiveness": "probability lost if only the rest is left",
    "fidelity_minus": "labels changed if only the kept part is left",
    "fidelity_plus": "labels changed if only the rest is left",
    "idempotence": "share of a kept part that is kept again",
    "permutation_stability": "overlap if nodes are numbered otherwise",
    "edge_stability": "overlap if one edge is missing",
    "run_overlap": "overlap of what the runs keep, two by two",
    "run_overlap_random": "overlap of random parts as large",
    "coverage": "share of prediction sets with the true label",
    "set_size": "mean number of labels per prediction set",
    "interval_width": "mean width of the prediction intervals",
    "tolerance": "error that counts as none",
    "alpha": "error rate of the prediction sets",
    "sufficiency": "tau, from which a part is sufficient",
    "weak": "share of graphs not as sure to begin with",
    "minimal": "share of parts of which no single unit can go",
    "questions": "mean number of questions for a part",
    "members": "classifiers in the committee",
    "committee_std": "mean deviation of their predictions",
    "calibration_error": "mean gap of probability and accuracy",
    "test_graphs": "number of test graphs",
    "epochs": "epochs trained",
    "seconds": "training time",
}
"""Meaning of each metric, in a line."""
EVERY = tuple(dict.fromkeys((*METRICS, *MEANINGS)))
"""Metrics of any task."""
NAMES = ("dataset", "model", "conv", "preset", "split", "seed")
ORIGIN = ("key", "version", "commit", "machine")
"""Columns before and after the metrics, which name a run and its origin."""

LARGEST = 1e15
"""Largest value of a metric; no number of graphs, epochs or seconds is higher."""
Row = dict[str, str]


@dataclass(frozen=True)
class Spread:
    """Mean and sample standard deviation over runs."""

    mean: float
    std: float | None
    """None for a single run."""
    runs: int


def read_metrics(path: Path) -> dict[str, Any]:
    """The metrics of a run or of a saved model; a file that neither can have written is refused."""
    metrics = read_json(path)
    if (
        isinstance(metrics, dict)
        and all(isinstance(metrics.get(name), str) for name in ("dataset", "model", "conv"))
        and all(_is_number(metrics[name]) for name in {*METRICS, *MEANINGS} & {*metrics})
        and _are_lines(metrics.get("verdicts", []))
        and _is_promise(metrics.get("promise"))
        and _is_json(metrics)
    ):
        return metrics
    raise UserError(f"{path} is damaged; delete it and go on with the run")


def _is_number(value: Any) -> bool:
    return value is None or (type(value) in (int, float) and abs(value) <= LARGEST)


def _is_json(value: Any) -> bool:
    """Tell whether a value can be printed as JSON, which has no NaN."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


def _is_promise(value: Any) -> bool:
    """Tell whether a value is a promise of a sufficiency, or nothing."""
    names = ("sufficiency", "max_wrong", "observed_wrong", "answered", "graphs")
    return value is None or (
        isinstance(value, dict)
        and all(_is_number(value.get(name)) and value.get(name) is not None for name in names)
        and _is_number(value.get("confidence"))
        and isinstance(value.get("per_class"), bool)
    )


def _are_lines(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(line, str) for line in value)


def run_row(folder: Path, metrics: Sequence[str] = METRICS) -> Row | None:
    """The row of a run folder, with these metrics; None while the run has not finished."""
    if not (folder / "metrics.json").exists():
        return None
    try:
        identity = read_json(folder / "config.json")
        reward = identity["config"].get("reward", {})  # what a sweep over lambda or d varies
        found = reward | identity | read_metrics(folder / "metrics.json")
        row = {name: cell(found.get(name)) for name in (*NAMES, *metrics, *ORIGIN)}
        check_run(row, metrics)
    except UserError:
        raise
    except (AttributeError, LookupError, TypeError, ValueError):
        raise UserError(f"the run in {folder} is damaged; remove it to run it again") from None
    return row


def shown_metrics(metrics: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The metrics that apply, for people: name, value and meaning.

    >>> shown_metrics({"accuracy": 0.9666, "node_auc": None, "seconds": 12.34})[1]
    ('seconds', '12.3', 'training time')
    """
    from cores.tasks import task_meanings  # needs torch

    return [
        (name, _shown(value, 1 if name == "seconds" else 3), meaning)
        for name, meaning in (MEANINGS | task_meanings(metrics)).items()
        if (value := metrics.get(name)) is not None
    ]


def _shown(value: Any, decimals: int) -> str:
    return f"{value:.{decimals}f}" if isinstance(value, float) else str(value)


def cell(value: Any) -> str:
    """A value as a file of rows has it; empty where there is none."""
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def as_measured(row: Row, metrics: Sequence[str] = METRICS) -> dict[str, Any]:
    """A row with its metrics as numbers, None where one does not apply."""
    return row | {name: _number(row[name]) for name in ("split", "seed", *metrics)}


def _number(text: str) -> int | float | None:
    if not text:
        return None
    return int(text) if text.isdecimal() else float(text)


def check_run(row: Row, metrics: Sequence[str]) -> None:
    """Raise a ValueError for values that no run can have measured."""
    int(row["split"]), int(row["seed"])
    check_finite(row, metrics)
    known = row["accuracy"] or metrics is METRICS  # runs of other tasks have none
    if known and not 0 <= float(row["accuracy"]) <= 1:
        raise ValueError("an accuracy outside of 0 to 1")


def check_finite(row: Row, metrics: Iterable[str]) -> None:
    """Raise a ValueError for a metric that is no number; it may be missing."""
    for name in metrics:
        if row[name] and not math.isfinite(float(row[name])):
            raise ValueError(f"{name} is not a number")


def write_rows(path: Path, rows: Iterable[Row], columns: Sequence[str]) -> None:
    """Write a file of these rows alone, with these of their columns."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(path, buffer.getvalue().encode())


def spread(rows: Iterable[Row], metric: str, **where: str) -> Spread | None:
    """Mean and deviation of a metric over the matching rows; None if no row has it.

    >>> rows = [{"model": "gnn", "accuracy": "0.5"}, {"model": "gnn", "accuracy": "0.7"}]
    >>> spread(rows, "accuracy", model="gnn").mean
    0.6
    """
    values = [float(row[metric]) for row in matching(rows, where) if row[metric]]
    if not values:
        return None
    return Spread(mean(values), stdev(values) if len(values) > 1 else None, len(values))


def matching(rows: Iterable[Row], where: Mapping[str, str]) -> list[Row]:
    """The rows whose columns have the given values."""
    return [row for row in rows if all(row[name] == value for name, value in where.items())]


def kept_metric(model: str) -> str:
    """The kept ratio of what a model removes; of nodes where it removes both."""
    return "edge_ratio" if model_spec(model).removes == "edge" else "node_ratio"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table as Markdown.

    >>> print(markdown_table(["dataset", "ours"], [["BZR", "82.4"]]))
    | dataset | ours |
    |---|---|
    | BZR | 82.4 |
    """
    lines = [f"| {' | '.join(map(escape.markdown, cells))} |" for cells in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])
