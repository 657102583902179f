"""`cores predict`, and training and measuring on files of one's own, as a user meets them."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cores.__main__ import main

Ask = Callable[..., tuple[int, str, str]]
Table = Callable[..., str]
CPU = ("--device", "cpu")
TINY = ("--epochs", "2", "--network.hidden_dim", "8", "--network.num_layers", "1", *CPU)
FIELDS = {
    *("id", "prediction", "probabilities", "prediction_set", "kept_nodes", "kept_edges"),
    *("node_ratio", "edge_ratio"),
}


@pytest.fixture
def new_file(tmp_path: Path) -> Path:
    (tmp_path / "new.csv").write_text("id,smiles\na,CCO\nb,C(\nc,c1ccccc1\n")
    return tmp_path / "new.csv"


def test_records_are_json_lines_on_standard_output(
    ask: Ask, molecule_run: Path, new_file: Path
) -> None:
    status, out, err = ask("predict", molecule_run, new_file, *CPU)
    assert status == 0
    found = [json.loads(line) for line in out.splitlines()]
    assert [record["id"] for record in found] == ["a", "b", "c"]
    assert set(found[0]) >= FIELDS
    assert found[1]["error"] == "line 3: invalid SMILES 'C('"
    assert err == "note: 1 of 3 rows could not be used: b: line 3: invalid SMILES 'C('\n"


def test_with_json_all_records_are_in_one_object(
    ask: Ask, molecule_run: Path, new_file: Path
) -> None:
    _, out, _ = ask("predict", molecule_run, new_file, "--json", *CPU)
    found = json.loads(out)
    _, out, _ = ask("predict", molecule_run, new_file, *CPU)
    assert found == {"records": [json.loads(line) for line in out.splitlines()], "errors": 1}


def test_a_file_is_written_and_summed_up(
    ask: Ask, molecule_run: Path, new_file: Path, tmp_path: Path
) -> None:
    arguments = ("predict", molecule_run, new_file, "--out")
    status, out, _ = ask(*arguments, tmp_path / "sub" / "o.csv", *CPU)
    assert status == 0
    assert out.startswith("3 graphs in ")
    with (tmp_path / "sub" / "o.csv").open() as file:
        assert [row["id"] for row in csv.DictReader(file)] == ["a", "b", "c"]
    _, out, _ = ask(*arguments, tmp_path / "o.jsonl", "--json", *CPU)
    found = json.loads(out)
    assert (found["records"], found["errors"]) == (3, 1)
    assert found["first_errors"] == ["b: line 3: invalid SMILES 'C('"]


def test_a_folder_of_files_is_predicted_into_a_folder(
    ask: Ask, molecule_run: Path, tmp_path: Path, molecule_table: Table
) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        (tmp_path / "in" / f"{name}.csv").write_text(molecule_table(5))
    _, out, _ = ask("predict", molecule_run, tmp_path / "in", "--out", tmp_path / "out", *CPU)
    assert out.startswith("10 graphs in ")
    assert {path.name for path in (tmp_path / "out").glob("*.csv")} == {"a.csv", "b.csv"}
    _, out, _ = ask("predict", molecule_run, tmp_path / "in", *CPU)
    assert len(out.splitlines()) == 10


def test_a_named_dataset_is_predicted(
    ask: Ask, train_tiny: Callable[..., Path], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert ask("train", "--dataset", "motifs", "--model", "gnn", *TINY, "--out", run)[0] == 0
    status, out, _ = ask("predict", run, "motifs", *CPU)
    assert status == 0
    first = json.loads(out.splitlines()[0])
    assert first["prediction"] in ("cycle", "house")
    assert "kept_smiles" not in first


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["RUN", "TMP/none.csv"], "TMP/none.csv does not exist"),
        (["RUN", "nowhere.csv"], "there is no file nowhere.csv"),
        (["TMP", "NEW"], "TMP holds no run: config.json is missing"),
        (["RUN", "NEW", "--out", "TMP/o.txt"], "--out must end in .csv, .jsonl or .parquet"),
        (["RUN", "NEW", "--out", "TMP/o.parquet.gz"], "--out must end in .csv, .jsonl or"),
        (["RUN", "NEW", "--out", "NEW"], "new.csv exists already; delete it"),
        (["RUN", "NEW", "--alpha", "2"], "--alpha must lie in (0, 1), got 2.0"),
        (["RUN", "NEW", "--score", "best"], "--score"),
        (["RUN", "NEW", "--workers", "2"], "--workers and --scheduler need --out"),
        (["RUN", "NEW", "--workers", "0", "--out", "TMP/o.csv"], "--workers"),
        (["RUN", "NEW", "--scheduler", "tcp://a:1", "--out", "TMP/o.csv"], "new.csv is none"),
        (["RUN", "NEW", "--tls-ca", "a.pem"], "certificates are for a --scheduler; name its"),
        (["RUN", "NEW", "--smiles-column", "smile"], "no column 'smile' (--smiles-column); did"),
        (["RUN", "NEW", "--id-column", "ids"], "no column 'ids' (--id-column); did you mean id"),
        (
            ["RUN", "NEW", "--on-error", "fail"],
            "line 3 (b): invalid SMILES 'C('; mend it, or set --on-error skip",
        ),
        (["RUN", "NEW", "--on-error", "perhaps"], "--on-error: invalid choice: 'perhaps'"),
        (["RUN", "TMP/empty.csv"], "empty.csv is empty"),
        (["RUN", "TMP/header.csv"], "header.csv holds no graphs"),
        (["RUN", "TMP/graphs.jsonl"], "the model was trained on molecules, these are graphs"),
        (["RUN", "TMP/folder"], "TMP/folder holds no NAME_A.txt"),
        (["RUN", "/dev/null"], "/dev/null is no regular file"),
        (["RUN"], "the following arguments are required: INPUT"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_a_mistake_is_one_line_and_status_2(
    arguments: list[str], message: str, ask: Ask, molecule_run: Path, new_file: Path, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.csv").touch()
    (tmp_path / "header.csv").write_text("smiles\n")
    (tmp_path / "graphs.jsonl").write_text('{"nodes": 2}\n')
    places = {"RUN": molecule_run, "NEW": new_file}
    given = [str(places.get(each, each)).replace("TMP", str(tmp_path)) for each in arguments]
    status, out, err = ask("predict", *given, *CPU)
    assert status == 2
    assert out == ""
    assert err.count("\n") == 1
    assert message.replace("TMP", str(tmp_path)) in err


def test_training_reads_the_columns_that_are_named(
    ask: Ask, tmp_path: Path, molecule_table: Table
) -> None:
    header, *rows = molecule_table(120).splitlines()
    assert header == "id,smiles,label"
    parts = ("train", "train", "val", "calibration", "test", "train")
    rows = [f"{row},{parts[number // 6 % 6]}" for number, row in enumerate(rows)]
    rows[7] = "bad,C(,ring,train"
    (tmp_path / "x.csv").write_text("\n".join(["code,mol_text,kind,part", *rows]) + "\n")
    columns = ("--smiles-column", "mol_text", "--label-column", "kind", "--id-column", "code")
    arguments = ("train", "--dataset", tmp_path / "x.csv", "--model", "gnn", *columns, *TINY)
    split = ("--split-column", "part", "--parts.kind", "column")
    run = tmp_path / "run"
    status, out, err = ask(*arguments, *split, "--out", run, "--json")
    assert status == 0, err
    assert json.loads(out)["test_graphs"] == 18
    assert "note: 1 rows could not be used: line 9 (bad): invalid SMILES 'C('" in err
    status, _, err = ask(*arguments, *split, "--on-error", "fail", "--out", tmp_path / "b")
    assert status == 2
    assert err.endswith("line 9 (bad): invalid SMILES 'C('; mend it, or set --on-error skip\n")
    status, _, err = ask("evaluate", run, "--json", *CPU)
    assert status == 0, err
    status, out, err = ask(
        "evaluate", run, "--dataset", tmp_path / "x.csv", *columns, "--json", *CPU
    )
    assert status == 0, err


def test_a_model_is_measured_on_another_file(
    ask: Ask, molecule_run: Path, tmp_path: Path, molecule_table: Table
) -> None:
    lines = molecule_table(40).splitlines()
    lines[2], lines[5] = "m1,CCO,", "m4,C(,ring"
    (tmp_path / "other.csv").write_text("\n".join(lines))
    arguments = ("evaluate", molecule_run, "--dataset", tmp_path / "other.csv", *CPU)
    status, out, err = ask(*arguments, "--json")
    assert status == 0
    found = json.loads(out)
    assert found["test_graphs"] == 38
    assert found["errors"] == 2
    assert "note: 2 rows could not be used: line 6 (m4): invalid SMILES" in err
    assert "line 3 (m1): has no label" in err
    assert ask(*arguments, "--on-error", "fail")[0] == 2
    status, _, err = ask("evaluate", molecule_run, "--label-column", "x", *CPU)
    assert (status, err) == (
        2,
        "cores: the run knows its own columns; naming others needs a --dataset\n",
    )
    (tmp_path / "other.csv").write_text("smiles,label\nCCO,round\n")
    status, _, err = ask(*arguments)
    assert status == 2
    assert "other.csv has the label round, the model knows chain, ring" in err
    (tmp_path / "other.csv").write_text("smiles\nCCO\n")
    status, _, err = ask(*arguments)
    assert "has no labels; say which column holds them with --label-column" in err


def test_unknown_node_labels_are_refused_or_ignored(
    ask: Ask, train_tiny: Callable[..., Path], tmp_path: Path
) -> None:
    lines = [
        json.dumps(
            {"nodes": ["a", "b", "a"], "edges": [[0, 1], [1, 2]][: 1 + n % 2], "label": n % 2}
        )
        for n in range(80)
    ]
    (tmp_path / "train.jsonl").write_text("\n".join(lines))
    run = train_tiny(tmp_path / "train.jsonl", "gnn")
    (tmp_path / "new.jsonl").write_text('{"id": "g1", "nodes": ["a", "z"]}\n')
    status, _, err = ask("predict", run, tmp_path / "new.jsonl", *CPU)
    assert status == 2
    assert "g1: line 1: has the node label 'z', which no graph of the training had" in err
    assert "--on-unknown ignore" in err
    assert ask("predict", run, tmp_path / "new.jsonl", "--on-unknown", "ignore", *CPU)[0] == 0
    (tmp_path / "both.jsonl").write_text('{"nodes": ["a", "z"]}\n{"nodes": ["a", "b"]}\n')
    status, out, err = ask("predict", run, tmp_path / "both.jsonl", *CPU)
    assert status == 0, "the other graph is predicted"
    assert [json.loads(line)["error"] is None for line in out.splitlines()] == [False, True]
    assert ask("predict", run, tmp_path / "both.jsonl", "--on-error", "fail", *CPU)[0] == 2


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(noise=st.binary(max_size=60), name=st.sampled_from(["n.csv", "n.jsonl", "n.sdf", "n.npz"]))
def test_noise_as_input_ends_with_status_0_or_2(
    noise: bytes,
    name: str,
    molecule_run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / name).write_bytes(noise)
    status = main(["predict", str(molecule_run), str(tmp_path / name), *CPU])
    err = capsys.readouterr().err
    assert status in (0, 2)
    assert status == 0 or err.count("\n") == 1
