"""Columns of a model from the graphs of a file; saved with it, for the files to come."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from cores.config import Reach
from cores.data import molecules
from cores.data.raw import Columns, Layout, RawGraphs
from cores.errors import UserError
from cores.files.limits import COLUMNS, MEMORY, told_size
from cores.graphs.store import GraphStore

Value = int | str
CONSTANT = "constant"
"""The one column of graphs without any feature."""
ROOT = "the node itself"
"""The column that marks the node whose neighbourhood a graph is; always the last."""
_ONE_HOT = re.compile(r"(?:node|edge) label (\d+) = (.*)", re.DOTALL)
_NUMBER = re.compile(r"(?:attribute|feature) (\d+)")


@dataclass(frozen=True)
class Encoding:
    """Numbers and label values that a model's columns are made of."""

    kind: Literal["graphs", "molecules"] = "graphs"
    version: int = 0
    """Version of the columns of molecules."""
    node_numbers: int = 0
    """Columns of numbers that every node of a file has."""
    edge_numbers: int = 0
    node_values: tuple[tuple[Value, ...], ...] = ()
    """Known values of every kind of node label."""
    edge_values: tuple[tuple[Value, ...], ...] = ()
    hops: int = 0
    """Radius of the neighbourhoods where nodes are classified; 0: graphs are."""
    fan_out: int = 0

    @property
    def reach(self) -> Reach | None:
        """Reach of the neighbourhoods of nodes; None where graphs are classified."""
        return Reach(self.hops, self.fan_out) if self.hops else None

    @classmethod
    def of_molecules(cls) -> "Encoding":
        """Encode molecules: all files alike."""
        numbers = len(molecules.ATOM_COLUMNS), len(molecules.BOND_COLUMNS)
        return cls("molecules", molecules.VERSION, *numbers)

    @classmethod
    def of_columns(
        cls, num_features: int, num_edge_features: int, reach: Reach | None = None
    ) -> "Encoding":
        """Encode graphs whose columns are numbers; with a reach, neighbourhoods."""
        reach = reach or Reach(0, 0)
        return cls(
            node_numbers=num_features,
            edge_numbers=num_edge_features,
            hops=reach.hops,
            fan_out=reach.fan_out,
        )

    @classmethod
    def of(cls, raw: RawGraphs) -> "Encoding":
        """Encode these graphs, with the values that they have."""
        return cls(
            node_numbers=raw.node_numbers.shape[1],
            edge_numbers=raw.edge_numbers.shape[1],
            node_values=_known(raw.node_values),
            edge_values=_known(raw.edge_values),
        )

    @property
    def layout(self) -> Layout:
        """The columns that the graphs of a file must have."""
        return Layout(
            Columns(self.node_numbers, len(self.node_values)),
            Columns(self.edge_numbers, len(self.edge_values)),
        )

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of all columns that nodes can have."""
        if self.kind == "molecules":
            return molecules.ATOM_COLUMNS
        names = _names("node", self.node_numbers, self.node_values) or (CONSTANT,)
        return (*names, ROOT) if self.hops else names

    @property
    def edge_feature_names(self) -> tuple[str, ...]:
        """Names of all columns that edges can have."""
        if self.kind == "molecules":
            return molecules.BOND_COLUMNS
        return _names("edge", self.edge_numbers, self.edge_values)


def encode(
    raw: RawGraphs, encoding: Encoding, names: Sequence[str], edge_names: Sequence[str]
) -> tuple[GraphStore, dict[int, str]]:
    """Graphs of an encoding's layout with the named columns; classes are all 0.

    Returns:
        The graphs, and the first unknown value of every graph that has one; in the columns, it is
        none of the known ones.
    """
    check_layout(raw.layout, encoding)
    unknown: dict[int, str] = {}
    if encoding.kind == "molecules":
        x, edge_attr = raw.node_numbers, raw.edge_numbers
    else:
        nodes = raw.node_numbers, raw.node_values, raw.node_ptr
        edges = raw.edge_numbers, raw.edge_values, raw.edge_ptr
        x, unknown = _columns(*nodes, names, encoding.node_values, "node")
        edge_attr, others = _columns(*edges, edge_names, encoding.edge_values, "edge")
        unknown = others | unknown
        if encoding.hops:
            x[raw.node_ptr[:-1], -1] = 1
    store = GraphStore(
        x=torch.from_numpy(np.ascontiguousarray(x)),
        edge_index=torch.from_numpy(raw.edge_index),
        y=torch.zeros(len(raw), dtype=torch.int64),
        node_ptr=torch.from_numpy(raw.node_ptr),
        edge_ptr=torch.from_numpy(raw.edge_ptr),
        edge_attr=_tensor(np.ascontiguousarray(edge_attr) if edge_names else None),
        node_truth=_tensor(raw.node_truth),
        edge_truth=_tensor(raw.edge_truth),
        node_id=_tensor(raw.node_ids),
    )
    return store, unknown


def _tensor(values: NDArray[Any] | None) -> torch.Tensor | None:
    return None if values is None else torch.from_numpy(values)


def check_layout(found: Layout, encoding: Encoding) -> None:
    """Refuse graphs that have other features than the encoding knows."""
    expected = encoding.layout
    for mine, theirs, what in (
        (found.nodes, expected.nodes, "node"),
        (found.edges, expected.edges, "edge"),
    ):
        if mine is not None and mine != theirs:
            raise UserError(
                f"the graphs have {_told(mine)} per {what}, "
                f"those of the training have {_told(theirs)}"
            )


def _told(columns: Columns | None) -> str:
    numbers, kinds = columns or Columns(0, 0)
    parts = [f"{numbers} number{'s' * (numbers != 1)}"] if numbers or not kinds else []
    parts += [f"{kinds} kind{'s' * (kinds != 1)} of label"] if kinds else []
    return " and ".join(parts)


def _names(word: str, numbers: int, values: tuple[tuple[Value, ...], ...]) -> tuple[str, ...]:
    """A column per number, and per value; of whole numbers, from the least to the greatest."""
    COLUMNS.check(numbers, f"{numbers} numbers per {word}")
    names = [f"attribute {number}" for number in range(numbers)]
    for kind, known in enumerate(values):
        shown: Sequence[Value] = known
        if known and isinstance(known[0], int):
            shown = range(int(known[0]), int(known[-1]) + 1)
        if shown:
            ends = f"{shown[0]} to {shown[-1]}"
            told = f"{word} labels run from {ends}; renumber them: they take {len(shown)} columns"
            COLUMNS.check(len(shown), told)
        names += [f"{word} label {kind} = {value}" for value in shown]
    COLUMNS.check(len(names), f"{len(names)} columns per {word}")
    return tuple(names)


def _known(values: NDArray[Any]) -> tuple[tuple[Value, ...], ...]:
    return tuple(tuple(np.unique(kind).tolist()) for kind in values.T)


def _columns(
    numbers: NDArray[np.float32],
    values: NDArray[Any],
    ptr: NDArray[np.int64],
    names: Sequence[str],
    known: tuple[tuple[Value, ...], ...],
    word: str,
) -> tuple[NDArray[np.float32], dict[int, str]]:
    """The named columns, from numbers and known values, and each graph's first unknown value."""
    size = 4 * len(numbers) * len(names)
    MEMORY.check(size, f"{len(names)} columns of {len(numbers)} rows need {told_size(size)}")
    columns = np.zeros((len(numbers), len(names)), dtype=np.float32)
    places: dict[tuple[int, str], int] = {}
    copied: dict[int, int] = {}
    for column, name in enumerate(names):
        if one_hot := _ONE_HOT.fullmatch(name):
            places[int(one_hot[1]), one_hot[2]] = column
        elif number := _NUMBER.fullmatch(name):
            copied[column] = int(number[1])
        elif name != ROOT:
            columns[:, column] = 1  # the constant
    if len(columns):
        columns[:, [*copied]] = numbers[:, [*copied.values()]]
    unknown: dict[int, str] = {}
    for kind, given in enumerate(values.T if len(values) else ()):
        distinct, which = _distinct(given)
        trained = {str(value) for value in known[kind]}
        strange = np.array([str(value) not in trained for value in distinct], dtype=bool)
        place_of = np.array([places.get((kind, str(value)), -1) for value in distinct])
        place = np.where(strange, -1, place_of)[which]
        rows = np.flatnonzero(place >= 0)
        columns[rows, place[rows]] = 1
        rows = np.flatnonzero(strange[which])
        graphs, first = np.unique(np.searchsorted(ptr, rows, side="right") - 1, return_index=True)
        label = f"{word} label" if len(known) == 1 else f"{word} label {kind} ="
        for graph, value in zip(graphs.tolist(), given[rows[first]].tolist(), strict=True):
            unknown.setdefault(graph, f"{label} {value!r}")
    return columns, unknown


def _distinct(column: NDArray[Any]) -> tuple[list[Value], NDArray[np.int64]]:
    """The different values of a column, and which of them each row has.

    By hashing where they are texts, which are objects to numpy: sorting them is slow.
    """
    if column.dtype != object:
        distinct, inverse = np.unique(column, return_inverse=True)
        return distinct.tolist(), inverse
    numbers: dict[Value, int] = {}
    rows = (numbers.setdefault(value, len(numbers)) for value in column.tolist())
    which = np.fromiter(rows, np.int64, len(column))
    return list(numbers), which
