"""Every reader refuses what is too large before it takes the memory, and what is no file."""

import gzip
import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet
from torch_geometric.data import Data

from cores.data.datasets import load_dataset
from cores.data.inputs.columns import ColumnNames
from cores.data.inputs.sources import read_rows
from cores.data.raw import Parsed
from cores.errors import UserError

LONG = "C" * 5000
TU = {
    "toy_A.txt": "1, 2\n2, 1\n",
    "toy_graph_indicator.txt": "1\n1\n2\n",
    "toy_graph_labels.txt": "0\n1\n",
}


def rows(path: Path) -> list[Parsed]:
    return [chunk.parse() for chunk in read_rows(path, ColumnNames())]


def tu_zip(path: Path, **files: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (TU | {f"toy_{name}.txt": text for name, text in files.items()}).items():
            archive.writestr(name, text)
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", f"smiles\nC\n{LONG}\n"),
        ("a.csv.gz", f"smiles\nC\n{LONG}\n"),
        ("a.smi", f"C\nCC\n{LONG}\n"),
        ("a.jsonl", f'{{"nodes": 1}}\n\n{{"nodes": 2, "note": "{LONG}"}}\n'),
        ("a.sdf", f"title\n\n{LONG}\n"),
    ],
)
def test_a_line_that_is_too_long_is_refused(
    name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORES_MAX_LINE", "1000")
    content = text.encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    with pytest.raises(UserError, match=rf"{name}: line 3 has 1001 characters or more, more than"):
        rows(tmp_path / name)


def test_an_entry_of_many_lines_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORES_MAX_LINE", "1000")
    (tmp_path / "a.sdf").write_text("line\n" * 1000)
    with pytest.raises(UserError, match=r"a.sdf: the entry at line 1 has 1005 characters, more"):
        rows(tmp_path / "a.sdf")


def test_a_zip_that_unpacks_to_one_long_line_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORES_MAX_LINE", "1000")
    path = tu_zip(tmp_path / "bomb.zip", graph_labels="0" * 10**6)
    assert path.stat().st_size < 10_000
    with pytest.raises(UserError, match=r"bomb.zip: toy_graph_labels.txt: line 1 has 262144 char"):
        load_dataset(path)


def test_what_a_zip_unpacks_to_is_counted_over_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORES_MAX_MEMORY", "1K")
    path = tu_zip(tmp_path / "bomb.zip", A="1, 2\n2, 1\n" * 80, node_labels="1\n" * 200)
    with pytest.raises(UserError, match=r"bomb.zip unpacks to 1.\d KiB or more, more than 1K"):
        load_dataset(path)


def flat(**changes: np.ndarray) -> dict[str, np.ndarray]:
    return {
        "x": np.ones((3, 2), dtype=np.float32),
        "edge_index": np.array([[0, 1], [1, 0]]),
        "y": np.array([0, 1]),
        "node_ptr": np.array([0, 2, 3]),
        "edge_ptr": np.array([0, 2, 2]),
    } | changes


def test_an_array_is_refused_by_the_size_that_its_header_claims(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": (10**9, 10**3)}
    )
    np.savez(tmp_path / "claims.npz", **{k: v for k, v in flat().items() if k != "x"})
    with zipfile.ZipFile(tmp_path / "claims.npz", "a") as archive:
        archive.writestr("x.npy", header.getvalue() + bytes(8))
    with pytest.raises(UserError, match=r"claims.npz unpacks to 3.6 TiB or more, more than 2G"):
        load_dataset(tmp_path / "claims.npz")


def test_small_numbers_count_as_what_they_become(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORES_MAX_MEMORY", "10K")
    np.savez(tmp_path / "a.npz", **flat(x=np.ones((3, 1000), dtype=np.int8)))
    with pytest.raises(UserError, match=r"a.npz unpacks to 11.\d KiB or more"):
        load_dataset(tmp_path / "a.npz")


def test_arrays_that_are_not_ours_are_not_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **flat(notes=np.array([{"any": "object"}])))
    assert len(load_dataset(tmp_path / "a.npz")) == 2


def test_saved_graphs_that_show_few_numbers_often_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORES_MAX_MEMORY", "1M")
    edge = torch.tensor([[0, 1], [1, 0]])
    graphs = [Data(x=torch.ones(1, 1).expand(10**6, 4), edge_index=edge, y=y) for y in (0, 1)]
    torch.save(graphs, tmp_path / "views.pt")
    with pytest.raises(UserError, match=r"views.pt unpacks to 15.\d MiB or more"):
        load_dataset(tmp_path / "views.pt")


def test_a_saved_file_is_refused_by_what_it_unpacks_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.save([Data(x=torch.zeros(1000, 1000), y=0)], tmp_path / "plain.pt")
    with (
        zipfile.ZipFile(tmp_path / "plain.pt") as plain,
        zipfile.ZipFile(tmp_path / "packed.pt", "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for name in plain.namelist():
            packed.writestr(name, plain.read(name))
    assert (tmp_path / "packed.pt").stat().st_size < 20_000
    monkeypatch.setenv("CORES_MAX_MEMORY", "1M")
    with pytest.raises(UserError, match=r"packed.pt unpacks to 3.8 MiB or more"):
        load_dataset(tmp_path / "packed.pt")


def test_a_group_of_a_parquet_file_is_refused_by_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    smiles = [f"{'C' * 50}{number}" for number in range(1000)]
    parquet.write_table(pa.table({"smiles": smiles}), tmp_path / "a.parquet")
    monkeypatch.setenv("CORES_MAX_MEMORY", "10K")
    with pytest.raises(UserError, match=r"a.parquet: row group 0 unpacks to .* KiB, more than 10K"):
        rows(tmp_path / "a.parquet")


def test_rows_that_are_read_for_training_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = '{"nodes": 500, "edges": [], "label": %d}\n'
    (tmp_path / "a.jsonl").write_text("".join(line % (number % 2) for number in range(2049)))
    monkeypatch.setenv("CORES_MAX_MEMORY", "40M")
    assert len(rows(tmp_path / "a.jsonl")) == 3  # each of them is small enough
    with pytest.raises(UserError, match=r"a.jsonl unpacks to 62.5 MiB or more, more than 40M"):
        load_dataset(tmp_path / "a.jsonl")


def test_columns_of_labels_are_refused_before_they_take_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tu_zip(tmp_path / "wide.zip", node_labels="0\n5000\n9999\n")
    monkeypatch.setenv("CORES_MAX_MEMORY", "100K")
    with pytest.raises(UserError, match=r"10000 columns of 3 rows need 117.2 KiB, more than 100K"):
        load_dataset(path)
    monkeypatch.setenv("CORES_MAX_MEMORY", "200K")
    monkeypatch.setenv("CORES_MAX_COLUMNS", "9999")
    with pytest.raises(UserError, match=r"labels run from 0 to 9999; renumber them: .*raise CORES"):
        load_dataset(path)
    monkeypatch.setenv("CORES_MAX_COLUMNS", "10000")
    assert load_dataset(path).num_features == 10_000


def test_columns_of_all_kinds_are_counted_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORES_MAX_COLUMNS", "10")
    path = tu_zip(tmp_path / "two.zip", node_labels="0, 0\n1, 1\n7, 7\n")
    with pytest.raises(UserError, match="16 columns per node, more than 10"):
        load_dataset(path)
    np.savez(tmp_path / "a.npz", **flat(x=np.ones((3, 11))))
    with pytest.raises(UserError, match=r"a.npz: 'x' has 11 features, more than 10"):
        load_dataset(tmp_path / "a.npz")


@pytest.mark.parametrize(
    "name", ["a.csv", "a.csv.gz", "a.jsonl", "a.sdf", "a.smi", "a.parquet", "a.npz", "a.pt"]
)
def test_a_pipe_is_refused_and_not_waited_for(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    for path in (tmp_path / name, *([] if name == "a.npz" else [tmp_path])):
        for read in (rows, load_dataset):
            with pytest.raises(UserError, match=rf"{name} is no regular file"):
                read(path)


def test_a_pipe_among_tu_files_is_refused(
    tu_files: dict[str, str], write_files: Callable[..., Path]
) -> None:
    folder = write_files("toy", tu_files)
    (folder / "toy_node_labels.txt").unlink()
    os.mkfifo(folder / "toy_node_labels.txt")
    with pytest.raises(UserError, match=r"toy_node_labels.txt is no regular file"):
        load_dataset(folder)


def test_a_smiles_that_no_molecule_has_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.smi").write_text(f"{'C' * 200_000}\nCCO\n")
    (found,) = rows(tmp_path / "a.smi")
    assert [row.reason for row in found.rejected] == ["the SMILES has 200000 characters"]
    assert len(found.graphs) == 1


def test_a_structure_that_rdkit_would_brood_over_is_refused(tmp_path: Path) -> None:
    rings = "C1CC1" * 5000  # takes it a minute
    (tmp_path / "rings.csv").write_text(f"smiles\n{rings}\nCC\n")
    (found,) = rows(tmp_path / "rings.csv")
    assert [row.reason for row in found.rejected] == ["the SMILES has 25000 characters"]
    (tmp_path / "long.sdf").write_text("title\n\n\n" + "M  V30 \n" * 100_000 + "M  END\n$$$$\n")
    (found,) = rows(tmp_path / "long.sdf")
    assert "the structure has 80" in found.rejected[0].reason


def test_a_few_lines_that_ask_for_many_nodes_are_refused(tmp_path: Path) -> None:
    line = '{"nodes": 1000000, "label": 1}\n'
    (tmp_path / "many.jsonl").write_text(40 * line)
    with pytest.raises(UserError, match=r"40 lines that follow each other need 2.4 GiB, more than"):
        rows(tmp_path / "many.jsonl")


def test_an_archive_of_many_folders_is_refused_at_once(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        for number in range(2000):
            archive.writestr(f"d{number}/a", "")
    with pytest.raises(UserError, match=r"many.zip holds 2000 files; pack one dataset"):
        load_dataset(tmp_path / "many.zip")
