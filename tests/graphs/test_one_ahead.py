"""A thread makes the next value while this one is used."""

import threading
from collections.abc import Iterator

import pytest

from cores.graphs.store import one_ahead


def test_the_next_value_is_made_while_this_one_is_used() -> None:
    made = [threading.Event() for _ in range(3)]

    def make(number: int) -> int:
        made[number].set()
        return number

    values = one_ahead(make, range(3))
    assert next(values) == 0
    assert made[1].wait(10), "nobody has asked for it yet"
    assert not made[2].wait(0.05), "one ahead, not all: they may be large"
    assert list(values) == [1, 2]


def test_there_may_be_nothing_to_do() -> None:
    assert not list(one_ahead(int, []))


def test_an_error_reaches_who_asks() -> None:
    with pytest.raises(ZeroDivisionError):
        list(one_ahead(lambda number: 1 / number, [1, 0]))


def test_who_stops_asking_leaves_nothing_running() -> None:
    before = threading.active_count()
    values: Iterator[str] = one_ahead(str, range(5))
    next(values)
    del values
    assert threading.active_count() == before
