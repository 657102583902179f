"""The labels of graphs: classes, numbers to predict, or several with two values each.

What a file or a user gives becomes what a dataset has (:func:`with_labels`), or the numbers that
a trained model has for it (:func:`own_numbers`); :func:`plain_labels` is the way back.
"""

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch_geometric.data import Data

from cores.config.run import AskedTask
from cores.config.spec import TaskName
from cores.data.dataset import Dataset
from cores.errors import UserError

Value = TypeVar("Value")
Pair = tuple[Any, Any]
"""The values of a label that count as 0 and as 1, where graphs have several."""
LABELS = ("y", "label")
"""Attributes of a graph that may hold its label."""
MANY = 20
"""More different numbers than this that are not whole are no classes."""
LARGEST = float(torch.finfo(torch.float32).max)
_SHOWN = 4
"""Values of a label that a message names."""


def with_labels(
    dataset: Dataset,
    given: Sequence[Any],
    asked: AskedTask = "auto",
    *,
    written: bool = False,
    name: str = "label",
) -> Dataset:
    """Label graphs anew; the labels say what is to be predicted if nobody does.

    Labels ``written`` in a file may be text that means a number; ``name`` is what a single label is
    called where there could be several.
    """
    task = found_task(given, asked)
    names: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()
    if task == "multilabel":
        alone = [name] if written and not isinstance(given[0], list | dict) else None
        names, values, y = binary_labels(given, alone)
    elif task == "regression":
        y = as_targets(given)
    else:
        values, classes = numbered_classes(whole_numbers(given) if written else given)
        names, y = tuple(map(str, values)), torch.tensor(classes)
    graphs = replace(dataset.graphs, y=y)
    return replace(dataset, graphs=graphs, class_names=names, labels=values, task=task)


def own_numbers(
    labels: Sequence[Any], task: TaskName, names: Sequence[str], known: Sequence[Any], source: str
) -> tuple[Tensor, Tensor]:
    """Labels of an input as the model's own numbers, and which graphs have one.

    The model calls its classes or labels ``names``; of several labels, ``known`` has the values.
    """
    if task == "regression":
        given = [math.nan if label is None else _number(label) for label in labels]
        numbers = torch.tensor(given, dtype=torch.float32)
        return numbers, numbers.isfinite()
    if task == "multilabel":
        numbers = label_numbers(labels, names, known, source)
        return numbers, (~numbers.isnan()).any(dim=1)
    numbers = class_numbers(labels, names, source)
    return numbers, numbers >= 0


def found_task(labels: Sequence[Any], asked: AskedTask = "auto") -> TaskName:
    """Find the task of some labels, unless somebody has said it.

    >>> found_task([number / 8 for number in range(100)]), found_task([0.5, 1.5] * 50)
    ('regression', 'classification')
    >>> found_task(["0", "1"], "regression")
    'regression'
    """
    if asked != "auto":
        return asked
    numbers = set()
    for label in labels:
        number = _number(label)
        if number is None:
            return "classification"
        if not number.is_integer():
            numbers.add(number)
    return "regression" if len(numbers) > MANY else "classification"


def label_problem(label: Any, task: AskedTask = "auto") -> str | None:
    """Tell why a label is none; tables write one that is missing as NaN, too."""
    if task == "multilabel":  # one of several is enough
        return "has no label" if all(map(is_missing, values_of(label))) else None
    if isinstance(label, list | dict):
        return f"has the label {label!r:.40}; it must be text or a whole number"
    if isinstance(label, str) and not is_writable(label):  # JSON may hold such
        return "has a label with half a character, which no file can hold"
    return "has no label" if is_missing(label) else None


def target_problem(label: Any) -> str | None:
    """Tell why a label is no target; None for one that is."""
    number = _number(label)
    if number is None:
        return f"has the label {label!r:.40}; a regression needs numbers"
    if not abs(number) < LARGEST:  # NaN is not, either
        return f"has the label {label!r:.40}; a regression needs finite numbers"
    return None


def as_targets(labels: Sequence[Any]) -> Float[Tensor, " graphs"]:
    """Labels as targets; refuses what is none."""
    for number, label in enumerate(labels):
        if (problem := target_problem(label)) is not None:
            raise UserError(f"graph {number} {problem}")
    return torch.tensor([_number(label) for label in labels], dtype=torch.float32)


