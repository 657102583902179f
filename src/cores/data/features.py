"""The records of TU files as graphs with the features of Table 1."""

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from cores.data.catalogue import DatasetSpec
from cores.data.dataset import Dataset
from cores.data.encoding import Encoding, encode
from cores.data.raw import RawGraphs
from cores.data.tu import TURecords
from cores.errors import UserError


def from_tu(spec: DatasetSpec, records: TURecords) -> Dataset:
    """Attributes and one-hot labels, of which the dataset's row keeps some columns."""
    raw = tu_graphs(records)
    encoding = Encoding.of(raw)
    try:
        names, edge_names = encoding.feature_names, encoding.edge_feature_names
    except UserError as error:
        raise UserError(f"{spec.name}: {error}") from None
    needed = max((*(spec.columns or ()), *spec.continuous, *spec.clipped), default=-1) + 1
    if len(names) < needed:
        raise UserError(
            f"{spec.name} has {len(names)} feature columns in these files, not {needed} or "
            "more: another dataset of that name? Give its path instead of the name"
        )
    if spec.columns is not None:
        names = tuple(names[column] for column in spec.columns)
    class_labels, classes = np.unique(records.graph_labels, return_inverse=True)
    graphs, _ = encode(raw, encoding, names, edge_names)
    return Dataset(
        spec.name,
        replace(graphs, y=torch.from_numpy(classes.astype(np.int64))),
        class_names=tuple(str(label) for label in class_labels),
        labels=tuple(class_labels.tolist()),
        feature_names=names,
        edge_feature_names=edge_names,
        continuous=spec.continuous,
        clipped=spec.clipped,
        encoding=encoding,
    )


def tu_graphs(records: TURecords) -> RawGraphs:
    """The files' graphs, nodes and edges grouped by graph."""
    graphs = records.num_graphs
    node_ptr = _pointers(np.bincount(records.graph_of_node, minlength=graphs))
    graph_of_edge = records.graph_of_node[records.edge_index[0]]
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused later
        attributes = records.attributes.astype(np.float32)
    return RawGraphs(
        node_ptr=node_ptr,
        edge_ptr=_pointers(np.bincount(graph_of_edge, minlength=graphs)),
        edge_index=records.edge_index - node_ptr[graph_of_edge],
        node_numbers=attributes,
        edge_numbers=np.empty((len(graph_of_edge), 0), dtype=np.float32),
        node_values=records.node_labels,
        edge_values=records.edge_labels,
    )


def _pointers(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], counts.cumsum()]).astype(np.int64)
