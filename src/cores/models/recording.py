"""Work on a GPU that is recorded once and replayed: its kernels no longer wait for Python."""

import warnings
from collections.abc import Callable
from typing import Generic, TypeVar

import torch

UNRECORDED = 3
"""Calls before one is recorded: the first ones load kernels and allocate what stays."""
Result = TypeVar("Result")


class Recording(Generic[Result]):
    """A function of nothing, replayed from the fourth call on (a CUDA graph).

    It reads and writes tensors that stay where they are, of shapes that stay as they are, and asks
    the GPU nothing. What it returns is written over by the next call. Where it cannot be recorded,
    it is called every time.
    """

    def __init__(self, function: Callable[[], Result]) -> None:
        self.function = function
        self._calls = 0
        self._recorded: tuple[torch.cuda.CUDAGraph, Result] | None = None

    def __call__(self) -> Result:
        """Run it."""
        self._calls += 1
        if self._calls == UNRECORDED + 1:
            self._record()
        if self._recorded is None:
            return self._apart()
        graph, result = self._recorded
        graph.replay()
        return result

    def _record(self) -> None:
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                result = self.function()
        except RuntimeError as error:  # of another GPU, driver or version of torch
            reason = str(error).partition("\n")[0]
            warnings.warn(f"training is slower than it could be: {reason}", stacklevel=3)
        else:
            self._recorded = graph, result

    def _apart(self) -> Result:
        """On a stream of its own, as it is recorded later: torch asks for that."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            result = self.function()
        torch.cuda.current_stream().wait_stream(stream)
        return result
