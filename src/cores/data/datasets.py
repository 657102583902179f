"""Any dataset, by name or by path; and the one place where rows of a file become one."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import torch

from cores.config import Reach
from cores.config.run import AskedTask
from cores.config.spec import TaskName
from cores.data.catalogue import (
    DATASETS,
    REGISTERED,
    DatasetSpec,
    canonical_name,
    data_folder,
    dataset_path,
)
from cores.data.dataset import Dataset, checked, numbered, unusable_graphs
from cores.data.encoding import Encoding, encode
from cores.data.inputs.columns import ColumnNames
from cores.data.inputs.saved import graph_rows, saved_by_pyg, saved_graphs
from cores.data.inputs.sources import CHUNK, Kind, kind_of, read_rows
from cores.data.inputs.tu import tu_rows
from cores.data.labels import found_task, label_problem, target_problem, with_labels
from cores.data.lists import continuous_columns, from_graphs
from cores.data.nodes import from_nodes, labels_nodes
from cores.data.raw import BYTES_OF_NODE, Layout, Parsed, Rejected, Rows, Unusable
from cores.data.synthetic import NODE_GRAPHS, ba_motifs
from cores.errors import UserError
from cores.files import cache_folder
from cores.files.limits import Allowance

OnError = Literal["skip", "fail"]
_UNNAMED = ColumnNames()


def load_dataset(
    dataset: str | Path,
    data_root: str | Path | None = None,
    *,
    columns: ColumnNames | None = None,
    smiles_column: str | None = None,
    label_column: str | None = None,
    id_column: str | None = None,
    split_column: str | None = None,
    on_error: OnError = "skip",
    task: AskedTask = "auto",
    reach: Reach | None = None,
) -> Dataset:
    """Load a dataset by name (any case), or any file or folder of labelled graphs by path.

    Registered datasets come from their own function, ``motifs`` is generated. The others are read
    from ``data_root``, else from the folder that the environment variable ``CORES_DATA`` names;
    else PyG downloads those of the TU collection to the user's cache folder. docs/inputs.md lists
    the kinds of files.

    Args:
        dataset: Name or path.
        data_root: Folder of the named datasets.
        columns: Which columns of a file hold molecules, labels, names and parts, together; or one
            by one:
        smiles_column: Of a file's molecules; this and the next two are found by their names where
            not given.
        label_column: Of its labels; of several, names with commas between them.
        id_column: Of its identifiers.
        split_column: That says train, val, calibration or test.
        on_error: What to do with rows of a file that are no graphs: ``"skip"`` counts them in the
            dataset's ``unusable``, ``"fail"`` raises at the first.
        task: What is to be predicted, ``"classification"``, ``"regression"`` or ``"multilabel"``;
            by default numbers where the labels are more than 20 different ones that are not whole,
            and several labels where several columns are named.
        reach: Of the neighbourhoods, where the nodes of one graph are classified.

    >>> load_dataset("motifs").class_names
    ('cycle', 'house')
    """
    name = canonical_name(str(dataset))
    named = ColumnNames(smiles_column, label_column, id_column, split_column)
    if columns is not None and named != _UNNAMED:
        raise UserError("name the columns in `columns` or one by one, not in both")
    if name in REGISTERED:
        found = REGISTERED[name]()
        if labels_nodes(found):
            return checked(from_nodes(found, reach=reach, name=name, task=task))
        return checked(replace(from_graphs(found, task=task), name=name))
    if name in DATASETS:
        if task in ("regression", "multilabel"):
            raise UserError(f'{name} has classes; leave task="{task}" out')
        return checked(_known(DATASETS[name], data_root, reach))
    path, names = Path(name), columns or named
    kind = kind_of(path)
    rows = read_rows(path, names)
    if (saved := saved_by_pyg(path)) is not None and not kind.streamed:
        graphs = saved_graphs(saved)
        if len(graphs) == 1 and labels_nodes(graphs[0]):
            return checked(from_nodes(graphs[0], reach=reach, name=name, task=task))
        rows = graph_rows(graphs, CHUNK)
    return checked(read_dataset(name, rows, kind, names=names, on_error=on_error, task=task))


def _known(spec: DatasetSpec, data_root: str | Path | None, reach: Reach | None) -> Dataset:
    """A dataset that comes with the package, by code or from its file."""
    if spec.source == "code":
        graphs = ba_motifs()
        return Dataset(spec.name, graphs, ("cycle", "house"), numbered(graphs.num_features))
    if spec.source == "nodes":
        graph = NODE_GRAPHS[spec.name]()
        return from_nodes(
            graph.data,
            reach=reach,
            name=spec.name,
            class_names=graph.class_names,
            truth=graph.truth,
        )
    root = data_folder(data_root)
    path = dataset_path(spec, root)
    marks = (root or cache_folder()) / "other" / spec.edge_truth
    marked = spec.edge_truth and marks.exists()
    rows = tu_rows(path, _UNNAMED, CHUNK, marks) if marked else read_rows(path, _UNNAMED)
    return read_dataset(spec.name, rows, kind_of(path), on_error="fail", spec=spec)


def read_dataset(
    name: str,
    rows: Iterable[Rows],
    kind: Kind,
    *,
    names: ColumnNames = _UNNAMED,
    on_error: OnError = "skip",
    task: AskedTask = "auto",
    spec: DatasetSpec | None = None,
) -> Dataset:
    """A dataset of the rows of a file; one without a label is as unusable as one without a graph.

    ``spec`` says which columns are kept; without it, all are.
    """
    if task == "auto" and names.label is not None and "," in names.label:
        task = "multilabel"
    parsed, unusable = parsed_rows(name, rows, on_error, task=task, remedy=kind.labels)
    encoding = Encoding.of_molecules() if kind.holds == "molecules" else Encoding.of(parsed.graphs)
    feature_names, edge_names = _column_names(name, encoding, kind, spec)
    graphs, _ = encode(parsed.graphs, encoding, feature_names, edge_names)
    strange = unusable_graphs(graphs)
    _count(name, unusable, parsed.rejections(strange), on_error)
    usable = [at for at in range(len(graphs)) if at not in strange]
    given = [label for at in usable if (label := parsed.labels[at]) is not None]
    if not given:
        raise UserError(f"{name} holds no usable graph ({unusable})")
    task = found_task(given, task)
    labels = own_labels(name, parsed, usable, unusable, on_error, task)
    known = [at for at, label in zip(usable, labels, strict=True) if label is not None]
    continuous: tuple[int, ...] = ()
    if spec is not None:
        continuous = spec.continuous
    elif kind.measured:
        continuous = tuple(range(encoding.node_numbers))
    elif kind.holds != "molecules":
        continuous = continuous_columns(
            graphs.subset(torch.tensor(usable)).x if strange else graphs.x
        )
    dataset = Dataset(
        name,
        graphs,
        class_names=(),
        feature_names=feature_names,
        edge_feature_names=edge_names,
        continuous=continuous,
        clipped=() if spec is None else spec.clipped,
        ids=tuple(parsed.ids),
        smiles=tuple(parsed.smiles),
        given_parts=tuple(parsed.parts) if names.split is not None else (),
        encoding=encoding,
        unusable=unusable if spec is None else None,
        columns=None if names == _UNNAMED else names,
    )
    if len(known) < len(dataset):
        dataset = dataset[known]
    given = [label for label in labels if label is not None]
    return with_labels(dataset, given, task, written=True, name=names.label or "label")


def _column_names(
    name: str, encoding: Encoding, kind: Kind, spec: DatasetSpec | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the columns of nodes and of edges."""
    if not kind.named:
        return numbered(encoding.node_numbers), numbered(encoding.edge_numbers)
    try:
        names, edge_names = encoding.feature_names, encoding.edge_feature_names
    except UserError as error:
        raise UserError(f"{name}: {error}") from None
    if spec is None:
        return names, edge_names
    needed = max((*(spec.columns or ()), *spec.continuous, *spec.clipped), default=-1) + 1
    if len(names) < needed:
        raise UserError(
            f"{name} has {len(names)} feature columns in these files, not {needed} or more: "
            "another dataset of that name? Give its path instead of the name"
        )
    if spec.columns is not None:
        names = tuple(names[column] for column in spec.columns)
    return names, edge_names


