"""The next value of a computation is made while this one is used."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Value = TypeVar("Value")


def one_ahead(function: Callable[[Item], Value], items: Iterable[Item]) -> Iterator[Value]:
    """``map`` by a thread that is one item ahead of the caller.

    >>> list(one_ahead(len, ["a", "bc"]))
    [1, 2]
    """
    with ThreadPoolExecutor(max_workers=1) as thread:
        waiting: Future[Value] | None = None
        for item in items:
            coming = thread.submit(function, item)
            if waiting is not None:
                yield waiting.result()
            waiting = coming
        if waiting is not None:
            yield waiting.result()