def _number(label: Any) -> float | None:
    """A label as a number, which may be written as text."""
    try:
        return float(label)
    except OverflowError:  # a whole number of hundreds of digits
        return math.inf
    except (TypeError, ValueError):
        return None


def whole_numbers(labels: Sequence[Any]) -> list[Any]:
    """Labels as they are meant: text that is a whole number throughout becomes that number.

    >>> whole_numbers(["0", "1", "1.0"]), whole_numbers(["0", "toxic"])
    ([0, 1, 1], ['0', 'toxic'])
    """
    numbers, refused = _as_whole(labels)
    if numbers is None:
        return [str(label) for label in labels]
    if refused:
        raise UserError(
            f"the labels hold numbers such as {float(refused[0]):g}; they must be classes: whole "
            'numbers or text; numbers are predicted with task="regression"'
        )
    return numbers


def _as_whole(labels: Sequence[Any]) -> tuple[list[int] | None, list[Any]]:
    """Labels as whole numbers, None where one is text; and the numbers before it that are not."""
    numbers: list[int] = []
    refused: list[Any] = []
    for label in labels:
        try:
            number = float(label)
        except (TypeError, ValueError, OverflowError):
            return None, refused
        if abs(number) < 2**53 and number.is_integer():
            numbers.append(int(number))
        else:
            refused.append(label)
    return numbers, refused


def numbered_classes(
    given: Sequence[Any], what: str = "graph"
) -> tuple[tuple[Any, ...], list[int]]:
    """The labels in order, and the number of each one's."""
    for number, label in enumerate(given):
        if isinstance(label, float):
            raise UserError(
                f"{what} {number} has the label {label}, a float; classes are whole numbers or "
                'text (y.long() turns 1.0 into 1), and any number is for task="regression"'
            )
        if not isinstance(label, int | str):
            several = '; several are for task="multilabel"' if what == "graph" else ""
            raise UserError(
                f"{what} {number} has the label {label!r}; a {what} has one label, a whole number "
                f"or text{several}"
            )
    texts = [isinstance(label, str) for label in given]
    if len({*texts}) > 1:
        kinds = ("text", "a number") if texts[0] else ("a number", "text")
        raise UserError(
            f"the label of {what} {texts.index(not texts[0])} is {kinds[1]}, that of {what} 0 is "
            f"{kinds[0]}; make them all alike"
        )
    labels = tuple(sorted(set(given)))
    if {*map(type, labels)} == {bool, int}:
        labels = tuple(map(int, labels))
    if labels and not are_labels(labels):
        raise UserError(
            "a label is too large a number, or holds half a character that no file can hold"
        )
    numbers = {label: number for number, label in enumerate(labels)}
    return labels, [numbers[label] for label in given]


def are_labels(values: Sequence[Any]) -> bool:
    """Tell whether values can name classes: no two alike, of one kind, fit for a file.

    >>> are_labels([False, True]), are_labels([0, 1]), are_labels(["a", "b"])
    (True, True, True)
    >>> are_labels(["a", "a"]), are_labels(["a", 1]), are_labels([0, 2**63])
    (False, False, False)
    """
    kinds = set(map(type, values))
    return (
        len(kinds) == 1
        and len({*values}) == len(values)
        and (
            kinds == {bool}
            or (kinds == {int} and all(-(2**63) <= value < 2**63 for value in values))
            or (kinds == {str} and all(map(is_writable, values)))
        )
    )


def is_writable(text: str) -> bool:
    """Tell whether a file can hold a text: Python's may have halves of characters."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def is_missing(value: Any) -> bool:
    """Tell whether a value is not known: None, NaN, or an empty cell.

    >>> [is_missing(value) for value in (None, float("nan"), "", "NaN", 0, False)]
    [True, True, True, True, False, False]
    """
    return value is None or str(value).lower() in ("", "nan")


def values_of(given: Any) -> list[Any]:
    """The values of a graph's labels, whatever holds them."""
    if isinstance(given, Mapping):
        return list(given.values())
    return list(given) if isinstance(given, list | tuple) else [given]


