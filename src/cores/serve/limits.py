"""Limits of a request."""

from threading import Event
from time import monotonic

from cores.errors import UserError
from cores.files.limits import told_size

MOST_BYTES = 8 * 2**20
"""Bytes of a body, and of what it unpacks to."""
MOST_GRAPHS = 100
"""Graphs that are shown; the others of a file are left out, which is said."""
MOST_NODES, MOST_EDGES = 6_000, 60_000
"""Size of a graph."""
SECONDS = 20
"""Time for a request, once it is its turn."""
BODY_SECONDS = 20
"""Time for a body to arrive."""
MOST_WAITING = 32
"""Requests that wait, or are worked on."""
MEMORY, LINE = "256M", "1M"
"""In place of the defaults of :mod:`cores.files.limits`."""


class TooMuchError(UserError):
    """A request that asks for more than it may."""


class StoppingError(UserError):
    """A request that is given up because the server is."""


class Deadline:
    """The end of the work on a request: after some time, or when the server is stopped."""

    def __init__(self, stopping: Event, seconds: float = SECONDS) -> None:
        self._stopping = stopping
        self._seconds = seconds
        self._end = monotonic() + seconds

    @property
    def passed(self) -> bool:
        """True once the time is over."""
        return self._stopping.is_set() or monotonic() > self._end

    def check(self) -> None:
        """Raise once the time is over, or the server is stopping."""
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
