"""The device, and the set-up of a CPU for many small operations."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch

from cores.errors import UserError

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's ``mallopt``."""
MOST_KEPT_MEMORY = 256 * 2**20
"""Bytes at the end of the heap that are kept when they are free."""
LARGEST_ON_HEAP = 32 * 2**20
"""Bytes of a tensor that still comes from the heap; glibc allows no more."""


def choose_device(name: str) -> torch.device:
    """Choose a device; ``auto`` takes a GPU where there is one."""
    if name not in ("auto", "cpu", "cuda"):
        raise UserError(f"`device` is auto, cpu or cuda, got {name!r}")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError('torch sees no CUDA device here; use device="cpu"')
    return torch.device(name)


@contextmanager
def tuned_cpu() -> Iterator[None]:
    """One torch thread, put back at the end, and no denormal numbers, which are allowed again then.

    At these sizes threads only wait for each other. Weight decay shrinks unused weights into
    denormal numbers, on which a CPU is about eight times slower: they are flushed to zero.
    Memory that is free again is kept for what comes next (:func:`keep_free_memory`).
    """
    keep_free_memory()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_flush_denormal(False)


@cache
def keep_free_memory() -> bool:
    """Let the process keep the memory of tensors that are gone, from now on; tells whether it does.

    A network makes and drops the same tensors at every step. By default glibc gives those of a few
    megabytes back to the system, which hands them out again a page at a time, each one zeroed; for
    a batch of 256 molecules that takes up to half as long as the network. There is no way to ask
    for the former setting, so it is not put back. Other C libraries stay as they are.
    """
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallopt"):
        return False
    settings = (_MMAP_THRESHOLD, LARGEST_ON_HEAP), (_TRIM_THRESHOLD, MOST_KEPT_MEMORY)
    return all(libc.mallopt(name, value) == 1 for name, value in settings)
