"""The text files of a dataset in TU format, from a zip or a folder, with every line checked.

We read the files ourselves rather than through PyG's ``TUDataset`` because users bring their own:
a missing file, a line too few or an edge between two graphs must be named, folders may be
read-only, and the ground truth of Mutagenicity refers to the order of the lines.
"""

import lzma
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cores.data.inputs.columns import ColumnNames
from cores.data.inputs.npz import marked_edges
from cores.data.raw import RawGraphs, Rows, pointers, stored_rows
from cores.errors import UserError
from cores.files.limits import Allowance, all_lines, check_regular

AnyPath = Path | zipfile.Path

# What zipfile raises on damaged archives, unknown methods of compression, and passwords.
MOST_FILES = 1_000
"""Limit for an archive; a dataset has about ten."""
_BAD_ZIP = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError),
    *(EOFError, NotImplementedError, RuntimeError),
)


def tu_rows(path: Path, names: ColumnNames, size: int, truth: Path | None = None) -> Iterator[Rows]:
    """The graphs of a zip or a folder that holds ``NAME_A.txt`` and its companions.

    They need no labels. ``truth`` is a file that marks edges, line by line of ``NAME_A.txt``; a
    node is marked when one of its edges is.
    """
    return stored_rows(*_read(path, truth), size)


def _read(source: Path, truth: Path | None) -> tuple[RawGraphs, list[int]]:
    """The graphs, nodes and edges grouped by graph, and their labels, maybe none."""
    try:
        if source.is_dir():
            return _read_folder(source, source, truth)
        check_regular(source)
        with zipfile.ZipFile(source) as archive:
            if len(archive.namelist()) > MOST_FILES:
                raise UserError(f"{source} holds {len(archive.namelist())} files; pack one dataset")
            if any(name.startswith("/") for name in archive.namelist()):
                # Never written by a well-meant program, and `zipfile.Path` may not end on them.
                raise UserError(f"{source} holds names that begin with /; pack it anew")
            return _read_folder(zipfile.Path(archive), source, truth)
    except _BAD_ZIP as error:
        raise UserError(
            f"{source} is not a readable zip file ({error}); unpack it or get it anew"
        ) from None
    except OSError as error:
        raise UserError(f"cannot read {source}: {error.strerror or error}") from None


def _read_folder(root: AnyPath, source: Path, truth: Path | None) -> tuple[RawGraphs, list[int]]:
    folder, name = _adjacency(root, source)
    allowance = Allowance(source)

    def path(suffix: str) -> AnyPath:
        return folder / f"{name}_{suffix}.txt"

    edges = _required(path("A"), 2, source, allowance)
    indicator = _required(path("graph_indicator"), 1, source, allowance)[:, 0]
    if not len(indicator):
        raise UserError(f"{source}: {path('graph_indicator').name} is empty")
    labels = np.empty(0, dtype=np.int64)
    graphs = int(indicator.max())
    if path("graph_labels").exists():
        labels = _required(path("graph_labels"), 1, source, allowance)[:, 0]
        graphs = len(labels)
        if not graphs:
            raise UserError(f"{source}: {path('graph_labels').name} is empty")
    node_labels = _table(path("node_labels"), np.int64, source, allowance)
    attributes = _table(path("node_attributes"), np.float64, source, allowance)
    edge_labels = _table(path("edge_labels"), np.int64, source, allowance)

    def same_length(rows: NDArray[Any] | None, file: str, expected: int, other: str) -> None:
        if rows is not None and len(rows) != expected:
            raise UserError(
                f"{source}: {name}_{file}.txt has {len(rows)} lines, "
                f"but {name}_{other}.txt has {expected}; each needs a line in both"
            )

    same_length(node_labels, "node_labels", len(indicator), "graph_indicator")
    same_length(attributes, "node_attributes", len(indicator), "graph_indicator")
    same_length(edge_labels, "edge_labels", len(edges), "A")
    if indicator.min() < 1 or indicator.max() > graphs:
        raise UserError(
            f"{source}: {name}_graph_indicator.txt names graphs {indicator.min()} to "
            f"{indicator.max()}, but {name}_graph_labels.txt has {graphs} lines"
        )
    empty = np.setdiff1d(np.arange(1, min(graphs, len(indicator) + 1) + 1), indicator)
    if len(empty):
        raise UserError(f"{source}: graph {empty[0]} has no nodes; remove it and its label")
    if len(edges) and (edges.min() < 1 or edges.max() > len(indicator)):
        raise UserError(
            f"{source}: {name}_A.txt names nodes {edges.min()} to {edges.max()}, "
            f"but there are {len(indicator)}"
        )

    # Nodes may come in any order; group them by graph and renumber the edges' ends.
    grouped = np.argsort(indicator, kind="stable")
    position = np.empty_like(grouped)
    position[grouped] = np.arange(len(grouped))
    graph_of_node = indicator[grouped] - 1
    ends = position[edges - 1].T
    across = graph_of_node[ends[0]] != graph_of_node[ends[1]]
    if across.any():
        line = int(np.flatnonzero(across)[0]) + 1
        raise UserError(f"{source}: line {line} of {name}_A.txt joins two graphs")
    order = np.lexsort((ends[1], ends[0]))
    marked = None if truth is None else marked_edges(truth, len(order))[order]
    ends = ends[:, order]
    node_ptr, graph_of_edge = pointers(np.bincount(graph_of_node)), graph_of_node[ends[0]]
    more: dict[str, NDArray[Any]] = {}
    if node_labels is not None:
        more["node_values"] = node_labels[grouped]
    if edge_labels is not None:
        more["edge_values"] = edge_labels[order]
    if marked is not None:
        more["edge_truth"] = marked
        more["node_truth"] = np.zeros(len(grouped), dtype=bool)
        more["node_truth"][ends[:, marked]] = True
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused later
        numbers = np.empty((len(grouped), 0)) if attributes is None else attributes[grouped]
        raw = RawGraphs(
            node_ptr,
            pointers(np.bincount(graph_of_edge, minlength=len(node_ptr) - 1)),
            ends - node_ptr[graph_of_edge],
            numbers.astype(np.float32),
            **more,
        )
    return raw, labels.tolist()


