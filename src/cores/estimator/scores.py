"""How many of a user's labels are predicted: the estimator's score, by task."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from cores.data.labels import as_targets, label_numbers, target_problem
from cores.data.nodes import NodeGraph, given_parts, node_labels
from cores.errors import UserError, nearest
from cores.evaluation.metrics import label_accuracy, r2


def class_score(predicted: Sequence[Any], labels: Sequence[Any], known: Sequence[Any]) -> float:
    """Accuracy; labels are those that the model knows."""
    _check_number(labels, len(predicted), "labels")
    for label in labels:
        if label not in known:
            names = ", ".join(map(repr, known))
            raise UserError(f"`y` has the label {label!r}, the model knows {names}")
    return float(np.mean([a == b for a, b in zip(predicted, labels, strict=True)]))


def value_score(values: Sequence[float], targets: Sequence[Any]) -> float:
    """R2 of predicted numbers; NaN where the targets are all the same."""
    _check_number(targets, len(values), "labels")
    for number, target in enumerate(targets):
        if (problem := target_problem(target)) is not None:
            raise UserError(f"graph {number} {problem}")
    found = r2(torch.tensor(values)[:, None], as_targets(targets))
    return float("nan") if found is None else found


def several_score(
    probs: Float[Tensor, "graphs labels"],
    rows: Sequence[Any],
    names: Sequence[str],
    known: Sequence[Any],
) -> float:
    """Share of the known values of several labels that is predicted."""
    _check_number(rows, len(probs), "rows")
    named = (row for row in rows if isinstance(row, Mapping))
    for name in dict.fromkeys(str(each) for row in named for each in row):
        if name not in names:
            raise UserError(f"`y` has the label {name!r}; {nearest(name, names)}")
    numbers = label_numbers(rows, names, known, "`y`")
    if bool(numbers.isnan().all()):
        raise UserError("`y` holds no known value")
    return label_accuracy(probs, numbers)


def node_score(predicted: NDArray[Any], graph: Data, y: Any) -> float:
    """Accuracy on the labelled nodes of a graph's ``test_mask``, or on all without one."""
    labels = node_labels(NodeGraph(graph), y)
    parts = given_parts(graph, len(labels), needed=["test"])
    chosen = [
        node
        for node, label in enumerate(labels)
        if label is not None and (not parts or parts[node] == "test")
    ]
    if not chosen:
        raise UserError("no node has a label; set y")
    return float(np.mean([predicted[node] == labels[node] for node in chosen]))


def _check_number(labels: Sequence[Any], graphs: int, what: str) -> None:
    if len(labels) != graphs:
        raise UserError(f"`y` has {len(labels)} {what} for {graphs} graphs")