def parsed_rows(
    source: str,
    chunks: Iterable[Rows],
    on_error: OnError,
    layout: Layout | None = None,
    task: AskedTask = "auto",
    remedy: str = Kind.labels,
) -> tuple[Parsed, Unusable]:
    """Read all rows of an input that are graphs; labels that are none become None.

    Without a ``layout``, the first graphs decide what all must have in common; ``remedy`` is what
    to do where no row has a label.
    """
    parsed: list[Parsed] = []
    unusable = Unusable()
    allowance = Allowance(source)
    labelled, several = False, True
    for rows in chunks:
        found = rows.parse(layout)
        problems = {
            at: problem
            for at, label in enumerate(found.labels)
            if (problem := label_problem(label, task)) is not None
        }
        labelled = labelled or len(problems) < len(found.labels)
        several = several and all(isinstance(label, list | dict) for label in found.labels)
        _count(source, unusable, [*found.rejected, *found.rejections(problems)], on_error)
        if len(found.graphs):
            layout = found.graphs.layout.after(layout)
            allowance.take(max(found.graphs.size, BYTES_OF_NODE * int(found.graphs.node_ptr[-1])))
            labels = [None if at in problems else each for at, each in enumerate(found.labels)]
            # Molecules of rdkit take more memory than graphs.
            parsed.append(replace(found, labels=labels, molecules=()))
    if not parsed:
        told = f" ({unusable})" if unusable.count else ""
        raise UserError(f"{source} holds no usable graph{told}")
    if not labelled:
        if several:
            raise UserError(f'{source}: several labels per graph are for task="multilabel"')
        raise UserError(f"{source} has no labels; {remedy}")
    return Parsed.joined(parsed), unusable


def own_labels(
    source: str,
    parsed: Parsed,
    rows: Sequence[int],
    unusable: Unusable,
    on_error: OnError,
    task: TaskName,
) -> list[Any]:
    """The labels of some rows, None for none; what is no target of a regression is unusable."""
    labels = [parsed.labels[at] for at in rows]
    if task != "regression":
        return labels
    known = {at: label for at, label in zip(rows, labels, strict=True) if label is not None}
    reasons = {at: problem for at, label in known.items() if (problem := target_problem(label))}
    if reasons and len(reasons) == len(known):
        raise UserError(f"{source}: {parsed.rejections(reasons)[0]}")
    _count(source, unusable, parsed.rejections(reasons), on_error)
    return [None if at in reasons else label for at, label in zip(rows, labels, strict=True)]


def _count(
    source: str, unusable: Unusable, rejected: Sequence[Rejected], on_error: OnError
) -> None:
    """Count rows that cannot be used, or refuse the first of them."""
    unusable.add(rejected)
    if rejected and on_error == "fail":
        raise UserError(f'{source}: {rejected[0]}; mend it, or set on_error="skip"')
