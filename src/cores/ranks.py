"""The processes that ``torchrun`` started to train one model together.

All of them hold the same graphs and weights and draw the same random numbers; of every batch each
takes a share of the graphs. What is summed up or gathered over all of them is the same everywhere,
so they decide alike.
"""

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cores.errors import UserError

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from torch.distributed import Store  # type: ignore[attr-defined]

YIELDING, TELLING, LOOKING = 2.0, 10.0, 0.05
"""Seconds in which a process lets the first one tell of an error, waits while another one does, and
between two looks."""


class LostRankError(UserError):
    """Another process has ended; it tells why, if it still could."""


@dataclass(frozen=True)
class Launch:
    """What torchrun says of a process that it started."""

    rank: int
    local_rank: int
    """Among the processes of this machine."""
    size: int
    """Number of processes, on all machines."""


def launch() -> Launch | None:
    """How this process was started; None if not by torchrun, or alone."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return None
    names = "RANK", "LOCAL_RANK", "WORLD_SIZE"
    here = Launch(*(int(os.environ[name]) for name in names))
    return here if here.size > 1 else None


class Ranks:
    """The processes that train together, and the place of this one among them.

    Args:
        rank: The number of this process, from 0; the first one writes and prints.
        size: How many there are.
    """

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        self.rows: tuple[slice, int] | None = None
        """During a gradient step: the rows of this process among those of all, the nodes of the
        batch, and their number."""

    def bounds(self, count: int) -> tuple[int, int]:
        """First and last of so many graphs that are this process's share; it may be empty.

        >>> [Ranks(rank, 4).bounds(5) for rank in range(4)]
        [(0, 1), (1, 2), (2, 3), (3, 5)]
        """
        return count * self.rank // self.size, count * (self.rank + 1) // self.size

    def sum(self, values: "Tensor") -> "Tensor":
        """The sum over all processes, in place."""
        from torch import distributed

        with _losing():
            distributed.all_reduce(values)
        return values

    def gathered(self, values: "Tensor", mine: "Tensor") -> "Tensor":
        """The rows of all processes, of which some are mine and have the given values."""
        whole = values.new_zeros(len(mine), *values.shape[1:])
        whole[mine] = values
        return self.sum(whole)  # all but one of the addends are 0, so no digit changes

    def mean_gradients(
        self, weights: "Iterable[Tensor]", count: "float | Tensor", *sums: "Tensor"
    ) -> "list[Tensor]":
        """Turn the gradients of a sum over my graphs into those of a mean over all graphs.

        Args:
            weights: Whose gradients.
            count: Number, or weight, of my graphs.
            sums: Numbers that are sums over my graphs, too.

        Returns:
            The means of the numbers.
        """
        import torch

        with torch.no_grad():
            weights = [each for each in weights if each.requires_grad]
            gradients = [
                torch.zeros_like(each) if each.grad is None else each.grad for each in weights
            ]
            numbers = [torch.as_tensor(each).to(gradients[0]) for each in (*sums, count)]
            packed = [each.flatten() for each in (*gradients, *numbers)]
            together = self.sum(torch.cat(packed))  # one message for all
            together /= together[-1].clone()
            *parts, _ = together.split([len(each) for each in packed])
            for each, part in zip(weights, parts, strict=False):
                each.grad = part.view_as(each)
            return [part.squeeze() for part in parts[len(weights) :]]

    def from_first(self, content: bytes) -> bytes:
        """What the first process has, whatever the others have."""
        import torch
        from torch import distributed

        with _losing():
            size = torch.tensor(len(content))
            distributed.broadcast(size, 0)
            buffer = torch.zeros(int(size), dtype=torch.uint8)
            if self.rank == 0 and content:
                buffer = torch.frombuffer(bytearray(content), dtype=torch.uint8)
            distributed.broadcast(buffer, 0)
        return buffer.numpy().tobytes()


_current: Ranks | None = None


def current() -> Ranks | None:
    """The processes that this one trains with; None if it trains alone."""
    return _current


def leads() -> bool:
    """Return whether this process is alone or the first: the one that writes files."""
    return _current is None or _current.rank == 0


@contextmanager
def joined(device: "torch.device") -> Iterator[None]:
    """Train with the other processes inside, if torchrun started several.

    Processes of one machine take its GPUs in turn.
    """
    global _current
    here = launch()
    if here is None:
        yield
        return
    import torch
    from torch import distributed

    backend = "gloo"
    if device.type == "cuda":
        gpus = torch.cuda.device_count()
        torch.cuda.set_device(here.local_rank % gpus)
        # NCCL refuses two processes on one GPU.
        shared = int(os.environ["LOCAL_WORLD_SIZE"]) > gpus
        backend = f"cpu:gloo,cuda:{'gloo' if shared else 'nccl'}"
    with _losing():
        store = distributed.PrefixStore("training", _store())  # type: ignore[attr-defined]
        distributed.init_process_group(backend, store=store, rank=here.rank, world_size=here.size)
    _current = Ranks(here.rank, here.size)
    try:
        yield
        _current.sum(torch.zeros(1))  # nobody leaves while another one still listens
        distributed.destroy_process_group()  # not after an error: the others may hang in a sum
    finally:
        _current = None


def of_first(function: Callable[[], Any]) -> Any:
    """What a function gives in the first process, as plain data; the others do not call it."""
    if _current is None:
        return function()
    mine = json.dumps(function()).encode() if _current.rank == 0 else b""
    return json.loads(_current.from_first(mine))


@contextmanager
def copied(path: Path | None) -> Iterator[Path | None]:
    """A file of the first process, for all of them; None where it has no such file."""
    there = of_first(lambda: path is not None and path.exists())
    if not there or _current is None or _current.rank == 0:
        if there and _current is not None:
            assert path is not None
            _current.from_first(path.read_bytes())
        yield path if there else None
        return
    with tempfile.NamedTemporaryFile() as copy:
        copy.write(_current.from_first(b""))
        copy.flush()
        yield Path(copy.name)


@contextmanager
def one_tells() -> Iterator[bool]:
    """Return whether this process is the one to tell of an error: the first, if it fails, too."""
    here = launch()
    if here is None:
        yield True
        return
    mine = False
    try:
        store = _store()
        if here.rank > 0:
            _wait_for(store, "failed", YIELDING)
        mine = store.add("failed", 1) == 1
        if not mine:
            _wait_for(store, "told", TELLING)
    except RuntimeError:  # the first process, which held the store, has ended and told
        store = None
    yield mine
    if mine and store is not None:
        store.set("told", "1")


def _wait_for(store: "Store", note: str, seconds: float) -> None:
    """Look for a note again and again: torch's own way of waiting prints warnings."""
    until = time.monotonic() + seconds
    while not store.check([note]) and time.monotonic() < until:
        time.sleep(LOOKING)


@cache
def _store() -> "Store":
    """Where processes leave each other notes."""
    from torch.distributed.rendezvous import rendezvous

    store, _, _ = next(iter(rendezvous("env://")))
    return store


@contextmanager
def _losing() -> Iterator[None]:
    """Torch has a mere ``RuntimeError`` for a process that no longer answers."""
    from torch.distributed import DistError

    try:
        yield
    except (DistError, RuntimeError) as error:
        raise LostRankError(
            "another process of this training has ended; the same command with resume=True "
            "continues"
        ) from error
