"""A file of graphs with labels as a dataset, with columns of its own or with those of a model."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from cores.config.run import AskedTask
from cores.data.dataset import Dataset
from cores.data.encoding import Encoding, encode
from cores.data.inputs.columns import ColumnNames
from cores.data.inputs.sources import GRAPHS, Rows, partitions, read_rows, suffix_of
from cores.data.labels import found_task, known_labels, label_problem, target_problem
from cores.data.lists import continuous_columns
from cores.data.raw import BYTES_OF_NODE, Layout, Parsed, Rejected, Unusable
from cores.errors import UserError
from cores.files.limits import Allowance

OnError = Literal["skip", "fail"]


def holds_molecules(path: Path) -> bool:
    """Whether a file, or a folder of files, holds molecules."""
    files = partitions(path) if path.is_dir() else [path]
    return suffix_of(files[0]) not in GRAPHS


def read_dataset(
    path: Path, names: ColumnNames, on_error: OnError = "skip", task: AskedTask = "auto"
) -> Dataset:
    """Read a file of rows whole; a row without a label is as unusable as one that is no graph."""
    if task == "auto" and names.label is not None and "," in names.label:
        task = "multilabel"
    rows = read_rows(path, names)
    parsed, unusable = parsed_rows(str(path), rows, on_error, task=task)
    encoding = Encoding.of_molecules() if holds_molecules(path) else Encoding.of(parsed.graphs)
    feature_names, edge_names = encoding.feature_names, encoding.edge_feature_names
    graphs, _ = encode(parsed.graphs, encoding, feature_names, edge_names)
    known = [at for at, label in enumerate(parsed.labels) if label_problem(label, task) is None]
    given = [parsed.labels[at] for at in known]
    if (task := found_task(given, task)) == "regression":
        known = with_targets(str(path), parsed, known, unusable, on_error)
        given = [parsed.labels[at] for at in known]
    labels = known_labels(given, task, written=True, name=names.label or "label")
    dataset = Dataset(
        str(path),
        graphs,
        class_names=(),
        feature_names=feature_names,
        edge_feature_names=edge_names,
        continuous=() if encoding.kind == "molecules" else continuous_columns(graphs.x),
        ids=tuple(parsed.ids),
        smiles=tuple(parsed.smiles),
        given_parts=tuple(parsed.parts) if names.split is not None else (),
        encoding=encoding,
        unusable=unusable,
        columns=None if names == ColumnNames() else names,
    )[known]
    return labels.of(dataset)


def with_targets(
    source: str, parsed: Parsed, rows: Sequence[int], unusable: Unusable, on_error: OnError
) -> list[int]:
    """Those of some rows whose label is a target; others with a label are counted as unusable."""
    labelled = [at for at in rows if label_problem(parsed.labels[at]) is None]
    reasons = {at: target_problem(parsed.labels[at]) for at in labelled}
    rejected = [
        Rejected(parsed.positions[at], parsed.lines[at], parsed.ids[at], reason)
        for at, reason in reasons.items()
        if reason is not None
    ]
    if rejected and (on_error == "fail" or len(rejected) == len(reasons)):
        mend = "" if len(rejected) == len(reasons) else '; mend it, or set on_error="skip"'
        raise UserError(f"{source}: {rejected[0]}{mend}")
    unusable.add(rejected)
    return [at for at, reason in reasons.items() if reason is None]


def parsed_rows(
    source: str,
    chunks: Iterable[Rows],
    on_error: OnError,
    layout: Layout | None = None,
    task: AskedTask = "auto",
) -> tuple[Parsed, Unusable]:
    """All rows of an input that are graphs; some have labels.

    Args:
        source: What to call the input.
        chunks: Its rows.
        on_error: What to do with rows that are no graphs, or have no label.
        layout: What the graphs must have in common; if not given, the first ones decide.
        task: What the labels are for.
    """
    parsed: list[Parsed] = []
    unusable = Unusable()
    allowance = Allowance(source)
    for rows in chunks:
        found = rows.parse(layout)
        unusable.add([*found.rejected, *_unlabelled(found, task)])
        if on_error == "fail" and unusable.count:
            raise UserError(f'{source}: {unusable.first[0]}; mend it, or set on_error="skip"')
        if len(found.graphs):
            layout = _joint(layout, found.graphs.layout)
            allowance.take(max(found.graphs.size, BYTES_OF_NODE * int(found.graphs.node_ptr[-1])))
            parsed.append(replace(found, molecules=()))  # rdkit's take more memory than graphs
    if not parsed:
        told = f" ({unusable})" if unusable.count else ""
        raise UserError(f"{source} holds no usable graph{told}")
    whole = Parsed.joined(parsed)
    if all(label_problem(label, task) is not None for label in whole.labels):
        if any(isinstance(label, dict) for label in whole.labels):
            raise UserError(f'{source}: several labels per graph are for task="multilabel"')
        raise UserError(f"{source} has no labels; say which column holds them with `label_column`")
    return whole, unusable


def _joint(layout: Layout | None, found: Layout) -> Layout:
    """What is known of a file's graphs after more of them."""
    if layout is None:
        return found
    return layout if layout.edges is not None else replace(layout, edges=found.edges)


def _unlabelled(found: Parsed, task: AskedTask) -> list[Rejected]:
    rows = zip(found.positions, found.lines, found.ids, found.labels, strict=True)
    return [
        Rejected(position, line, name, problem)
        for position, line, name, label in rows
        if (problem := label_problem(label, task)) is not None
    ]
