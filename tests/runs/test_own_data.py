"""A user's own file decides a run: its columns, its parts, and which graphs are set aside."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cores import Cores, UserError, load_dataset
from cores.config import RunConfig
from cores.data.dataset import checked
from cores.data.inputs.columns import ColumnNames
from cores.runs import predict
from cores.runs.inputs import PredictOptions
from cores.runs.predict import predict_file, predict_folder
from cores.runs.run import evaluate_run, train_run

TINY = {"network": {"hidden_dim": 8, "num_layers": 1}}
FIRST, SECOND = ColumnNames(split="first"), ColumnNames(split="second")


pytestmark = pytest.mark.usefixtures("short_judge")


@pytest.fixture
def table(tmp_path: Path, molecule_table: Callable[..., str]) -> Path:
    """160 molecules with two columns that divide them differently."""
    header, *rows = molecule_table(160).splitlines()
    lines = [f"{header},first,second"]
    for number, row in enumerate(rows):
        first = "test" if number < 40 else "train"
        lines.append(f"{row},{first},{'test' if number >= 120 else 'train'}")
    (tmp_path / "mols.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "mols.csv"


def config(table: Path, **training: Any) -> RunConfig:
    training = {"epochs": 2, **training}
    settings = {"dataset": str(table), "model": "gnn", "training": training, **TINY}
    return RunConfig.from_settings(settings)


def train(table: Path, columns: ColumnNames, *, resume: bool = False) -> dict[str, Any]:
    return train_run(
        config(table), table.parent / "run", columns=columns, device="cpu", resume=resume
    )


def test_another_split_column_is_another_run(table: Path) -> None:
    assert train(table, FIRST)["test_graphs"] == 40
    with pytest.raises(UserError, match="other columns of the data"):
        train(table, SECOND, resume=True)
    assert train(table, FIRST, resume=True)["test_graphs"] == 40


def test_a_changed_split_column_is_noticed(table: Path) -> None:
    train(table, FIRST)
    table.write_text(table.read_text().replace(",train,", ",test,", 20))
    with pytest.raises(UserError, match="the split column has changed"):
        evaluate_run(table.parent / "run", device="cpu")


def test_the_columns_of_the_training_are_found_again(tmp_path: Path, table: Path) -> None:
    names = ColumnNames(smiles="structure_text", label="outcome", id="what")
    text = table.read_text().replace("id,smiles,label", "what,structure_text,outcome")
    table.write_text(text)
    train(table, names)
    records = [
        record
        for chunk, _ in predict.predict_records(tmp_path / "run", str(table), PredictOptions())
        for record in chunk
    ]
    assert [record["id"] for record in records[:2]] == ["m0", "m1"]
    assert evaluate_run(tmp_path / "run", dataset=str(table), device="cpu")["test_graphs"] == 16


def test_only_what_was_never_trained_on_is_measured(table: Path) -> None:
    """Also where the same file is given without its split column."""
    trained = train(table, FIRST)
    for dataset in (None, str(table)):
        again = evaluate_run(table.parent / "run", dataset=dataset, device="cpu")
        assert again["test_graphs"] == 40
        assert again["accuracy"] == trained["accuracy"]


def test_a_saved_estimator_is_measured_on_the_graphs_it_set_aside(table: Path) -> None:
    dataset = load_dataset(table, columns=FIRST)
    model = Cores(None, epochs=2, progress=False, device="cpu", settings=TINY).fit(dataset)
    model.save(table.parent / "saved")
    again = evaluate_run(table.parent / "saved", dataset=str(table), device="cpu")
    assert again["test_graphs"] == 40
    assert again["accuracy"] == model.metrics_["accuracy"]
    with pytest.raises(UserError, match="does not say where its data are"):
        evaluate_run(table.parent / "saved", device="cpu")


def test_new_labels_and_validation_keep_what_a_dataset_knows(table: Path) -> None:
    dataset = load_dataset(table)
    model = Cores(None, epochs=1, progress=False, device="cpu", settings=TINY)
    other = [f"class {label}" for label in dataset.graphs.y.tolist()]
    assert set(model.fit(dataset, other).predict(["CCO"])) <= {"class 0", "class 1"}
    model.fit(dataset[:130], validation=dataset[130:])
    assert model.predict(["CCO"])[0] in ("ring", "chain")
    model.fit(list(dataset.smiles[:130]), other[:130], (list(dataset.smiles[130:]), other[130:]))
    assert model.predict(["CCO"])[0] in ("class 0", "class 1")
    with pytest.raises(UserError, match="leave `validation` out"):
        model.fit(load_dataset(table, columns=FIRST), validation=dataset)


def test_a_path_is_taken_for_validation_and_skipped_rows_are_told(table: Path) -> None:
    table.write_text(table.read_text() + "bad,C(,ring,train,train\n")
    model = Cores(None, epochs=1, progress=False, device="cpu", settings=TINY)
    with pytest.warns(UserWarning, match="1 rows could not be used: line 162"):
        model.fit(table, validation=str(table))


def test_numbers_of_an_npz_file_are_scaled(tmp_path: Path) -> None:
    nodes = np.arange(20.0)[:, None] * 1000
    pointers = np.arange(0, 21, 2)
    edges = np.tile(np.array([[0, 1], [1, 0]]), 10)
    np.savez(
        tmp_path / "own.npz",
        x=np.hstack([nodes, nodes % 2]),
        edge_index=edges,
        y=np.arange(10) % 2,
        node_ptr=pointers,
        edge_ptr=pointers,
    )
    assert load_dataset(tmp_path / "own.npz").continuous == (0,)


def test_the_graph_with_a_bad_number_is_named_as_it_is_counted(tmp_path: Path) -> None:
    graph = {"nodes": [[0.5], [1.5]], "edges": [[0, 1]]}
    lines = [json.dumps({**graph, "label": number % 2}) for number in range(8)]
    (tmp_path / "g.jsonl").write_text("\n".join(lines))
    dataset = load_dataset(tmp_path / "g.jsonl")
    x = dataset.graphs.x.clone()
    x[0] = torch.nan
    with pytest.raises(UserError, match="graph 0 has NaN"):
        checked(replace(dataset, graphs=replace(dataset.graphs, x=x)))


def test_predictions_of_a_folder_that_changed_are_not_kept(
    molecule_run: Path, molecule_table: Callable[..., str], tmp_path: Path
) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    (source / "a.csv").write_text(molecule_table(5))
    options = PredictOptions()
    assert predict_folder(molecule_run, source, out, options, device="cpu").records == 5
    (source / "b.csv").write_text(molecule_table(3))
    assert predict_folder(molecule_run, source, out, options, device="cpu").records == 8
    (source / "a.csv").write_text(molecule_table(6))
    with pytest.raises(UserError, match=r"a\.csv has changed since"):
        predict_folder(molecule_run, source, out, options, device="cpu")


def test_pieces_of_a_changed_folder_are_not_joined(
    tu_folder: Path,
    train_tiny: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, out = train_tiny(tu_folder), tmp_path / "out.jsonl"
    monkeypatch.setattr(predict, "CHUNK", 4)

    def full(*_: Any) -> None:
        raise UserError("disk full")

    monkeypatch.setattr(predict, "join_pieces", full)
    with pytest.raises(UserError, match="disk full"):
        predict_file(run, str(tu_folder), out, PredictOptions(), device="cpu")
    (tu_folder / "toy_graph_labels.txt").write_text("1\n" * 12)
    with pytest.raises(UserError, match="pieces of another prediction"):
        predict_file(run, str(tu_folder), out, PredictOptions(), device="cpu")
