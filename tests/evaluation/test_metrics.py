"""Metrics against counts made by hand."""

import pytest
import torch

from cores.evaluation.metrics import accuracy, balanced_accuracy, majority_rate

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
