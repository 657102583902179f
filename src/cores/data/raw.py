"""The protocol of readers: a file is rows in chunks, and rows hold graphs.

A reader yields :class:`Rows` of a file; parsing them gives :class:`Parsed`, the checked graphs as
flat arrays with what the file says of each, and the rows that hold none, by line and name.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import islice
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cores.graphs.store import GraphStore

MOST_NODES = 1_000_000
"""Limit for a graph without features; a wrong number of nodes must not take all memory."""

BYTES_OF_NODE = 64
"""Least memory of a node, with or without features, while a file is read."""


class Columns(NamedTuple):
    """Columns of numbers, and kinds of labels, that every node or every edge of a file has."""

    numbers: int
    kinds: int


@dataclass(frozen=True)
class Layout:
    """The columns that the graphs of a file have in common."""

    nodes: Columns
    edges: Columns | None
    """None where no graph has an edge: they could have any."""

    def after(self, before: "Layout | None") -> "Layout":
        """The layout of a file whose rows before these had one."""
        return self if before is None or before.edges is None else before


_OF_NODES = ("node_numbers", "node_values", "node_ids", "node_truth")
_OF_EDGES = ("edge_numbers", "edge_values", "edge_truth")


def _no_columns() -> NDArray[np.float32]:
    return np.empty((0, 0), np.float32)


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
    edge_numbers: NDArray[np.float32] = field(default_factory=_no_columns)
    node_values: NDArray[Any] = field(default_factory=_no_columns)
    """[nodes, kinds]: labels of nodes, whole numbers or text; atom types, say."""
    edge_values: NDArray[Any] = field(default_factory=_no_columns)
    node_ids: NDArray[np.int64] | None = None
    """Numbers of the nodes in the graph that these are neighbourhoods of, each root first."""
    node_truth: NDArray[np.bool_] | None = None
    """Nodes of the ground-truth explanation, where the file marks them."""
    edge_truth: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        edges = self.edge_index.shape[1]
        sizes = {"edge_numbers": edges, "node_values": len(self.node_numbers), "edge_values": edges}
        for name, rows in sizes.items():
            values = getattr(self, name)
            if not values.shape[1]:
                object.__setattr__(self, name, np.empty((rows, 0), values.dtype))

    @classmethod
    def of_store(cls, store: GraphStore) -> "RawGraphs":
        """The columns of graphs as plain numbers; that which marks roots is made anew."""
        given = {
            "edge_numbers": store.edge_attr,
            "node_ids": store.node_id,
            "node_truth": store.node_truth,
            "edge_truth": store.edge_truth,
        }
        known: dict[str, Any] = {
            name: values.numpy() for name, values in given.items() if values is not None
        }
        return cls(
            store.node_ptr.numpy(),
            store.edge_ptr.numpy(),
            store.edge_index.numpy(),
            (store.x[:, :-1] if store.rooted else store.x).numpy(),
            **known,
        )

    def __len__(self) -> int:
        return len(self.node_ptr) - 1

    @property
    def size(self) -> int:
        """Bytes that the arrays take."""
        arrays = (getattr(self, spec.name) for spec in fields(self))
        return sum(array.nbytes for array in arrays if array is not None)

    @property
    def layout(self) -> Layout:
        """The columns of its graphs."""
        edges = Columns(self.edge_numbers.shape[1], self.edge_values.shape[1])
        return Layout(
            Columns(self.node_numbers.shape[1], self.node_values.shape[1]),
            edges if self.edge_index.shape[1] else None,
        )

    def part(self, first: int, last: int) -> "RawGraphs":
        """Slice ``[first:last]``."""
        chosen: dict[str, Any] = {}
        for pointer, names in (("node_ptr", _OF_NODES), ("edge_ptr", _OF_EDGES)):
            ptr = getattr(self, pointer)
            items = slice(ptr[first], ptr[last])
            chosen[pointer] = ptr[first : last + 1] - ptr[first]
            for name in names:
                values = getattr(self, name)
                chosen[name] = None if values is None else values[items]
        return RawGraphs(edge_index=self.edge_index[:, items], **chosen)

    @classmethod
    def joined(cls, parts: Sequence["RawGraphs"]) -> "RawGraphs":
        """Graphs of one layout end to end; parts without edges may differ in those of the edges."""

        def rows(name: str) -> NDArray[Any] | None:
            arrays = [getattr(part, name) for part in parts]
            if arrays[0] is None:
                return None
            filled = [array for array in arrays if len(array)]
            return np.concatenate(filled) if filled else arrays[0]

        def ptr(name: str) -> NDArray[np.int64]:
            return pointers(np.concatenate([np.diff(getattr(part, name)) for part in parts]))

        joined: dict[str, Any] = {name: rows(name) for name in (*_OF_NODES, *_OF_EDGES)}
        return cls(
            node_ptr=ptr("node_ptr"),
            edge_ptr=ptr("edge_ptr"),
            edge_index=np.concatenate([part.edge_index for part in parts], axis=1),
            **joined,
        )


def pointers(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cumulative sums of the counts, from 0."""
    return np.concatenate([[0], counts.cumsum()]).astype(np.int64)


@dataclass(frozen=True)
class Rejected:
    """A row of a file that is no graph."""

    position: int
    """Its number among the rows of the file, from 0."""
    line: int
    """Its line in the file, from 1; its number among the rows where there are no lines."""
    id: str
    reason: str

    def __str__(self) -> str:
        return f"line {self.line} ({' '.join(self.id.split())}): {self.reason}"


class InvalidRowError(ValueError):
    """A row that is no graph, and why."""


