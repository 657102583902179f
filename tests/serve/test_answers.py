"""Right requests get the drawings, sets and records of `cores explain` and `cores predict`."""

import csv
import gzip
import io
import json
from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from cores.__main__ import main
from cores.serve import limits

PASTED = "CCO ethanol\nc1ccccc1O phenol\nCC(=O)N\n"


Client = TestClient
Ask = Callable[..., Any]


def test_molecules_are_drawn_predicted_and_get_a_set(molecules: Client, asked: Ask) -> None:
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


def test_a_smaller_error_rate_makes_larger_sets(molecules: Client, asked: Ask) -> None:
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
    answer = molecules.post("/api/graphs", content=table, params=query)
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


def test_files_of_every_kind_are_read(
    molecules: Client, graphs: Client, tmp_path: Path, asked: Ask, refused: Ask
) -> None:
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
    lines = '{"nodes": ["a", "b"], "edges": [[0, 1]]}\n' * 3
    for name, content in {"new.jsonl": lines, "new.ndjson.gz": packed(lines)}.items():
        assert len(asked(graphs, content, name)["graphs"]) == 3, name
    np.savez(tmp_path / "pickled.npz", x=np.array([{}], dtype=object), allow_pickle=True)
    body = (tmp_path / "pickled.npz").read_bytes()
    refused(graphs.post("/api/graphs", content=body, params={"name": "a.npz"}), 422)


def test_labels_of_a_file_are_compared(molecules: Client, asked: Ask) -> None:
    answer = asked(molecules, "id,smiles,label\na,CCO,chain\nb,CCC,ring\n", "new.csv")
    first, second = answer["graphs"]
    assert (first["label"], second["label"]) == ("chain", "ring")
    assert first["correct"] == (first["prediction"] == "chain")


def test_rows_that_are_no_graphs_are_told_beside_the_others(molecules: Client, asked: Ask) -> None:
    answer = asked(molecules, PASTED + "C1CC broken\n")
    assert len(answer["graphs"]) == 3
    assert answer["failed"] == ["broken: line 4: invalid SMILES 'C1CC'"]


def test_only_the_first_graphs_of_a_long_file_are_shown(molecules: Client, asked: Ask) -> None:
    answer = asked(molecules, "CCO\n" * (limits.MOST_GRAPHS + 5), drawings=False)
    assert len(answer["graphs"]) == limits.MOST_GRAPHS
    assert answer["total"] is None


def test_the_test_graphs_of_a_run_are_shown_in_pages(
    served: Callable[[Path], Client], trained_run: Path, refused: Ask
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
    lines = client.get("/api/test", params=query).text.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [each["name"] for each in page["graphs"]]
    answer = client.get("/api/test", params={"first": 5000})
    assert "there is no test graph 5000" in refused(answer, 422)


def test_a_model_that_knows_no_data_says_so(molecules: Client, refused: Ask) -> None:
    assert "does not say where its data are" in refused(molecules.get("/api/test"), 422)


def test_hostile_names_are_escaped_in_drawings(molecules: Client, asked: Ask) -> None:
    hostile = "<script>alert(1)</script>\u202e"
    (graph,) = asked(molecules, f"CCO {hostile}\n")["graphs"]
    assert "<script" not in graph["drawing"]
    assert graph["name"] == "<script>alert(1)</script>\\u202e"


def test_a_model_is_asked_at_any_sufficiency(
    served: Callable[[Path], Client], drawn_run: Path
) -> None:
    client = served(drawn_run)
    page = client.get("/").text
    assert 'id="sufficiency" min="0.5" max="0.99" step="0.01" value="0.8"' in page
    assert '<option value="minimal" selected>' in page
    kept, told = {}, set()
    for value in (0.5, 0.8, 0.95):
        query = {"count": 8, "sufficiency": value, "drawings": False}
        answer = client.get("/api/test", params=query).json()
        assert answer["sufficiency"] == value
        kept[value] = sum(graph["node_ratio"] for graph in answer["graphs"])
        told.add(json.dumps([[each["classes"], each["set"]] for each in answer["graphs"]]))
        check = answer["graphs"][0]["part"]["check"]
        assert check.endswith("no single node can go")
        assert f"{value:g}" in check
    assert kept[0.5] < kept[0.8] < kept[0.95]
    assert len(told) == 1, "classes and sets stay as they are"
    usual = client.get("/api/test", params={"count": 8, "drawings": False}).json()
    assert (usual["sufficiency"], usual["parts"]) == (0.8, "minimal")
    query = {"format": "jsonl", "count": 8, "sufficiency": 0.6, "parts": "cut"}
    lines = client.get("/api/test", params=query).text.splitlines()
    assert not all(json.loads(line)["minimal"] for line in lines)
    for wrong in ({"sufficiency": 0.3}, {"sufficiency": 1.0}, {"parts": "some"}):
        refused = client.get("/api/test", params=wrong)
        assert refused.status_code == 422
        assert refused.json()["error"].startswith(next(iter(wrong)))


def test_a_model_that_keeps_all_has_no_parts_to_ask_for(
    served: Callable[[Path], Client], train_tiny: Callable[..., Path], molecule_file: Path
) -> None:
    client = served(train_tiny(molecule_file, "gnn"))
    assert "ufficien" not in client.get("/").text
    one = client.post("/api/graphs", params={"name": "a.smi", "sufficiency": 0.7}, content=b"CCO")
    assert one.status_code == 422
    assert one.json()["error"].startswith("gnn shows no parts; leave ")
    (graph,) = client.post("/api/graphs", params={"name": "a.smi"}, content=b"CCO").json()["graphs"]
    assert graph["part"] == {}
