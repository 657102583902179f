"""Graphs and ground truth in files of flat arrays."""

import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cores.data.inputs.columns import ColumnNames
from cores.data.raw import RawGraphs, Rows, stored_rows
from cores.errors import UserError
from cores.files.limits import COLUMNS, Allowance, check_regular

COUNTS, WHOLE, NUMBERS = "iu", "iub", "iubf"
"""Kinds of numbers, by numpy's letters: signed and unsigned, truth values, with fractions."""


class Expected(NamedTuple):
    """Kind and shape of an array."""

    kinds: str
    shape: tuple[int | str, ...]
    """Sizes; those with the same name are the same in all arrays."""


ARRAYS = {
    "node_ptr": Expected(COUNTS, ("graphs + 1",)),
    "edge_ptr": Expected(COUNTS, ("graphs + 1",)),
    "x": Expected(NUMBERS, ("nodes", "features")),
    "edge_index": Expected(COUNTS, (2, "edges")),
    "edge_attr": Expected(NUMBERS, ("edges", "edge features")),
    "y": Expected(WHOLE, ("graphs",)),
    "node_gt": Expected(WHOLE, ("nodes",)),
    "edge_gt": Expected(WHOLE, ("edges",)),
    "num_gt": Expected(COUNTS, ("graphs",)),
    "gt_ptr": Expected(COUNTS, ("graphs + 1",)),
    "gt_flat": Expected(WHOLE, ("marks",)),
}
"""Arrays of a file; others are not read."""
NEEDED = ("node_ptr", "edge_ptr", "x", "edge_index")


def npz_rows(path: Path, names: ColumnNames, size: int) -> Iterator[Rows]:
    """Flat arrays, laid out like the store; ``node_gt`` and ``edge_gt`` mark the ground truth.

    Graphs need no ``y``. Features may still be NaN: that is a fault of single graphs, not of the
    file.
    """
    found = _arrays(path)
    for needed in NEEDED:
        if needed not in found:
            raise UserError(f"{path} lacks the array {needed!r}")
    try:
        _check(found)
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused later
        arrays: dict[str, NDArray[Any]] = {
            name: array.astype(_kept_as(name)) for name, array in found.items()
        }
    truth = {name: arrays[name].astype(bool) for name in ("node_gt", "edge_gt") if name in arrays}
    if "edge_gt" not in truth and "gt_flat" in arrays:
        truth["edge_gt"] = _ring_edges(arrays)
    edge_attr = {"edge_numbers": arrays["edge_attr"]} if "edge_attr" in arrays else {}
    graphs = RawGraphs(
        arrays["node_ptr"],
        arrays["edge_ptr"],
        arrays["edge_index"],
        arrays["x"],
        **edge_attr,
        node_truth=truth.get("node_gt"),
        edge_truth=truth.get("edge_gt"),
    )
    return stored_rows(graphs, arrays["y"].tolist() if "y" in arrays else (), size)


def _kept_as(name: str) -> type[np.float32 | np.int64]:
    return np.float32 if ARRAYS[name].kinds == NUMBERS else np.int64


def _check(arrays: dict[str, NDArray[Any]]) -> None:
    """Raise ``ValueError`` where an array is not what it should be, or fits no other."""
    sizes: dict[int | str, int] = {}
    for name, expected in ARRAYS.items():
        if name in arrays:
            _check_array(name, arrays[name], expected, sizes)
    _check_pointers("node_ptr", arrays["node_ptr"], sizes["nodes"], "nodes")
    _check_pointers("edge_ptr", arrays["edge_ptr"], sizes["edges"], "edges")
    nodes, edges = np.diff(arrays["node_ptr"]), np.diff(arrays["edge_ptr"])
    if not nodes.all():
        raise ValueError(f"'node_ptr' gives graph {int(np.flatnonzero(nodes == 0)[0])} no nodes")
    if not arrays["x"].shape[1]:
        raise ValueError("'x' has no columns; give every node a constant one")
    ends = arrays["edge_index"]
    strange = ((ends < 0) | (ends >= nodes.repeat(edges))).any(axis=0)
    if strange.any():
        edge = int(np.flatnonzero(strange)[0])
        raise ValueError(f"'edge_index' names a node that its graph does not have, in edge {edge}")
    if "gt_flat" in arrays:
        _check_rings(arrays, nodes, sizes["marks"])