def label_rows(
    given: Sequence[Any], names: Sequence[str] | None = None
) -> tuple[tuple[str, ...], list[list[Any]]]:
    """Name the labels, and put every graph's values in their order.

    A graph has a list with a value per label, or values by the name of the label. Without
    ``names``, labels are called as their values say, or by number.

    >>> label_rows([{"a": 1}, {"b": 0, "a": None}])
    (('a', 'b'), [[1, None], [None, 0]])
    >>> label_rows([[1, 0], [None, 1]])
    (('label 0', 'label 1'), [[1, 0], [None, 1]])
    >>> label_rows([{0: 1}])  # names of columns need not be text
    (('0',), [[1]])
    """
    named = [row for row in given if isinstance(row, Mapping)]
    if not named:
        rows = [values_of(row) for row in given]
        width = len(names) if names is not None else len(rows[0]) if rows else 0
        for number, row in enumerate(rows):
            if len(row) != width and not (len(row) == 1 and is_missing(row[0])):
                told = "as many" if names is None else str(width)
                raise UserError(f"graph {number} has {len(row)} labels, all need {told}")
        found = names or [f"label {number}" for number in range(width)]
        return tuple(found), [row if len(row) == width else [None] * width for row in rows]
    found = names or list(dict.fromkeys(str(name) for row in named for name in row))
    for number, row in enumerate(given):
        if not isinstance(row, Mapping) and not is_missing(row):
            raise UserError(f"graph {number} has the label {row!r:.40}, others have labels by name")
    by_name = [
        {str(name): value for name, value in row.items()} if isinstance(row, Mapping) else {}
        for row in given
    ]
    return tuple(found), [[row.get(name) for name in found] for row in by_name]


def binary_labels(
    given: Sequence[Any], names: Sequence[str] | None = None
) -> tuple[tuple[str, ...], tuple[Pair, ...], Float[Tensor, "graphs labels"]]:
    """The labels of graphs as a dataset has them: names, values of each, and 0, 1 or NaN.

    >>> binary_labels([["no", 1.0], ["yes", float("nan")]])[1:]
    ((('no', 'yes'), (0, 1)), tensor([[0., 1.],
            [1., nan]]))
    """
    found, rows = label_rows(given, names)
    if not found:
        raise UserError("the graphs have no labels; give every graph a list of them")
    columns = [_column([row[at] for row in rows], name) for at, name in enumerate(found)]
    y = torch.tensor([numbers for _, numbers in columns], dtype=torch.float32).T.contiguous()
    return found, tuple(pair for pair, _ in columns), y


def given_values(
    y: Float[Tensor, "graphs labels"], names: Sequence[str], pairs: Sequence[Pair]
) -> list[dict[str, Any]]:
    """The way back: every graph's values by label, None where one is not known."""
    return [
        {
            name: None if math.isnan(number) else pair[int(number)]
            for name, pair, number in zip(names, pairs, row, strict=True)
        }
        for row in y.tolist()
    ]


def _column(values: Sequence[Any], name: str) -> tuple[Pair, list[float]]:
    """The two values of a label, and each graph's as 0, 1 or NaN."""
    known = [value for value in values if not is_missing(value)]
    for value in known:
        if not isinstance(value, bool | int | float | str):
            raise UserError(f"the label {name} has the value {value!r:.40}; it has two, no more")
    plain = _plain_values(known, name)
    pair = _pair(sorted({*plain}), name)
    numbers = iter(plain)
    return pair, [
        math.nan if is_missing(value) else float(pair.index(next(numbers))) for value in values
    ]


def _pair(distinct: list[Any], name: str) -> Pair:
    if {*distinct} <= {0, 1}:
        return (False, True) if distinct and {*map(type, distinct)} == {bool} else (0, 1)
    if len(distinct) == 1:
        raise UserError(
            f"the label {name} is always {distinct[0]!r:.40}; there is nothing to learn, leave it "
            "out"
        )
    if len(distinct) > 2:
        told = ", ".join(f"{value!r:.20}" for value in distinct[:_SHOWN])
        more = ", …" * (len(distinct) > _SHOWN)
        raise UserError(f"the label {name} has the values {told}{more}; it may have two")
    if not are_labels(distinct):
        raise UserError(f"the label {name} has a value that no file can hold")
    return distinct[0], distinct[1]


