"""Wrong requests are told in one line."""

import gzip
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from cores.serve import limits

PASTED = "CCO ethanol\nc1ccccc1O phenol\nCC(=O)N\n"


Client = TestClient
Ask = Callable[..., Any]


def ring(nodes: int = 5) -> str:
    """A graph that the model of graphs can read."""
    edges = [[at, (at + 1) % nodes] for at in range(nodes)]
    return json.dumps({"nodes": ["a"] * (nodes - 1) + ["b"], "edges": edges})


BAD = {
    "empty": ("a.smi", b"", 422),
    "blank": ("a.csv", b"\n\n", 422),
    "no SMILES": ("a.smi", b"what is this\n", 422),
    "no column": ("a.csv", b"x,y\n1,2\n", 422),
    "binary": ("a.smi", bytes(range(256)) * 20, 422),
    "no gzip": ("a.csv.gz", b"smiles\nCCO\n", 422),
    "half a gzip": ("a.csv.gz", gzip.compress(b"smiles\n" + b"CCO\n" * 99)[:-9], 422),
    "no parquet": ("a.parquet", b"PAR1 nothing PAR1", 422),
    "a gzip bomb": ("a.csv.gz", gzip.compress(bytes(limits.MOST_BYTES + 1)), 413),
    "graphs": ("a.jsonl", ring().encode(), 422),
    "a pickle": ("a.pt", b"\x80\x04.", 422),
    "no kind": ("passwd", b"x", 422),
    "only dots": ("..", b"x", 422),
    "too long a SMILES": ("a.smi", b"C" * 20_000, 422),
    "too long a line": ("a.smi", b"C" * 2_000_000, 422),
    "too large": ("a.smi", b"CCO\n" * (limits.MOST_BYTES // 4 + 1), 413),
}


@pytest.mark.parametrize("case", BAD)
def test_a_wrong_body_is_told_in_a_line(molecules: Client, case: str, refused: Ask) -> None:
    name, body, status = BAD[case]
    for query in ({}, {"format": "csv"}):
        answer = molecules.post("/api/graphs", content=body, params={"name": name, **query})
        assert refused(answer, status)


def archive(**files: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        for name, text in files.items():
            made.writestr(f"{name}.txt", text)
    return buffer.getvalue()


def bomb() -> bytes:
    """Made when it is sent: it takes seconds, and every process reads all tests."""
    return archive(x_A="0" * 400_000_000, x_graph_indicator="1\n")


BAD_GRAPHS: dict[str, tuple[str, bytes | Callable[[], bytes], int]] = {
    "no JSON": ("a.jsonl", b"{", 422),
    "no graph": ("a.jsonl", b"[1, 2]", 422),
    "deep": ("a.jsonl", b"[" * 100_000, 422),
    "another layout": ("a.jsonl", b'{"nodes": 3, "edges": []}', 422),
    "an unknown label": ("a.jsonl", b'{"nodes": ["z"]}', 422),
    "a node that is not there": ("a.jsonl", b'{"nodes": ["a"], "edges": [[0, 9]]}', 422),
    "a very large number of nodes": ("a.jsonl", b'{"nodes": 1000000, "edges": []}', 422),
    "too many nodes": ("a.jsonl", ring(limits.MOST_NODES + 1).encode(), 413),
    "no zip": ("a.zip", b"PK nothing", 422),
    "a zip of something": ("a.zip", archive(hello="you"), 422),
    "a zip bomb": ("a.zip", bomb, 422),
    "no npz": ("a.npz", b"nothing", 422),
    "molecules": ("a.smi", b"CCO", 422),
}


@pytest.mark.parametrize("case", BAD_GRAPHS)
def test_a_wrong_graph_is_told_in_a_line(graphs: Client, case: str, refused: Ask) -> None:
    name, body, status = BAD_GRAPHS[case]
    content = body() if callable(body) else body
    answer = graphs.post("/api/graphs", content=content, params={"name": name})
    assert refused(answer, status)


def test_a_body_that_does_not_say_its_size_is_counted(molecules: Client, refused: Ask) -> None:
    def blocks() -> Iterator[bytes]:
        for _ in range(limits.MOST_BYTES // 2**20 + 1):
            yield b"CCO\n" * 2**18

    answer = molecules.post("/api/graphs", content=blocks(), params={"name": "a.smi"})
    assert "more than 8.0 MiB" in refused(answer, 413)


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"name": "a.smi", "alpha": "0"},
        {"name": "a.smi", "alpha": "1"},
        {"name": "a.smi", "alpha": "nan"},
        {"name": "a.smi", "alpha": "x" * 5000},
        {"name": "a.smi", "drawings": "perhaps"},
        {"name": "a.smi", "format": "parquet"},
    ],
)
def test_a_wrong_question_is_told_in_a_line(
    molecules: Client, query: dict[str, str], refused: Ask
) -> None:
    assert refused(molecules.post("/api/graphs", content=PASTED, params=query), 422)


def test_what_is_not_there_and_other_methods_are_refused(molecules: Client, refused: Ask) -> None:
    for path in ("/docs", "/openapi.json", "/api/", "/../../etc/passwd", "/explorer.html.j2"):
        refused(molecules.get(path), 404)
    refused(molecules.put("/api/graphs"), 405)
    refused(molecules.get("/api/test", params={"first": -1}), 422)
    refused(molecules.get("/api/test", params={"count": 10**6}), 422)


def test_an_error_names_the_option_that_mends_it(molecules: Client, refused: Ask) -> None:
    answer = molecules.post("/api/graphs", content="x,y\n1,2\n", params={"name": "a.csv"})
    assert "name the one that holds the molecules with --sc" in refused(answer, 422)
