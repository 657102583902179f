"""Servers of tiny models: of molecules, and of graphs whose nodes have categories; their pages."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from cores.cli.command import with_flags
from cores.runs.inputs import PredictOptions
from cores.serve.app import create_app
from cores.serve.explorer import Explorer
from cores.serve.guard import Guard
from cores.serve.server import _listening, _server

PORT = 8765
Client = TestClient
DESKTOP = {"width": 1280, "height": 900}


def graph_line(number: int, nodes: int = 5) -> str:
    """A ring with one node that says its class."""
    edges = [[at, (at + 1) % nodes] for at in range(nodes)]
    kinds = ["a"] * (nodes - 1) + ["b" if number % 2 else "c"]
    graph = {"id": f"g{number}", "nodes": kinds, "edges": edges, "label": number % 2}
    return json.dumps(graph)


@pytest.fixture(scope="session")
def graph_run(train_tiny: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("graphs") / "train.jsonl"
    path.write_text("\n".join(graph_line(number, 4 + number % 5) for number in range(120)))
    return train_tiny(path)


@pytest.fixture(scope="session")
def trained_run(molecule_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a model of molecules that knows where its data lie, and which its test part is."""
    from cores.__main__ import main

    run = tmp_path_factory.mktemp("runs") / "trained"
    arguments = ("train", "--dataset", molecule_file, "--model", "gnn", "--epochs", "2")
    small = ("--network.hidden_dim", "8", "--network.num_layers", "1", "--device", "cpu")
    assert main([str(each) for each in (*arguments, *small, "--out", run, "--json")]) == 0
    return run


@pytest.fixture(scope="module")
def served() -> Iterator[Callable[[Path], Client]]:
    """Clients that ask the server of a run, as a page of it would."""
    opened: dict[Path, Client] = {}

    def client_of(run: Path, **options: Any) -> Client:
        if run not in opened:
            explorer = Explorer(run, PredictOptions(**options), "cpu")
            app = create_app(explorer, lambda line: with_flags(line, {"smiles_column": "--sc"}))
            client = TestClient(Guard(app, PORT), base_url=f"http://localhost:{PORT}")
            client.headers["content-type"] = "application/octet-stream"
            opened[run] = client
        return opened[run]

    yield client_of
    for client in opened.values():
        client.close()


@pytest.fixture
def molecules(served: Callable[[Path], Client], molecule_run: Path) -> Client:
    """Of a model of molecules."""
    return served(molecule_run)


@pytest.fixture
def graphs(served: Callable[[Path], Client], graph_run: Path) -> Client:
    """Of a model of other graphs."""
    return served(graph_run)


@pytest.fixture
def asked() -> Callable[..., Any]:
    """What the server says of graphs that it can use."""

    def ask(client: Client, body: str | bytes, name: str = "pasted.smi", **query: Any) -> Any:
        """What the server says of graphs that it can use."""
        answer = client.post("/api/graphs", content=body, params={"name": name, **query})
        assert answer.status_code == 200, answer.text
        return answer.json()

    return ask


@pytest.fixture
def refused() -> Callable[..., Any]:
    """The line that tells why, of an answer that is a refusal."""

    def check(answer: Any, status: int) -> str:
        """The line that tells why, of an answer with this status."""
        assert answer.status_code == status, answer.text
        assert list(answer.json()) == ["error"]
        line = answer.json()["error"]
        assert len(line.splitlines()) == 1
        assert "cores-serve-" not in line, "a path of the server's"
        return str(line)

    return check


@pytest.fixture(scope="module")
def address() -> Iterator[Callable[[Path], str]]:
    """Where the page of a run is."""
    started: dict[Path, tuple[str, Any, threading.Thread]] = {}

    def address_of(run: Path) -> str:
        if run not in started:
            listener = _listening(0)
            port = listener.getsockname()[1]
            server = _server(Explorer(run, PredictOptions(), "cpu"), port, str)
            thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
            thread.start()
            started[run] = f"http://127.0.0.1:{port}/", server, thread
        return started[run][0]

    yield address_of
    for _, server, thread in started.values():
        server.should_exit = True
        thread.join()


class Opened:
    """The page in a tab of its own, and what it did."""

    def __init__(self, browser: Any, url: str, **options: Any) -> None:
        self.url = url
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(15_000)
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(url)

    def paste(self, text: str, cards: int) -> None:
        self.page.get_by_label("one per line").fill(text)
        self.page.get_by_role("button", name="Predict").click()
        self.wait(cards)

    def wait(self, cards: int) -> None:
        """Until so many cards are there."""
        self.page.wait_for_function(
            "count => document.querySelectorAll('.card').length === count", arg=cards
        )

    @property
    def too_wide(self) -> int:
        """Pixels of the page that do not fit on the screen."""
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        return int(self.page.evaluate(wide))

    def check_quiet(self) -> None:
        """Nothing went wrong, and nobody else was asked."""
        assert self.said == []
        assert [url for url in self.asked if not url.startswith((self.url, "blob:"))] == []


@pytest.fixture
def opened(
    browser: Any, address: Callable[[Path], str], molecule_run: Path
) -> Iterator[Callable[..., Opened]]:
    """Opens the page of a run, by default that of molecules."""
    tabs: list[Opened] = []

    def open_page(run: Path = molecule_run, **options: Any) -> Opened:
        tabs.append(Opened(browser, address(run), **{"viewport": DESKTOP} | options))
        return tabs[-1]

    yield open_page
    for tab in tabs:
        tab.context.close()
