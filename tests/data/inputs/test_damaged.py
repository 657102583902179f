"""Damaged and strange files: graphs, rejected rows with line and name, or one line of complaint."""

import gzip
import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from rdkit import Chem
from torch_geometric.data import Data, InMemoryDataset

from cores.data.inputs.columns import ColumnNames
from cores.data.inputs.sources import read_rows
from cores.data.raw import Parsed
from cores.errors import UserError

SMILES = ("CCO", "c1ccccc1O", "[Na+].[Cl-]", "[H]OC", "C[N+](C)(C)C", "*C", "F/C=C/F", "nonsense")
JSON = (
    '{"id": "a", "nodes": ["C", "O"], "edges": [[0, 1, "s"]], "label": 1}',
    '{"nodes": ["C"], "label": "x"}',
    '{"nodes": [[1.5, 2]], "edges": [], "label": null}',
    '{"id": "b", "nodes": 3, "edges": [[0, 1], [1, 2], [2, 2]]}',
)


def parsed(path: Path) -> list[Parsed]:
    """Every row of a file: its graphs, or why there are none; nothing else may come of it."""
    found, complaint = [], "none"
    try:
        for rows in read_rows(path, ColumnNames(), size=3):
            found.append(rows.parse())
            assert len(found[-1].graphs) + len(found[-1].rejected) == len(rows)
            check(found[-1])
    except UserError as error:
        complaint = str(error)
    assert len(complaint.splitlines()) == 1, complaint
    return found


def check(found: Parsed) -> None:
    graphs = found.graphs
    assert len(graphs) == len(found.positions) == len(found.ids) == len(found.labels)
    assert graphs.node_ptr[-1] == len(graphs.node_numbers) == len(graphs.node_values)
    assert graphs.edge_ptr[-1] == graphs.edge_index.shape[1] == len(graphs.edge_numbers)
    sizes = np.diff(graphs.node_ptr).repeat(np.diff(graphs.edge_ptr))
    assert (graphs.edge_index >= 0).all()
    assert (graphs.edge_index < sizes).all()
    for row in found.rejected:
        assert row.line >= 1
        assert len(str(row).splitlines()) == 1
        assert row.reason


def sdf() -> bytes:
    text = ""
    for number, smiles in enumerate(SMILES[:-1]):
        block = Chem.MolToMolBlock(Chem.MolFromSmiles(smiles))
        text += f"{block}> <id>\nm{number}\n\n> <label>\n{number % 2}\n\n$$$$\n"
    return text.encode()


def table(separator: str) -> bytes:
    rows = [separator.join((f"m{n}", text, str(n % 2))) for n, text in enumerate(SMILES)]
    return "\n".join([separator.join(("id", "smiles", "label")), *rows]).encode()


def parquet_file() -> bytes:
    columns = {"id": [f"m{n}" for n in range(8)], "smiles": SMILES, "label": [0.0, 1.0] * 4}
    buffer = io.BytesIO()
    parquet.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def npz() -> bytes:
    buffer = io.BytesIO()
    np.savez(
        buffer,
        x=np.ones((5, 2)),
        edge_index=np.array([[0, 1, 0, 2], [1, 0, 2, 0]]),
        y=np.array([0, 1]),
        node_ptr=np.array([0, 2, 5]),
        edge_ptr=np.array([0, 2, 4]),
    )
    return buffer.getvalue()


def saved(collated: bool) -> bytes:
    pair = torch.tensor([[0, 1], [1, 0]])
    graphs = [Data(x=torch.rand(3, 2), edge_index=pair, y=torch.tensor([n])) for n in (0, 1)]
    buffer = io.BytesIO()
    data, slices = InMemoryDataset.collate(graphs)
    torch.save((data.to_dict(), slices, Data) if collated else graphs, buffer)
    return buffer.getvalue()


TU = {
    "toy_A.txt": "1, 2\n2, 1\n3, 4\n4, 3\n",
    "toy_graph_indicator.txt": "1\n1\n2\n2\n",
    "toy_graph_labels.txt": "0\n1\n",
    "toy_node_labels.txt": "2\n3\n2\n2\n",
    "toy_node_attributes.txt": "0.5, 1\n1, 1\n2, 0\n-1, 3\n",
}


def tu_zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in TU.items():
            archive.writestr(f"toy/{name}", text)
    return buffer.getvalue()


FILES: dict[str, Callable[[], bytes]] = {
    "mols.csv": lambda: table(","),
    "mols.tsv": lambda: table("\t"),
    "mols.smi": lambda: "\n".join(f"{text} m{n}" for n, text in enumerate(SMILES)).encode(),
    "mols.sdf": sdf,
    "mols.parquet": parquet_file,
    "graphs.jsonl": lambda: "\n".join(JSON).encode(),
    "graphs.npz": npz,
    "graphs.zip": tu_zip,
    "collated.pt": lambda: saved(True),
    "listed.pt": lambda: saved(False),
}
PACKED = ("mols.csv", "mols.tsv", "mols.smi", "mols.sdf", "graphs.jsonl")
EVERY = [*FILES, *(f"{name}.gz" for name in PACKED)]
FEW = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def content(name: str) -> bytes:
    plain = FILES[name.removesuffix(".gz")]()
    return gzip.compress(plain, mtime=0) if name.endswith(".gz") else plain


