"""Files in TU format: what is read from them, and how a broken one is named."""

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from cores import load_dataset
from cores.errors import UserError


def test_a_folder_in_tu_format_is_read(tu_folder: Path) -> None:
    dataset = load_dataset(str(tu_folder))
    assert dataset.class_names == ("1", "5")
    assert dataset.graphs.y.tolist() == [0, 1] * 6
    triangle = dataset[3]
    assert triangle.x.tolist() == [
        [3.5, -1, 1, 0, 0],
        [3.5, -1, 0, 0, 1],
        [3.5, -1, 1, 0, 0],
    ], "attributes, then labels 2 to 4 as columns"
    assert triangle.edge_index.tolist() == [[0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1]]
    assert triangle.edge_attr.tolist() == [[0, 1]] * 6
    assert dataset.continuous == (0, 1)


def test_a_zip_reads_like_its_folder(tu_folder: Path, tmp_path: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "zipped"), "zip", tmp_path, "toy")
    ours, theirs = load_dataset(archive).graphs, load_dataset(str(tu_folder)).graphs
    assert torch.equal(ours.x, theirs.x)
    assert torch.equal(ours.edge_index, theirs.edge_index)


def test_a_zip_with_a_name_from_the_root_is_refused(tu_folder: Path, tmp_path: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "zipped"), "zip", tmp_path, "toy")
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr("//x", "")
    with pytest.raises(UserError, match="holds names that begin with /"):
        load_dataset(archive)


def test_nodes_may_come_in_any_order(
    tu_files: dict[str, str], write_files: Callable[..., Path]
) -> None:
    straight = load_dataset(str(write_files("a", tu_files)))
    # Node 1 moves to the end: renumber 1..36 -> 36, 1..35.
    moved = dict(tu_files)
    for name in ("graph_indicator", "node_labels", "node_attributes"):
        lines = tu_files[f"toy_{name}.txt"].split("\n")
        moved[f"toy_{name}.txt"] = "\n".join(lines[1:] + lines[:1])
    moved["toy_A.txt"] = "\n".join(
        ", ".join(str((int(end) - 2) % 36 + 1) for end in line.split(","))
        for line in tu_files["toy_A.txt"].split("\n")
    )
    shuffled = load_dataset(str(write_files("b", moved)))
    assert shuffled.graphs.num_nodes.tolist() == straight.graphs.num_nodes.tolist()
    assert shuffled[0].edge_index.tolist() == [[0, 0, 1, 2], [1, 2, 0, 0]], "the path 2 - 1 - 3"


def test_without_features_every_node_gets_a_constant(
    tu_files: dict[str, str], write_files: Callable[..., Path]
) -> None:
    bare = {name: text for name, text in tu_files.items() if "node_" not in name}
    dataset = load_dataset(str(write_files("bare", bare)))
    assert dataset.graphs.x.tolist() == [[1.0]] * 36


def changed(files: dict[str, str], name: str, text: str | None) -> dict[str, str]:
    rest = {key: value for key, value in files.items() if key != name}
    return rest if text is None else rest | {name: text}


@pytest.mark.parametrize(
    ("file", "edit", "message"),
    [
        ("toy_A.txt", None, "holds no NAME_A.txt"),
        ("toy_graph_indicator.txt", None, "toy_graph_indicator.txt is missing"),
        ("toy_graph_labels.txt", None, "has no labels; NAME_graph_labels.txt is missing"),
        ("toy_graph_labels.txt", "1", "names graphs 1 to 12, but toy_graph_labels.txt has 1 lines"),
        ("toy_graph_labels.txt", "1\n5\n" * 6 + "1", "graph 13 has no nodes"),
        ("toy_node_labels.txt", "2", "has 1 lines, but toy_graph_indicator.txt has 36"),
        ("toy_node_attributes.txt", "2.0", "has 1 lines, but toy_graph_indicator.txt has 36"),
        ("toy_edge_labels.txt", "1", "toy_edge_labels.txt has 1 lines, but toy_A.txt has 60"),
        ("toy_A.txt", "1, 2, 3", "toy_A.txt must have 2 numbers a line, got 3"),
        ("toy_graph_labels.txt", "1, 5\n" * 11 + "1, 5", "must have 1 numbers a line, got 2"),
        (
            "toy_node_attributes.txt",
            "1e300\n" * 35 + "1.0",
            "holds no usable graph .*has NaN, infinite or too large node",
        ),
        ("toy_A.txt", "1, 99", "names nodes 1 to 99, but there are 36"),
        ("toy_A.txt", "1, 36", "line 1 of toy_A.txt joins two graphs"),
        ("toy_A.txt", "1, x", "toy_A.txt: line 1, column 2: 'x' is no whole number"),
        ("toy_A.txt", "1, 2\n\n1, 2, 3", "line 3 has 3 numbers, those before it have 2$"),
        ("toy_node_attributes.txt", "0.5\n1,", "line 2, column 2: '' is no number$"),
        ("toy_graph_labels.txt", f"1\n{10**30}", r"line 2, column 1: '1000000000.* is no whole"),
        ("toy_graph_indicator.txt", "", "toy_graph_indicator.txt is empty"),
        ("toy_node_labels.txt", "0\n" * 35 + "1000000000", "node labels run from 0 to 1000000000"),
        (
            "toy_node_attributes.txt",
            "nan\n" * 35 + "1.0",
            "holds no usable graph .*has NaN, infinite or too large node",
        ),
        ("toy_graph_labels.txt", "1\n" * 11 + "1", "every graph has the label 1"),
    ],
)
def test_broken_files_are_named(
    tu_files: dict[str, str],
    write_files: Callable[..., Path],
    file: str,
    edit: str | None,
    message: str,
) -> None:
    folder = write_files("toy", changed(tu_files, file, edit))
    if edit is not None and len(edit.split("\n")) < 10 and file == "toy_A.txt":
        (folder / "toy_edge_labels.txt").unlink()
    with pytest.raises(UserError, match=message):
        load_dataset(str(folder))


def test_a_byte_order_mark_is_no_mistake(tu_folder: Path) -> None:
    labels = tu_folder / "toy_graph_labels.txt"
    labels.write_text("\ufeff" + labels.read_text(), encoding="utf-8")
    assert load_dataset(str(tu_folder)).class_names == ("1", "5")


def test_a_link_to_nothing_is_named(tu_folder: Path) -> None:
    (tu_folder / "toy_node_labels.txt").unlink()
    (tu_folder / "toy_node_labels.txt").symlink_to(tu_folder / "gone")
    with pytest.raises(UserError, match=r"toy_node_labels.txt is a link to a file that is not"):
        load_dataset(str(tu_folder))


def test_a_corrupt_zip_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.zip").write_bytes(b"PK\x03\x04 not a zip at all")
    with pytest.raises(UserError, match=r"bad\.zip is not a readable zip file"):
        load_dataset(str(tmp_path / "bad.zip"))


def test_a_zip_with_a_damaged_member_is_named(tu_folder: Path, tmp_path: Path) -> None:
    archive = Path(shutil.make_archive(str(tmp_path / "zipped"), "zip", tmp_path, "toy"))
    content = bytearray(archive.read_bytes())
    content[60:90] = bytes(30)
    archive.write_bytes(content)
    with pytest.raises(UserError, match=r"zipped\.zip"):
        load_dataset(str(archive))
