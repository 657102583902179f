"""Datasets and ground truth in files of flat arrays."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cores.data.dataset import Dataset, numbered
from cores.data.tu import TURecords
from cores.errors import UserError
from cores.graphs.segments import owners
from cores.graphs.store import GraphStore


def from_npz(name: str, path: Path, *, labelled: bool = True) -> Dataset:
    """Flat arrays, laid out like the store; ``node_gt`` and ``edge_gt`` mark the ground truth.

    Where ``labelled`` is false the graphs need no ``y``; without it there are no classes.
    """
    arrays = _arrays(path)
    needed = {"x", "edge_index", "node_ptr", "edge_ptr", *(["y"] if labelled else [])}
    if missing := needed - arrays.keys():
        raise UserError(f"{path} lacks the array {sorted(missing)[0]!r}")
    try:
        known = "y" in arrays
        if not known:
            arrays["y"] = np.zeros(arrays["node_ptr"].size - 1, dtype=np.int64)
        _check(arrays)
        dataset = _dataset(name, arrays)
        return dataset if known else replace(dataset, class_names=(), labels=())
    except (LookupError, TypeError, ValueError, RuntimeError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise UserError(f"{path} does not hold what {name} needs ({reason})") from None


def _check(arrays: dict[str, NDArray[Any]]) -> None:
    """Raise ``ValueError`` where the arrays do not fit together."""
    nodes, edges = len(arrays["x"]), arrays["edge_index"].shape[-1]
    graphs = len(arrays["y"])
    shapes = {"edge_index": (2, edges), "y": (graphs,), "node_gt": (nodes,), "edge_gt": (edges,)}
    for name, shape in shapes.items():
        if name in arrays and arrays[name].shape != shape:
            raise ValueError(f"{name} has the shape {arrays[name].shape}, not {shape}")
    for name, rows in (("x", nodes), ("edge_attr", edges)):
        if name in arrays and (arrays[name].ndim != 2 or len(arrays[name]) != rows):
            raise ValueError(f"{name} has the shape {arrays[name].shape}, not {rows} rows")
    for name in ("edge_index", "y", "node_ptr", "edge_ptr"):
        if arrays[name].dtype.kind not in "iub":
            raise ValueError(f"{name} holds no whole numbers")
    for name, last in (("node_ptr", nodes), ("edge_ptr", edges)):
        ptr = arrays[name]
        fits = ptr.shape == (graphs + 1,) and ptr[0] == 0 and ptr[-1] == last
        if not fits or (ptr[1:] < ptr[:-1]).any():
            raise ValueError(f"{name} does not count the {name[:4]}s of {graphs} graphs")
    sizes = np.diff(arrays["node_ptr"])
    if not graphs or not sizes.all():
        raise ValueError("a graph has no nodes")
    ends = arrays["edge_index"]
    if (ends < 0).any() or (ends >= sizes.repeat(np.diff(arrays["edge_ptr"]))).any():
        raise ValueError("an edge names a node that its graph does not have")


def _dataset(name: str, arrays: dict[str, NDArray[Any]]) -> Dataset:
    def tensor(key: str, kind: torch.dtype) -> Tensor:
        return torch.from_numpy(arrays[key]).to(kind)

    edge_truth = tensor("edge_gt", torch.bool) if "edge_gt" in arrays else None
    if edge_truth is None and "gt_flat" in arrays:
        edge_truth = _ring_edges(arrays)
    graphs = GraphStore(
        x=tensor("x", torch.float32),
        edge_index=tensor("edge_index", torch.int64),
        y=tensor("y", torch.int64),
        node_ptr=tensor("node_ptr", torch.int64),
        edge_ptr=tensor("edge_ptr", torch.int64),
        edge_attr=tensor("edge_attr", torch.float32) if "edge_attr" in arrays else None,
        node_truth=tensor("node_gt", torch.bool) if "node_gt" in arrays else None,
        edge_truth=edge_truth,
    )
    return Dataset(
        name,
        graphs,
        class_names=tuple(str(label) for label in np.unique(arrays["y"])),
        feature_names=numbered(graphs.num_features),
        edge_feature_names=numbered(graphs.num_edge_features),
    )


def with_edge_truth(dataset: Dataset, records: TURecords, path: Path) -> Dataset:
    """Mutagenicity's marked edges; a node is marked when one of its edges is."""
    arrays = _arrays(path)
    if "edge_gt" not in arrays:
        raise UserError(f"{path} lacks the array 'edge_gt'")
    marked = arrays["edge_gt"].astype(bool)
    if len(marked) != len(records.edge_line):
        raise UserError(f"{path} marks {len(marked)} edges, the data has {len(records.edge_line)}")
    edge_truth = marked[records.edge_line]
    node_truth = np.zeros(len(records.graph_of_node), dtype=bool)
    node_truth[records.edge_index[:, edge_truth].ravel()] = True
    graphs = replace(
        dataset.graphs,
        node_truth=torch.from_numpy(node_truth),
        edge_truth=torch.from_numpy(edge_truth),
    )
    return replace(dataset, graphs=graphs)


def _ring_edges(arrays: dict[str, NDArray[Any]]) -> Tensor:
    """Benzene marks atoms, with a column for every ring and for every union of rings.

    A bond is true when one ring, a column of six atoms, holds both its ends; the bond that joins
    two rings is not.
    """
    graphs = len(arrays["y"])
    nodes_of = owners(torch.from_numpy(np.diff(arrays["node_ptr"]))).numpy()
    edges_of = owners(torch.from_numpy(np.diff(arrays["edge_ptr"]))).numpy()
    ends = arrays["edge_index"].astype(np.int64) + arrays["node_ptr"][edges_of]
    columns = arrays["num_gt"].astype(np.int64)
    local = np.arange(len(nodes_of)) - arrays["node_ptr"][nodes_of]
    first = arrays["gt_ptr"][nodes_of] + local * columns[nodes_of]
    inside = np.zeros(len(edges_of), dtype=bool)
    for column in range(int(columns.max(initial=0))):
        there = column < columns[nodes_of]
        marked = np.zeros(len(nodes_of), dtype=bool)
        marked[there] = arrays["gt_flat"][first[there] + column]
        ring = np.bincount(nodes_of[marked], minlength=graphs) == 6
        inside |= (marked & ring[nodes_of])[ends].all(axis=0)
    return torch.from_numpy(inside)


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except Exception:  # a damaged file may raise anything
        raise UserError(f"{path} is not a readable npz file; get it anew") from None
