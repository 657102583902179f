"""Tables of molecules, SD files, JSON lines and saved graphs: rows, lines, names and labels."""

import builtins
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet
from rdkit import Chem
from torch_geometric.data import Data, InMemoryDataset

from cores.data.datasets import load_dataset
from cores.data.inputs.columns import ColumnNames
from cores.data.inputs.molecules import needs_pyarrow
from cores.data.inputs.sources import count_rows, read_rows
from cores.data.labels import class_numbers, whole_numbers
from cores.data.molecules import needs_rdkit
from cores.data.raw import Parsed
from cores.errors import UserError


def read(path: Path, names: ColumnNames | None = None, size: int = 1000) -> Parsed:
    return Parsed.joined([rows.parse() for rows in read_rows(path, names or ColumnNames(), size)])


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., Path]:
    """Writes lines into a file, mols.csv unless said otherwise."""

    def write(*lines: str, name: str = "mols.csv") -> Path:
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        return tmp_path / name

    return write


Table = Callable[..., Path]


def test_usual_columns_are_found_in_any_case_and_order(table: Table) -> None:
    found = read(table("Label,extra,SMILES,Mol_ID", "1,x,CCO,a", "0,y,C,b"))
    assert found.ids == ["a", "b"]
    assert found.labels == ["1", "0"]
    assert found.smiles == ["CCO", "C"]


def test_named_columns_come_before_usual_ones(table: Table) -> None:
    names = ColumnNames(smiles="other", label="active", id="code", split="part")
    found = read(table("smiles,other,label,active,code,part", "C,CC,1,yes,x7,test"), names)
    assert (found.ids, found.labels, found.parts) == (["x7"], ["yes"], ["test"])
    assert found.graphs.node_ptr.tolist() == [0, 2]


@pytest.mark.parametrize("option", ["smiles", "label", "id", "split"])
def test_a_column_that_is_not_there_is_named_with_the_nearest(table: Table, option: str) -> None:
    path = table("smiles,label", "C,1")
    message = rf"has no column 'labl' \(`{option}_column`\); did you mean label"
    with pytest.raises(UserError, match=message):
        read(path, ColumnNames(**{option: "labl"}))


def test_a_table_without_smiles_says_which_columns_there_are(table: Table) -> None:
    with pytest.raises(UserError, match=r"no column is named smiles.*the first line has a, b"):
        read(table("a,b", "C,1"))


def test_rows_that_are_no_molecules_are_rejected_with_line_and_name(table: Table) -> None:
    found = read(
        table("id,smiles,label", "a,CCO,1", "", "b,C(,0", 'c,"C(', 'C",1', "d", "e,,1", "f,C,0")
    )
    assert found.ids == ["a", "f"]
    assert [(row.position, row.line, row.id) for row in found.rejected] == [
        *((1, 4, "b"), (2, 5, "c"), (3, 7, "d"), (4, 8, "e")),
    ]
    reasons = [row.reason for row in found.rejected]
    assert reasons[0] == "invalid SMILES 'C('"
    assert "has 1 cells, the first line 3" in reasons[2]
    assert reasons[3] == "empty SMILES"


@pytest.mark.parametrize("row", ['b,"C', 'b,"C"C', f'b,"{"C" * 200_000}'])
def test_a_quote_that_is_not_closed_does_not_swallow_the_rows_below(table: Table, row: str) -> None:
    found = read(table("id,smiles", "a,C", row, "c,CC", "d,O"))
    assert found.ids == ["a", "c", "d"]
    assert [(row.line, row.reason[:15]) for row in found.rejected] == [(3, "is badly quoted")]
    assert read(table("id,smiles", '"5""-x",C', '5"-y,C')).ids == ['5"-x', '5"-y']


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_chunks_do_not_change_what_is_read(table: Table, size: int) -> None:
    path = table("id,smiles", *(f"m{n},{'C' * (n + 1) if n != 4 else '?'}" for n in range(9)))
    whole, parts = read(path), read(path, size=size)
    assert parts.ids == whole.ids
    assert parts.positions == whole.positions
    assert parts.rejected == whole.rejected
    assert np.array_equal(parts.graphs.node_numbers, whole.graphs.node_numbers)
    assert np.array_equal(parts.graphs.edge_ptr, whole.graphs.edge_ptr)


