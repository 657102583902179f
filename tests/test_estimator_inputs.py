"""The estimator on SMILES and on paths of files."""

from collections.abc import Callable
from pathlib import Path

import networkx
import pytest
import torch
from torch_geometric.data import Data

from cores import Cores, UserError, load_dataset
from cores.data.inputs.columns import ColumnNames

TINY = {"network": {"hidden_dim": 8, "num_layers": 1}}


@pytest.fixture(scope="module")
def fitted(molecule_file: Path) -> Cores:
    """A model fitted on a path."""
    estimator = Cores(epochs=2, device="cpu", progress=False, judge=False, settings=TINY)
    return estimator.fit(molecule_file)


def smiles_of(path: Path) -> tuple[list[str], list[str]]:
    rows = [line.split(",") for line in path.read_text().splitlines()[1:]]
    return [row[1] for row in rows], [row[2] for row in rows]


def test_a_path_and_its_smiles_are_the_same(fitted: Cores, molecule_file: Path) -> None:
    smiles, labels = smiles_of(molecule_file)
    by_path, by_list = fitted.predict_proba(molecule_file), fitted.predict_proba(smiles)
    assert by_path == pytest.approx(by_list, abs=1e-6)
    assert fitted.score(molecule_file) == fitted.score(smiles, labels)
    listed = Cores(epochs=2, device="cpu", progress=False, judge=False, settings=TINY)
    listed.fit(smiles, labels)
    assert listed.predict_proba(smiles) == pytest.approx(by_list, abs=1e-6)
    assert listed.classes_.tolist() == ["chain", "ring"]


def test_what_cannot_be_predicted_is_named(
    fitted: Cores, tmp_path: Path, molecule_table: Callable[..., str]
) -> None:
    (tmp_path / "empty.csv").write_text("smiles\n")
    with pytest.raises(UserError, match=r"empty.csv holds no graphs"):
        fitted.predict(tmp_path / "empty.csv")
    (tmp_path / "bad.csv").write_text("smiles\nCC\nC(\n")
    with pytest.raises(UserError, match=r"bad.csv: line 3 \(1\): invalid SMILES"):
        fitted.predict(str(tmp_path / "bad.csv"))
    (tmp_path / "graphs.jsonl").write_text('{"nodes": 2}\n')
    with pytest.raises(UserError, match="trained on molecules, these are graphs"):
        fitted.predict(tmp_path / "graphs.jsonl")
    with pytest.raises(UserError, match="molecule 0: invalid SMILES"):
        fitted.predict(["C("])
    with pytest.raises(UserError, match="does not exist"):
        fitted.predict(tmp_path / "nothing.csv")


def test_a_saved_model_reads_paths_again(
    fitted: Cores, tmp_path: Path, molecule_file: Path
) -> None:
    fitted.save(tmp_path / "model")
    loaded = Cores.load(tmp_path / "model", device="cpu")
    assert loaded.predict(molecule_file).tolist() == fitted.predict(molecule_file).tolist()


def test_columns_are_named_once_and_rows_that_are_no_graphs_are_told(
    tmp_path: Path, molecule_table: Callable[..., str]
) -> None:
    _, *rows = molecule_table(60).splitlines()
    path = tmp_path / "assay.csv"
    path.write_text("\n".join(["ref,structure text,active", *rows, "bad,C(,ring"]) + "\n")
    with pytest.raises(UserError, match="name the one that holds the molecules with `smiles_col"):
        load_dataset(path)
    named = {"smiles_column": "structure text", "label_column": "active", "id_column": "ref"}
    with pytest.raises(UserError, match="in `columns` or one by one, not in both"):
        load_dataset(path, columns=ColumnNames(id="ref"), **named)
    dataset = load_dataset(path, **named)
    assert dataset.ids[:2] == ("m0", "m1")
    model = Cores(None, epochs=1, device="cpu", progress=False, settings=TINY).fit(dataset)
    model.save(tmp_path / "model")
    for each in (model, Cores.load(tmp_path / "model", device="cpu")):
        with pytest.warns(UserWarning, match=r"1 rows could not be used: line 62 \(bad\): invalid"):
            assert each.score(path) == model.score(dataset)
        with pytest.raises(UserError, match=r"line 62 \(bad\): .*; mend the row, or leave it out"):
            each.predict(path)


def test_what_is_given_is_told_from_what_was_fitted() -> None:
    model = Cores(None, epochs=1, progress=False, device="cpu").fit(load_dataset("motifs")[:60])
    with pytest.raises(UserError, match="the model was fitted on graphs, these are molecules"):
        model.predict(["CCO"])
    with pytest.raises(UserError, match="in Python, graphs and SMILES are given as a list"):
        model.predict("CCO")


def test_edges_of_one_direction_are_told() -> None:
    edge = torch.tensor([[0], [1]])
    graphs = [Data(torch.eye(2) * (1 + i % 2), edge, y=i % 2) for i in range(40)]
    with pytest.warns(UserWarning, match="every edge has one direction"):
        Cores(None, epochs=1, progress=False, device="cpu").fit(graphs)


def test_labels_of_tu_files_are_numbers_and_unknown_ones_are_not_scored(tu_folder: Path) -> None:
    dataset = load_dataset(tu_folder)
    assert dataset.labels == (1, 5)
    dataset = dataset[list(range(12)) * 3]
    model = Cores(None, epochs=1, progress=False, device="cpu").fit(dataset)
    assert model.classes_.tolist() == [1, 5]
    with pytest.raises(UserError, match=r"has the label 0, the model knows 1, 5"):
        model.score(list(dataset))  # these know the numbers of their classes alone


def test_a_single_networkx_graph_is_no_list() -> None:
    with pytest.raises(UserError, match="give a list of graphs, got a Graph"):
        Cores(None).fit(networkx.path_graph(3))


def test_a_missing_file_is_not_taken_for_a_name() -> None:
    with pytest.raises(UserError, match=r"there is no file nope\.jsonl"):
        load_dataset("nope.jsonl")
