"""Datasets that PyG saved, and lists of its graphs."""

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.separate import separate
from torch_geometric.data.storage import EdgeStorage, GlobalStorage, NodeStorage

from cores.data.inputs.columns import ColumnNames
from cores.data.labels import own_label
from cores.data.lists import read_graphs
from cores.data.raw import RawGraphs, Rows, stored_rows
from cores.errors import UserError
from cores.files.limits import Allowance, check_regular


def saved_rows(path: Path, names: ColumnNames, size: int) -> Iterator[Rows]:
    """The graphs that PyG saved in a file, or in the folder of a dataset."""
    return graph_rows(saved_graphs(saved_by_pyg(path) or path), size)


def graph_rows(graphs: Sequence[Data], size: int) -> Iterator[Rows]:
    """PyG's graphs, checked, in chunks; some may have no label."""
    labels = [own_label(graph) for graph in graphs]
    return stored_rows(RawGraphs.of_store(read_graphs(graphs, finite=False)), labels, size)


def saved_by_pyg(path: Path) -> Path | None:
    """The file in which PyG saved a dataset: the path itself, or in its folder."""
    if path.suffix.lower() in (".pt", ".pth"):
        return path
    if path.is_dir() and not any(path.glob("*_A.txt")):
        folder = path / "processed" if (path / "processed").is_dir() else path
        found = sorted(file for file in folder.glob("*.pt") if not file.name.startswith("pre_"))
        return found[0] if len(found) == 1 else None
    return None


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