def test_a_tab_separates_the_cells_of_a_tsv_file_alone(table: Table) -> None:
    assert read(table("id\tsmiles", "a\tCC", name="mols.tsv")).ids == ["a"]
    assert read(table("id,smiles", "a,CC", name="mols.tsv.csv")).ids == ["a"]


def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path: Path) -> None:
    (tmp_path / "mols.csv").write_bytes(b"\xef\xbb\xbfsmiles,label\r\nCCO,1\r\n")
    assert read(tmp_path / "mols.csv").labels == ["1"]


def test_a_smi_file_has_names_after_the_smiles(table: Table) -> None:
    found = read(table("CCO ethanol and more", "C", "", "O\twater", name="mols.smi"))
    assert found.ids == ["ethanol and more", "1", "water"]
    assert found.lines == [1, 2, 4]


def test_properties_of_an_sd_file_are_its_columns(tmp_path: Path) -> None:
    entries = ""
    for number, smiles in enumerate(("CCO", "C")):
        block = Chem.MolToMolBlock(Chem.MolFromSmiles(smiles))
        entries += f"title{block}> <Activity>  (1)\nyes{number}\n\n> <code>\nx{number}\n\n$$$$\n"
    (tmp_path / "mols.sdf").write_text(entries)
    assert read(tmp_path / "mols.sdf").ids == ["title", "title"]
    found = read(tmp_path / "mols.sdf", ColumnNames(id="code", label="Activity"))
    assert (found.ids, found.labels) == (["x0", "x1"], ["yes0", "yes1"])
    with pytest.raises(
        UserError, match=r"the first entry has no property 'cod'.*did you mean code"
    ):
        read(tmp_path / "mols.sdf", ColumnNames(id="cod"))


@pytest.mark.parametrize("suffix", [".csv", ".smi", ".parquet", ".sdf", ".jsonl"])
def test_graphs_of_a_folder_without_names_are_told_apart(tmp_path: Path, suffix: str) -> None:
    for part in ("a", "b"):
        path = tmp_path / f"{part}{suffix}"
        if suffix == ".parquet":
            parquet.write_table(pa.table({"smiles": ["C", "CC"]}), path)
        else:
            block = Chem.MolToMolBlock(Chem.MolFromSmiles("C"))
            rows = {
                ".csv": "smiles\nC\nCC",
                ".smi": "C\nCC",
                ".jsonl": '{"nodes": 1}\n{"nodes": 2}',
            }
            path.write_text(rows.get(suffix, 2 * f"{block}$$$$\n"))
    assert read(tmp_path).ids == ["0", "1", "2", "3"]


def one_graph(folder: Path, suffix: str, values: dict[str, str]) -> Path:
    """A file with one graph and some columns, keys or properties."""
    path = folder / f"one{suffix}"
    if suffix == ".jsonl":
        path.write_text(json.dumps({"nodes": 1, "edges": [], **values}) + "\n")
    elif suffix == ".sdf":
        properties = "".join(f"> <{name}>\n{value}\n\n" for name, value in values.items())
        block = Chem.MolToMolBlock(Chem.MolFromSmiles("O"))
        path.write_text(f"{block}{properties}$$$$\n")
    else:
        path.write_text(f"smiles,{','.join(values)}\nO,{','.join(values.values())}\n")
    return path


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".sdf"])
def test_columns_of_the_training_file_count_where_they_are_there_again(
    tmp_path: Path, suffix: str
) -> None:
    remembered = ColumnNames(label="toxic", id="code")
    path = one_graph(tmp_path, suffix, {"toxic": "yes", "label": "no", "id": "1", "code": "a7"})
    found = read(path, ColumnNames(remembered=remembered))
    assert (found.labels, found.ids) == (["yes"], ["a7"])
    asked = read(path, ColumnNames(label="label", id="id", remembered=remembered))
    assert (asked.labels, asked.ids) == (["no"], ["1"])
    other = one_graph(tmp_path, suffix, {"label": "no", "id": "1"})
    found = read(other, ColumnNames(remembered=remembered))
    assert (found.labels, found.ids) == (["no"], ["1"])


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".sdf"])
def test_those_of_several_labels_that_are_there_again_are_read(tmp_path: Path, suffix: str) -> None:
    names = ColumnNames(remembered=ColumnNames(label="liver,kidney"))
    path = one_graph(tmp_path, suffix, {"liver": "1", "label": "no"})
    (label,) = read(path, names).labels
    assert label["liver"] == "1"
    assert label.get("kidney") is None


