"""Several labels of a graph: two values each, of which some are not known."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from cores.data.dataset import are_labels
from cores.errors import UserError

Pair = tuple[Any, Any]
"""The values of a label that count as 0 and as 1."""
_SHOWN = 4
"""Values of a label that a message names."""


def is_missing(value: Any) -> bool:
    """Whether a value is not known: None, NaN, or an empty cell.

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
    """What the labels are called, and every graph's values in their order.

    Args:
        given: Of each graph a list with a value per label, or values by the name of the label.
        names: What the labels are called; if not given, as their values say, or by number.

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
        more = ", …" if len(distinct) > _SHOWN else ""
        raise UserError(f"the label {name} has the values {told}{more}; it may have two")
    if not are_labels(distinct):
        raise UserError(f"the label {name} has a value that no file can hold")
    return distinct[0], distinct[1]


def _plain_values(known: Sequence[Any], name: str) -> list[Any]:
    """Whole numbers where all values are, also if written as text or as 1.0; else text."""
    if all(isinstance(value, bool) for value in known):
        return list(known)
    numbers = []
    for value in known:
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            return [str(value).strip() for value in known]
        if not abs(number) < 2**53 or number != int(number):
            raise UserError(
                f"the label {name} has the value {value!r:.40}; each of several labels has two "
                "values, whole numbers or text"
            )
        numbers.append(int(number))
    return numbers
