"""Metrics against counts made by hand."""

import numpy as np
import pytest
import torch
from sklearn.metrics import (
    average_precision_score,
    f1_score,
    matthews_corrcoef,
    roc_auc_score,
)

from cores.tasks import metrics
from cores.tasks.metrics import accuracy, balanced_accuracy, majority_rate

PROBS = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.3, 0.7]])
LABELS = torch.tensor([0, 0, 1, 1])


def test_accuracies_by_hand() -> None:
    assert accuracy(PROBS, LABELS) == 0.75
    assert balanced_accuracy(PROBS, torch.tensor([0, 0, 0, 1])) == 1
    assert balanced_accuracy(PROBS, torch.tensor([0, 0, 1, 0])) == pytest.approx((2 / 3 + 0) / 2)
    assert majority_rate(torch.tensor([1, 1, 0, 1])) == 0.75


def test_balanced_accuracy_ignores_a_class_that_is_not_there() -> None:
    probs = torch.tensor([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0]])
    assert balanced_accuracy(probs, torch.tensor([0, 1])) == 1


OURS_AND_THEIRS = {
    "roc_auc": lambda labels, probs, scores: roc_auc_score(labels, scores, multi_class="ovr"),
    "average_precision": lambda labels, probs, scores: (
        average_precision_score(labels, scores)
        if scores.ndim == 1
        else average_precision_score(np.eye(probs.shape[1])[labels], probs, average="macro")
    ),
    "f1": lambda labels, probs, scores: f1_score(
        labels, probs.argmax(1), average="binary" if scores.ndim == 1 else "macro", zero_division=0
    ),
    "mcc": lambda labels, probs, scores: matthews_corrcoef(labels, probs.argmax(1)),
}


@pytest.mark.parametrize("name", OURS_AND_THEIRS)
@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("levels", [3, 10**6])  # few levels: many ties
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_metrics_are_those_of_scikit_learn(name: str, classes: int, levels: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.cat(
        [torch.arange(classes), torch.randint(classes, (60,), generator=generator) // 2 * 2]
    ).clamp(max=classes - 1)
    scores = torch.randint(1, levels + 1, (len(labels), classes), generator=generator).double()
    probs = scores / scores.sum(1, keepdim=True)
    ours = getattr(metrics, name)(probs, labels)
    array = probs.numpy()
    theirs = OURS_AND_THEIRS[name](labels.numpy(), array, array[:, 1] if classes == 2 else array)
    assert ours == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("name", OURS_AND_THEIRS)
def test_metrics_of_labels_of_one_class_are_undefined(name: str) -> None:
    for label in (0, 1):
        assert getattr(metrics, name)(PROBS, torch.full((4,), label)) is None


def test_always_predicting_one_class_correlates_with_nothing() -> None:
    probs = torch.tensor([[0.9, 0.1]] * 4)
    assert metrics.mcc(probs, LABELS) == 0
    assert metrics.f1(probs, LABELS) == 0
