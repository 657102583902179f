"""Predictions for files: a record per row in order, the same however they are made."""

import csv
import gzip
import io
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from pyarrow import parquet
from rdkit import Chem

from cores.data.inputs import sources
from cores.data.molecules import ATOM_COLUMNS
from cores.errors import UserError
from cores.files import read_json, write_json
from cores.runs import predict, records
from cores.runs.inputs import PredictOptions
from cores.runs.opened import Run
from cores.runs.predict import predict_file, predict_records
from cores.runs.run import evaluate_run
from cores.training.state import load_state, save_state

Train = Callable[..., Path]
Table = Callable[..., str]
PLAIN = PredictOptions()
FIELDS = [
    *("id", "prediction", "probability", "probabilities", "prediction_set", "p_values"),
    *("kept_nodes", "kept_edges", "node_ratio", "edge_ratio", "pieces"),
    *("part_probability", "minimal", "weak", "questions", "committee_std"),
    *("kept_smiles", "error"),
]
pytestmark = pytest.mark.usefixtures("small_chunks")


def all_records(run: Path, source: Path, options: PredictOptions = PLAIN) -> list[dict[str, Any]]:
    chunks = predict_records(run, str(source), options, device="cpu")
    return [record for found, _ in chunks for record in found]


def written(run: Path, source: Path, out: Path, options: PredictOptions = PLAIN) -> bytes:
    predict_file(run, str(source), out, options, device="cpu")
    return out.read_bytes()


def test_there_is_one_record_per_row_in_order(molecule_run: Path, new_file: Path) -> None:
    found = all_records(molecule_run, new_file)
    assert [record["id"] for record in found] == [f"m{number}" for number in range(30)]
    failed = {record["id"]: record["error"] for record in found if record["error"]}
    assert failed == {
        "m2": "line 4: invalid SMILES 'C('",
        "m10": "line 12: empty SMILES",
        "m29": "line 31: has 1 cells, the first line 2",
    }
    for record in found:
        assert set(record) == set(FIELDS)
        nothing = [name for name in FIELDS if record[name] is None]
        assert nothing == (["error"] if record["error"] is None else FIELDS[1:-1])


def test_a_record_says_what_is_predicted_and_kept(molecule_run: Path, new_file: Path) -> None:
    with new_file.open() as file:
        smiles = {row["id"]: row["smiles"] for row in csv.DictReader(file)}
    for record in all_records(molecule_run, new_file):
        if record["error"]:
            continue
        probs = record["probabilities"]
        assert sorted(probs) == ["chain", "ring"]
        assert sum(probs.values()) == pytest.approx(1, abs=1e-5)
        assert record["prediction"] == max(probs, key=probs.get)
        assert record["probability"] == probs[record["prediction"]]
        whole = Chem.MolFromSmiles(smiles[record["id"]], Chem.SmilesParserParams())
        nodes, edges = record["kept_nodes"], record["kept_edges"]
        assert record["node_ratio"] == pytest.approx(len(nodes) / whole.GetNumAtoms(), abs=1e-5)
        if whole.GetNumBonds():
            assert record["edge_ratio"] == pytest.approx(len(edges) / whole.GetNumBonds(), abs=1e-5)
        assert all(a < b and {a, b} <= set(nodes) for a, b in edges)
        assert record["part_probability"] >= min(0.8, record["probability"]) - 1e-4
        assert record["weak"] == (record["probability"] < 0.8)
        assert record["minimal"]
        assert record["questions"] > 0
        part = Chem.MolFromSmiles(record["kept_smiles"])
        assert sum(atom.GetAtomicNum() > 0 for atom in part.GetAtoms()) == len(nodes)