def test_a_parquet_file_is_read_by_its_columns(tmp_path: Path) -> None:
    columns = {
        "smiles": ["CCO", None, "C"],
        "y": [1.0, 0.0, float("nan")],
        "name": ["a", "b", None],
    }
    parquet.write_table(pa.table(columns), tmp_path / "mols.parquet")
    found = read(tmp_path / "mols.parquet")
    assert found.ids == ["a", "2"]
    assert [(row.line, row.id, row.reason) for row in found.rejected] == [(2, "b", "empty SMILES")]
    assert count_rows(tmp_path / "mols.parquet") == 3


def test_a_folder_of_files_is_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    folder = tmp_path / "mols"
    folder.mkdir()
    (folder / "b.csv").write_text("smiles\nC\n")
    (folder / "a.csv.gz").write_bytes(gzip.compress(b"smiles\nCC\nCCC\n"))
    (folder / "._a.csv").write_text("not ours")
    (folder / "_SUCCESS").touch()
    found = read(folder)
    assert found.smiles == ["CC", "CCC", "C"]
    assert found.positions == [0, 1, 2]
    (folder / "c.smi").write_text("C")
    with pytest.raises(UserError, match=r"holds files of several kinds \(.csv, .smi\)"):
        read(folder)


def test_the_number_of_rows_is_known_before_they_are_read(table: Table) -> None:
    path = table("smiles", "C", "CC")
    assert count_rows(path) == 3  # with the header
    many = table("smiles", *["CCO"] * 600_000)
    assert count_rows(many) == pytest.approx(600_001, rel=0.01)
    assert count_rows(path.parent / "nothing.csv") is None


