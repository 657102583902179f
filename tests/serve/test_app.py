"""Requests: right ones get the records of `cores predict`, wrong ones a line, strangers nothing."""

import asyncio
import csv
import gzip
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from itertools import count, pairwise, product
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from cores.__main__ import main
from cores.runs.predictor import PredictOptions
from cores.serve import app as app_module
from cores.serve import explorer, limits
from cores.serve.guard import NAMES

PASTED = "CCO ethanol\nc1ccccc1O phenol\nCC(=O)N\n"
Client = TestClient
PORT = 8765


def ring(nodes: int = 5) -> str:
    """A graph that the model of graphs can read."""
    edges = [[at, (at + 1) % nodes] for at in range(nodes)]
    return json.dumps({"nodes": ["a"] * (nodes - 1) + ["b"], "edges": edges})


def asked(client: Client, body: str | bytes, name: str = "pasted.smi", **query: Any) -> Any:
    """What the server says of graphs that it can use."""
    answer = client.post("/api/graphs", content=body, params={"name": name, **query})
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(answer: Any, status: int) -> str:
    """The line that tells why, of an answer with this status."""
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["error"]
    line = answer.json()["error"]
    assert len(line.splitlines()) == 1
    assert "cores-serve-" not in line, "a path of the server's"
    return str(line)