class Row(NamedTuple):
    """A row of a file, not yet read as a graph."""

    line: int
    content: Any
    """SMILES, an entry of an SD file, or the object of a line of JSON."""
    id: str = ""
    """Empty where the file has no name for it; it is called by its position then."""
    label: Any = None
    """Several labels are values by name."""
    part: str = ""
    problem: str = ""
    """The reason why it cannot be read, if there is one already."""


@dataclass(frozen=True)
class Parsed:
    """The graphs of some rows, and the rows that are none."""

    graphs: RawGraphs
    positions: Sequence[int]
    """Numbers of the graphs' rows among those of the file, from 0."""
    lines: Sequence[int]
    """Counted from 1."""
    ids: Sequence[str]
    labels: Sequence[Any]
    """Values of the file, None where it has none."""
    parts: Sequence[str] = ()
    """Values of the split column."""
    molecules: Sequence[Any] = ()
    """Molecules of rdkit, for files of such."""
    smiles: Sequence[str] = ()
    rejected: Sequence[Rejected] = ()

    @classmethod
    def of_rows(
        cls,
        first: int,
        rows: Iterable[Row],
        read: Callable[[Any], Any],
        joined: Callable[[list[Any]], RawGraphs],
    ) -> tuple["Parsed", list[Any]]:
        """Read every row; one that is no graph is rejected with its line and name.

        Args:
            first: Position of the first row in the file.
            rows: Of the file.
            read: Reads the content of a row, or raises :class:`InvalidRowError`.
            joined: Lays what was read end to end.

        Returns:
            The graphs, and what was read for each.
        """
        items, used, rejected = [], [], []
        for position, row in enumerate(rows, first):
            name = row.id or str(position)
            try:
                if row.problem:
                    raise InvalidRowError(row.problem)
                items.append(read(row.content))
                used.append((position, row.line, name, row.label, row.part))
            except InvalidRowError as error:
                rejected.append(Rejected(position, row.line, name, str(error)))
        columns: Iterable[Any] = zip(*used, strict=True) if used else [()] * 5
        positions, lines, ids, labels, parts = map(list, columns)
        graphs = joined(items)
        return cls(graphs, positions, lines, ids, labels, parts, rejected=rejected), items

    @classmethod
    def joined(cls, parts: Sequence["Parsed"]) -> "Parsed":
        """The graphs and rejected rows of several chunks."""

        def together(name: str) -> list[Any]:
            return [item for part in parts for item in getattr(part, name)]

        lists = [spec.name for spec in fields(cls) if spec.name != "graphs"]
        graphs = RawGraphs.joined([part.graphs for part in parts])
        return cls(graphs, **{name: together(name) for name in lists})

    def rejections(self, reasons: Mapping[int, str]) -> list[Rejected]:
        """The rows of some graphs that cannot be used after all, by their numbers here."""
        return [
            Rejected(self.positions[at], self.lines[at], self.ids[at], reason)
            for at, reason in sorted(reasons.items())
        ]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows that follow each other in a file; parsing them may be left to another process."""

    first: int
    """Position of the first row in the input, from 0."""
    items: Sized
    """The rows, not yet parsed; of a file that is read at once, its graphs."""
    parser: Callable[[int, Any, Layout | None], Parsed]
    """Takes ``first``, ``items`` and a layout."""
    kind: Literal["graphs", "molecules", "nodes"] = "graphs"

    def __len__(self) -> int:
        return len(self.items)

    def after(self, rows: int) -> "Rows":
        """Place the rows after others of the input."""
        return replace(self, first=rows + self.first)

    def parse(self, layout: Layout | None = None) -> Parsed:
        """Read them as graphs, of a layout if one is asked for."""
        return self.parser(self.first, self.items, layout)


def chunked(rows: Iterable[Any], size: int, parser: Any, kind: Any = "graphs") -> Iterator[Rows]:
    """The rows of a file in chunks of so many."""
    rows, first = iter(rows), 0
    while chunk := tuple(islice(rows, size)):
        yield Rows(first, chunk, parser, kind)
        first += len(chunk)


def stored_rows(graphs: RawGraphs, labels: Sequence[Any], size: int) -> Iterator[Rows]:
    """Graphs that are read and checked already, in chunks; ``labels`` may be empty."""
    kind: Any = "graphs" if graphs.node_ids is None else "nodes"
    for first in range(0, len(graphs), size):
        last = min(first + size, len(graphs))
        known = labels[first:last] if len(labels) else [None] * (last - first)
        yield Rows(first, graphs.part(first, last), partial(_stored, labels=known), kind)


def _stored(first: int, graphs: RawGraphs, layout: Layout | None, labels: Sequence[Any]) -> Parsed:
    positions = range(first, first + len(graphs))
    return Parsed(
        graphs, positions, range(first + 1, positions.stop + 1), [*map(str, positions)], labels
    )


SHOWN = 3
"""Unusable rows that a message names."""


@dataclass
class Unusable:
    """Rows of a file that could not be used: their number, and the first ones."""

    count: int = 0
    first: list[Rejected] = field(default_factory=list)

    def add(self, rejected: Sequence[Rejected]) -> None:
        """Count more of them."""
        self.count += len(rejected)
        self.first += rejected[: max(0, SHOWN - len(self.first))]

    @property
    def note(self) -> str | None:
        """A message on them, if there are any."""
        return f"{self.count:,} rows could not be used: {self}" if self.count else None

    def __str__(self) -> str:
        more = f"; and {self.count - len(self.first)} more" * (self.count > len(self.first))
        return "; ".join(map(str, self.first)) + more
