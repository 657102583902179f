"""Datasets and ground truth in files of flat arrays."""

import zipfile
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


def from_npz(name: str, path: Path) -> Dataset:
    """Flat arrays, laid out like the store; ``node_gt`` and ``edge_gt`` mark the ground truth."""
    arrays = _arrays(path)
    needed = {"x", "edge_index", "y", "node_ptr", "edge_ptr"}
    if missing := needed - arrays.keys():
        raise UserError(f"{path} lacks the array {sorted(missing)[0]!r}")

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
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, AttributeError, TypeError, zipfile.BadZipFile):
        raise UserError(f"{path} is not a readable npz file; get it anew") from None