def test_every_answer_has_the_headers_that_keep_others_out(molecules: Client) -> None:
    for path in ("/", "/explorer.css", "/explorer.js", "/editor.js", "/icon.svg", "/api/none"):
        headers = molecules.get(path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert "access-control-allow-origin" not in headers


def test_molecules_are_drawn_predicted_and_get_a_set(molecules: Client) -> None:
    answer = asked(molecules, PASTED)
    assert [graph["name"] for graph in answer["graphs"]] == ["ethanol", "phenol", "2"]
    assert answer["total"] == 3
    for graph in answer["graphs"]:
        assert graph["drawing"].startswith("<svg")
        assert sum(each["probability"] for each in graph["classes"]) == pytest.approx(1, abs=1e-5)
        assert graph["prediction"] == graph["classes"][0]["name"]
        inside = [each["name"] for each in graph["classes"] if each["in_set"]]
        assert sorted(inside) == sorted(graph["set"])
    assert "misses the true label at most 10 %" in answer["promise"]


def test_a_smaller_error_rate_makes_larger_sets(molecules: Client) -> None:
    sizes = []
    for alpha in (0.02, 0.1, 0.3, 0.6, 0.97):
        answer = asked(molecules, PASTED, alpha=alpha, drawings=False)
        assert answer["alpha"] == alpha
        sizes.append([len(graph["set"]) for graph in answer["graphs"]])
        for graph in answer["graphs"]:
            assert "drawing" not in graph
            for each in graph["classes"]:
                assert each["in_set"] == (each["p_value"] > alpha)
    assert sizes[0] == [2, 2, 2], "16 calibration graphs are too few"
    assert sizes[-1] == [0, 0, 0] or sum(sizes[-1]) < sum(sizes[0])
    for larger, smaller in pairwise(sizes):
        assert all(a >= b for a, b in zip(larger, smaller, strict=True))
    assert "too few for error rate 0.02" in asked(molecules, PASTED, alpha=0.02)["promise"]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_the_records_are_those_of_predict(
    molecules: Client, molecule_run: Path, molecule_table: Any, tmp_path: Path, kind: str
) -> None:
    table = molecule_table(20) + "broken,C1CC,ring\n"
    (tmp_path / "new.csv").write_text(table)
    out = tmp_path / f"out.{kind}"
    arguments = ("predict", molecule_run, tmp_path / "new.csv", "--out", out, "--alpha", "0.25")
    assert main([*map(str, arguments), "--device", "cpu"]) == 0
    query = {"name": "new.csv", "alpha": "0.25", "format": kind}
    answer = molecules.post("/api/records", content=table, params=query)
    assert answer.status_code == 200
    assert f'filename="predictions.{kind}"' in answer.headers["content-disposition"]
    assert _close(answer.text, out.read_text(), kind)


def _close(mine: str, theirs: str, kind: str) -> bool:
    """Equal but for the last digits: graphs are predicted in other company."""

    def plain(text: str) -> list[Any]:
        if kind == "jsonl":
            return [json.loads(line) for line in text.splitlines()]
        rows = list(csv.DictReader(io.StringIO(text)))
        for row, name in product(rows, ("probabilities", "p_values")):
            row[name] = json.loads(row[name] or "null")
        return rows

    for a, b in zip(plain(mine), plain(theirs), strict=True):
        assert list(a) == list(b)
        for name in a:
            if name in ("probabilities", "p_values"):
                assert a[name] == (b[name] and pytest.approx(b[name], abs=1e-5))
            elif name == "probability":
                assert float(a[name] or 0) == pytest.approx(float(b[name] or 0), abs=1e-5)
            else:
                assert a[name] == b[name]
    return True


def packed(text: str) -> bytes:
    return gzip.compress(text.encode())


def test_files_of_every_kind_are_read(molecules: Client, graphs: Client, tmp_path: Path) -> None:
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet
    from rdkit import Chem

    table = "name,SMILES\nA,CCO\nB,c1ccccc1\n"
    buffer = io.BytesIO()
    parquet.write_table(pa.table({"smiles": ["CCO", "c1ccccc1"]}), buffer)
    blocks = [Chem.MolToMolBlock(Chem.MolFromSmiles(each)) for each in ("CCO", "c1ccccc1")]
    sdf = "".join(f"{block}\n$$$$\n" for block in blocks)
    for name, body in {
        "new.csv": table,
        "new.CSV.GZ": packed(table),
        "new.tsv": table.replace(",", "\t"),
        "new.parquet": buffer.getvalue(),
        "../../new.sdf": sdf,
    }.items():
        assert len(asked(molecules, body, name)["graphs"]) == 2, name
    lines = "\n".join([ring(), ring(7), ring(4)])
    for name, content in {"new.jsonl": lines, "new.ndjson.gz": packed(lines)}.items():
        assert len(asked(graphs, content, name)["graphs"]) == 3, name
    np.savez(tmp_path / "pickled.npz", x=np.array([{}], dtype=object), allow_pickle=True)
    body = (tmp_path / "pickled.npz").read_bytes()
    refused(graphs.post("/api/graphs", content=body, params={"name": "a.npz"}), 422)


def test_labels_of_a_file_are_compared(molecules: Client) -> None:
    answer = asked(molecules, "id,smiles,label\na,CCO,chain\nb,CCC,ring\n", "new.csv")
    first, second = answer["graphs"]
    assert (first["label"], second["label"]) == ("chain", "ring")
    assert first["correct"] == (first["prediction"] == "chain")


def test_rows_that_are_no_graphs_are_told_beside_the_others(molecules: Client) -> None:
    answer = asked(molecules, PASTED + "C1CC broken\n")
    assert len(answer["graphs"]) == 3
    assert answer["failed"] == ["broken: line 4: invalid SMILES 'C1CC'"]


def test_only_the_first_graphs_of_a_long_file_are_shown(molecules: Client) -> None:
    answer = asked(molecules, "CCO\n" * (limits.MOST_GRAPHS + 5), drawings=False)
    assert len(answer["graphs"]) == limits.MOST_GRAPHS
    assert answer["total"] is None


def test_the_test_graphs_of_a_run_are_shown_in_pages(
    served: Callable[[Path], Client], trained_run: Path
) -> None:
    client = served(trained_run)
    every = client.get("/api/test").json()
    metrics = json.loads((trained_run / "metrics.json").read_text())
    assert every["total"] == len(every["graphs"]) == metrics["test_graphs"]
    right = sum(graph["correct"] for graph in every["graphs"])
    assert right == round(metrics["accuracy"] * metrics["test_graphs"])
    page = client.get("/api/test", params={"first": 3, "count": 4, "alpha": 0.4}).json()
    assert [graph["name"] for graph in page["graphs"]] == [
        graph["name"] for graph in every["graphs"][3:7]
    ]
    assert [graph["position"] for graph in page["graphs"]] == [3, 4, 5, 6]
    query = {"first": 3, "count": 4, "format": "jsonl"}
    lines = client.get("/api/test/records", params=query).text.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [each["name"] for each in page["graphs"]]
    answer = client.get("/api/test", params={"first": 5000})
    assert "there is no test graph 5000" in refused(answer, 422)


def test_a_model_that_knows_no_data_says_so(molecules: Client) -> None:
    assert "does not say where its data are" in refused(molecules.get("/api/test"), 422)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "localhost", "127.0.0.1:80"])
