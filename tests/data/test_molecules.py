"""Molecules: the same columns from every file, atoms as the input counts them, kept parts."""

import csv
import gzip
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from rdkit import Chem

from cores.data.inputs.columns import ColumnNames
from cores.data.inputs.sources import read_rows
from cores.data.lists import from_graphs
from cores.data.molecules import (
    ATOM_COLUMNS,
    BOND_COLUMNS,
    VERSION,
    input_indices,
    kept_smiles,
    molecule_from_block,
    molecule_from_smiles,
    molecule_graphs,
)
from cores.data.raw import InvalidRowError
from cores.errors import UserError

ODD = (
    "CCO",
    "C[N+](C)(C)CC([O-])=O",  # charges
    "C[CH2]",  # a radical
    "[13CH4]",
    "[2H]C([2H])[2H]",
    "[H]OC",
    "[Na+].[Cl-]",
    "[Cu+2].[O-]S(=O)(=O)[O-]",
    "*c1ccccc1",
    "C",
    "FS(F)(F)(F)(F)F",
    "[Fe+3]",
)


def features(*smiles: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    raw = molecule_graphs([molecule_from_smiles(text) for text in smiles])
    return raw.node_numbers, raw.edge_numbers


def names_of(row: NDArray[np.float32], columns: tuple[str, ...]) -> list[str]:
    return [name for name, value in zip(columns, row, strict=True) if value]


def test_every_column_has_a_name_of_its_own() -> None:
    atoms, bonds = features(*ODD)
    assert atoms.shape[1] == len(ATOM_COLUMNS) == len(set(ATOM_COLUMNS))
    assert bonds.shape[1] == len(BOND_COLUMNS) == len(set(BOND_COLUMNS))


def test_the_columns_say_what_an_atom_and_a_bond_are() -> None:
    atoms, bonds = features("[NH3+]C1=CC=CC=C1")
    assert names_of(atoms[0], ATOM_COLUMNS) == [
        *("element = N", "degree = 1", "charge = 1", "hydrogens = 3", "hybridisation = SP3")
    ]
    assert names_of(atoms[1], ATOM_COLUMNS) == [
        *("element = C", "degree = 3", "charge = 0", "hydrogens = 0", "hybridisation = SP2"),
        *("aromatic", "in ring"),
    ]
    assert names_of(bonds[2], BOND_COLUMNS) == ["order = aromatic", "conjugated", "in ring"]


@pytest.mark.parametrize("smiles", ["*", "[Fe+3]", "[U]"])
def test_an_element_that_has_no_column_is_other(smiles: str) -> None:
    assert "element = other" in names_of(features(smiles)[0][0], ATOM_COLUMNS)


def test_one_column_of_every_group_is_set() -> None:
    """Whatever the atom: the last of a group takes what the group does not list."""
    atoms, bonds = features(*ODD)
    for columns, rows in ((ATOM_COLUMNS, atoms), (BOND_COLUMNS, bonds)):
        groups = {name.split(" = ")[0] for name in columns if " = " in name}
        for group in groups:
            members = [n for n, name in enumerate(columns) if name.startswith(f"{group} = ")]
            assert (rows[:, members].sum(axis=1) == 1).all(), group


def test_the_features_of_version_1_never_change() -> None:
    """A change of any column, or of what it means, needs a new version."""
    assert VERSION == 1
    raw = molecule_graphs([molecule_from_smiles(text) for text in ODD])
    digest = hashlib.sha256()
    for array in (raw.node_numbers, raw.edge_numbers, raw.edge_index, raw.node_ptr, raw.edge_ptr):
        digest.update(np.ascontiguousarray(array).tobytes())
    assert digest.hexdigest()[:16] == "0b894daea8924011"


@pytest.mark.parametrize(
    ("smiles", "indices"),
    [
        ("[H]OC", [1, 2]),
        ("C[H]", [0]),
        ("[H:1]OC", [1, 2]),
        ("O([H])C([H])([H])[H]", [0, 2]),
        ("[2H]OC", [0, 1, 2]),
        ("[H][H]", [0, 1]),
        ("[H+].[Cl-]", [0, 1]),
        ("C[Hg]C", [0, 1, 2]),
    ],
)
def test_atoms_are_counted_as_in_the_smiles(smiles: str, indices: list[int]) -> None:
    molecule = molecule_from_smiles(smiles)
    places = input_indices(molecule)
    assert (places or list(range(molecule.GetNumAtoms()))) == indices
    settings = Chem.SmilesParserParams()
    settings.removeHs = False
    written = [atom.GetSymbol() for atom in Chem.MolFromSmiles(smiles, settings).GetAtoms()]
    assert [atom.GetSymbol() for atom in molecule.GetAtoms()] == [written[i] for i in indices]


def test_hydrogens_of_an_sd_file_are_taken_into_their_atoms() -> None:
    whole = Chem.AddHs(Chem.MolFromSmiles("CO"))
    order = [2, 0, 3, 1, 4, 5]  # a hydrogen first
    block = Chem.MolToMolBlock(Chem.RenumberAtoms(whole, order))
    molecule = molecule_from_block(block)
    assert [atom.GetSymbol() for atom in molecule.GetAtoms()] == ["C", "O"]
    assert input_indices(molecule) == [1, 3]
    assert molecule_from_block(block.replace("\n", "\r\n")).GetNumAtoms() == 2


@pytest.mark.parametrize(
    "smiles", ["", "  ", "C(", "C1CC", "[Xx]", "c1cccc1", "C\ud800", "F(C)(C)C"]
)
def test_what_is_no_molecule_is_refused(smiles: str) -> None:
    with pytest.raises(InvalidRowError, match="SMILES"):
        molecule_from_smiles(smiles)


def test_a_bad_smiles_of_a_list_is_named_by_its_number() -> None:
    with pytest.raises(UserError, match=r"molecule 1: invalid SMILES 'C\('"):
        from_graphs(["C", "C("], [0, 1])


def test_a_long_smiles_is_shortened_in_the_message() -> None:
    with pytest.raises(InvalidRowError) as caught:
        molecule_from_smiles("C(" * 5000)
    assert len(str(caught.value)) < 100


def test_every_kind_of_file_gives_the_same_features(tmp_path: Path) -> None:
    """But for hydrogens and marks, which SD files have in other ways."""
    smiles = [text for text in ODD if "H]" not in text and text != "*c1ccccc1"]
    table = "smiles,label\n" + "".join(f"{text},0\n" for text in smiles)
    (tmp_path / "mols.csv").write_text(table)
    (tmp_path / "mols.csv.gz").write_bytes(gzip.compress(table.encode()))
    (tmp_path / "mols.smi").write_text("\n".join(smiles))
    blocks = (Chem.MolToMolBlock(Chem.MolFromSmiles(text)) for text in smiles)
    (tmp_path / "mols.sdf").write_text("".join(f"{block}$$$$\n" for block in blocks))
    listed = from_graphs(smiles, [0] * len(smiles)).graphs
    for name in ("mols.csv", "mols.csv.gz", "mols.smi", "mols.sdf"):
        (rows,) = read_rows(tmp_path / name, ColumnNames())
        raw = rows.parse().graphs
        assert np.array_equal(raw.node_numbers, listed.x.numpy()), name
        assert np.array_equal(raw.edge_index, listed.edge_index.numpy()), name
        assert listed.edge_attr is not None
        assert np.array_equal(raw.edge_numbers, listed.edge_attr.numpy()), name


def kept(molecule: Any, atoms: list[int]) -> str:
    """The SMILES of some atoms and all bonds between them."""
    inside = [
        bond.GetIdx()
        for bond in molecule.GetBonds()
        if {bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()} <= set(atoms)
    ]
    return kept_smiles(molecule, atoms, inside)


@pytest.mark.parametrize(
    ("smiles", "atoms", "expected"),
    [
        ("Cc1ccccc1", [0, 1], "*=C(*)C"),
        ("CCO", [0], "*C"),
        ("CCO", [0, 2], "*C.*O"),
        ("[Na+].[Cl-]", [1], "[Cl-]"),
        ("C[N+](C)(C)C", [1], "*[N+](*)(*)*"),
        ("[2H]C", [0], "*[2H]"),
        ("CCO", [], ""),
        ("c1ccc2[nH]ccc2c1", [3, 4, 5, 6, 7], "*=c1cc[nH]c1=*"),
    ],
)
def test_a_kept_part_is_a_smiles_with_marks(smiles: str, atoms: list[int], expected: str) -> None:
    found = kept(molecule_from_smiles(smiles), atoms)
    assert Chem.CanonSmiles(found) == Chem.CanonSmiles(expected)


def test_kept_bonds_alone_are_kept() -> None:
    """Where edges are removed, all atoms may stay and some bonds go."""
    assert kept_smiles(molecule_from_smiles("CCO"), [0, 1, 2], [0]) == "*CC.*O"


@cache
def benzene(data_root: Path) -> tuple[str, ...]:
    with (data_root / "smiles" / "benzene.csv").open() as file:
        return tuple(row["smiles"] for row in csv.DictReader(file))


@pytest.mark.data
@settings(max_examples=150, deadline=None)
@given(number=st.integers(0, 11_999), seed=st.integers(0, 2**32 - 1), share=st.floats(0, 1))
def test_any_kept_part_of_a_molecule_can_be_read_again(
    data_root: Path, number: int, seed: int, share: float
) -> None:
    molecule = molecule_from_smiles(benzene(data_root)[number])
    random = np.random.default_rng(seed)
    count = molecule.GetNumAtoms()
    atoms = np.flatnonzero(random.random(count) < share).tolist() or [0]
    for drops_bonds in (False, True):
        bonds = [
            bond.GetIdx()
            for bond in molecule.GetBonds()
            if {bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()} <= set(atoms)
            and (not drops_bonds or random.random() < share)
        ]
        read = Chem.MolFromSmiles(kept_smiles(molecule, atoms, bonds))
        assert read is not None
        symbols = sorted(atom.GetSymbol() for atom in read.GetAtoms() if atom.GetAtomicNum())
        assert symbols == sorted(molecule.GetAtomWithIdx(atom).GetSymbol() for atom in atoms)
    whole = kept(molecule, list(range(count)))
    assert whole == Chem.MolToSmiles(molecule)