def _check_array(
    name: str, array: NDArray[Any], expected: Expected, sizes: dict[int | str, int]
) -> None:
    """Refuse an array of another kind or shape; the first array with a size decides it."""
    if array.dtype.kind not in expected.kinds:
        wanted = "numbers" if expected.kinds == NUMBERS else "whole numbers"
        raise ValueError(f"'{name}' must hold {wanted}, got {array.dtype}")
    shape = ", ".join(map(str, expected.shape))
    fixed = all(
        found == size
        for size, found in zip(expected.shape, array.shape, strict=False)
        if isinstance(size, int)
    )
    if array.ndim != len(expected.shape) or not fixed:
        raise ValueError(f"'{name}' must have the shape [{shape}], got {list(array.shape)}")
    for size, found in zip(expected.shape, array.shape, strict=True):
        if size == "graphs" and "graphs + 1" in sizes:
            sizes.setdefault("graphs", sizes["graphs + 1"] - 1)
        if size in ("features", "edge features"):
            COLUMNS.check(found, f"'{name}' has {found} {size}")
        if sizes.setdefault(size, found) != found:
            raise ValueError(f"'{name}' has {found} {size}, other arrays have {sizes[size]}")
    if array.dtype.kind == "u" and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise ValueError(f"'{name}' holds {int(array.max())}, which is too large")


def _check_pointers(name: str, ptr: NDArray[Any], last: int, items: str) -> None:
    if len(ptr) < 2:
        raise ValueError(f"'{name}' must have a number more than there are graphs, got {len(ptr)}")
    if ptr[0] != 0 or ptr[-1] != last:
        raise ValueError(f"'{name}' must run from 0 to {last} {items}, got {ptr[0]} to {ptr[-1]}")
    if (ptr[1:] < ptr[:-1]).any():
        place = int(np.flatnonzero(ptr[1:] < ptr[:-1])[0]) + 1
        raise ValueError(f"'{name}' must not fall, but does at {place}")


def _check_rings(arrays: dict[str, NDArray[Any]], nodes: NDArray[Any], marks: int) -> None:
    for name in ("num_gt", "gt_ptr"):
        if name not in arrays:
            raise ValueError(f"'gt_flat' needs {name!r} beside it")
    _check_pointers("gt_ptr", arrays["gt_ptr"], marks, "marks")
    counts = arrays["num_gt"].astype(np.int64)
    if (counts < 0).any() or (counts * nodes != np.diff(arrays["gt_ptr"])).any():
        raise ValueError("'gt_ptr' does not count 'num_gt' marks for every node")


def marked_edges(path: Path, edges: int) -> NDArray[np.bool_]:
    """The edges that a file beside a dataset marks as its ground truth."""
    arrays = _arrays(path)
    if "edge_gt" not in arrays:
        raise UserError(f"{path} lacks the array 'edge_gt'")
    try:
        _check_array("edge_gt", arrays["edge_gt"], ARRAYS["edge_gt"], {})
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None
    if len(arrays["edge_gt"]) != edges:
        raise UserError(f"{path} marks {len(arrays['edge_gt'])} edges, the data has {edges}")
    return arrays["edge_gt"].astype(bool)


def _ring_edges(arrays: dict[str, NDArray[Any]]) -> NDArray[np.bool_]:
    """Benzene marks atoms, with a column for every ring and for every union of rings.

    A bond is true when one ring, a column of six atoms, holds both its ends; the bond that joins
    two rings is not.
    """
    graphs = len(arrays["node_ptr"]) - 1
    nodes_of = np.arange(graphs).repeat(np.diff(arrays["node_ptr"]))
    edges_of = np.arange(graphs).repeat(np.diff(arrays["edge_ptr"]))
    ends = arrays["edge_index"] + arrays["node_ptr"][edges_of]
    columns = arrays["num_gt"]
    local = np.arange(len(nodes_of)) - arrays["node_ptr"][nodes_of]
    first = arrays["gt_ptr"][nodes_of] + local * columns[nodes_of]
    inside = np.zeros(len(edges_of), dtype=bool)
    for column in range(int(columns.max(initial=0))):
        there = column < columns[nodes_of]
        marked = np.zeros(len(nodes_of), dtype=bool)
        marked[there] = arrays["gt_flat"][first[there] + column]
        ring = np.bincount(nodes_of[marked], minlength=graphs) == 6
        inside |= (marked & ring[nodes_of])[ends].all(axis=0)
    return inside


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a file that we know; their size is known before they are read."""
    check_regular(path)
    try:
        with zipfile.ZipFile(path) as archive:
            allowance = Allowance(path)
            members = [name.removesuffix(".npy") for name in archive.namelist()]
            return {
                name: _array(archive, f"{name}.npy", allowance)
                for name in ARRAYS
                if name in members
            }
    except UserError:
        raise
    except Exception:  # a damaged file may raise anything
        raise UserError(f"{path} is not a readable npz file; get it anew") from None


def _array(archive: zipfile.ZipFile, name: str, allowance: Allowance) -> NDArray[Any]:
    """One array; only as much is read as its own header says, whatever the archive's says."""
    with archive.open(name) as file:
        version = np.lib.format.read_magic(file)
        read_header = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, _, kind = read_header(file)
        kept = np.dtype(_kept_as(name.removesuffix(".npy")))
        allowance.take(abs(math.prod(shape)) * max(kind.itemsize, kept.itemsize))
    with archive.open(name) as file:
        return np.lib.format.read_array(file, allow_pickle=False)
