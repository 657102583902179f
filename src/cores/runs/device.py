"""Where to compute, and the CPU set up for many small operations."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from cores.errors import UserError


def choose_device(name: str) -> torch.device:
    """``auto`` takes a GPU where there is one."""
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
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_flush_denormal(False)