@pytest.mark.parametrize("name", EVERY)
def test_a_sound_file_is_read_whole(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content(name))
    rows = sum(len(found.graphs) + len(found.rejected) for found in parsed(tmp_path / name))
    assert rows == {"mols.sdf": 7, "graphs.jsonl": 4}.get(
        name.removesuffix(".gz"), 2 if "mols" not in name else 8
    )


@pytest.mark.parametrize("name", EVERY)
@FEW
@given(share=st.floats(0, 1))
def test_a_file_cut_short_never_breaks_the_program(name: str, tmp_path: Path, share: float) -> None:
    whole = content(name)
    (tmp_path / name).write_bytes(whole[: int(share * len(whole))])
    parsed(tmp_path / name)


@pytest.mark.parametrize("name", EVERY)
@FEW
@given(flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 7)), min_size=1))
def test_flipped_bits_never_break_the_program(
    name: str, tmp_path: Path, flips: list[tuple[float, int]]
) -> None:
    damaged = bytearray(content(name))
    for share, bit in flips:
        damaged[int(share * len(damaged))] ^= 1 << bit
    (tmp_path / name).write_bytes(damaged)
    parsed(tmp_path / name)


@pytest.mark.parametrize("name", EVERY)
@FEW
@given(noise=st.binary(max_size=200))
def test_noise_never_breaks_the_program(name: str, tmp_path: Path, noise: bytes) -> None:
    (tmp_path / name).write_bytes(noise)
    parsed(tmp_path / name)


@pytest.mark.parametrize("file", TU)
@FEW
@given(text=st.text(st.sampled_from("0123456789,.- \n\tenaif\u00e9\x00"), max_size=30))
def test_a_strange_file_of_a_tu_folder_never_breaks_the_program(
    file: str, tmp_path: Path, text: str
) -> None:
    folder = tmp_path / "toy"
    folder.mkdir(exist_ok=True)
    for name, sound in TU.items():
        (folder / name).write_text(sound)
    (folder / file).write_text(text)
    parsed(folder)


SMILES_TEXT = st.text(st.sampled_from("CNOFclno[]()=#@+-123%*H:\\/. \x00\"'é$&~"), max_size=40)


@FEW
@given(texts=st.lists(SMILES_TEXT, min_size=1, max_size=20))
def test_any_text_as_smiles_is_a_molecule_or_rejected(tmp_path: Path, texts: list[str]) -> None:
    cells = (text.replace('"', '""') for text in texts)
    (tmp_path / "any.csv").write_text("smiles\n" + "".join(f'"{cell}"\n' for cell in cells))
    parsed(tmp_path / "any.csv")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
GRAPHS = st.fixed_dictionaries(
    {"nodes": VALUES | st.lists(st.sampled_from(["C", "N"]), min_size=1)},
    optional={
        "edges": VALUES | st.lists(st.lists(st.integers(-1, 3), min_size=2, max_size=3)),
        "id": VALUES,
        "label": VALUES,
    },
)


@settings(FEW, max_examples=60)
@given(records=st.lists(VALUES | GRAPHS, min_size=1, max_size=5))
def test_any_json_is_a_graph_or_rejected(tmp_path: Path, records: list[object]) -> None:
    import json

    (tmp_path / "any.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    parsed(tmp_path / "any.jsonl")


def test_a_pickle_that_would_run_a_command_runs_none(tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            import os

            return os.system, (f"touch {tmp_path / 'ran'}",)

    torch.save([Hostile()], tmp_path / "hostile.pt")
    with pytest.raises(UserError, match="holds more than graphs"):
        next(iter(read_rows(tmp_path / "hostile.pt", ColumnNames())))
    assert not (tmp_path / "ran").exists()


def test_a_deeply_nested_smiles_is_rejected_not_fatal(tmp_path: Path) -> None:
    (tmp_path / "deep.smi").write_text("C(" * 20_000 + "\n" + "[" * 20_000 + "\nCCO\n")
    (found,) = parsed(tmp_path / "deep.smi")
    assert len(found.graphs) == 1


def test_a_deeply_nested_json_is_rejected_not_fatal(tmp_path: Path) -> None:
    (tmp_path / "deep.jsonl").write_text("[" * 100_000 + '\n{"nodes": 1}\n')
    (found,) = parsed(tmp_path / "deep.jsonl")
    assert [row.line for row in found.rejected] == [1]
