"""A dataset: its graphs, and what is needed to prepare and to name them."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import torch
from jaxtyping import Int
from torch import Tensor
from torch_geometric.data import Data

from cores.config.spec import TaskName
from cores.data.encoding import Encoding
from cores.data.inputs.columns import ColumnNames
from cores.data.raw import Unusable
from cores.errors import UserError
from cores.graphs.segments import owners
from cores.graphs.store import GraphStore
from cores.tasks import TASKS

Index = slice | Sequence[int] | Sequence[bool] | Tensor
"""An index of several graphs, as in PyG: a slice, positions, or a mask; a NumPy array, too."""


@dataclass(frozen=True)
class Dims:
    """Sizes and task of the graphs that a network is made for."""

    num_features: int
    num_classes: int
    """Number of labels, where graphs have several; 0 where numbers are predicted."""
    num_edge_features: int = 0
    task: TaskName = "classification"
    rooted: bool = False
    """The graphs are neighbourhoods of nodes, which are classified."""
    molecules: bool = False
    """The last edge feature says which bonds are in rings."""
    quantile_alpha: float | None = None
    """The share of targets to be outside of two quantiles that are predicted beside a number; None:
    the number alone."""

    @property
    def num_outputs(self) -> int:
        """Numbers that a network predicts of a graph.

        One per class or label; or the one, with its two quantiles where these are predicted.
        """
        return TASKS[self.task].num_outputs(self.num_classes, self.quantile_alpha)


@dataclass(frozen=True, repr=False)
class Dataset:
    """Graphs with what is needed to prepare and to name them; a sequence of PyG graphs.

    Indexing is PyG's: a number gives a graph; a slice, a list of numbers or a mask a dataset.
    """

    name: str
    graphs: GraphStore
    class_names: tuple[str, ...]
    """The labels as text, by class; none where they are numbers to predict. Where graphs have
    several labels, what each is called."""
    feature_names: tuple[str, ...]
    """Names of the node features' columns; a model reads only data with the same columns."""
    edge_feature_names: tuple[str, ...] = ()
    continuous: tuple[int, ...] = ()
    """Columns that a network standardises."""
    clipped: tuple[int, ...] = ()
    """Columns that it clips to their 0.1 % and 99.9 % quantiles first."""
    labels: tuple[Any, ...] = ()
    """The labels as they were given, by class; the class names if not given. Of several labels, the
    two values of each."""
    ids: tuple[str, ...] = ()
    """Names of the graphs in the file; empty where it has none."""
    smiles: tuple[str, ...] = ()
    """SMILES of each molecule; empty for other graphs."""
    given_parts: tuple[str, ...] = ()
    """The part that the file's split column puts each graph into; empty without such a column."""
    encoding: Encoding | None = None
    """The columns as a reader of files makes them; numbers if not given."""
    unusable: Unusable | None = None
    """Rows of the file that are not among the graphs."""
    columns: ColumnNames | None = None
    """Columns that the user named; None where none were."""
    task: TaskName = "classification"

    def __post_init__(self) -> None:
        if not self.labels:
            object.__setattr__(self, "labels", self.class_names)
        if self.encoding is None:
            columns = Encoding.of_columns(self.num_features, self.num_edge_features)
            object.__setattr__(self, "encoding", columns)

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name}: {len(self)} graphs, {self.num_features} features, "
            f"{self.label_summary})"
        )

    @property
    def label_summary(self) -> str:
        """The labels in words."""
        return TASKS[self.task].label_summary(self.graphs.y, self.num_classes)

    def __len__(self) -> int:
        return len(self.graphs)

    @overload
    def __getitem__(self, index: int) -> Data: ...

    @overload
    def __getitem__(self, index: Index) -> "Dataset": ...

    def __getitem__(self, index: Any) -> "Data | Dataset":
        if isinstance(index, slice):
            return self._chosen(torch.tensor(range(len(self))[index], dtype=torch.int64))
        asked = torch.as_tensor(index)
        if asked.dim() > 0:
            if asked.numel() == 0:  # an empty list has no kind of numbers
                asked = asked.long()
            return self._chosen(torch.arange(len(self))[asked])
        if asked.is_floating_point():
            raise IndexError(f"graphs are counted in whole numbers, got {index}")
        position = int(asked)
        if not -len(self) <= position < len(self):
            raise IndexError(f"graph {position} of {len(self)}")
        return self.graphs.graph(position % len(self))

    def _chosen(self, index: Tensor) -> "Dataset":
        """The graphs at these positions, with what is known of each."""
        per_graph: dict[str, Any] = {
            name: tuple(values[position] for position in index.tolist())
            for name in ("ids", "smiles", "given_parts")
            if (values := getattr(self, name))
        }
        return replace(self, graphs=self.graphs.subset(index), **per_graph)

    def __iter__(self) -> Iterator[Data]:
        return (self.graphs.graph(index) for index in range(len(self)))

    def graph_name(self, position: int) -> str:
        """Name of a graph in messages: that of the file, or its number, from 0."""
        return self.ids[position] if self.ids else str(position)

    @property
    def dims(self) -> Dims:
        """Sizes and task, as a network needs them."""
        sizes = self.num_features, self.num_classes, self.num_edge_features
        molecules = self.encoding is not None and self.encoding.kind == "molecules"
        return Dims(*sizes, self.task, rooted=self.graphs.rooted, molecules=molecules)

    @property
    def strata(self) -> Int[Tensor, " graphs"]:
        """Groups of graphs that every part must have in proportion: the classes, if there are."""
        return TASKS[self.task].strata(self.graphs.y)

    @property
    def stratum_names(self) -> tuple[str, ...]:
        """Names of those groups in messages."""
        return TASKS[self.task].stratum_names(self.class_names)

    @property
    def num_features(self) -> int:
        """Columns of the node features."""
        return self.graphs.num_features

    @property
    def num_node_features(self) -> int:
        """Columns of the node features, as PyG also calls them."""
        return self.graphs.num_features

    @property
    def num_edge_features(self) -> int:
        """Columns of the edge features."""
        return self.graphs.num_edge_features

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

    @property
    def division(self) -> str | None:
        """Twelve hexadecimal digits that change with the parts that a file gives."""
        if not self.given_parts:
            return None
        return hashlib.sha256("\n".join(self.given_parts).encode()).hexdigest()[:12]


