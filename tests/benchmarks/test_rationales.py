"""The tree search finds what a score asks for, and both programs get the same parts."""

from collections import Counter

import pytest

pytest.importorskip("rdkit")
from rdkit import Chem

from chemprop_peer import part_names
from rationales import (
    SearchSettings,
    best_rationale,
    matched_atoms,
    part_smiles,
    pieces,
    recall_and_precision,
    smaller_parts,
)


def has_benzene(texts: list[str]) -> list[float]:
    """A toy model: certain of whatever has six aromatic carbons in a ring."""
    pattern = Chem.MolFromSmarts("c1ccccc1")
    return [float(Chem.MolFromSmiles(text).HasSubstructMatch(pattern)) for text in texts]


@pytest.mark.parametrize(
    "smiles",
    [
        "CCCCC(=O)NCCc1ccccc1",
        "CC(C)c1ccc(CC2CCNCC2)cc1",
        "O=C(O)CCCc1ccc2ccccc2c1",
        "C[N+](C)(C)CCc1ccc([N+](=O)[O-])cc1",
    ],
)
def test_the_search_finds_a_benzene_ring(smiles: str) -> None:
    found = best_rationale(smiles, has_benzene, SearchSettings(min_atoms=6))
    assert found is not None
    assert found.smiles == "c1ccccc1"
    assert found.atoms is not None
    assert found.atoms <= matched_atoms(smiles, "c1ccccc1")
    assert found.score == found.molecule_score == 1.0


def test_the_number_of_aromatic_atoms_leads_to_the_ring() -> None:
    def aromatic_share(texts: list[str]) -> list[float]:
        mols = [Chem.MolFromSmiles(text) for text in texts]
        return [sum(a.GetIsAromatic() for a in m.GetAtoms()) / m.GetNumAtoms() for m in mols]

    settings = SearchSettings(min_atoms=6, prop_delta=0.9)
    found = best_rationale("CCCCCCC(=O)OCCc1ccccc1", aromatic_share, settings)
    assert found is not None
    assert found.smiles == "c1ccccc1"


def test_nothing_is_found_where_nothing_has_the_property() -> None:
    found = best_rationale("CCCCCCCCCC(=O)O", has_benzene)
    assert found is not None
    assert found.atoms is None
    assert found.molecule_score == 0.0
    assert best_rationale("not a molecule", has_benzene) is None


def test_no_part_is_smaller_or_larger_than_asked_for() -> None:
    settings = SearchSettings(min_atoms=8, max_atoms=12)
    found = best_rationale("CCCCCCCCCC(=O)NCCc1ccccc1", has_benzene, settings)
    assert found is not None
    assert found.atoms is not None
    assert 8 <= len(found.atoms) <= 12


def test_rings_and_the_bonds_outside_them_are_the_pieces() -> None:
    mol = Chem.MolFromSmiles("CCc1ccc2ccccc2c1")
    assert sorted(len(piece) for piece in pieces(mol)) == [2, 2, 6, 6]
    bridged = Chem.MolFromSmiles("C1CC2CCC1C2")
    assert [len(piece) for piece in pieces(bridged)] == [7]


def test_only_peripheral_pieces_are_deleted() -> None:
    mol = Chem.MolFromSmiles("c1ccccc1CCO")
    left = smaller_parts(mol, pieces(mol), frozenset(range(9)))
    assert {part_smiles(mol, part) for part in left} == {"CCc1ccccc1", "CCCO"}


@pytest.mark.parametrize(
    ("smiles", "left", "expected"),
    [
        ("Cn1cccc1", {1, 2, 3, 4, 5}, "c1cc[nH]c1"),
        ("C[n+]1ccccc1", {1, 2, 3, 4, 5, 6}, "c1cc[nH+]cc1"),
        ("CC[N+](=O)[O-]", {0, 1, 2, 3}, "CC[NH+]=O"),
        ("c1ccc2ccccc2c1", {0, 1, 2, 3, 8, 9}, "c1ccccc1"),
        ("C[C@H](F)CC", {0, 1, 3, 4}, "CCCC"),
    ],
)
def test_cut_bonds_get_hydrogens(smiles: str, left: set[int], expected: str) -> None:
    assert part_smiles(Chem.MolFromSmiles(smiles), frozenset(left)) == expected


def test_recall_and_precision_are_of_the_atoms() -> None:
    truth = matched_atoms("CCc1ccccc1", "c1ccccc1")
    assert truth == frozenset(range(2, 8))
    assert recall_and_precision(frozenset(range(8)), truth) == (1.0, 0.75)


def test_parts_are_stratified_seeded_and_of_the_sizes_asked_for() -> None:
    labels = ["a"] * 300 + ["b"] * 100
    names = part_names(labels, seed=1, shares=(0.7, 0.1, 0.2))
    assert names == part_names(labels, seed=1, shares=(0.7, 0.1, 0.2))
    assert names != part_names(labels, seed=2, shares=(0.7, 0.1, 0.2))
    assert Counter(names) == {"train": 280, "val": 40, "test": 80}
    assert Counter(names[300:]) == {"train": 70, "val": 10, "test": 20}


def test_every_part_has_a_molecule_of_every_class() -> None:
    names = part_names(["a"] * 50 + ["b"] * 3, seed=1, shares=(0.8, 0.1, 0.1))
    assert set(names[50:]) == {"train", "val", "test"}
    with pytest.raises(ValueError, match="fewer than three"):
        part_names(["a", "a", "a", "b"], seed=1, shares=(0.8, 0.1, 0.1))
