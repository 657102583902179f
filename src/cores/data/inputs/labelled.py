"""A file of graphs with labels as a dataset, with columns of its own or with those of a model."""

import math
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from cores.config.run import AskedTask
from cores.config.spec import TaskName
from cores.data.dataset import Dataset, is_writable
from cores.data.encoding import Encoding, encode
from cores.data.inputs.columns import ColumnNames
from cores.data.inputs.sources import GRAPHS, Rows, partitions, read_rows, suffix_of
from cores.data.labels import Pair, binary_labels, given_values, is_missing, label_rows, values_of
from cores.data.lists import continuous_columns, numbered_classes
from cores.data.raw import BYTES_OF_NODE, Layout, Parsed, Rejected, Unusable
from cores.data.targets import as_targets, found_task, target_problem
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
    known = [at for at, label in enumerate(parsed.labels) if _problem(label, task) is None]
    classes: tuple[Any, ...] = ()
    class_names: tuple[str, ...] = ()
    found = found_task([parsed.labels[at] for at in known], task)
    if found == "regression":
        known = with_targets(str(path), parsed, known, unusable, on_error)
        y = as_targets([parsed.labels[at] for at in known])
    elif found == "multilabel":
        given = [parsed.labels[at] for at in known]
        alone = None if isinstance(given[0], list | dict) else [names.label or "label"]
        class_names, classes, y = binary_labels(given, alone)
    else:
        classes, numbers = numbered_classes(whole_numbers([parsed.labels[at] for at in known]))
        class_names, y = tuple(str(label) for label in classes), torch.tensor(numbers)
    dataset = Dataset(
        str(path),
        graphs,
        class_names=class_names,
        feature_names=feature_names,
        edge_feature_names=edge_names,
        continuous=() if encoding.kind == "molecules" else continuous_columns(graphs.x),
        labels=classes,
        ids=tuple(parsed.ids),
        smiles=tuple(parsed.smiles),
        given_parts=tuple(parsed.parts) if names.split is not None else (),
        encoding=encoding,
        unusable=unusable,
        columns=None if names == ColumnNames() else names,
        task=found,
    )[known]
    return replace(dataset, graphs=replace(dataset.graphs, y=y))


def with_targets(
    source: str, parsed: Parsed, rows: Sequence[int], unusable: Unusable, on_error: OnError
) -> list[int]:
    """Those of some rows whose label is a target; others with a label are counted as unusable."""
    labelled = [at for at in rows if _problem(parsed.labels[at]) is None]
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


def own_labels(
    source: str,
    parsed: Parsed,
    rows: Sequence[int],
    unusable: Unusable,
    on_error: OnError,
    task: TaskName,
) -> list[Any]:
    """The labels of some rows, for a model of a task; NaN for what is no target of a regression."""
    labels = [parsed.labels[at] for at in rows]
    if task != "regression":
        return labels
    usable = {*with_targets(source, parsed, rows, unusable, on_error)}
    return [label if at in usable else math.nan for at, label in zip(rows, labels, strict=True)]


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
    if all(_problem(label, task) is not None for label in whole.labels):
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
        if (problem := _problem(label, task)) is not None
    ]


def _problem(label: Any, task: AskedTask = "auto") -> str | None:
    """Why a label is none; tables write one that is missing as NaN, too."""
    if task == "multilabel":  # one of several is enough
        return "has no label" if all(map(is_missing, values_of(label))) else None
    if isinstance(label, list | dict):
        return f"has the label {label!r:.40}; it must be text or a whole number"
    if isinstance(label, str) and not is_writable(label):  # JSON may hold such
        return "has a label with half a character, which no file can hold"
    return "has no label" if is_missing(label) else None