def _adjacency(root: AnyPath, source: Path) -> tuple[AnyPath, str]:
    """The folder that holds the one ``NAME_A.txt``, at the root or one or two levels below."""
    level = [root]
    for _ in range(3):
        found = [(folder, child) for folder in level for child in folder.iterdir()]
        files = [(folder, child.name) for folder, child in found if child.name.endswith("_A.txt")]
        if len(files) > 1:
            names = ", ".join(sorted(name for _, name in files))
            raise UserError(f"{source} holds several datasets ({names}); give the path of one")
        if files:
            folder, file = files[0]
            return folder, file.removesuffix("_A.txt")
        level = [child for _, child in found if child.is_dir()]
    raise UserError(f"{source} holds no NAME_A.txt: not a dataset in TU format")


def _required(path: AnyPath, columns: int, source: Path, allowance: Allowance) -> NDArray[np.int64]:
    """The integers of a file that must be there."""
    rows = _table(path, np.int64, source, allowance)
    if rows is None:
        raise UserError(f"{source}: {path.name} is missing")
    if rows.size and rows.shape[1] != columns:
        raise UserError(
            f"{source}: {path.name} must have {columns} numbers a line, got {rows.shape[1]}"
        )
    return rows.reshape(-1, columns)


def _table(
    path: AnyPath, kind: type[np.int64 | np.float64], source: Path, allowance: Allowance
) -> NDArray[Any] | None:
    """The numbers of a file, one row per line; None where there is no such file."""
    if isinstance(path, Path) and path.is_symlink() and not path.exists():
        raise UserError(f"{source}: {path.name} is a link to a file that is not there")
    if not path.exists():
        return None
    if isinstance(path, Path):
        check_regular(path)
    place = f"{source}: {path.name}"
    with path.open(encoding="utf-8-sig") as file, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "loadtxt: input contained no data")
        try:
            lines = all_lines(file.read, place, allowance)
            return np.loadtxt(lines, delimiter=",", dtype=kind, ndmin=2)
        except UserError:
            raise
        except UnicodeDecodeError:
            raise UserError(f"{place} is not UTF-8 text") from None
        except ValueError:  # numpy counts rows, and knows nothing of lines
            raise UserError(f"{place}: {_mistake(path, kind)}") from None


def _mistake(path: AnyPath, kind: type[np.int64 | np.float64]) -> str:
    """The first line of a file that is no row of a table of numbers, and why."""
    with path.open(encoding="utf-8-sig") as file:
        return _first_mistake(all_lines(file.read, path.name), kind)


def _first_mistake(lines: Iterable[str], kind: type[np.int64 | np.float64]) -> str:
    width = 0
    for number, line in enumerate(lines, 1):
        cells = line.partition("#")[0].strip().split(",")
        if cells == [""]:
            continue
        for column, cell in enumerate(cells, 1):
            try:
                kind(cell)
            except (ValueError, OverflowError):
                expected = "whole number" if kind is np.int64 else "number"
                return f"line {number}, column {column}: {cell.strip()!r:.40} is no {expected}"
        if width and len(cells) != width:
            return f"line {number} has {len(cells)} numbers, those before it have {width}"
        width = len(cells)
    return "not a table of numbers"