def test_a_request_to_another_name_is_refused(molecules: Client, host: str) -> None:
    """What a page sends whose name was made to lead here."""
    for path in ("/", "/api/test", "/explorer.js"):
        answer = molecules.get(path, headers={"host": host})
        assert "localhost alone" in refused(answer, 421)
        assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("name", NAMES)
def test_a_request_to_its_own_names_is_answered(molecules: Client, name: str) -> None:
    headers = {"host": f"{name}:8765", "origin": f"http://{name}:8765"}
    assert molecules.get("/", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:9999", "https://localhost:8765"]
)
def test_a_request_of_a_foreign_page_is_refused(molecules: Client, origin: str) -> None:
    query = {"name": "a.smi"}
    answer = molecules.post("/api/graphs", content=PASTED, params=query, headers={"origin": origin})
    assert "other origins" in refused(answer, 403)


def test_an_image_of_a_foreign_page_is_refused_and_a_link_is_not(molecules: Client) -> None:
    foreign = {"sec-fetch-site": "cross-site"}
    assert "other sites" in refused(molecules.get("/api/test", headers=foreign), 403)
    assert molecules.get("/", headers=foreign).status_code == 200


def test_a_body_that_a_form_could_send_is_refused(molecules: Client) -> None:
    for kind in ("text/plain", "multipart/form-data", "application/x-www-form-urlencoded", ""):
        answer = molecules.post(
            "/api/graphs", content=PASTED, params={"name": "a.smi"}, headers={"content-type": kind}
        )
        refused(answer, 415)


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
def test_a_wrong_body_is_told_in_a_line(molecules: Client, case: str) -> None:
    name, body, status = BAD[case]
    for path, query in (("graphs", {}), ("records", {"format": "csv"})):
        answer = molecules.post(f"/api/{path}", content=body, params={"name": name, **query})
        assert refused(answer, status)


def archive(**files: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        for name, text in files.items():
            made.writestr(f"{name}.txt", text)
    return buffer.getvalue()


BAD_GRAPHS = {
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
    "a zip bomb": ("a.zip", archive(x_A="0" * 400_000_000, x_graph_indicator="1\n"), 422),
    "no npz": ("a.npz", b"nothing", 422),
    "molecules": ("a.smi", b"CCO", 422),
}


@pytest.mark.parametrize("case", BAD_GRAPHS)
def test_a_wrong_graph_is_told_in_a_line(graphs: Client, case: str) -> None:
    name, body, status = BAD_GRAPHS[case]
    answer = graphs.post("/api/graphs", content=body, params={"name": name})
    assert refused(answer, status)


def test_a_body_that_does_not_say_its_size_is_counted(molecules: Client) -> None:
    def blocks() -> Iterator[bytes]:
        for _ in range(limits.MOST_BYTES // 2**20 + 1):
            yield b"CCO\n" * 2**18

    answer = molecules.post("/api/graphs", content=blocks(), params={"name": "a.smi"})
    assert "more than 8.0 MiB" in refused(answer, 413)


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("graphs", {}),
        ("graphs", {"name": "a.smi", "alpha": "0"}),
        ("graphs", {"name": "a.smi", "alpha": "1"}),
        ("graphs", {"name": "a.smi", "alpha": "nan"}),
        ("graphs", {"name": "a.smi", "alpha": "x" * 5000}),
        ("graphs", {"name": "a.smi", "drawings": "perhaps"}),
        ("records", {"name": "a.smi"}),
        ("records", {"name": "a.smi", "format": "parquet"}),
    ],
)
def test_a_wrong_question_is_told_in_a_line(
    molecules: Client, path: str, query: dict[str, str]
) -> None:
    assert refused(molecules.post(f"/api/{path}", content=PASTED, params=query), 422)


def test_what_is_not_there_and_other_methods_are_refused(molecules: Client) -> None:
    for path in ("/docs", "/openapi.json", "/api/", "/../../etc/passwd", "/explorer.html.j2"):
        refused(molecules.get(path), 404)
    refused(molecules.put("/api/graphs"), 405)
    refused(molecules.get("/api/test", params={"first": -1}), 422)
    refused(molecules.get("/api/test", params={"count": 10**6}), 422)


def test_an_error_names_the_option_that_mends_it(molecules: Client) -> None:
    answer = molecules.post("/api/graphs", content="x,y\n1,2\n", params={"name": "a.csv"})
    assert "name the one that holds the molecules with --sc" in refused(answer, 422)


