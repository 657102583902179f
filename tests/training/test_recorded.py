"""What is recorded, and when, with a GPU that only counts."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from cores.training.recorded import UNRECORDED, Recording


class Graph:
    """Counts how often it is replayed."""

    replays = 0

    def replay(self) -> None:
        Graph.replays += 1


class Stream:
    """Never has to wait."""

    def wait_stream(self, other: "Stream") -> None:
        assert isinstance(other, Stream)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def within(_: object) -> Iterator[None]:
        yield

    Graph.replays = 0
    for name, stand_in in (
        *(("CUDAGraph", Graph), ("graph", within), ("stream", within), ("Stream", Stream)),
        ("current_stream", Stream),
    ):
        monkeypatch.setattr(torch.cuda, name, stand_in)


@pytest.mark.usefixtures("gpu")
def test_after_a_few_calls_it_is_recorded_once_and_replayed() -> None:
    calls: list[int] = []

    def function() -> int:
        calls.append(1)
        return len(calls)

    recording = Recording(function)
    results = [recording() for _ in range(UNRECORDED + 3)]
    assert results == [1, 2, 3, 4, 4, 4]
    assert len(calls) == UNRECORDED + 1
    assert Graph.replays == 3


@pytest.mark.usefixtures("gpu")
def test_what_cannot_be_recorded_is_called_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def refuse(_: object) -> None:
        raise RuntimeError("not permitted when stream is capturing\nand much more")

    monkeypatch.setattr(torch.cuda, "graph", refuse)
    recording = Recording(lambda: calls.append(1))
    for _ in range(UNRECORDED):
        recording()
    with pytest.warns(UserWarning, match="slower than it could be: not permitted when stream is"):
        recording()
    recording()
    assert len(calls) == UNRECORDED + 2
    assert Graph.replays == 0
