"""The columns of a model: made once, and the same for every file it reads later."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cores.data.datasets import load_dataset
from cores.data.encoding import CONSTANT, Encoding, encode
from cores.data.inputs.columns import ColumnNames
from cores.data.inputs.sources import read_rows
from cores.data.raw import Parsed, RawGraphs
from cores.errors import UserError
from cores.graphs.store import GraphStore
from cores.runs.inputs import EncodedGraphs, labelled_graphs
from cores.runs.trained import DataSchema

Write = Callable[[str, dict[str, str]], Path]


def schema_of(path: Path) -> DataSchema:
    return DataSchema.of(load_dataset(path))


def read(path: Path, schema: DataSchema) -> Parsed:
    rows = read_rows(path, ColumnNames())
    return Parsed.joined([chunk.parse(schema.encoding.layout) for chunk in rows])


def encoded(parsed: Parsed, schema: DataSchema, on_unknown: Any = "error") -> GraphStore:
    found = EncodedGraphs.of(parsed, schema, on_unknown)
    assert not found.rejected
    return found.graphs


def rejected(path: Path, schema: DataSchema) -> tuple[list[int], list[str]]:
    """Which graphs of a file are read, and why others are not."""
    found = EncodedGraphs.of(read(path, schema), schema)
    assert len(found.graphs) == len(found.index)
    return found.index, [f"{row.id} {row.reason}" for row in found.rejected]


def with_columns(path: Path, schema: DataSchema, on_unknown: Any = "error") -> torch.Tensor:
    return encoded(read(path, schema), schema, on_unknown).x


def part_of(tu_files: dict[str, str], graphs: list[int]) -> dict[str, str]:
    """Some of the toy graphs, in a new order, which have three nodes each."""
    nodes = {3 * graph + node: None for graph in graphs for node in range(3)}
    place = {node: position for position, node in enumerate(nodes)}

    def lines(name: str) -> list[str]:
        return tu_files[f"toy_{name}.txt"].splitlines()

    ends = [tuple(int(end) - 1 for end in line.split(",")) for line in lines("A")]
    chosen = [number for number, (a, _) in enumerate(ends) if a in place]
    found = {
        "A": [f"{place[ends[n][0]] + 1}, {place[ends[n][1]] + 1}" for n in chosen],
        "edge_labels": [lines("edge_labels")[n] for n in chosen],
        "graph_indicator": [str(n // 3 + 1) for n in range(len(place))],
        "graph_labels": [lines("graph_labels")[graph] for graph in graphs],
        "node_labels": [lines("node_labels")[node] for node in nodes],
        "node_attributes": [lines("node_attributes")[node] for node in nodes],
    }
    return {f"toy_{name}.txt": "\n".join(rows) for name, rows in found.items()}


@pytest.mark.parametrize("graphs", [[0], [1], [2, 0], [11, 3, 5], list(range(12))], ids=str)
def test_a_part_of_a_tu_file_has_the_columns_of_the_whole(
    graphs: list[int], tu_folder: Path, tu_files: dict[str, str], write_files: Write
) -> None:
    schema = schema_of(tu_folder)
    whole = load_dataset(tu_folder)[graphs].graphs
    part = write_files("part", part_of(tu_files, graphs))
    found = encoded(read(part, schema), schema, "error")
    assert torch.equal(found.x, whole.x)
    assert torch.equal(found.edge_index, whole.edge_index)
    assert found.edge_attr is not None
    assert torch.equal(found.edge_attr, whole.edge_attr)


def test_a_tu_file_needs_no_labels_to_be_predicted(
    tu_folder: Path, tu_files: dict[str, str], write_files: Write
) -> None:
    schema = schema_of(tu_folder)
    files = {name: text for name, text in tu_files.items() if "graph_labels" not in name}
    assert len(with_columns(write_files("new", files), schema)) == 36


def test_graphs_without_edges_have_all_columns_of_edges(
    tu_folder: Path, tu_files: dict[str, str], write_files: Write
) -> None:
    schema = schema_of(tu_folder)
    files = {name: text for name, text in tu_files.items() if "edge" not in name}
    parsed = read(write_files("new", files | {"toy_A.txt": ""}), schema)
    found = encoded(parsed, schema, "error")
    assert found.edge_attr is not None
    assert found.edge_attr.shape == (0, len(schema.edge_feature_names))


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("node_labels", "4", "3", "1 has the node label 3, which no graph of the training"),
        ("edge_labels", "2", "9", "1 has the edge label 9, which no graph of the training"),
    ],
)
def test_a_value_that_was_never_seen_is_refused_or_left_out(
    file: str,
    old: str,
    new: str,
    message: str,
    tu_folder: Path,
    tu_files: dict[str, str],
    write_files: Write,
) -> None:
    schema = schema_of(tu_folder)
    files = part_of(tu_files, [0, 1])
    head, _, tail = files[f"toy_{file}.txt"].rpartition(old)
    path = write_files("new", files | {f"toy_{file}.txt": head + new + tail})
    index, (reason,) = rejected(path, schema)
    assert index == [0], "the other graph of the file is read"
    assert reason.startswith(message)
    found = encoded(read(path, schema), schema, "ignore")
    rows = found.x if file == "node_labels" else found.edge_attr
    assert rows is not None
    one_hot = rows[:, 2:] if file == "node_labels" else rows
    assert (one_hot.sum(dim=1) == 0).sum() == 1


def test_other_features_than_those_of_the_training_are_told(
    tu_folder: Path, tu_files: dict[str, str], write_files: Write
) -> None:
    schema = schema_of(tu_folder)
    files = {name: text for name, text in tu_files.items() if "attributes" not in name}
    message = (
        "the graphs have 1 kind of label per node, "
        "those of the training have 2 numbers and 1 kind of label"
    )
    with pytest.raises(UserError, match=message):
        with_columns(write_files("new", files), schema)
    files = {name: text for name, text in tu_files.items() if "edge_labels" not in name}
    with pytest.raises(
        UserError, match="have 0 numbers per edge, those of the training have 1 kin"
    ):
        with_columns(write_files("other", files), schema)


def test_text_categories_keep_their_columns_in_any_file(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text(
        '{"nodes": ["C", "N", "C"], "edges": [[0, 1, "single"], [1, 2, "double"]], "label": 0}\n'
        '{"nodes": ["O"], "label": 1}\n'
    )
    schema = schema_of(tmp_path / "train.jsonl")
    assert schema.feature_names == tuple(f"node label 0 = {name}" for name in "CNO")
    (tmp_path / "new.jsonl").write_text(
        '{"nodes": ["O", "C"], "edges": [[0, 1, "double"]]}\n{"nodes": ["N"]}\n'
    )
    graphs = encoded(read(tmp_path / "new.jsonl", schema), schema, "error")
    assert graphs.x.tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    assert graphs.edge_attr is not None
    assert graphs.edge_attr.tolist() == [[1, 0], [1, 0]]
    (tmp_path / "strange.jsonl").write_text('{"id": "g7", "nodes": ["Xe"]}\n')
    _, (reason,) = rejected(tmp_path / "strange.jsonl", schema)
    assert reason.startswith("g7 has the node label 'Xe'")
    assert 'on_unknown="ignore"' in reason
    assert with_columns(tmp_path / "strange.jsonl", schema, "ignore").tolist() == [[0, 0, 0]]


def test_values_that_look_like_names_of_columns_stay_apart(tmp_path: Path) -> None:
    odd = ["attribute 0", "constant", "node label 1 = a", "a\\nb", ""]
    nodes = ", ".join(f'"{value}"' for value in odd)
    (tmp_path / "odd.jsonl").write_text(f'{{"nodes": [{nodes}], "label": 0}}\n' * 2 + "\n")
    (rows,) = read_rows(tmp_path / "odd.jsonl", ColumnNames())
    raw = rows.parse().graphs
    encoding = Encoding.of(raw)
    graphs, unknown = encode(raw, encoding, encoding.feature_names, ())
    assert not unknown
    assert (graphs.x.sum(dim=1) == 1).all()
    assert graphs.x[:5].sum(dim=0).tolist() == [1] * 5


def test_graphs_without_features_have_a_constant_one(tmp_path: Path) -> None:
    (tmp_path / "plain.jsonl").write_text('{"nodes": 2, "label": 0}\n{"nodes": 1, "label": 1}\n')
    schema = schema_of(tmp_path / "plain.jsonl")
    assert schema.feature_names == (CONSTANT,)
    assert with_columns(tmp_path / "plain.jsonl", schema).tolist() == [[1], [1], [1]]


def test_a_graph_with_what_is_no_number_is_left_out_by_its_name(
    tu_folder: Path, tu_files: dict[str, str], write_files: Write
) -> None:
    schema = schema_of(tu_folder)
    lines = tu_files["toy_node_attributes.txt"].splitlines()
    text = "\n".join([*lines[:4], "nan, 1", *lines[5:]])
    path = write_files("new", tu_files | {"toy_node_attributes.txt": text})
    index, reasons = rejected(path, schema)
    assert index == [0, *range(2, 12)]
    assert reasons == ["1 has NaN, infinite or too large node features"]
    assert labelled_graphs(str(path), schema, ColumnNames()).ids == tuple(map(str, index))
    with pytest.raises(UserError, match=r"line 2 \(1\): has NaN"):
        labelled_graphs(str(path), schema, ColumnNames(), on_error="fail")


def test_a_value_far_away_does_not_take_all_memory(
    tu_files: dict[str, str], write_files: Write
) -> None:
    labels = tu_files["toy_node_labels.txt"] + "0000000000"
    path = write_files("far", tu_files | {"toy_node_labels.txt": labels})
    with pytest.raises(UserError, match=r"node labels run from 2 to .*; renumber them"):
        load_dataset(path)
    indicator = tu_files["toy_graph_indicator.txt"] + "0000000000"
    files = {name: text for name, text in tu_files.items() if "graph_labels" not in name}
    path = write_files("many", files | {"toy_graph_indicator.txt": indicator})
    with pytest.raises(UserError, match="graph 13 has no nodes"):
        list(read_rows(path, ColumnNames()))


def test_molecules_have_the_same_columns_in_every_file(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("smiles,label\nCCO,0\nCN,1\n")
    schema = schema_of(tmp_path / "train.csv")
    (tmp_path / "new.csv").write_text("smiles\n[Pt]\nC[Se]C\n*\n")
    assert with_columns(tmp_path / "new.csv", schema).shape == (5, len(schema.feature_names))


def test_other_kinds_of_input_than_those_of_the_training_are_refused(
    tmp_path: Path, tu_folder: Path
) -> None:
    (tmp_path / "mols.csv").write_text("smiles,label\nCCO,0\nCN,1\n")
    (tmp_path / "graphs.jsonl").write_text('{"nodes": 2, "label": 0}\n{"nodes": 1, "label": 1}\n')
    for trained, other, kinds in (
        (tmp_path / "mols.csv", tmp_path / "graphs.jsonl", ("molecules", "graphs")),
        (tmp_path / "mols.csv", tu_folder, ("molecules", "graphs")),
        (tu_folder, tmp_path / "mols.csv", ("graphs", "molecules")),
    ):
        with pytest.raises(UserError, match=f"trained on {kinds[0]}, these are {kinds[1]}"):
            labelled_graphs(str(other), schema_of(trained), ColumnNames())


def test_columns_of_another_version_are_refused(tmp_path: Path) -> None:
    (tmp_path / "mols.csv").write_text("smiles,label\nCCO,0\nCN,1\n")
    known = asdict(schema_of(tmp_path / "mols.csv"))
    known["encoding"]["version"] = 99
    schema = DataSchema.of_settings(known)
    with pytest.raises(UserError, match="reads version 99 of the columns of molecules"):
        labelled_graphs(str(tmp_path / "mols.csv"), schema, ColumnNames())


def test_labelled_graphs_have_the_model_s_own_numbers_of_the_classes(
    tu_folder: Path, tu_files: dict[str, str], write_files: Write
) -> None:
    schema = schema_of(tu_folder)
    path = write_files("fives", part_of(tu_files, [3, 1]))
    dataset = labelled_graphs(str(path), schema, ColumnNames())
    assert dataset.graphs.y.tolist() == [1, 1]
    assert dataset.class_names == ("1", "5")


def test_parts_of_graphs_are_joined_whatever_edges_they_have() -> None:
    def graph(edges: int) -> RawGraphs:
        return RawGraphs(
            node_ptr=np.array([0, 2]),
            edge_ptr=np.array([0, edges]),
            edge_index=np.zeros((2, edges), dtype=np.int64),
            node_numbers=np.ones((2, 1), dtype=np.float32),
            edge_numbers=np.ones((edges, 3 if edges else 0), dtype=np.float32),
            node_values=np.empty((2, 0)),
            edge_values=np.empty((edges, 0)),
        )

    joined = RawGraphs.joined([graph(0), graph(2), graph(0)])
    assert joined.edge_ptr.tolist() == [0, 0, 2, 2]
    assert joined.edge_numbers.shape == (2, 3)
    assert joined.layout.edges is not None
    assert graph(0).layout.edges is None