def whole_numbers(labels: Sequence[Any]) -> list[Any]:
    """Labels as they are meant: text that is a whole number throughout becomes that number.

    >>> whole_numbers(["0", "1", "1.0"]), whole_numbers(["0", "toxic"])
    ([0, 1, 1], ['0', 'toxic'])
    """
    numbers, refused = [], []
    for label in labels:
        try:
            number = float(label)
        except (TypeError, ValueError, OverflowError):
            return [str(label) for label in labels]
        if not abs(number) < 2**53 or number != int(number):
            refused.append(number)
        numbers.append(number)
    if refused:
        raise UserError(
            f"the labels hold numbers such as {refused[0]:g}; they must be classes: whole numbers "
            'or text; numbers are predicted with task="regression"'
        )
    return [int(number) for number in numbers]


def own_numbers(
    labels: Sequence[Any], task: TaskName, names: Sequence[str], known: Sequence[Any], source: str
) -> tuple[Tensor, Tensor]:
    """Labels as the model's own numbers, and which graphs have one.

    Args:
        labels: As the input has them.
        task: Of the model.
        names: What its classes or labels are called.
        known: Its labels; where there are several, a pair of values each.
        source: What to call the input.
    """
    if task == "regression":
        numbers = as_targets(labels)
        return numbers, numbers.isfinite()
    if task == "multilabel":
        numbers = label_numbers(labels, names, known, source)
        return numbers, (~numbers.isnan()).any(dim=1)
    numbers = class_numbers(labels, names, source)
    return numbers, numbers >= 0


def class_numbers(labels: Sequence[Any], class_names: Sequence[str], source: str) -> Tensor:
    """The model's own numbers of the labels; -1 where there is none."""
    known = {name: number for number, name in enumerate(class_names)}
    numbers = []
    for label in labels:
        name = class_name(label, known)
        if name is not None and name not in known:
            raise UserError(
                f"{source} has the label {name}, the model knows {', '.join(class_names)}"
            )
        numbers.append(-1 if name is None else known[name])
    return torch.tensor(numbers)


def label_numbers(
    labels: Sequence[Any], names: Sequence[str], pairs: Sequence[Pair], source: str
) -> Float[Tensor, "graphs labels"]:
    """Several labels as the model's own 0 and 1, NaN where one is not known."""
    known = [{str(value): float(number) for number, value in enumerate(pair)} for pair in pairs]
    return torch.tensor(
        [
            [
                _label_number(value, name, values, source)
                for value, name, values in zip(row, names, known, strict=True)
            ]
            for row in label_rows(labels, names)[1]
        ]
    )


def _label_number(value: Any, name: str, known: dict[str, float], source: str) -> float:
    if (found := class_name(value, known)) is None:
        return math.nan
    if found not in known:
        told = " and ".join(known)
        raise UserError(f"{source} has {found} for the label {name}, the model knows {told}")
    return known[found]


def known_values(
    label: Any, task: TaskName, names: Sequence[str], known: Sequence[Any]
) -> dict[str, Any]:
    """The known values of a graph with several labels, as the model's own; none for other tasks."""
    if task != "multilabel":
        return {}
    (values,) = given_values(label_numbers([label], names, known, "the input"), names, known)
    return {name: value for name, value in values.items() if value is not None}


def label_text(label: Any, class_names: Sequence[str], task: TaskName) -> str | None:
    """A label for people: its class, or its number; None where it is none.

    >>> label_text({"a": 1, "b": None}, ("a", "b"), "multilabel")
    'a: 1'

    >>> label_text("0.123456", (), "regression"), label_text("inf", (), "regression")
    ('0.1235', None)
    """
    if task == "classification":
        return class_name(label, class_names)
    if task == "multilabel":
        rows = label_rows([label], class_names)[1]
        pairs = zip(class_names, rows[0], strict=True)
        return (
            ", ".join(f"{name}: {value}" for name, value in pairs if not is_missing(value)) or None
        )
    usable = _problem(label) is None and target_problem(label) is None
    return f"{float(label):.4g}" if usable else None


def class_name(label: Any, known: Container[str]) -> str | None:
    """The name of a label's class: 1, 1.0 and "1.0" are the class "1"; None where it is none."""
    if _problem(label) is not None:
        return None
    if str(label) in known:
        return str(label)
    try:
        return str(whole_numbers([label])[0])
    except UserError:
        return str(label)
