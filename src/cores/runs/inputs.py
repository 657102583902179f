"""New graphs for a trained model: any input, with the model's own columns and classes."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import torch

from cores.data.catalogue import DATASETS, REGISTERED, canonical_name
from cores.data.dataset import Dataset
from cores.data.datasets import load_dataset
from cores.data.encoding import encode
from cores.data.folders import data_folder, dataset_path
from cores.data.inputs.columns import ColumnNames
from cores.data.inputs.labelled import OnError, class_numbers, parsed_rows
from cores.data.inputs.molecules import MoleculeRows
from cores.data.inputs.sources import CHUNK, Rows, read_rows
from cores.data.inputs.stored import dataset_graphs, stored_rows
from cores.data.lists import plain_labels
from cores.data.molecules import VERSION
from cores.data.raw import Parsed
from cores.errors import UserError
from cores.graphs.store import GraphStore
from cores.runs.trained import DataSchema

OnUnknown = Literal["error", "ignore"]
"""What to do with node or edge labels that no graph of the training had."""


def input_rows(
    source: str, columns: ColumnNames, data_root: Path | None = None, size: int = CHUNK
) -> Iterator[Rows]:
    """The rows of a path or of a known dataset, in chunks."""
    name = canonical_name(source)
    if name in REGISTERED or (name in DATASETS and DATASETS[name].source == "code"):
        dataset = load_dataset(name, data_root)
        return stored_rows(dataset_graphs(dataset), plain_labels(dataset), size)
    path = Path(name)
    if name in DATASETS:
        path = dataset_path(DATASETS[name], data_folder(data_root))
    return read_rows(path, columns, size)


def model_rows(
    source: str, schema: DataSchema, columns: ColumnNames, data_root: Path | None = None
) -> Iterator[Rows]:
    """The rows of an input, which must be of the kind that a model was trained on."""
    for rows in input_rows(source, columns, data_root):
        check_kind(rows, schema)
        yield rows


def check_kind(rows: Rows, schema: DataSchema) -> None:
    """Refuse molecules for a model of other graphs, and the other way round."""
    encoding = schema.encoding
    found = "molecules" if isinstance(rows, MoleculeRows) else "graphs"
    if found != encoding.kind:
        raise UserError(f"the model was trained on {encoding.kind}, these are {found}")
    if found == "molecules" and encoding.version != VERSION:
        raise UserError(
            f"the model reads version {encoding.version} of the columns of molecules, this program "
            f"makes version {VERSION}; train it again, or use the program it was trained with"
        )


def encoded_graphs(parsed: Parsed, schema: DataSchema, on_unknown: OnUnknown) -> GraphStore:
    """Graphs with a model's columns; refuses what it has never seen, by the graph's name."""
    names = schema.feature_names, schema.edge_feature_names
    graphs, unknown = encode(parsed.graphs, schema.encoding, *names)
    if unknown and on_unknown == "error":
        raise UserError(
            f"graph {parsed.ids[unknown[0].graph]} has the {unknown[0].what}, which no graph "
            'of the training had; on_unknown="ignore" takes it without'
        )
    bad = ~graphs.x.isfinite().all(dim=1)
    if bool(bad.any()):
        node = int(bad.nonzero()[0])
        graph = int(torch.searchsorted(graphs.node_ptr, node, right=True)) - 1
        raise UserError(f"graph {parsed.ids[graph]} has NaN or infinite node features")
    return graphs


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
    named = load_dataset(name, data_root) if name in (*DATASETS, *REGISTERED) else None
    if named is not None and named.feature_names == schema.feature_names:
        # Read as it is: it may know its ground truth.
        graphs, labels, unusable = named.graphs, plain_labels(named), None
    else:
        rows = model_rows(source, schema, columns, data_root)
        parsed, unusable = parsed_rows(source, rows, on_error, schema.encoding.layout)
        graphs, labels = encoded_graphs(parsed, schema, on_unknown), list(parsed.labels)
    numbers = class_numbers(labels, schema.class_names, name)
    labelled = (numbers >= 0).nonzero().flatten()
    return Dataset(
        name,
        replace(graphs, y=numbers).subset(labelled),
        class_names=schema.class_names,
        feature_names=schema.feature_names,
        edge_feature_names=schema.edge_feature_names,
        labels=schema.labels,
        encoding=schema.encoding,
        unusable=unusable,
    )
