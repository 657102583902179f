"""A dataset: its graphs, and what is needed to prepare and to name them."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch_geometric.data import Data

from cores.data.store import GraphStore
from cores.errors import UserError


@dataclass(frozen=True)
class Dataset:
    """Graphs with what is needed to prepare and to name them; a sequence of PyG graphs."""

    name: str
    graphs: GraphStore
    class_names: tuple[str, ...]
    """The labels as the files spell them, by class."""
    feature_names: tuple[str, ...]
    """What each column of the node features is; a model reads only data with the same columns."""
    edge_feature_names: tuple[str, ...] = ()
    continuous: tuple[int, ...] = ()
    clipped: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.graphs)

    def __getitem__(self, index: int) -> Data:
        if not -len(self) <= index < len(self):
            raise IndexError(f"graph {index} of {len(self)}")
        return self.graphs.graph(index % len(self))

    def __iter__(self) -> Iterator[Data]:
        return (self.graphs.graph(index) for index in range(len(self)))

    @property
    def num_classes(self) -> int:
        """Number of labels."""
        return len(self.class_names)

    @property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits that change with any feature, edge or label."""
        digest = hashlib.sha256()
        graphs = self.graphs
        for tensor in (graphs.x, graphs.edge_index, graphs.y, graphs.node_ptr, graphs.edge_ptr):
            digest.update(tensor.contiguous().numpy().tobytes())
        if graphs.edge_attr is not None:
            digest.update(graphs.edge_attr.contiguous().numpy().tobytes())
        return digest.hexdigest()[:12]


def numbered(columns: int) -> tuple[str, ...]:
    """Names of columns that nobody named."""
    return tuple(f"feature {number}" for number in range(columns))


def checked(dataset: Dataset) -> Dataset:
    """Refuse what no model can be trained on."""
    graphs = dataset.graphs
    if graphs.y.min() != 0 or graphs.y.max() != dataset.num_classes - 1:
        raise UserError(f"{dataset.name}: the classes must be numbered 0, 1, ... without a gap")
    owner = torch.arange(len(graphs)).repeat_interleave(graphs.num_edges)
    if ((graphs.edge_index < 0) | (graphs.edge_index >= graphs.num_nodes[owner])).any():
        raise UserError(f"{dataset.name}: an edge names a node that its graph does not have")
    bad = ~graphs.x.isfinite().all(dim=1)
    if bad.any():
        node = int(bad.nonzero()[0])
        graph = int(torch.searchsorted(graphs.node_ptr, node, right=True))
        raise UserError(
            f"{dataset.name}: {int(bad.sum())} nodes have NaN, infinite or too large features, "
            f"the first in graph {graph}; clean the data"
        )
    if dataset.num_classes < 2:
        raise UserError(
            f"{dataset.name}: every graph has the label {dataset.class_names[0]}; "
            "a classifier needs at least two classes"
        )
    return dataset
