"""Labels that are numbers: the targets of a regression."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from cores.config.run import AskedTask
from cores.config.spec import TaskName

MANY = 20
"""More different numbers than this that are not whole are no classes."""
LARGEST = float(torch.finfo(torch.float32).max)


def found_task(labels: Sequence[Any], asked: AskedTask = "auto") -> TaskName:
    """What labels ask for, unless somebody has said it.

    >>> found_task([number / 8 for number in range(100)]), found_task([0.5, 1.5] * 50)
    ('regression', 'classification')
    >>> found_task(["0", "1"], "regression")
    'regression'
    """
    if asked != "auto":
        return asked
    numbers = set()
    for label in labels:
        number = _number(label)
        if number is None:
            return "classification"
        if not number.is_integer():
            numbers.add(number)
    return "regression" if len(numbers) > MANY else "classification"


def target_problem(label: Any) -> str | None:
    """Why a label is no target; None for one that is."""
    number = _number(label)
    if number is None:
        return f"has the label {label!r:.40}; a regression needs numbers"
    if not abs(number) < LARGEST:  # NaN is not, either
        return f"has the label {label!r:.40}; a regression needs finite numbers"
    return None


def as_targets(labels: Sequence[Any]) -> Float[Tensor, " graphs"]:
    """Labels without a problem as targets."""
    return torch.tensor([_number(label) for label in labels], dtype=torch.float32)


def _number(label: Any) -> float | None:
    """A label as a number, which may be written as text."""
    try:
        return float(label)
    except OverflowError:  # a whole number of hundreds of digits
        return math.inf
    except (TypeError, ValueError):
        return None