def test_a_graph_that_takes_too_long_is_given_up(
    molecules: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = count(step=9)  # each look at it takes nine seconds
    monkeypatch.setattr(limits, "monotonic", lambda: next(clock))
    answer = molecules.post("/api/graphs", content=PASTED, params={"name": "a.smi"})
    assert "took more than 20 s" in refused(answer, 413)


def test_a_server_that_stops_gives_up_its_work(molecule_run: Path) -> None:
    app = app_module.create_app(explorer.Explorer(molecule_run, PredictOptions(), "cpu"))
    headers = {"content-type": "application/octet-stream"}
    with TestClient(app, headers=headers) as client:
        app.state.desk.stop()
        answer = client.post("/api/graphs", content=PASTED, params={"name": "a.smi"})
        assert refused(answer, 503) == "the server is stopping"


def test_drawings_for_which_there_is_no_time_are_left_out(
    molecules: Client, monkeypatch: pytest.MonkeyPatch
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


def test_a_full_queue_is_told(molecules: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_module, "MOST_WAITING", 0)
    answer = molecules.post("/api/graphs", content=PASTED, params={"name": "a.smi"})
    assert "too many requests" in refused(answer, 429)
    assert answer.headers["retry-after"] == "1"


def test_a_lack_of_memory_is_told(molecules: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(*_: Any) -> None:
        raise MemoryError("Unable to allocate 9.00 GiB")

    monkeypatch.setattr(explorer.Explorer, "of_file", greedy)
    answer = molecules.post("/api/graphs", content=PASTED, params={"name": "a.smi"})
    assert "out of memory: 9.00 GiB" in refused(answer, 413)


def test_nothing_is_told_to_others_whatever_the_environment_says(
    molecule_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FastAPI would refuse this setting, if it were to send anything."""
    monkeypatch.setenv("FASTAPI_OTEL_AUTO_CONFIGURE", "true")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    app = app_module.create_app(explorer.Explorer(molecule_run, PredictOptions(), "cpu"))
    with TestClient(app) as client:
        assert client.get("/").status_code == 200


def test_nothing_is_left_behind(
    molecules: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    asked(molecules, PASTED)
    molecules.post("/api/graphs", content=b"nothing", params={"name": "a.smi"})
    assert not list(tmp_path.iterdir())


def test_limits_of_files_are_put_back(molecules: Client) -> None:
    import os

    asked(molecules, PASTED)
    assert "CORES_MAX_MEMORY" not in os.environ
    assert "CORES_MAX_LINE" not in os.environ


def test_hostile_names_are_escaped_in_drawings(molecules: Client) -> None:
    hostile = "<script>alert(1)</script>\u202e"
    (graph,) = asked(molecules, f"CCO {hostile}\n")["graphs"]
    assert "<script" not in graph["drawing"]
    assert graph["name"] == "<script>alert(1)</script>\\u202e"


def test_a_model_with_a_dial_is_asked_at_any_setting(
    served: Callable[[Path], Client], dial_run: Path, molecules: Client
) -> None:
    client = served(dial_run)
    page = client.get("/").text
    assert 'id="lam" min="0" max="1" step="0.05" value="0.5"' in page
    assert 'id="lam"' not in molecules.get("/").text
    kept = {}
    for lam in (0.0, 0.5, 1.0):
        query = {"count": 8, "lam": lam, "drawings": False}
        answer = client.get("/api/test", params=query).json()
        assert answer["lam"] == lam
        kept[lam] = sum(graph["node_ratio"] for graph in answer["graphs"])
    assert kept[0.0] < kept[0.5] < kept[1.0]
    usual = client.get("/api/test", params={"count": 8, "drawings": False}).json()
    assert usual["lam"] == 0.5
    lines = client.get("/api/test/records", params={"format": "jsonl", "count": 2, "lam": 0.2}).text
    assert [json.loads(line)["lam"] for line in lines.splitlines()] == [0.2, 0.2]
    refused = client.get("/api/test", params={"lam": 0.33})
    assert refused.status_code == 422
    assert "in steps of 0.05, got 0.33" in refused.json()["error"]
    one = molecules.post("/api/graphs", params={"name": "a.smi", "lam": 0.3}, content=b"CCO")
    assert one.status_code == 422
    assert one.json() == {"error": "this model was trained for one lambda; train with reward.dial"}
