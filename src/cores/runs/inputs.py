"""New graphs for a trained model: any input, with the model's own columns and classes."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import torch

from cores.config import Reach
from cores.data.catalogue import DATASETS, REGISTERED, canonical_name, data_folder, dataset_path
from cores.data.dataset import Dataset, unusable_graphs
from cores.data.datasets import OnError, load_dataset, own_labels, parsed_rows
from cores.data.encoding import encode
from cores.data.inputs.columns import ColumnNames
from cores.data.inputs.saved import saved_by_pyg, saved_graphs
from cores.data.inputs.sources import CHUNK, read_rows
from cores.data.labels import own_numbers, plain_labels
from cores.data.molecules import VERSION
from cores.data.nodes import NodeGraph, labels_nodes, node_labels
from cores.data.raw import Parsed, RawGraphs, Rejected, Rows, stored_rows
from cores.errors import UserError
from cores.graphs.store import GraphStore
from cores.runs.trained import DataSchema

OnUnknown = Literal["error", "ignore"]
"""Policy for node or edge labels that no graph of the training had."""


@dataclass(frozen=True)
class PredictOptions:
    """Options of predictions: prediction sets, parts, and how an input is read."""

    alpha: float | None = None
    """Error rate of the prediction sets; None: the run's."""
    score: str | None = None
    """Conformal score; None: the run's."""
    per_class: bool | None = None
    """Whether every class is covered as often; None: the run's."""
    sufficiency: float | None = None
    """tau, from which a part is sufficient; None: the run's."""
    parts: str | None = None
    """Which part is shown: minimal, cut or policy; None: the run's."""
    columns: ColumnNames = field(default_factory=ColumnNames)
    on_error: OnError = "skip"
    """Rows that are no graphs: ``skip`` gives them a record with an error, ``fail`` stops."""
    on_unknown: OnUnknown = "error"
    """Labels of nodes or edges that no graph of the training had."""


def input_rows(
    source: str,
    columns: ColumnNames,
    data_root: Path | None = None,
    size: int = CHUNK,
    reach: Reach | None = None,
) -> Iterator[Rows]:
    """The rows of a path or of a known dataset, in chunks.

    With a reach, a row is the neighbourhood of a node: the file holds one graph.
    """
    name = canonical_name(source)
    if name in REGISTERED or (name in DATASETS and DATASETS[name].is_made):
        dataset = load_dataset(name, data_root, reach=reach)
        return stored_rows(RawGraphs.of_store(dataset.graphs), plain_labels(dataset), size)
    path = Path(name)
    if reach is not None and name not in DATASETS:
        return node_rows(path, reach, size)
    if name in DATASETS:
        path = dataset_path(DATASETS[name], data_folder(data_root))
    return read_rows(path, columns, size)


def node_rows(path: Path, reach: Reach, size: int) -> Iterator[Rows]:
    """The neighbourhoods of all nodes of the graph in a file, in chunks."""
    if not path.exists():
        raise UserError(f"{path} does not exist")
    saved = saved_by_pyg(path)
    if saved is None:
        raise UserError(f"the model classifies nodes; give one graph in a .pt file, not {path}")
    graphs = saved_graphs(saved)
    if len(graphs) != 1:
        raise UserError(f"the model classifies the nodes of one graph, {path} holds {len(graphs)}")
    graph = NodeGraph(graphs[0])
    labels = node_labels(graph) if labels_nodes(graphs[0]) else ()
    return graph.rows(labels, reach, size)


def model_rows(
    source: str, schema: DataSchema, columns: ColumnNames, data_root: Path | None = None
) -> Iterator[Rows]:
    """The rows of an input, which must be of the kind that a model was trained on."""
    for rows in input_rows(source, columns, data_root, reach=schema.encoding.reach):
        check_kind(rows, schema)
        yield rows


