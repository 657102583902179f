"""Graphs and labels as a user gives them to a fit, to a fitted model, and to be scored."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Batch, Data

from cores.config.run import AskedTask
from cores.data.dataset import Dataset, checked, numbered
from cores.data.datasets import load_dataset
from cores.data.inputs.columns import ColumnNames
from cores.data.labels import (
    as_targets,
    given_labels,
    label_numbers,
    plain_labels,
)
from cores.data.lists import are_smiles, from_graphs, listed, read_graphs
from cores.data.nodes import NodeGraph, given_parts, node_labels
from cores.data.raw import Parsed
from cores.errors import UserError, nearest
from cores.graphs.store import GraphStore
from cores.runs.inputs import EncodedGraphs, model_rows
from cores.runs.trained import DataSchema, TrainedModel
from cores.tasks import TASKS

Graphs = Any
"""PyG ``Data``, networkx graphs or SMILES strings in a list, loader or dataset; a
:class:`cores.Dataset`; or the path of a file, as ``cores train`` reads it."""
Labels = Any
"""A label per graph: a list, an array or a tensor."""


def with_validation(
    graphs: Graphs,
    y: Labels,
    validation: Graphs | None,
    task: AskedTask = "auto",
) -> tuple[Dataset, torch.Tensor | None]:
    """Join both into a dataset; also return the positions of the validation graphs in it."""
    if validation is None:
        return checked(from_graphs(graphs, y, task=task)), None
    others, labels = validation, None
    if isinstance(validation, tuple) and len(validation) == 2:
        first = validation[0]  # of two graphs, or graphs with their labels
        if not (isinstance(first, Data | str | Path) or hasattr(first, "adj")):
            others, labels = validation
    if isinstance(others, str | Path):
        others = load_dataset(others, task=task)
    first, known = _with_labels(graphs, y, "graphs")
    second, added = _with_labels(others, labels, "validation")
    lists = [first, second]
    if are_smiles(first) != are_smiles(second):  # SMILES become graphs where the others are
        lists = [read_graphs(items).to_graphs() if are_smiles(items) else items for items in lists]
    dataset = from_graphs([*lists[0], *lists[1]], known + added, task=task)
    if isinstance(graphs, Dataset):
        if graphs.given_parts:
            raise UserError("the split column gives the parts; leave `validation` out")
        dataset = replace(  # its columns mean, and are scaled, as it says
            dataset,
            feature_names=graphs.feature_names,
            edge_feature_names=graphs.edge_feature_names,
            continuous=graphs.continuous,
            clipped=graphs.clipped,
            encoding=graphs.encoding,
        )
    return checked(dataset), torch.arange(len(first), len(first) + len(second))


def _with_labels(graphs: Graphs, y: Labels, name: str) -> tuple[list[Any], list[Any]]:
    source = graphs if isinstance(graphs, Dataset) else listed(graphs)
    items, labels = list(source), plain_labels(source) if y is None else given_labels(y)
    if not items:
        raise UserError(f"`{name}` has no graphs")
    if len(labels) != len(items):
        raise UserError(f"`{name}` has {len(items)} graphs and {len(labels)} labels")
    return items, labels


def is_one_way(graphs: GraphStore) -> bool:
    """Return True if there are edges, and none of them has its opposite."""
    ends = graphs.edge_index
    between = int((ends[0] != ends[1]).sum())
    pairs = graphs.pairs.ends
    return between > 0 and between == int((pairs[0] != pairs[1]).sum())


def is_node_graph(graphs: Graphs) -> bool:
    """Return True for a single graph: its nodes are classified."""
    return isinstance(graphs, Data) and not isinstance(graphs, Batch)


def unlabelled(graphs: Graphs, trained: TrainedModel, columns: ColumnNames) -> GraphStore:
    """Read graphs with a model's columns, whatever their labels; ``columns`` are a file's."""
    schema = trained.schema
    if (reach := schema.encoding.reach) is not None and is_node_graph(graphs):
        graph = NodeGraph(graphs)
        graph.check_finite()
        return _checked(graph.neighbourhoods(torch.arange(len(graph)), reach), trained)
    if isinstance(graphs, str | Path):
        layout = schema.encoding.layout
        chunks = [rows.parse(layout) for rows in model_rows(str(graphs), schema, columns)]
        if not chunks:
            raise UserError(f"{graphs} holds no graphs")
        parsed = Parsed.joined(chunks)
        if parsed.rejected:  # an array with a place for every row has none for this
            raise UserError(f"{graphs}: {parsed.rejected[0]}; mend the row, or leave it out")
        encoded = EncodedGraphs.of(parsed, schema)
        if encoded.rejected:
            raise UserError(f"{graphs}: {encoded.rejected[0]}")
        return encoded.graphs
    if isinstance(graphs, Dataset):
        _check_names(graphs, schema)
        return _checked(graphs.graphs, trained)
    items = listed(graphs)
    molecules = schema.encoding.kind == "molecules"
    if molecules != are_smiles(items) and items:
        told = "molecules; give SMILES" if molecules else "graphs, these are molecules"
        raise UserError(f"the model was fitted on {told}")
    return _checked(read_graphs(items), trained)


def _check_names(dataset: Dataset, schema: DataSchema) -> None:
    """Refuse columns that are as many and mean something else; numbered ones could be any."""
    ours, theirs = schema.feature_names, dataset.feature_names
    plain = numbered(len(ours))
    if len(ours) == len(theirs) and ours != theirs and plain not in (ours, theirs):
        first = next(pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1])
        raise UserError(
            f"{dataset.name} has the column {first[1]!r} where the model was fitted on "
            f"{first[0]!r}; give the path of the file, and it gets the model's columns"
        )


def _checked(store: GraphStore, trained: TrainedModel) -> GraphStore:
    """Refuse graphs that have not as many columns as the model was fitted on, and reads."""
    dims = trained.schema.dims
    if store.rooted != dims.rooted:
        what = "nodes; give one graph" if dims.rooted else "whole graphs; give a list of them"
        raise UserError(f"the model classifies {what}")
    if not store.edge_index.numel():  # no edge, so no feature of one is missing
        store = replace(store, edge_attr=torch.empty(0, dims.num_edge_features))
    for found, fitted, what in (
        (store.num_features, dims.num_features, "node"),
        (store.num_edge_features, dims.num_edge_features, "edge"),
    ):
        if found != fitted and (what == "node" or trained.config.network.edge_features):
            raise UserError(
                f"the graphs have {found} {what} features, the model was fitted on {fitted}"
            )
    return store


def graph_score(
    probs: Float[Tensor, "graphs outputs"], labels: Sequence[Any], schema: DataSchema
) -> float:
    """Accuracy on labelled graphs; R2 of numbers, NaN where the targets are all the same.

    Of several labels, the share of the known values that is predicted.
    """
    if len(labels) != len(probs):
        raise UserError(f"`y` has {len(labels)} labels for {len(probs)} graphs")
    task = TASKS[schema.task]
    read = _class_numbers if task.has_classes else _values if task.has_sets else _targets
    found = task.quality[task.scored](probs, read(labels, schema))
    return float("nan") if found is None else float(found)  # type: ignore[arg-type]


def _class_numbers(labels: Sequence[Any], schema: DataSchema) -> Tensor:
    for label in labels:
        if label not in schema.labels:
            names = ", ".join(map(repr, schema.labels))
            raise UserError(f"`y` has the label {label!r}, the model knows {names}")
    return torch.tensor([schema.labels.index(label) for label in labels])


def _targets(labels: Sequence[Any], schema: DataSchema) -> Tensor:
    return as_targets(labels)


def _values(labels: Sequence[Any], schema: DataSchema) -> Tensor:
    named = (row for row in labels if isinstance(row, Mapping))
    for name in dict.fromkeys(str(each) for row in named for each in row):
        if name not in schema.class_names:
            told = nearest(name, schema.class_names)
            raise UserError(f"`y` has the label {name!r}; {told}")
    numbers = label_numbers(labels, schema.class_names, schema.labels, "`y`")
    if bool(numbers.isnan().all()):
        raise UserError("`y` holds no known value")
    return numbers


def node_score(predicted: NDArray[Any], graph: Data, y: Any) -> float:
    """Accuracy on the labelled nodes of a graph's ``test_mask``, or on all without one."""
    labels = node_labels(NodeGraph(graph), y)
    parts = given_parts(graph, len(labels), needed=["test"])
    chosen = [
        node
        for node, label in enumerate(labels)
        if label is not None and (not parts or parts[node] == "test")
    ]
    if not chosen:
        raise UserError("no node has a label; set y")
    return float(np.mean([predicted[node] == labels[node] for node in chosen]))
