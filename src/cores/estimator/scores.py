"""The estimator's score on a user's labels, by task."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from cores.config.spec import TaskName
from cores.data.labels import as_targets, label_numbers
from cores.data.nodes import NodeGraph, given_parts, node_labels
from cores.errors import UserError, nearest
from cores.runs.trained import DataSchema
from cores.tasks import TASKS


def graph_score(
    probs: Float[Tensor, "graphs outputs"], labels: Sequence[Any], schema: DataSchema
) -> float:
    """Accuracy on labelled graphs; R2 of numbers, NaN where the targets are all the same.

    Of several labels, the share of the known values that is predicted.
    """
    if len(labels) != len(probs):
        raise UserError(f"`y` has {len(labels)} labels for {len(probs)} graphs")
    row = TASKS[schema.task]
    numbers = _READ[schema.task](labels, schema)
    found = row.quality[row.scored](probs, numbers)
    return float("nan") if found is None else float(found)  # type: ignore[arg-type]


def _class_numbers(labels: Sequence[Any], schema: DataSchema) -> Tensor:
    for label in labels:
        if label not in schema.labels:
            names = ", ".join(map(repr, schema.labels))
            raise UserError(f"`y` has the label {label!r}, the model knows {names}")
    return torch.tensor([schema.labels.index(label) for label in labels])


def _targets(labels: Sequence[Any], schema: DataSchema) -> Tensor:
    return as_targets(labels)


def _values(labels: Sequence[Any], schema: DataSchema) -> Tensor:
    named = (row for row in labels if isinstance(row, Mapping))
    for name in dict.fromkeys(str(each) for row in named for each in row):
        if name not in schema.class_names:
            told = nearest(name, schema.class_names)
            raise UserError(f"`y` has the label {name!r}; {told}")
    numbers = label_numbers(labels, schema.class_names, schema.labels, "`y`")
    if bool(numbers.isnan().all()):
        raise UserError("`y` holds no known value")
    return numbers


_READ: dict[TaskName, Callable[[Sequence[Any], DataSchema], Tensor]] = {
    "classification": _class_numbers,
    "regression": _targets,
    "multilabel": _values,
}
"""Readers of labels that a user gives, by task."""


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
