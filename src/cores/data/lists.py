"""Lists of graphs from Python, PyG's or networkx's, as a dataset; every graph is checked."""

import operator
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from cores.config.run import AskedTask
from cores.data.dataset import Dataset, numbered, stray_edge, unusable_graphs
from cores.data.encoding import Encoding, encode
from cores.data.labels import given_labels, plain_labels, with_labels
from cores.data.molecules import (
    ATOM_COLUMNS,
    BOND_COLUMNS,
    molecule_from_smiles,
    molecule_graphs,
)
from cores.data.raw import MOST_NODES, InvalidRowError
from cores.errors import UserError
from cores.graphs.store import GraphStore, Neighbourhood


def from_graphs(graphs: Any, y: Any = None, *, task: AskedTask = "auto") -> Dataset:
    """A dataset of labelled graphs.

    Args:
        graphs: PyG ``Data``, networkx graphs, SMILES strings, or a dataset. A graph without node
            features gets a constant one. Of a networkx graph, the node attribute ``x`` holds the
            features and the edge attribute ``edge_attr`` those of the edges.
        y: A label per graph, whole numbers or text, or any numbers for a regression; a row of
            labels per graph where there are several (a matrix, or a table of pandas). If not given,
            each graph's own ``y`` (of a networkx graph, ``graph["y"]`` or ``graph["label"]``).
        task: What is to be predicted; found by the labels if not said.
    """
    if isinstance(graphs, Dataset):
        if y is None and task in ("auto", graphs.task):
            return graphs
        dataset = graphs
    else:
        graphs = listed(graphs)
        dataset = _unlabelled(graphs)
    given = plain_labels(graphs) if y is None else given_labels(y)
    if len(given) != len(dataset):
        raise UserError(f"`y` has {len(given)} labels for {len(dataset)} graphs")
    return with_labels(dataset, given, task)


def _unlabelled(items: list[Any]) -> Dataset:
    """A dataset of graphs that are all of class 0."""
    store = read_graphs(items)
    if are_smiles(items):
        return Dataset(
            "molecules",
            store,
            class_names=(),
            feature_names=ATOM_COLUMNS,
            edge_feature_names=BOND_COLUMNS,
            smiles=tuple(items),
            encoding=Encoding.of_molecules(),
        )
    return Dataset(
        "graphs",
        store,
        class_names=(),
        feature_names=numbered(store.num_features),
        edge_feature_names=numbered(store.num_edge_features),
        continuous=continuous_columns(store.x),
    )


def are_smiles(items: Sequence[Any]) -> bool:
    """Tell whether a list holds molecules, as SMILES strings."""
    return bool(items) and all(isinstance(item, str) for item in items)


def _from_smiles(items: Sequence[str]) -> GraphStore:
    molecules = []
    for number, smiles in enumerate(items):
        try:
            molecules.append(molecule_from_smiles(smiles))
        except InvalidRowError as error:
            raise UserError(f"molecule {number}: {error}") from None
    names = ATOM_COLUMNS, BOND_COLUMNS
    return encode(molecule_graphs(molecules), Encoding.of_molecules(), *names)[0]


def read_graphs(graphs: Any, *, finite: bool = True) -> GraphStore:
    """Graphs with features and edges that fit together, all of class 0.

    Features that are NaN or infinite are refused, unless that is left to the caller.
    """
    items = listed(graphs)
    if are_smiles(items):
        return _from_smiles(items)
    records = [_record(graph, number) for number, graph in enumerate(items)]
    if not records:
        raise UserError("the list of graphs is empty; give at least one")
    featured = [record.x is not None for record in records]
    if not any(featured):
        for record in records:
            record.x = torch.ones(record.num_nodes, 1)
    elif not all(featured):
        raise UserError(
            f"graph {featured.index(False)} has no node features x, others have; "
            "give all graphs features, or none"
        )
    widths = [record.edge_attr.size(1) for record in records if record.edge_attr is not None]
    for number, record in enumerate(records):
        if widths and record.edge_attr is None and not record.num_edges:
            record.edge_attr = torch.empty(0, widths[0])  # no edge, so nothing is missing
        _check_shapes(record, number, records[0])
    store = GraphStore.from_graphs(records, torch.zeros(len(records), dtype=torch.int64))
    if (stray := stray_edge(store)) is not None:
        nodes = records[stray].num_nodes
        raise UserError(f"graph {stray}: an edge names a node that is not there (of {nodes})")
    for number, problem in (unusable_graphs(store) if finite else {}).items():
        raise UserError(f"graph {number} {problem}; clean or remove it")
    return store


def listed(graphs: Any) -> list[Any]:
    """Graphs one by one, from anything that holds them; the batches of a loader are unpacked."""
    if isinstance(graphs, GraphStore):
        return graphs.to_graphs()
    if isinstance(graphs, Batch):
        graphs = [graphs]
    single = isinstance(graphs, Data | str | bytes) or _is_networkx(graphs)
    try:
        items = None if single else list(graphs)
    except TypeError:
        items = None
    if items is None:
        raise UserError(f"give a list of graphs, got a {type(graphs).__name__}")
    found: list[Any] = []
    for item in items:
        found += item.to_data_list() if isinstance(item, Batch) else [item]
    return found


def _is_networkx(graph: Any) -> bool:
    return hasattr(graph, "nodes") and hasattr(graph, "adj")