def check_kind(rows: Rows, schema: DataSchema) -> None:
    """Refuse molecules for a model of other graphs, and the other way round."""
    encoding = schema.encoding
    found = "molecules" if rows.kind == "molecules" else "graphs"
    if found != encoding.kind:
        raise UserError(f"the model was trained on {encoding.kind}, these are {found}")
    if (rows.kind == "nodes") != (encoding.reach is not None):
        kinds = ("nodes of one graph", "whole graphs")
        mine, theirs = kinds if encoding.reach is not None else reversed(kinds)
        raise UserError(f"the model classifies {mine}, these are {theirs}")
    if found == "molecules" and encoding.version != VERSION:
        raise UserError(
            f"the model reads version {encoding.version} of the columns of molecules, this program "
            f"makes version {VERSION}; train it again, or use the program it was trained with"
        )


@dataclass(frozen=True)
class EncodedGraphs:
    """Graphs with a model's columns, and those that it cannot read."""

    graphs: GraphStore
    index: list[int]
    """Number of each graph among those that were parsed."""
    rejected: list[Rejected]

    @classmethod
    def of(
        cls, parsed: Parsed, schema: DataSchema, on_unknown: OnUnknown = "error"
    ) -> "EncodedGraphs":
        """Give parsed graphs the model's columns.

        One that has a label which no graph of the training had, or features that are no numbers,
        cannot be used.
        """
        names = schema.feature_names, schema.edge_feature_names
        graphs, unknown = encode(parsed.graphs, schema.encoding, *names)
        reasons = unusable_graphs(graphs)
        if on_unknown == "error":
            reasons |= {
                graph: f"has the {value}, which no graph of the training had; "
                'on_unknown="ignore" takes it without'
                for graph, value in unknown.items()
            }
        rejected = parsed.rejections(reasons)
        index = [at for at in range(len(graphs)) if at not in reasons]
        if rejected:
            graphs = graphs.subset(torch.tensor(index, dtype=torch.int64))
        return cls(graphs, index, rejected)


def labelled_graphs(
    source: str,
    schema: DataSchema,
    columns: ColumnNames,
    data_root: Path | None = None,
    on_error: OnError = "skip",
    on_unknown: OnUnknown = "error",
) -> Dataset:
    """The graphs of an input with a model's columns and its own numbers of the classes."""
    name = canonical_name(source)
    named, reach = None, schema.encoding.reach
    if name in (*DATASETS, *REGISTERED) or (reach is not None and saved_by_pyg(Path(name))):
        named = load_dataset(name, data_root, reach=reach)  # of a graph, the nodes of its masks
    if named is not None and named.feature_names == schema.feature_names:
        # Read as it is: it may know its ground truth.
        graphs, labels, unusable = named.graphs, plain_labels(named), None
        ids = list(named.ids)
    else:
        rows = model_rows(source, schema, columns, data_root)
        parsed, unusable = parsed_rows(source, rows, on_error, schema.encoding.layout, schema.task)
        encoded = EncodedGraphs.of(parsed, schema, on_unknown)
        unusable.add(encoded.rejected)
        if encoded.rejected and (on_error == "fail" or not encoded.index):
            raise UserError(f"{source}: {encoded.rejected[0]}")
        graphs, ids = encoded.graphs, [parsed.ids[at] for at in encoded.index]
        labels = own_labels(source, parsed, encoded.index, unusable, on_error, schema.task)
    numbers, known = own_numbers(labels, schema.task, schema.class_names, schema.labels, name)
    labelled = known.nonzero().flatten()
    return Dataset(
        name,
        replace(graphs, y=numbers).subset(labelled),
        class_names=schema.class_names,
        feature_names=schema.feature_names,
        edge_feature_names=schema.edge_feature_names,
        labels=schema.labels,
        ids=tuple(ids[at] for at in labelled.tolist()) if ids else (),
        encoding=schema.encoding,
        unusable=unusable,
        task=schema.task,
    )
