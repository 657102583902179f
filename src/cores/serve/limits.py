"""How much a request may ask for."""

from threading import Event
from time import monotonic

from cores.errors import UserError
from cores.files.limits import told_size

MOST_BYTES = 8 * 2**20
"""Of a body, and of what it unpacks to."""
MOST_GRAPHS = 100
"""That are shown; the others of a file are left out, which is said."""
MOST_NODES, MOST_EDGES = 6_000, 60_000
"""Of a graph."""
SECONDS = 20
"""For a request, once it is its turn."""
BODY_SECONDS = 20
"""For a body to arrive."""
MOST_WAITING = 32
"""Requests that wait, or are worked on."""
MEMORY, LINE = "256M", "1M"
"""In place of the defaults of :mod:`cores.files.limits`."""


class TooMuchError(UserError):
    """A request that asks for more than it may."""


class StoppingError(UserError):
    """A request that is given up because the server is."""


class Deadline:
    """When the work on a request must be over: after some time, or when the server is stopped."""

    def __init__(self, stopping: Event, seconds: float = SECONDS) -> None:
        self._stopping = stopping
        self._seconds = seconds
        self._end = monotonic() + seconds

    @property
    def passed(self) -> bool:
        """Whether the time is over."""
        return self._stopping.is_set() or monotonic() > self._end

    def check(self) -> None:
        """Stop where it is."""
        if self._stopping.is_set():
            raise StoppingError("the server is stopping")
        if self.passed:
            raise TooMuchError(f"took more than {self._seconds:g} s; send fewer or smaller graphs")


def check_bytes(count: int, what: str = "the file has") -> None:
    """Refuse a body, or what it unpacks to."""
    if count > MOST_BYTES:
        raise TooMuchError(
            f"{what} more than {told_size(MOST_BYTES)}; `cores predict` takes files of any size"
        )


def check_graph(nodes: int, edges: int, name: str) -> None:
    """Refuse a graph that would keep all others waiting."""
    if nodes > MOST_NODES or edges > MOST_EDGES:
        raise TooMuchError(
            f"{name} has {nodes:,} nodes and {edges:,} edges, more than {MOST_NODES:,} and "
            f"{MOST_EDGES:,}; `cores predict` takes graphs of any size"
        )
