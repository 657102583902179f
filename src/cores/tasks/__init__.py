"""Tasks: classes that own all that depends on the kind of prediction."""

from collections.abc import Collection, Mapping

from cores.config.spec import TaskName
from cores.tasks.base import Head, ShownMetric, Task
from cores.tasks.classification import Classification
from cores.tasks.multilabel import Multilabel
from cores.tasks.regression import Regression

__all__ = [
    "CLASSIFICATION",
    "MULTILABEL",
    "REGRESSION",
    "TASKS",
    "Head",
    "ShownMetric",
    "Task",
    "selection_score",
    "task_meanings",
]

CLASSIFICATION, REGRESSION, MULTILABEL = Classification(), Regression(), Multilabel()
TASKS: dict[TaskName, Task] = {task.name: task for task in (CLASSIFICATION, REGRESSION, MULTILABEL)}
"""Every task by name."""


def selection_score(found: Mapping[str, float]) -> float:
    """How good an epoch was on the selection part, by its metrics; higher is better.

    >>> selection_score({"selection_accuracy": 0.9}), selection_score({"selection_mae": 0.25})
    (0.9, -0.25)
    """
    if "selection_mae" in found:
        return -found["selection_mae"]
    if "selection_roc_auc" in found:
        return found["selection_roc_auc"]
    return found.get("selection_balanced_accuracy", found["selection_accuracy"])


def task_meanings(metrics: Collection[str]) -> dict[str, str]:
    """Meanings of metrics that differ for the task on which they were measured."""
    return MULTILABEL.meanings if "label_roc_auc" in metrics else {}