def without(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """Make an import fail as where the package is not installed."""
    real = builtins.__import__

    def imported(name: str, *arguments: Any, **named: Any) -> Any:
        if name.split(".")[0] == package:
            raise ImportError(name)
        return real(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", imported)


def test_what_needs_rdkit_names_the_extra(monkeypatch: pytest.MonkeyPatch, table: Table) -> None:
    path = table("smiles,label", "C,1")
    needs_rdkit.cache_clear()
    without(monkeypatch, "rdkit")
    with pytest.raises(UserError, match=r"pip install 'cores-gnn\[chem\]'"):
        read(path)


def test_what_needs_pyarrow_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "mols.parquet").touch()
    without(monkeypatch, "pyarrow")
    with pytest.raises(UserError, match=r"pip install 'cores-gnn\[parquet\]'"):
        needs_pyarrow()
    with pytest.raises(UserError, match=r"pip install 'cores-gnn\[parquet\]'"):
        read(tmp_path / "mols.parquet")


def lines(*records: Any) -> tuple[str, ...]:
    return tuple(record if isinstance(record, str) else json.dumps(record) for record in records)


def test_json_lines_hold_numbers_or_text_or_nothing(table: Table) -> None:
    path = table(
        *lines(
            {"id": 7, "nodes": [[1, 2.5], [0, 1]], "edges": [[0, 1, 0.5]], "label": "a"},
            {"nodes": [[3, 4]], "label": "b"},
            {"nodes": [[3, 4]] * 3, "edges": [[2, 0, 1], [0, 2, 1], [1, 1, 3]]},
        ),
        name="g.jsonl",
    )
    found = read(path)
    assert found.ids == ["7", "1", "2"]
    assert found.labels == ["a", "b", None]
    assert found.graphs.node_numbers[0].tolist() == [1.0, 2.5]
    assert found.graphs.edge_ptr.tolist() == [0, 2, 2, 5]
    assert found.graphs.edge_index.T.tolist() == [[0, 1], [1, 0], [0, 2], [2, 0], [1, 1]]
    assert found.graphs.edge_numbers.ravel().tolist() == [0.5, 0.5, 1, 1, 3]
    text = read(table(*lines({"nodes": ["C", "N"], "edges": [[0, 1, "s"]]}), name="t.ndjson"))
    assert text.graphs.node_values.tolist() == [["C"], ["N"]]
    assert read(table(*lines({"nodes": 4}), name="n.jsonl")).graphs.node_ptr.tolist() == [0, 4]


BAD_GRAPHS: dict[str, tuple[Any, str]] = {
    "no JSON": ("{nodes", "no valid JSON"),
    "a list": ([1], "not a JSON object"),
    "no nodes": ({"id": "x", "edges": []}, '"nodes" must be a list'),
    "empty": ({"id": "x", "nodes": []}, "has 0 nodes"),
    "huge": ({"id": "x", "nodes": 10**12}, "has 1000000000000 nodes, not 1 to"),
    "flag": ({"id": "x", "nodes": True}, '"nodes" must be a list'),
    "uneven": ({"id": "x", "nodes": [[1], [1, 2]]}, "every node must have as many features"),
    "mixed": ({"id": "x", "nodes": ["C", 1]}, "must be all numbers or all text"),
    "NaN": ('{"id": "x", "nodes": [NaN]}', "has NaN, infinite or too large node features"),
    "large": ({"id": "x", "nodes": [1e39]}, "has NaN, infinite or too large node features"),
    "edges": ({"id": "x", "nodes": [1], "edges": 3}, '"edges" must be a list'),
    "ends": ({"id": "x", "nodes": [1], "edges": [[0, 0.5]]}, "ends must be numbers of nodes"),
    "far": ({"id": "x", "nodes": [1], "edges": [[0, 1]]}, "names a node that is not there"),
    "one end": ({"id": "x", "nodes": [1], "edges": [[0]]}, r"an edge must be \[a, b\]"),
    "twice": (
        {"id": "x", "nodes": [1, 1], "edges": [[0, 1, 1], [1, 0, 2]]},
        "has two different features",
    ),
    "other features": ({"id": "x", "nodes": ["C"]}, "node features are 1 of text, not 1 numbers"),
    "other edges": (
        {"id": "x", "nodes": [1, 1], "edges": [[0, 1]]},
        "edge features are 0 numbers, not 1 numbers",
    ),
}


@pytest.mark.parametrize(("record", "reason"), BAD_GRAPHS.values(), ids=BAD_GRAPHS)
def test_a_line_that_is_no_graph_is_rejected_with_line_and_name(
    table: Table, record: Any, reason: str
) -> None:
    good = {"nodes": [1.0, 2.0], "edges": [[0, 1, 3]]}
    found = read(table(*lines(good, "", record, good), name="g.jsonl"))
    assert found.ids == ["0", "2"]
    (row,) = found.rejected
    assert (row.line, row.position) == (3, 1)
    assert row.id == ("x" if '"x"' in str(lines(record)) else "1")
    with pytest.raises(ValueError, match=reason):
        raise ValueError(row.reason)


def test_a_name_with_half_a_character_can_be_written(table: Table) -> None:
    found = read(table('{"id": "a\\ud800", "nodes": 1}', name="g.jsonl"))
    assert found.ids[0].encode() == b"a?"


def pyg(y: int | None = 0, nodes: int = 2) -> Data:
    graph = Data(x=torch.ones(nodes, 3), edge_index=torch.tensor([[0, 1], [1, 0]]))
    return graph if y is None else graph.update({"y": torch.tensor([y])})


@pytest.mark.parametrize("count", [1, 3])
def test_what_pyg_saved_is_read_whichever_way_it_did(tmp_path: Path, count: int) -> None:
    graphs = [pyg(number, 2 + number) for number in range(count)]
    data, slices = InMemoryDataset.collate(graphs)
    saved = (data.to_dict(), slices, Data)
    (tmp_path / "set" / "processed").mkdir(parents=True)
    torch.save(saved, tmp_path / "set" / "processed" / "data.pt")
    torch.save(graphs, tmp_path / "listed.pt")
    for path in (tmp_path / "set", tmp_path / "listed.pt"):
        found = read(path)
        assert found.labels == list(range(count))
        assert np.diff(found.graphs.node_ptr).tolist() == [2 + n for n in range(count)]


def test_saved_graphs_need_no_labels_to_be_predicted(tmp_path: Path) -> None:
    torch.save([pyg(None), pyg(None)], tmp_path / "new.pt")
    assert read(tmp_path / "new.pt").labels == [None, None]
    with pytest.raises(UserError, match=r"new.pt has no labels; set the y of every graph"):
        load_dataset(tmp_path / "new.pt")


@pytest.mark.parametrize("thing", [[1, 2], {"a": 1}, torch.ones(3), "text", ({}, {}), (1, 2), []])
def test_a_saved_thing_that_is_no_graphs_is_refused(tmp_path: Path, thing: Any) -> None:
    torch.save(thing, tmp_path / "thing.pt")
    with pytest.raises(UserError, match=r"holds no graphs|list of graphs is empty"):
        read(tmp_path / "thing.pt")


def test_a_saved_graph_without_its_store_is_refused(tmp_path: Path) -> None:
    """As damage to a file may leave it: PyG takes it for one of an older version, and raises."""
    graph = pyg(None)
    del graph.__dict__["_store"]
    torch.save([pyg(None), graph], tmp_path / "broken.pt")
    with pytest.raises(UserError, match=r"broken.pt holds no graphs of PyG's"):
        read(tmp_path / "broken.pt")


def test_flat_arrays_need_no_labels_to_be_predicted(tmp_path: Path) -> None:
    arrays: dict[str, Any] = {
        "x": np.ones((3, 2)),
        "edge_index": np.array([[0, 1], [1, 0]]),
        "node_ptr": np.array([0, 2, 3]),
        "edge_ptr": np.array([0, 2, 2]),
    }
    np.savez(tmp_path / "new.npz", **arrays)
    assert read(tmp_path / "new.npz").labels == [None, None]
    np.savez(tmp_path / "new.npz", **arrays, y=np.array([7, 7]))
    assert read(tmp_path / "new.npz").labels == [7, 7]
    for name, wrong in (
        ("node_ptr", np.array([0, 3, 3])),
        ("node_ptr", np.array([0, 5, 3])),
        ("edge_index", np.array([[0, 2], [1, 0]])),
        ("edge_index", np.array([[0.0, 1], [1, 0]])),
        ("x", np.ones(3)),
        ("edge_ptr", np.array([0, 1])),
    ):
        np.savez(tmp_path / "bad.npz", **(arrays | {name: wrong}))
        with pytest.raises(UserError, match=rf"bad\.npz: '{name}' "):
            read(tmp_path / "bad.npz")


def test_a_file_without_lines_names_what_it_lacks(table: Table, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").touch()
    with pytest.raises(UserError, match="is empty; its first line must name the columns"):
        read(tmp_path / "empty.csv")
    with pytest.raises(UserError, match="holds no usable graph"):
        load_dataset(table("smiles,label"))
    with pytest.raises(UserError, match=r"holds no usable graph \(line 2 \(0\): invalid SMILES"):
        load_dataset(table("smiles,label", "C(,1"))


@pytest.mark.parametrize(
    ("written", "labels"),
    [
        (["0", "1", "1.0"], (0, 1)),
        (["-1", "+1", "-1"], (-1, 1)),
        (["toxic", "mild", "toxic"], ("mild", "toxic")),
        (["True", "False", "True"], ("False", "True")),
        (["1", "no", "1"], ("1", "no")),
    ],
)
def test_labels_are_what_they_are_meant_to_be(
    table: Table, written: list[str], labels: tuple[Any, ...]
) -> None:
    dataset = load_dataset(table("smiles,label", *(f"C,{label}" for label in written)))
    assert dataset.labels == labels
    assert dataset.class_names == tuple(map(str, labels))


def test_flags_of_json_are_the_numbers_0_and_1(table: Table) -> None:
    path = table(*lines({"nodes": 1, "label": True}, {"nodes": 1, "label": False}), name="g.jsonl")
    assert load_dataset(path).labels == (0, 1)


@pytest.mark.parametrize("value", ["0.5", "1e300", "inf", "12345678901234567890"])
def test_measurements_are_no_labels(table: Table, value: str) -> None:
    with pytest.raises(UserError, match=f"as {re.escape(f'{float(value):g}')}; they must be"):
        load_dataset(table("smiles,label", "C,0", "C,1", f"C,{value}"))


@pytest.mark.parametrize("nothing", ["", "nan", "NaN", " "])
def test_a_row_without_a_label_is_left_out_and_counted(table: Table, nothing: str) -> None:
    path = table("id,smiles,label", "a,C,0", f"b,CC,{nothing}", "c,CCC,1")
    dataset = load_dataset(path)
    assert dataset.ids == ("a", "c")
    assert dataset.smiles == ("C", "CCC")
    assert dataset.unusable is not None
    assert str(dataset.unusable) == "line 3 (b): has no label"
    with pytest.raises(
        UserError, match=r'line 3 \(b\): has no label; mend it, or set on_error="sk'
    ):
        load_dataset(path, on_error="fail")


def test_a_list_is_no_label(table: Table) -> None:
    path = table(
        *lines(*({"nodes": 1, "label": label} for label in (0, 1, [1], {"a": 1}))), name="g.jsonl"
    )
    unusable = load_dataset(path).unusable
    assert unusable is not None
    assert unusable.count == 2
    assert "has the label [1]; it must be text or a whole number" in str(unusable)


def test_a_label_that_no_file_can_hold_is_told(tmp_path: Path) -> None:
    labels = ("a", "b", "\ud800")
    lines = (json.dumps({"nodes": 2, "label": label}) for label in labels)
    (tmp_path / "g.jsonl").write_text("\n".join(lines))
    dataset = load_dataset(tmp_path / "g.jsonl")
    assert dataset.labels == ("a", "b")
    assert "line 3 (2): has a label with half a character" in str(dataset.unusable)


def test_a_file_without_labels_is_refused_for_training(table: Table) -> None:
    with pytest.raises(UserError, match="has no labels; say which column holds them"):
        load_dataset(table("smiles,kind", "C,1", "C,0"))
    with pytest.raises(UserError, match="every graph has the label 1"):
        load_dataset(table("smiles,label", "C,1", "C,1"))


def test_labels_of_another_file_are_the_model_s_own_classes() -> None:
    numbers = class_numbers(["1", 1.0, "0.0", None, "nan", True], ("0", "1"), "new.csv")
    assert numbers.tolist() == [1, 1, 0, -1, -1, 1]
    with pytest.raises(UserError, match=r"new.csv has the label 2, the model knows 0, 1"):
        class_numbers(["2"], ("0", "1"), "new.csv")


def test_numbers_beyond_any_class_are_named() -> None:
    with pytest.raises(UserError, match="numbers such as nan"):
        whole_numbers([1.0, float("nan")])


def test_many_unusable_rows_are_counted_and_the_first_are_told(table: Table) -> None:
    dataset = load_dataset(table("smiles,label", "C,0", "C,1", *["?,1"] * 7))
    assert str(dataset.unusable).endswith("'?'; and 4 more")
