"""Graphs as lines of JSON: ``{"id": ..., "nodes": ..., "edges": ..., "label": ...}``.

``nodes`` is a number of nodes without features, or one item per node: a number, a list of numbers,
or text, which is a category. An item of ``edges`` is ``[a, b]``, or ``[a, b, item]`` with a feature
as for nodes; it stands for both directions. docs/inputs.md has examples.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cores.data.inputs.columns import ColumnNames, choose_columns
from cores.data.inputs.text import text_lines
from cores.data.raw import (
    BYTES_OF_NODE,
    MOST_NODES,
    Columns,
    InvalidRowError,
    Layout,
    Parsed,
    RawGraphs,
    Row,
    Rows,
    chunked,
    pointers,
)
from cores.errors import told
from cores.files.limits import MEMORY, told_size

NOTHING = Columns(numbers=0, kinds=0)


@dataclass(frozen=True)
class _Graph:
    nodes: int
    node_items: list[Any]
    node_columns: Columns
    ends: list[tuple[int, int]]
    edge_items: list[Any]
    edge_columns: Columns | None
    """None for a graph without edges: it could be any."""


def json_rows(path: Path, names: ColumnNames, size: int) -> Iterator[Rows]:
    """A file of JSON lines in chunks; blank lines are skipped."""
    with text_lines(path) as file:
        lines = ((number, line) for number, line in enumerate(file, 1) if line.strip())
        yield from chunked(lines, size, partial(_parse, names=names))


def _parse(
    first: int, rows: Sequence[tuple[int, str]], layout: Layout | None, names: ColumnNames
) -> Parsed:
    """Read every line; without a layout, the first graph decides what features others have."""
    node, edge = (None, None) if layout is None else (layout.nodes, layout.edges)

    def read(record: dict[str, Any]) -> _Graph:
        nonlocal node, edge
        graph = _graph(record)
        _same(graph.node_columns, node, "node")
        _same(graph.edge_columns, edge, "edge")
        node, edge = graph.node_columns, graph.edge_columns or edge
        return graph

    def joined(graphs: list[_Graph]) -> RawGraphs:
        return _flat(graphs, node or NOTHING, edge or NOTHING)

    return Parsed.of_rows(first, (_row(*line, names) for line in rows), read, joined)[0]


def _row(line: int, text: str, names: ColumnNames) -> Row:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        return Row(line, None, problem=f"no valid JSON ({told(error)})")
    if not isinstance(record, dict):
        return Row(line, None, problem="not a JSON object")
    filled = {key: value for key, value in record.items() if value is not None}
    return Row(line, record, *choose_columns(filled, names).values(record.get))


def _graph(record: dict[str, Any]) -> _Graph:
    nodes = record.get("nodes")
    items: list[Any] = []
    if isinstance(nodes, int) and not isinstance(nodes, bool):
        count, columns = nodes, NOTHING
    elif isinstance(nodes, list):
        count = len(nodes)
        items, columns = _items(nodes, "node")
    else:
        raise InvalidRowError('"nodes" must be a list, or the number of nodes')
    if not 1 <= count <= MOST_NODES:
        raise InvalidRowError(f"has {count} nodes, not 1 to {MOST_NODES}")
    edges = record.get("edges")
    if edges is None:
        edges = []
    if not isinstance(edges, list):
        raise InvalidRowError('"edges" must be a list')
    by_ends: dict[tuple[int, int], Any] = {}
    for edge in edges:
        if type(edge) is not list or len(edge) not in (2, 3):
            raise InvalidRowError("an edge must be [a, b] or [a, b, feature]")
        a, b = edge[0], edge[1]
        if type(a) is not int or type(b) is not int:  # by type: true and false are no numbers
            raise InvalidRowError(f"an edge's ends must be numbers of nodes, got {edge[:2]}")
        if not (0 <= a < count and 0 <= b < count):
            raise InvalidRowError(f"edge [{a}, {b}] names a node that is not there (of {count})")
        item = edge[2] if len(edge) == 3 else None
        if by_ends.setdefault((a, b) if a <= b else (b, a), item) != item:
            raise InvalidRowError(f"edge [{a}, {b}] has two different features")
    features = list(by_ends.values())
    edge_items: list[Any] = []
    edge_columns = NOTHING if features else None
    if any(item is not None for item in features):
        edge_items, edge_columns = _items(features, "edge")
    return _Graph(count, items, columns, list(by_ends), edge_items, edge_columns)


def _items(items: list[Any], kind: str) -> tuple[list[Any], Columns]:
    """The features of nodes or edges as rows, all alike."""
    rows = [item if isinstance(item, list) else [item] for item in items]
    width = len(rows[0]) if rows else 0
    if any(len(row) != width for row in rows):
        raise InvalidRowError(f"every {kind} must have as many features")
    flat = [value for row in rows for value in row]
    types = set(map(type, flat))
    if types <= {str}:
        return rows, Columns(0, width)
    if not types <= {int, float, bool}:
        raise InvalidRowError(f"the features of {kind}s must be all numbers or all text")
    if not all(abs(value) < 3e38 for value in flat):  # NaN is not, either
        raise InvalidRowError(f"has NaN, infinite or too large {kind} features")
    return rows, Columns(width, 0)


def _same(columns: Columns | None, expected: Columns | None, kind: str) -> None:
    if columns is None or expected is None or columns == expected:
        return

    def shown(found: Columns) -> str:
        return f"{found.kinds} of text" if found.kinds else f"{found.numbers} numbers"

    raise InvalidRowError(f"{kind} features are {shown(columns)}, not {shown(expected)}")


def _flat(graphs: list[_Graph], nodes: Columns, edges: Columns) -> RawGraphs:
    counts = np.array([graph.nodes for graph in graphs], dtype=np.int64)
    # A line may ask for any number of nodes without features.
    asked = BYTES_OF_NODE * int(counts.sum())
    MEMORY.check(asked, f"{len(graphs)} lines that follow each other need {told_size(asked)}")
    ends = [np.array(graph.ends, dtype=np.int64).reshape(-1, 2) for graph in graphs]
    once = np.concatenate([np.empty((0, 2), dtype=np.int64), *ends])  # [P, 2]
    both = np.repeat(once, 2, axis=0)
    both[1::2] = both[1::2, ::-1]
    loop = (once[:, 0] == once[:, 1]).repeat(2)
    loop[::2] = False  # of an edge from a node to itself, one direction is both
    items = [item for graph in graphs for item in graph.edge_items]
    edge_numbers, edge_values = _rows(items, edges, len(once))
    node_items = [item for graph in graphs for item in graph.node_items]
    node_numbers, node_values = _rows(node_items, nodes, int(counts.sum()))
    owner = np.repeat(np.arange(len(graphs)), [2 * len(graph.ends) for graph in graphs])[~loop]
    return RawGraphs(
        node_ptr=pointers(counts),
        edge_ptr=pointers(np.bincount(owner, minlength=len(graphs))),
        edge_index=np.ascontiguousarray(both[~loop].T),
        node_numbers=node_numbers,
        edge_numbers=edge_numbers.repeat(2, axis=0)[~loop],
        node_values=node_values,
        edge_values=edge_values.repeat(2, axis=0)[~loop],
    )


def _rows(
    items: list[list[Any]], columns: Columns, rows: int
) -> tuple[NDArray[np.float32], NDArray[Any]]:
    numbers = np.zeros((rows, columns.numbers), dtype=np.float32)
    values = np.empty((rows, columns.kinds), dtype=object)
    if rows and columns.numbers:
        numbers[:] = items
    if rows and columns.kinds:
        values[:] = items
    return numbers, values