def _record(graph: Any, number: int) -> Data:
    """A new record with what we read of a graph."""
    if not isinstance(graph, Data):
        if not _is_networkx(graph):
            raise UserError(
                f"graph {number} is a {type(graph).__name__}; "
                "give PyG Data, networkx graphs or SMILES"
            )
        graph = _from_networkx(graph, number)
    if graph.get("adj_t") is not None and graph.edge_index is None:
        raise UserError(f"graph {number} has an adj_t and no edge_index; leave ToSparseTensor out")
    for name in ("x", "edge_index", "edge_attr", "node_truth", "edge_truth"):
        if graph.get(name) is not None:
            _check_plain(graph[name], name, number)
    record = Data(num_nodes=_count_nodes(graph, number))
    edge_index = graph.edge_index
    if edge_index is None:
        edge_index = torch.empty(2, 0, dtype=torch.int64)
    whole = not edge_index.is_floating_point() and edge_index.dtype != torch.bool
    if edge_index.dim() != 2 or edge_index.size(0) != 2 or not whole:
        raise UserError(
            f"graph {number}: edge_index must hold whole numbers in two rows, "
            f"got {edge_index.dtype} of shape {tuple(edge_index.shape)}"
        )
    record.edge_index = edge_index.long().cpu()
    for name in ("x", "edge_attr"):
        value = graph.get(name)
        if value is not None:
            numbers = value.detach().float().cpu()
            record[name] = numbers if numbers.dim() == 2 else numbers.view(-1, 1)
    for name in ("node_truth", "edge_truth"):
        if graph.get(name) is not None:
            record[name] = graph[name].bool().cpu()
    if isinstance(graph, Neighbourhood):
        record.node_id = graph.node_id.long().cpu()
    return record


def _check_plain(value: Any, name: str, number: int) -> None:
    """Refuse what is no tensor of numbers in rows, as a file may hold it."""
    if not isinstance(value, Tensor):
        kind = type(value).__name__
        raise UserError(f"graph {number}: {name} must be a tensor, got a {kind}")
    strange = value.is_complex() or value.is_quantized or value.is_meta
    if strange or value.layout != torch.strided or value.dim() == 0:
        kind = f"{value.dtype}, {value.layout} of shape {tuple(value.shape)}"
        raise UserError(
            f"graph {number}: {name} must be a dense tensor of real numbers, got {kind}"
        )


def _count_nodes(graph: Data, number: int) -> int:
    """The number of nodes that a graph says, or has features of, or names in its edges."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of PyG's, where only edges name them
        nodes = graph.num_nodes
    try:
        count = 0 if nodes is None else operator.index(nodes)
    except TypeError:
        said = f"must be a whole number, got {nodes!r:.60}"
        raise UserError(f"graph {number}: num_nodes {said}") from None
    if count < 1:
        raise UserError(f"graph {number} has no nodes; leave it out")
    if graph.get("x") is None and count > MOST_NODES:
        raise UserError(f"graph {number} has {count} nodes without features, not 1 to {MOST_NODES}")
    return count


def _check_shapes(record: Data, number: int, first: Data) -> None:
    nodes, edges = record.num_nodes, record.num_edges
    if record.x.size(0) != nodes:
        raise UserError(f"graph {number} has {nodes} nodes and {record.x.size(0)} rows of x")
    if record.x.size(1) == 0:
        raise UserError(f"graph {number} has node features without columns; leave x out instead")
    if record.x.size(1) != first.x.size(1):
        raise UserError(
            f"graph {number} has {record.x.size(1)} node features, graph 0 has {first.x.size(1)}; "
            "all graphs need the same columns"
        )
    attributes, others = record.edge_attr, first.edge_attr
    if (attributes is None) != (others is None) or (
        attributes is not None and attributes.size(1) != others.size(1)
    ):
        raise UserError(f"graph {number} has other edge features than graph 0")
    if attributes is not None and attributes.size(0) != edges:
        raise UserError(
            f"graph {number} has {edges} edges and {attributes.size(0)} rows of edge_attr"
        )
    for name, items in (("node_truth", nodes), ("edge_truth", edges)):
        truth = record.get(name)
        if truth is not None and tuple(truth.shape) != (items,):
            raise UserError(
                f"graph {number}: {name} must have {items} values, got shape {tuple(truth.shape)}"
            )


def _from_networkx(graph: Any, number: int) -> Data:
    """Nodes in their own order, both directions of an undirected edge."""
    place = {node: position for position, node in enumerate(graph.nodes)}
    record = Data(num_nodes=len(place))
    edges = [(place[a], place[b], data) for a, b, data in graph.edges(data=True)]
    if not graph.is_directed():
        edges += [(b, a, data) for a, b, data in edges if a != b]
    ends = [(a, b) for a, b, _ in edges]
    record.edge_index = torch.tensor(ends, dtype=torch.int64).view(-1, 2).t().contiguous()
    record.x = _rows([data.get("x") for _, data in graph.nodes(data=True)], number, "node")
    attributes = [data.get("edge_attr") for _, _, data in edges]
    record.edge_attr = _rows(attributes, number, "edge")
    return record


def _rows(values: list[Any], number: int, kind: str) -> Tensor | None:
    if not values or all(value is None for value in values):
        return None
    try:
        return torch.tensor(np.array(values, dtype=np.float32)).view(len(values), -1)
    except (TypeError, ValueError):
        raise UserError(
            f"graph {number}: the {kind} features must be as many numbers on every {kind}"
        ) from None


def continuous_columns(x: Tensor) -> tuple[int, ...]:
    """Columns to standardise: those that are neither constant nor of zeros and ones alone."""
    binary = ((x == 0) | (x == 1)).all(dim=0)
    constant = (x == x[:1]).all(dim=0)
    return tuple(torch.nonzero(~binary & ~constant).flatten().tolist())
