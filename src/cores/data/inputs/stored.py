"""Files that are read at once: TU, npz, and datasets that PyG saved."""

import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.separate import separate
from torch_geometric.data.storage import EdgeStorage, GlobalStorage, NodeStorage

from cores.data.raw import Layout, Parsed, RawGraphs
from cores.errors import UserError
from cores.files.limits import Allowance, check_regular
from cores.graphs.store import GraphStore


@dataclass(frozen=True, eq=False)
class StoredRows:
    """Graphs that follow each other in a file, as flat arrays."""

    first: int
    """Position of the first graph in the file, from 0."""
    graphs: RawGraphs
    labels: Sequence[Any]

    def __len__(self) -> int:
        return len(self.graphs)

    def after(self, rows: int) -> "StoredRows":
        """The same rows, after others of the input."""
        return replace(self, first=rows + self.first)

    def parse(self, layout: Layout | None = None) -> Parsed:
        """They were checked when the file was read."""
        positions = range(self.first, self.first + len(self))
        return Parsed(
            self.graphs,
            positions,
            lines=[number + 1 for number in positions],
            ids=[str(number) for number in positions],
            labels=self.labels,
        )


def stored_rows(graphs: RawGraphs, labels: Sequence[Any], size: int) -> Iterator[StoredRows]:
    """Graphs in chunks; ``labels`` may be empty."""
    for first in range(0, len(graphs), size):
        last = min(first + size, len(graphs))
        known = labels[first:last] if len(labels) else [None] * (last - first)
        yield StoredRows(first, _part(graphs, first, last), known)


def _part(graphs: RawGraphs, first: int, last: int) -> RawGraphs:
    nodes = slice(graphs.node_ptr[first], graphs.node_ptr[last])
    edges = slice(graphs.edge_ptr[first], graphs.edge_ptr[last])
    return RawGraphs(
        node_ptr=graphs.node_ptr[first : last + 1] - graphs.node_ptr[first],
        edge_ptr=graphs.edge_ptr[first : last + 1] - graphs.edge_ptr[first],
        edge_index=graphs.edge_index[:, edges],
        node_numbers=graphs.node_numbers[nodes],
        edge_numbers=graphs.edge_numbers[edges],
        node_values=graphs.node_values[nodes],
        edge_values=graphs.edge_values[edges],
        node_ids=None if graphs.node_ids is None else graphs.node_ids[nodes],
    )


def raw_graphs(store: GraphStore) -> RawGraphs:
    """The columns of graphs as plain numbers; that which marks roots is made anew."""
    nodes, edges = len(store.x), store.edge_index.size(1)
    no_features = np.empty((edges, 0), dtype=np.float32)
    return RawGraphs(
        node_ptr=store.node_ptr.numpy(),
        edge_ptr=store.edge_ptr.numpy(),
        edge_index=store.edge_index.numpy(),
        node_numbers=(store.x[:, :-1] if store.rooted else store.x).numpy(),
        edge_numbers=no_features if store.edge_attr is None else store.edge_attr.numpy(),
        node_values=_empty(nodes),
        edge_values=_empty(edges),
        node_ids=None if store.node_id is None else store.node_id.numpy(),
    )


def _empty(rows: int) -> NDArray[Any]:
    return np.empty((rows, 0))


def saved_graphs(path: Path) -> list[Data]:
    """The graphs that PyG or torch saved: a dataset's file, or a list of ``Data``.

    The file is a pickle, and pickles can run code. torch's restricted loader builds tensors, plain
    containers and PyG's records from it and refuses everything else.
    """
    check_regular(path)
    allowance = Allowance(path)
    allowed = [Data, DataEdgeAttr, DataTensorAttr, EdgeStorage, GlobalStorage, NodeStorage]
    try:
        if zipfile.is_zipfile(path):  # torch takes as much memory as the archive says
            with zipfile.ZipFile(path) as archive:
                allowance.take(sum(member.file_size for member in archive.infolist()))
        with torch.serialization.safe_globals(allowed):
            found = torch.load(path, map_location="cpu", weights_only=True)
    except UserError:
        raise
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    except Exception as error:  # a damaged pickle may raise anything
        raise UserError(
            f"{path} is not a file of graphs that PyG saved, or holds more than graphs "
            f"({type(error).__name__})"
        ) from None
    try:
        # As new records: one that was unpickled may lack what PyG takes for granted.
        graphs = [Data.from_dict(graph.to_dict()) for graph in _separated(found)]
    except Exception:  # likewise
        graphs = []
    if not graphs:
        raise UserError(f"{path} holds no graphs of PyG's")
    expanded = Allowance(path)  # a tensor may show the same few numbers very often
    for graph in graphs:
        tensors = (value for _, value in graph if isinstance(value, torch.Tensor))
        expanded.take(sum(4 * tensor.numel() for tensor in tensors))
    return graphs


def _separated(found: Any) -> list[Data]:
    """Graphs one by one, from a list, a graph, or what PyG saves: values, slices and more."""
    if isinstance(found, list):
        return found
    if isinstance(found, Data):
        return [found]
    values, slices = found[:2]
    data = Data.from_dict(values) if isinstance(values, dict) else values
    if slices is None:  # PyG's way with a single graph
        return [data]
    count = len(next(iter(slices.values()))) - 1
    return [separate(Data, data, number, slices, decrement=False) for number in range(count)]
