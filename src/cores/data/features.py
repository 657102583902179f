"""The records of TU files as graphs with the features of Table 1."""

import numpy as np
import torch
from numpy.typing import NDArray

from cores.data.catalogue import DatasetSpec
from cores.data.dataset import Dataset
from cores.data.tu import TURecords
from cores.errors import UserError
from cores.graphs.segments import pointers
from cores.graphs.store import GraphStore

MOST_LABELS = 10_000
"""Most columns that one kind of label may take as one-hot."""


def from_tu(spec: DatasetSpec, records: TURecords) -> Dataset:
    """Attributes and one-hot labels, of which the dataset's row keeps some columns."""
    one_hot, label_names = _one_hot(records.node_labels, "node", spec.name)
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused below
        features = np.concatenate([records.attributes.astype(np.float32), one_hot], axis=1)
    names = (*(f"attribute {i}" for i in range(records.attributes.shape[1])), *label_names)
    needed = max((*(spec.columns or ()), *spec.continuous, *spec.clipped), default=-1) + 1
    if features.shape[1] < needed:
        raise UserError(
            f"{spec.name} has {features.shape[1]} feature columns in these files, not {needed} or "
            "more: another dataset of that name? Give its path instead of the name"
        )
    if spec.columns is not None:
        features = features[:, list(spec.columns)]
        names = tuple(names[column] for column in spec.columns)
    if not names:
        features, names = np.ones((len(features), 1), np.float32), ("constant",)
    class_labels, classes = np.unique(records.graph_labels, return_inverse=True)
    graph_of_node = torch.from_numpy(records.graph_of_node)
    edge_index = torch.from_numpy(records.edge_index)
    graph_of_edge = graph_of_node[edge_index[0]]
    node_ptr = pointers(torch.bincount(graph_of_node, minlength=len(classes)))
    edge_attr, edge_names = _one_hot(records.edge_labels, "edge", spec.name)
    graphs = GraphStore(
        x=torch.from_numpy(features),
        edge_index=edge_index - node_ptr[graph_of_edge],
        y=torch.from_numpy(classes.astype(np.int64)),
        node_ptr=node_ptr,
        edge_ptr=pointers(torch.bincount(graph_of_edge, minlength=len(classes))),
        edge_attr=torch.from_numpy(edge_attr) if edge_names else None,
    )
    return Dataset(
        spec.name,
        graphs,
        class_names=tuple(str(label) for label in class_labels),
        feature_names=names,
        edge_feature_names=edge_names,
        continuous=spec.continuous,
        clipped=spec.clipped,
    )


def _one_hot(
    labels: NDArray[np.int64], word: str, source: str
) -> tuple[NDArray[np.float32], tuple[str, ...]]:
    """Columns for every value from the least to the greatest, kind after kind, and their names."""
    blocks = [np.empty((len(labels), 0), np.float32)]
    names: list[str] = []
    for number, kind in enumerate(labels.T):
        least, greatest = (int(kind.min()), int(kind.max())) if len(kind) else (0, -1)
        if greatest - least >= MOST_LABELS:
            raise UserError(
                f"{source}: {word} labels run from {least} to {greatest}; "
                f"renumber them to at most {MOST_LABELS} values"
            )
        block = np.zeros((len(kind), greatest - least + 1), np.float32)
        block[np.arange(len(kind)), kind - least] = 1
        blocks.append(block)
        names += [f"{word} label {number} = {value}" for value in range(least, greatest + 1)]
    return np.concatenate(blocks, axis=1), tuple(names)
