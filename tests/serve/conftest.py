"""Servers of tiny models: of molecules, and of graphs whose nodes have categories."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from cores.cli.words import with_flags
from cores.runs.predictor import PredictOptions
from cores.serve.app import create_app
from cores.serve.explorer import Explorer
from cores.serve.guard import Guard

PORT = 8765
Client = TestClient


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