def test_atoms_have_the_numbers_of_the_input(molecule_run: Path, tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("smiles\n[H]OC=C\nOC=C\n")
    with_hydrogen, without = all_records(molecule_run, tmp_path / "h.csv")
    assert with_hydrogen["kept_nodes"] == [node + 1 for node in without["kept_nodes"]]
    assert with_hydrogen["kept_edges"] == [[a + 1, b + 1] for a, b in without["kept_edges"]]
    assert with_hydrogen["kept_smiles"] == without["kept_smiles"]


def test_an_element_that_the_training_had_not_is_predicted(
    molecule_run: Path, tmp_path: Path
) -> None:
    assert "element = Sn" in ATOM_COLUMNS
    (tmp_path / "rare.smi").write_text("C[Sn](C)(C)C\nC[Pt]C\n*C\n[U]\n")
    assert [record["error"] for record in all_records(molecule_run, tmp_path / "rare.smi")] == (
        [None] * 4
    )


def cells(text: str) -> list[dict[str, Any]]:
    """The rows of a predicted table, as records."""

    def value(name: str, cell: str) -> Any:
        if name in ("id", "prediction", "kept_smiles", "error"):
            return cell or None
        if cell in ("True", "False"):
            return cell == "True"
        return json.loads(cell) if cell else None

    rows = csv.DictReader(io.StringIO(text))
    return [{name: value(name, cell) for name, cell in row.items()} for row in rows]


@pytest.mark.parametrize("name", ["o.csv", "o.csv.gz", "o.jsonl", "o.jsonl.gz", "o.parquet"])
def test_every_format_has_the_same_content(
    name: str, molecule_run: Path, new_file: Path, tmp_path: Path
) -> None:
    content = written(molecule_run, new_file, tmp_path / name)
    if name.endswith(".gz"):
        content = gzip.decompress(content)
    if "parquet" in name:
        found = parquet.read_table(tmp_path / name).to_pylist()
    elif "jsonl" in name:
        found = [json.loads(line) for line in content.decode().splitlines()]
    else:
        found = cells(content.decode())
    assert found == [
        {field: record.get(field) for field in FIELDS}
        for record in all_records(molecule_run, new_file)
    ]
    assert list(found[0]) == FIELDS
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.csv", name]


def test_truth_values_are_truth_values_in_parquet() -> None:
    kind = records.RecordFormat.of(Path("o.parquet"), records.record_fields(False), (False, True))
    content = kind.encoded([{"id": "a", "prediction": True, "prediction_set": [False, True]}])
    (found,) = parquet.read_table(io.BytesIO(content)).to_pylist()
    assert (found["prediction"], found["prediction_set"]) == (True, [False, True])


def test_whole_numbers_are_numbers_in_every_format(
    train_tiny: Train, molecule_file: Path, tmp_path: Path
) -> None:
    path = molecule_file.with_name("numbers.csv")
    if not path.exists():
        table = molecule_file.read_text()
        path.write_text(table.replace(",ring", ",1").replace(",chain", ",0"))
    run = train_tiny(path, "gnn")
    (record, *_) = all_records(run, path)
    assert record["prediction"] in (0, 1)
    assert set(record["probabilities"]) == {"0", "1"}
    written(run, path, tmp_path / "o.parquet")
    assert parquet.read_table(tmp_path / "o.parquet").to_pylist()[0] == record


@pytest.mark.parametrize("rows", [1, 7, 30, 1000])
def test_chunks_do_not_change_the_output(
    rows: int, molecule_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the last digit: sums of floats depend on what else is in a batch."""
    new_file = tmp_path / "new.smi"  # none of the training, whose scores would be equal to theirs
    new_file.write_text("".join(f"{'C' * (n + 2)}{'NS?'[n % 3]}\n" for n in range(30)))
    one = cells(written(molecule_run, new_file, tmp_path / "one.csv").decode())
    monkeypatch.setattr(predict, "CHUNK", rows)
    other = cells(written(molecule_run, new_file, tmp_path / "other.csv").decode())
    for ours, theirs in zip(one, other, strict=True):
        for name in FIELDS:
            near = name in ("probability", "probabilities", "part_probability", "committee_std")
            assert theirs[name] == (pytest.approx(ours[name], abs=2e-6) if near else ours[name])


@pytest.mark.usefixtures("quick_workers")
def test_workers_do_not_change_the_output(
    molecule_run: Path, tmp_path: Path, molecule_table: Table
) -> None:
    (tmp_path / "new.csv").write_text(molecule_table(60))
    source, advanced = str(tmp_path / "new.csv"), list[int]()
    one = predict_file(molecule_run, source, tmp_path / "one.csv", PLAIN, device="cpu")
    two = predict_file(
        molecule_run,
        source,
        tmp_path / "two.csv",
        PLAIN,
        device="cpu",
        workers=2,
        advance=advanced.append,
    )
    assert one == two
    assert sum(advanced) == 60
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()


@pytest.mark.parametrize("model", ["gnn", "gsat", "sagpool", "cores-edge", "cores-both"])
def test_any_model_predicts(
    model: str, train_tiny: Train, molecule_file: Path, new_file: Path, tmp_path: Path
) -> None:
    run = train_tiny(molecule_file, model)
    found = [record for record in all_records(run, new_file) if not record["error"]]
    assert len(found) == 27
    for record in found:
        assert Chem.MolFromSmiles(record["kept_smiles"]) is not None
        if model == "gnn":
            assert (record["node_ratio"], record["edge_ratio"]) == (1, 1)
            assert "*" not in record["kept_smiles"]
        if model == "cores-edge":
            assert record["node_ratio"] == 1
    assert len(cells(written(run, new_file, tmp_path / "o.csv").decode())) == 30


def test_on_error_fail_stops_at_the_first_row(
    molecule_run: Path, new_file: Path, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=r'line 4 \(m2\): invalid SMILES .* set on_error="skip"'):
        written(molecule_run, new_file, tmp_path / "o.csv", PredictOptions(on_error="fail"))


def test_a_graph_without_a_prediction_is_an_error_of_its_record(
    train_tiny: Train, tmp_path: Path
) -> None:
    lines = [
        json.dumps({"nodes": [n % 7 / 7, 1.5, n % 3], "edges": [[0, 1]], "label": n % 2})
        for n in range(80)
    ]
    (tmp_path / "train.jsonl").write_text("\n".join(lines))
    run = train_tiny(tmp_path / "train.jsonl", "gnn")
    new = '{"id": "a", "nodes": [1, 2]}\n{"id": "b", "nodes": [2.9e38, -2.9e38]}\n'
    (tmp_path / "new.jsonl").write_text(new)
    good, bad = all_records(run, tmp_path / "new.jsonl")
    assert (good["error"], good["prediction"]) == (None, good["prediction"])
    assert bad["error"].startswith("line 2: the model gives no probabilities: its features are too")
    assert bad["prediction"] is None
    message = r"line 2 \(b\): the model gives no probabilities"
    with pytest.raises(UserError, match=message):
        list(predict_records(run, str(tmp_path / "new.jsonl"), PredictOptions(on_error="fail")))
    labelled = new.replace("}", ', "label": 0}')
    (tmp_path / "new.jsonl").write_text(labelled)
    with pytest.raises(UserError, match="no probabilities for graph b: its features"):
        evaluate_run(run, dataset=str(tmp_path / "new.jsonl"), device="cpu")


def test_a_foreign_folder_cannot_take_all_memory_or_predict_nan(
    molecule_run: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(molecule_run, run)
    state = load_state(run / "model.safetensors")
    weights = next(value for name, value in state["model"].items() if name.endswith("weight"))
    weights.fill_(torch.nan)
    save_state(run / "model.safetensors", state)
    with pytest.raises(UserError, match=r"model.safetensors is damaged: its weights are NaN"):
        Run.open(run, PLAIN, device="cpu")
    identity = read_json(run / "config.json")
    identity["config"]["network"]["hidden_dim"] = 65536
    write_json(run / "config.json", identity)
    with pytest.raises(UserError, match=r"weights of cores-node need \d+.\d GiB, more than 2G"):
        Run.open(run, PLAIN, device="cpu")


def test_names_with_escapes_are_shown_in_records(molecule_run: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("id,smiles\n\x9b31m,CCO\n")
    (record,) = all_records(molecule_run, tmp_path / "new.csv")
    assert record["id"] == "\x9b31m"
    assert records.json_line(record, ["id"]) == r'{"id":"\u009b31m"}'


def test_sets_are_those_of_the_error_rate_and_score(
    molecule_run: Path, tmp_path: Path, molecule_table: Table
) -> None:
    (tmp_path / "new.csv").write_text(molecule_table(32))
    kinds = [PredictOptions(alpha=alpha) for alpha in (0.05, 0.3, 0.6, 0.9)]
    kinds += [PredictOptions(alpha=0.4, score=score) for score in ("aps", "raps", "randomised-aps")]
    kinds += [PredictOptions(alpha=0.5, per_class=True)]
    sizes = {}
    for options in kinds:
        found = all_records(molecule_run, tmp_path / "new.csv", options)
        for record in found:
            above = [label for label, p in record["p_values"].items() if p > options.alpha]
            assert record["prediction_set"] == above
        sizes[options] = sum(len(record["prediction_set"]) for record in found)
    by_alpha = [sizes[options] for options in kinds[:4]]
    assert by_alpha == sorted(by_alpha, reverse=True)
    assert len(set(sizes.values())) > 3
    with pytest.raises(UserError, match="`alpha` must lie in"):
        Run.open(molecule_run, PredictOptions(alpha=1.5), device="cpu")


def test_memory_does_not_grow_with_the_file(
    molecule_run: Path, tmp_path: Path, molecule_table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chunk is read when the one before it is done."""
    (tmp_path / "new.csv").write_text(molecule_table(64))
    alive, most = [0], [0]
    real = sources.KINDS[".csv"].rows

    def counted(*arguments: Any) -> Iterator[Any]:
        for rows in real(*arguments):
            alive[0] += 1
            most[0] = max(most)
            most.append(alive[0])
            yield rows

    def done(rows: int) -> None:
        alive[0] -= rows > 0

    monkeypatch.setitem(sources.KINDS, ".csv", sources.Kind(counted, "molecules"))
    predict_file(
        molecule_run, str(tmp_path / "new.csv"), tmp_path / "o.csv", PLAIN, device="cpu",
        advance=done,
    )  # fmt: skip
    assert max(most) == 1
    lazily = predict_records(molecule_run, str(tmp_path / "new.csv"), PLAIN, device="cpu")
    next(lazily)
    assert alive[0] == 1


def test_a_model_that_was_trained_anew_is_loaded_anew(
    molecule_run: Path, new_file: Path, tmp_path: Path, train_tiny: Train, molecule_file: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(molecule_run, run)
    first = written(run, new_file, tmp_path / "first.csv")
    shutil.rmtree(run)
    shutil.copytree(train_tiny(molecule_file, "gnn"), run)
    os.utime(run / "model.safetensors")
    assert written(run, new_file, tmp_path / "second.csv") != first


def test_a_label_that_no_graph_of_the_training_had_is_told_by_its_line(
    train_tiny: Train, tmp_path: Path, tu_files: dict[str, str], write_files: Callable[..., Path]
) -> None:
    many = tmp_path / "toy_many"
    many.mkdir()
    repeat_tu(tu_files, many, times=8)
    run = train_tiny(many, "cores-node")
    known = all_records(run, many)
    assert [record["id"] for record in known] == [str(number) for number in range(96)]
    assert "kept_smiles" not in known[0]
    shifted = {**tu_files, "toy_node_labels.txt": tu_files["toy_node_labels.txt"][:-1] + "9"}
    strange = write_files("strange", shifted)
    *_, last = all_records(run, strange)
    assert last["error"].startswith("line 12: has the node label 9, which no graph")
    with pytest.raises(UserError, match=r"line 12 \(11\): has the node label 9"):
        all_records(run, strange, PredictOptions(on_error="fail"))
    assert len(all_records(run, strange, PredictOptions(on_unknown="ignore"))) == 12


def repeat_tu(files: dict[str, str], folder: Path, times: int) -> None:
    """The toy graphs several times, which a split needs."""
    for name, text in files.items():
        lines = text.splitlines()
        step = {"toy_A.txt": 36, "toy_graph_indicator.txt": 12}.get(name, 0)
        many = [
            ", ".join(str(int(number) + step * turn) for number in line.split(","))
            if step
            else line
            for turn in range(times)
            for line in lines
        ]
        (folder / name).write_text("\n".join(many) + "\n")


def test_a_file_without_rows_is_refused(molecule_run: Path, tmp_path: Path) -> None:
    (tmp_path / "none.csv").write_text("smiles\n")
    with pytest.raises(UserError, match=r"none.csv holds no graphs"):
        written(molecule_run, tmp_path / "none.csv", tmp_path / "o.csv")


def test_predictions_of_saved_graphs(
    train_tiny: Train, tmp_path: Path, molecule_file: Path
) -> None:
    """A model of PyG's graphs reads PyG's files and flat arrays, and no molecules."""
    from torch_geometric.data import Data

    ring = torch.tensor([[0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]])
    line = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    graphs = [
        Data(x=torch.rand(3, 2), edge_index=(ring, line)[n % 2], y=torch.tensor([n % 2]))
        for n in range(80)
    ]
    torch.save(graphs, tmp_path / "graphs.pt")
    run = train_tiny(tmp_path / "graphs.pt", "gnn")
    for graph in graphs:
        del graph.y
    torch.save(graphs[:5], tmp_path / "new.pt")
    found = all_records(run, tmp_path / "new.pt")
    assert [record["kept_nodes"] for record in found] == [[0, 1, 2]] * 5
    assert found[0]["kept_edges"] == [[0, 1], [0, 2], [1, 2]]
    assert found == all_records(run, tmp_path / "graphs.pt")[:5]
    with pytest.raises(UserError, match="the model was trained on graphs, these are molecules"):
        all_records(run, molecule_file)
