"""One graph whose nodes are classified, each from its neighbourhood, as a dataset or as rows."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor
from torch_geometric.data import Data

from cores.config import Reach
from cores.config.run import AskedTask
from cores.data.dataset import Dataset, numbered
from cores.data.encoding import ROOT, Encoding
from cores.data.labels import given_labels, numbered_classes
from cores.data.lists import continuous_columns, read_graphs
from cores.data.raw import RawGraphs, Rows, stored_rows
from cores.data.synthetic import MotifTruth
from cores.errors import UserError
from cores.files.limits import MEMORY, told_size
from cores.graphs.neighbourhoods import CHUNK, LargeGraph, Neighbourhoods
from cores.graphs.store import GraphStore

MASKS = {"train_mask": "train", "val_mask": "val", "test_mask": "test"}
"""Attributes of a graph that divide its nodes, and the part that each is."""


def labels_nodes(graph: Any) -> bool:
    """Tell whether a graph has a label per node, and not one for itself."""
    if not isinstance(graph, Data) or not isinstance(graph.get("y"), Tensor):
        return False
    nodes = graph.num_nodes
    return graph.y.numel() == nodes and (nodes or 0) > 1


class NodeGraph:
    """A graph whose nodes are classified, and what decides their classes, where that is known."""

    def __init__(self, data: Any, truth: MotifTruth | None = None) -> None:
        if not isinstance(data, Data):
            raise UserError(
                f"nodes are classified in one PyG Data, got a {type(data).__name__}; the model "
                "was fitted on nodes"
            )
        self.y = data.get("y")
        self.graph = read_graphs([data], finite=False)
        self.truth = truth
        self.large = LargeGraph(self.graph.edge_index, len(self))

    def __len__(self) -> int:
        return len(self.graph.x)

    def check_finite(self) -> None:
        """Refuse features that are NaN or infinite."""
        for values, what in ((self.graph.x, "node"), (self.graph.edge_attr, "edge")):
            if values is not None and len(strange := (~values.isfinite().all(dim=1)).nonzero()):
                raise UserError(f"{what} {int(strange[0])} has NaN or infinite features; clean it")

    def store(self, found: Neighbourhoods, y: Int[Tensor, " roots"]) -> GraphStore:
        """Neighbourhoods with their features; the last column of a node says if it is the root."""
        graph, columns = self.graph, self.graph.num_features + 1
        size = 4 * len(found.node) * columns
        told = f"{len(found.node)} nodes with {columns} columns need {told_size(size)}"
        MEMORY.check(
            size, f"the neighbourhoods, lower network.fan_out to make them smaller: {told}"
        )
        source = graph.edge_index[0][found.edge]
        truth: Any = {} if self.truth is None else self.truth.of(found, source)
        return GraphStore(
            x=torch.cat([graph.x[found.node], found.is_root[:, None].float()], dim=1),
            edge_index=found.edge_index,
            y=y,
            node_ptr=found.node_ptr,
            edge_ptr=found.edge_ptr,
            edge_attr=None if graph.edge_attr is None else graph.edge_attr[found.edge],
            node_id=found.node,
            **truth,
        )

    def neighbourhoods(self, roots: Int[Tensor, " roots"], reach: Reach) -> GraphStore:
        """Neighbourhoods of some nodes, all of class 0."""
        return self.store(self.large.neighbourhoods(roots, reach), torch.zeros_like(roots))

    def rows(self, labels: Sequence[Any], reach: Reach, size: int = CHUNK) -> Iterator[Rows]:
        """The neighbourhoods of all nodes in chunks; ``labels`` may be empty."""
        for roots, found in self.large.in_chunks(torch.arange(len(self)), reach, size):
            first = int(roots[0])
            graphs = RawGraphs.of_store(self.store(found, torch.zeros_like(roots)))
            for rows in stored_rows(graphs, labels[first : first + len(roots)], size):
                yield rows.after(first)


def from_nodes(
    data: Any,
    y: Any = None,
    *,
    reach: Reach | None = None,
    name: str = "nodes",
    class_names: Sequence[str] | None = None,
    truth: MotifTruth | None = None,
    task: AskedTask = "auto",
) -> Dataset:
    """A dataset of the neighbourhoods of a graph's labelled nodes.

    Masks divide the nodes where ``data`` has ``train_mask`` and ``test_mask`` (and ``val_mask``); a
    node outside of all of them, or without a label, is context only. Labels are the graph's own
    unless ``y`` is given; None, or a negative number, is none.
    """
    if task in ("regression", "multilabel"):
        raise UserError(f'{name}: nodes are classified; leave task="{task}" out')
    reach = reach or Reach()
    graph = NodeGraph(data, truth)
    given = node_labels(graph, y)
    parts = given_parts(data, len(graph))
    graph.check_finite()
    chosen = [
        node for node, label in enumerate(given) if label is not None and (not parts or parts[node])
    ]
    if not chosen:
        where = " that a mask chooses" if parts else ""
        raise UserError(f"{name}: no node{where} has a label; set y")
    labels, classes = numbered_classes([given[node] for node in chosen], "node")
    found = graph.large.neighbourhoods(torch.tensor(chosen), reach)
    store = graph.store(found, torch.tensor(classes))
    features, edge_features = graph.graph.num_features, graph.graph.num_edge_features
    return Dataset(
        name,
        store,
        class_names=tuple(class_names or map(str, labels)),
        feature_names=(*numbered(features), ROOT),
        edge_feature_names=numbered(edge_features),
        continuous=continuous_columns(graph.graph.x),
        labels=labels if class_names is None else tuple(class_names),
        ids=tuple(map(str, chosen)),
        given_parts=tuple(parts[node] for node in chosen) if parts else (),
        encoding=Encoding.of_columns(features, edge_features, reach),
    )


def node_labels(graph: NodeGraph, y: Any = None) -> list[Any]:
    """The label of every node as a plain Python value, None where it has none."""
    own = graph.y if y is None else y
    if own is None:
        raise UserError("the nodes have no labels; set y, a whole number per node")
    if isinstance(own, Tensor) and own.is_floating_point():
        raise UserError("y holds floats; classes are whole numbers (y.long() turns 1.0 into 1)")
    given = given_labels(own)
    if len(given) != len(graph):
        raise UserError(f"`y` has {len(given)} labels for {len(graph)} nodes")
    return [None if type(label) is int and label < 0 else label for label in given]


def given_parts(data: Data, nodes: int, needed: Sequence[str] = ("train", "test")) -> list[str]:
    """The part that masks put each node into, "" for none; empty without masks."""
    masks = {part: data[name] for name, part in MASKS.items() if data.get(name) is not None}
    if not masks:
        return []
    parts = [""] * nodes
    for part, mask in masks.items():
        if not isinstance(mask, Tensor) or mask.dtype != torch.bool or mask.shape != (nodes,):
            kind = f"{mask.dtype} of shape {tuple(mask.shape)}" if isinstance(mask, Tensor) else ""
            raise UserError(
                f"{part}_mask must hold a truth value for each of {nodes} nodes, got "
                f"{kind or type(mask).__name__}"
            )
        for node in mask.nonzero().flatten().tolist():
            if parts[node]:
                raise UserError(f"node {node} is in {parts[node]}_mask and in {part}_mask")
            parts[node] = part
    for part in needed:
        if part not in parts:
            raise UserError(f"{part}_mask is missing or chooses no node; set it, or set no mask")
    return parts