def _plain_values(known: Sequence[Any], name: str) -> list[Any]:
    """Whole numbers where all values are, also if written as text or as 1.0; else text."""
    if all(isinstance(value, bool) for value in known):
        return list(known)
    numbers, refused = _as_whole(known)
    if refused:
        raise UserError(
            f"the label {name} has the value {refused[0]!r:.40}; each of several labels has two "
            "values, whole numbers or text"
        )
    return [str(value).strip() for value in known] if numbers is None else numbers


def class_numbers(labels: Sequence[Any], class_names: Sequence[str], source: str) -> Tensor:
    """The model's own numbers of the labels; -1 where there is none."""
    known = {name: number for number, name in enumerate(class_names)}

    def refusal(found: str) -> str:
        return f"{source} has the label {found}, the model knows {', '.join(class_names)}"

    return torch.tensor([_own_number(label, known, -1, refusal) for label in labels])


def label_numbers(
    labels: Sequence[Any], names: Sequence[str], pairs: Sequence[Pair], source: str
) -> Float[Tensor, "graphs labels"]:
    """Several labels as the model's own 0 and 1, NaN where one is not known."""

    def column(values: Sequence[Any], name: str, pair: Pair) -> list[float]:
        known = {str(value): float(number) for number, value in enumerate(pair)}

        def refusal(found: str) -> str:
            return (
                f"{source} has {found} for the label {name}, the model knows {' and '.join(known)}"
            )

        return [_own_number(value, known, math.nan, refusal) for value in values]

    rows = label_rows(labels, names)[1]
    columns = [[row[at] for row in rows] for at in range(len(names))]
    return torch.tensor([column(*each) for each in zip(columns, names, pairs, strict=True)]).T


def _own_number(
    label: Any, known: Mapping[str, Value], missing: Value, refusal: Callable[[str], str]
) -> Value:
    """The number of a label; ``missing`` where there is none."""
    if (name := class_name(label, known)) is None:
        return missing
    if name not in known:
        raise UserError(refusal(name))
    return known[name]


def known_values(
    label: Any, task: TaskName, names: Sequence[str], labels: Sequence[Any]
) -> dict[str, Any]:
    """The known values of a graph with several labels, as the model's own; none for other tasks."""
    if task != "multilabel":
        return {}
    (values,) = given_values(label_numbers([label], names, labels, "the input"), names, labels)
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
    usable = label_problem(label) is None and target_problem(label) is None
    return f"{float(label):.4g}" if usable else None


def class_name(label: Any, known: Container[str]) -> str | None:
    """The name of a label's class: 1, 1.0 and "1.0" are the class "1"; None where it is none."""
    if label_problem(label) is not None:
        return None
    if str(label) in known:
        return str(label)
    try:
        return str(whole_numbers([label])[0])
    except UserError:
        return str(label)


def plain_labels(graphs: Iterable[Any]) -> list[Any]:
    """Every graph's own label, as a plain Python value."""
    if isinstance(graphs, Dataset):
        if graphs.task == "multilabel":
            return given_values(graphs.graphs.y, graphs.class_names, graphs.labels)
        known = graphs.graphs.y.tolist()
        return known if graphs.task == "regression" else [graphs.labels[each] for each in known]
    labels = []
    for number, graph in enumerate(graphs):
        if (label := own_label(graph)) is None:
            raise UserError(f"graph {number} has no label; set its y, or give `y`")
        labels.append(label)
    return labels


def own_label(graph: Any) -> Any:
    """The label of a graph of PyG's or networkx's as a plain Python value; None without one."""
    kept = graph if isinstance(graph, Data) else getattr(graph, "graph", {})
    return _plain(next((kept[name] for name in LABELS if name in kept), None))


def given_labels(y: Any) -> list[Any]:
    """Labels that were given beside the graphs, as plain Python values."""
    if hasattr(y, "columns") and hasattr(y, "to_dict"):  # a table of pandas: several labels
        return list(y.to_dict("records"))
    if isinstance(y, str | bytes) or not isinstance(y, Iterable):
        raise UserError(f"`y` must be a list of labels, one per graph, got {y!r}")
    return [_plain(label) for label in y]


def _plain(label: Any) -> Any:
    """A label as a plain Python value, from whatever holds it."""
    if isinstance(label, Tensor | np.ndarray | np.generic):
        label = label.tolist()
    while isinstance(label, list | tuple) and len(label) == 1:
        label = label[0]
    return label
