"""Requests that take too long or too much, and clients that go away."""

import asyncio
import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from cores.runs.inputs import PredictOptions
from cores.serve import app as app_module
from cores.serve import explorer, limits

PASTED = "CCO ethanol\nc1ccccc1O phenol\nCC(=O)N\n"

PORT = 8765


Client = TestClient
Ask = Callable[..., Any]


def test_a_graph_that_takes_too_long_is_given_up(
    molecules: Client, monkeypatch: pytest.MonkeyPatch, refused: Ask
) -> None:
    clock = count(step=9)  # each look at it takes nine seconds
    monkeypatch.setattr(limits, "monotonic", lambda: next(clock))
    answer = molecules.post("/api/graphs", content=PASTED, params={"name": "a.smi"})
    assert "took more than 20 s" in refused(answer, 413)


def test_a_server_that_stops_gives_up_its_work(molecule_run: Path, refused: Ask) -> None:
    app = app_module.create_app(explorer.Explorer(molecule_run, PredictOptions(), "cpu"))
    headers = {"content-type": "application/octet-stream"}
    with TestClient(app, headers=headers) as client:
        app.state.desk.stop()
        answer = client.post("/api/graphs", content=PASTED, params={"name": "a.smi"})
        assert refused(answer, 503) == "the server is stopping"


def test_drawings_for_which_there_is_no_time_are_left_out(
    molecules: Client, monkeypatch: pytest.MonkeyPatch, asked: Ask
) -> None:
    monkeypatch.setattr(limits.Deadline, "passed", property(lambda _: True))
    monkeypatch.setattr(limits.Deadline, "check", lambda _: None)
    for graph in asked(molecules, PASTED)["graphs"]:
        assert graph["drawing"] is None
        assert "no time left" in graph["note"]
        assert graph["prediction"]


def sent_by(client: Client, receive: Any) -> tuple[int, str]:
    """Status and error of the answer to a body that comes as ``receive`` says."""
    headers = {"host": f"localhost:{PORT}", "content-type": "application/octet-stream"}
    scope = {
        "type": "http", "method": "POST", "path": "/api/graphs", "query_string": b"name=a.smi",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }  # fmt: skip
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(client.app(scope, receive, send))
    return sent[0]["status"], json.loads(sent[1]["body"])["error"]


def test_a_slow_body_is_given_up(molecules: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_module, "BODY_SECONDS", 0.05)

    async def receive() -> Any:
        await asyncio.sleep(5)

    assert sent_by(molecules, receive) == (408, "the body took more than 0.05 s")


def test_a_client_that_goes_away_leaves_no_traceback(molecules: Client) -> None:
    parts = iter([{"type": "http.request", "body": b"CC", "more_body": True}])

    async def receive() -> Any:
        return next(parts, {"type": "http.disconnect"})

    assert sent_by(molecules, receive) == (400, "the body was not sent to its end")


def test_a_full_queue_is_told(
    molecules: Client, monkeypatch: pytest.MonkeyPatch, refused: Ask
) -> None:
    monkeypatch.setattr(app_module, "MOST_WAITING", 0)
    answer = molecules.post("/api/graphs", content=PASTED, params={"name": "a.smi"})
    assert "too many requests" in refused(answer, 429)
    assert answer.headers["retry-after"] == "1"


def test_a_lack_of_memory_is_told(
    molecules: Client, monkeypatch: pytest.MonkeyPatch, refused: Ask
) -> None:
    def greedy(*_: Any) -> None:
        raise MemoryError("Unable to allocate 9.00 GiB")

    monkeypatch.setattr(explorer.Explorer, "of_file", greedy)
    answer = molecules.post("/api/graphs", content=PASTED, params={"name": "a.smi"})
    assert "out of memory: 9.00 GiB" in refused(answer, 413)
