"""Graphs as a file has them, before a model's columns are made of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_NODES = 1_000_000
"""Of a graph without features; a wrong number of nodes must not take all memory."""

BYTES_OF_NODE = 64
"""That a node takes at least, with or without features, while a file is read."""


class Columns(NamedTuple):
    """What every node, or every edge, of a file has."""

    numbers: int
    """Columns of numbers."""
    kinds: int
    """Kinds of labels."""


@dataclass(frozen=True)
class Layout:
    """What the graphs of a file have in common."""

    nodes: Columns
    edges: Columns | None
    """None where no graph has an edge: they could have any."""


@dataclass(frozen=True)
class RawGraphs:
    """Many graphs laid end to end; each node and edge has numbers, and values of labels."""

    node_ptr: NDArray[np.int64]
    """Graph i owns the nodes ``node_ptr[i]:node_ptr[i + 1]``; edges likewise."""
    edge_ptr: NDArray[np.int64]
    edge_index: NDArray[np.int64]
    """[2, edges], directed, counted from 0 within the graph."""
    node_numbers: NDArray[np.float32]
    """[nodes, columns]."""
    edge_numbers: NDArray[np.float32]
    node_values: NDArray[Any]
    """[nodes, kinds]: labels of nodes, whole numbers or text; atom types, say."""
    edge_values: NDArray[Any]
    node_ids: NDArray[np.int64] | None = None
    """Numbers of the nodes in the graph that these are neighbourhoods of, each root first."""

    def __len__(self) -> int:
        return len(self.node_ptr) - 1

    @property
    def size(self) -> int:
        """Bytes that the arrays take."""
        arrays = (getattr(self, spec.name) for spec in fields(self))
        return sum(array.nbytes for array in arrays if array is not None)

    @property
    def layout(self) -> Layout:
        """What its graphs have in common."""
        edges = Columns(self.edge_numbers.shape[1], self.edge_values.shape[1])
        return Layout(
            Columns(self.node_numbers.shape[1], self.node_values.shape[1]),
            edges if self.edge_index.shape[1] else None,
        )

    @classmethod
    def joined(cls, parts: Sequence["RawGraphs"]) -> "RawGraphs":
        """Graphs of one layout end to end; parts without edges may differ in those of the edges."""

        def rows(name: str) -> NDArray[Any]:
            arrays = [getattr(part, name) for part in parts]
            filled = [array for array in arrays if len(array)]
            return np.concatenate(filled) if filled else arrays[0]

        def pointers(name: str) -> NDArray[np.int64]:
            counts = [np.diff(getattr(part, name)) for part in parts]
            return np.concatenate([[0], np.concatenate(counts).cumsum()]).astype(np.int64)

        return cls(
            node_ptr=pointers("node_ptr"),
            edge_ptr=pointers("edge_ptr"),
            edge_index=np.concatenate([part.edge_index for part in parts], axis=1),
            node_numbers=rows("node_numbers"),
            edge_numbers=rows("edge_numbers"),
            node_values=rows("node_values"),
            edge_values=rows("edge_values"),
            node_ids=None if parts[0].node_ids is None else rows("node_ids"),
        )


@dataclass(frozen=True)
class Rejected:
    """A row of a file that is no graph."""

    position: int
    """Among the rows of the file, from 0."""
    line: int
    """Where it stands in the file, from 1; its number among the rows where there are no lines."""
    id: str
    reason: str

    def __str__(self) -> str:
        return f"line {self.line} ({' '.join(self.id.split())}): {self.reason}"


@dataclass(frozen=True)
class Parsed:
    """The graphs of some rows, and the rows that are none."""

    graphs: RawGraphs
    positions: Sequence[int]
    """Of each graph's row among the rows of the file, from 0."""
    lines: Sequence[int]
    """Where it stands in the file, from 1."""
    ids: Sequence[str]
    labels: Sequence[Any]
    """As the file has them, None where it has none."""
    parts: Sequence[str] = ()
    """What the split column says."""
    molecules: Sequence[Any] = ()
    """Of rdkit, for files of molecules."""
    smiles: Sequence[str] = ()
    """Of each molecule."""
    rejected: Sequence[Rejected] = ()

    @classmethod
    def joined(cls, parts: Sequence["Parsed"]) -> "Parsed":
        """The graphs and rejected rows of several chunks."""

        def together(name: str) -> list[Any]:
            return [item for part in parts for item in getattr(part, name)]

        lists = [spec.name for spec in fields(cls) if spec.name != "graphs"]
        graphs = RawGraphs.joined([part.graphs for part in parts])
        return cls(graphs, **{name: together(name) for name in lists})


SHOWN = 3
"""Unusable rows that a message names."""


@dataclass
class Unusable:
    """Rows of a file that could not be used: their number, and the first ones."""

    count: int = 0
    first: list[Rejected] = field(default_factory=list)

    @classmethod
    def of(cls, rejected: Sequence[Rejected]) -> "Unusable":
        """All of some rows."""
        found = cls()
        found.add(rejected)
        return found

    def add(self, rejected: Sequence[Rejected]) -> None:
        """Count more of them."""
        self.count += len(rejected)
        self.first += rejected[: max(0, SHOWN - len(self.first))]

    @property
    def note(self) -> str | None:
        """What to tell of them, if there are any."""
        return f"{self.count:,} rows could not be used: {self}" if self.count else None

    def __str__(self) -> str:
        more = f"; and {self.count - len(self.first)} more" * (self.count > len(self.first))
        return "; ".join(map(str, self.first)) + more
