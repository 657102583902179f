"""The epochs of a run as its folder tells them."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cores.files import parsed_json, read_text
from cores.training.journal import HISTORY

NAMES = {
    "selection_accuracy": "accuracy, selection part",
    "selection_mae": "mean error, selection part",
    "selection_roc_auc": "mean ROC-AUC, selection part",
    "selection_ratio": "share kept",
    "loss": "loss of the classifier",
    "reward": "mean reward of the policy",
}
"""What is shown of an epoch, in words."""


def read_history(run: Path) -> list[dict[str, Any]]:
    """The epochs of a run; a line that is none, of a killed run say, is left out."""
    path = run / HISTORY
    if not path.is_file():
        return []
    epochs = []
    for line in read_text(path).splitlines():
        try:
            epoch = parsed_json(line)
        except ValueError:
            continue
        if isinstance(epoch, dict):
            epochs.append(epoch)
    return epochs


def curve(epochs: Sequence[Mapping[str, Any]], name: str) -> list[tuple[int, float]]:
    """Number and value of every epoch that has a finite one.

    >>> curve([{"loss": 0.5}, {}, {"loss": 0.25}], "loss")
    [(1, 0.5), (3, 0.25)]
    """
    found: list[tuple[int, Any]] = [
        (number, epoch.get(name)) for number, epoch in enumerate(epochs, 1)
    ]
    return [
        (number, float(value))
        for number, value in found
        if type(value) in (int, float) and math.isfinite(value)
    ]