def numbered(columns: int) -> tuple[str, ...]:
    """Names of columns that nobody named."""
    return tuple(f"feature {number}" for number in range(columns))


def unusable_graphs(graphs: GraphStore) -> dict[int, str]:
    """The graphs whose features no model can read, in order, and why."""
    found: dict[int, str] = {}
    for values, ptr, word in (
        (graphs.x, graphs.node_ptr, "node"),
        (graphs.edge_attr, graphs.edge_ptr, "edge"),
    ):
        # Of numbers that are all finite the sum is, too, or too large: it tells in one pass.
        if values is not None and not values.sum().isfinite():
            rows = (~values.isfinite().all(dim=1)).nonzero().flatten().cpu()
            owner = torch.searchsorted(ptr, rows, right=True) - 1
            for graph in owner.unique().tolist():
                found.setdefault(graph, f"has NaN, infinite or too large {word} features")
    return dict(sorted(found.items()))


def stray_edge(graphs: GraphStore) -> int | None:
    """The first graph with an edge that names a node which the graph does not have."""
    owner, ends = owners(graphs.num_edges), graphs.edge_index
    stray = ((ends < 0) | (ends >= graphs.num_nodes[owner])).any(dim=0)
    return int(owner[stray][0]) if stray.any() else None


def checked(dataset: Dataset) -> Dataset:
    """Refuse what no model can be trained on."""
    graphs = dataset.graphs
    TASKS[dataset.task].check(dataset.name, graphs.y, dataset.class_names, dataset.labels)
    if stray_edge(graphs) is not None:
        raise UserError(f"{dataset.name}: an edge names a node that its graph does not have")
    for graph, reason in unusable_graphs(graphs).items():
        raise UserError(f"{dataset.name}: graph {dataset.graph_name(graph)} {reason}; clean it")
    return dataset


def need_classes(dataset: Dataset, what: str) -> None:
    """Refuse what is made for classes alone."""
    TASKS[dataset.task].need_classes(what, f"{dataset.name} has")


def statistics(dataset: Dataset) -> dict[str, Any]:
    """The columns of Table 1; deviations are population ones, as there."""
    graphs = dataset.graphs
    nodes_mean, nodes_std = _mean_and_std(graphs.num_nodes)
    edges_mean, edges_std = _mean_and_std(graphs.num_edges)
    return {
        "dataset": dataset.name,
        "graphs": len(graphs),
        "node_features": graphs.num_features,
        "edge_features": graphs.num_edge_features,
        "classes": dataset.num_classes,
        "undirected": is_undirected(graphs),
        "nodes_mean": nodes_mean,
        "nodes_std": nodes_std,
        "edges_mean": edges_mean,
        "edges_std": edges_std,
    }


def _mean_and_std(counts: Int[Tensor, " graphs"]) -> tuple[float, float]:
    std, mean = torch.std_mean(counts.double(), correction=0)
    return round(float(mean), 2), round(float(std), 2)


def is_undirected(graphs: GraphStore) -> bool:
    """Tell whether every edge is there in both directions."""
    source, target = graphs.edge_index + graphs.node_ptr[owners(graphs.num_edges)]
    nodes = graphs.x.size(0)
    forward = (source * nodes + target).sort().values
    backward = (target * nodes + source).sort().values
    return bool(torch.equal(forward, backward))
