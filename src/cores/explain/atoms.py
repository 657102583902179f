"""Molecules of benchmark datasets, whose files number atoms and bonds.

The notes of the files say which number is which. Those of NCI1 and NCI109 do not, we know of no
other source, and the maps of their sister datasets (MOLT-4, SF-295) differ from each other: such a
graph is drawn as any other, and its nodes are called by their numbers.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from torch import Tensor

UNKNOWN = "*"
"""An atom whose element the columns of a dataset leave out."""
_VALUE = re.compile(r"(?:= |feature )(\d+)$")


@dataclass(frozen=True)
class AtomMap:
    """Elements, and bond types of rdkit's, of node and edge labels from 0."""

    elements: tuple[str, ...]
    bonds: tuple[str, ...]


ATOM_MAPS = {
    "MUTAG": AtomMap(
        ("C", "N", "O", "F", "I", "Cl", "Br"), ("AROMATIC", "SINGLE", "DOUBLE", "TRIPLE")
    ),
    "PTC": AtomMap(
        (
            *("In", "P", "C", "O", "N", "Cl", "S", "Br", "Na", "F", "As", "K", "Cu", "I", "Ba"),
            *("Sn", "Pb", "Ca"),
        ),
        ("TRIPLE", "SINGLE", "DOUBLE", "AROMATIC"),
    ),
    "Mutagenicity": AtomMap(
        ("C", "O", "Cl", "H", "N", "F", "Br", "S", "P", "I", "Na", "K", "Li", "Ca"),
        ("SINGLE", "DOUBLE", "TRIPLE"),
    ),
    "Benzene": AtomMap(
        ("C", "N", "O", "S", "F", "P", "Cl", "Br", "Na", "Ca", "I", "B", "H"),
        ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC"),
    ),
}
"""From the README of MUTAG and PTC, the label_readme of Mutagenicity, and the page of
Benzene's source."""


def atom_map(dataset: str) -> AtomMap | None:
    """Return the map of a dataset; None where it is not known, or without rdkit."""
    return ATOM_MAPS.get(dataset) if find_spec("rdkit") else None


def elements_of(atoms: AtomMap, x: Tensor, columns: Sequence[str]) -> list[str]:
    """Find the element of every node by its one-hot columns.

    >>> import torch
    >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    >>> elements_of(ATOM_MAPS["MUTAG"], x, ["node label 0 = 2", "node label 0 = 0"])
    ['O', 'C', '*']
    """
    return [_named(row, columns, atoms.elements, UNKNOWN) for row in x.tolist()]


def molecule_of(
    atoms: AtomMap,
    elements: Sequence[str],
    ends: Sequence[tuple[int, int]],
    edge_attr: Tensor | None,
    columns: Sequence[str],
) -> Any:
    """Make rdkit's molecule of a graph, also of one that breaks a rule of valence.

    ``edge_attr`` has a row with these ``columns`` for every edge; without, all bonds are single.
    """
    from rdkit import Chem, rdBase

    made = Chem.RWMol()
    for element in elements:
        made.AddAtom(Chem.Atom(0 if element == UNKNOWN else element))
    rows = [None] * len(ends) if edge_attr is None else edge_attr.tolist()
    for (a, b), row in zip(ends, rows, strict=True):
        kind = "SINGLE" if row is None else _named(row, columns, atoms.bonds, "SINGLE")
        made.AddBond(a, b, Chem.BondType.names[kind])
        if kind == "AROMATIC":
            made.GetBondBetweenAtoms(a, b).SetIsAromatic(True)
            for end in (a, b):
                made.GetAtomWithIdx(end).SetIsAromatic(True)
    _charge_nitro_groups(made)
    with rdBase.BlockLogs():
        try:
            Chem.SanitizeMol(made)
        except Chem.MolSanitizeException:  # hydrogens that decide are missing; drawn all the same
            made.UpdatePropertyCache(strict=False)
            Chem.FastFindRings(made)
    return made.GetMol()


def _named(row: Sequence[float], columns: Sequence[str], names: Sequence[str], other: str) -> str:
    for value, column in zip(row, columns, strict=True):
        found = _VALUE.search(column)
        if value and found and int(found[1]) < len(names):
            return names[int(found[1])]
    return other


def _charge_nitro_groups(molecule: Any) -> None:
    """Add charges that the files omit: nitrogen with four bonds, as in NO2, lent an electron."""
    for atom in molecule.GetAtoms():
        bonds = [bond.GetBondTypeAsDouble() for bond in atom.GetBonds()]
        if atom.GetSymbol() != "N" or sum(bonds) != 4:
            continue
        atom.SetFormalCharge(1)
        for bond in atom.GetBonds():
            other = bond.GetOtherAtom(atom)
            lone = other.GetSymbol() == "O" and other.GetDegree() == 1
            if lone and bond.GetBondTypeAsDouble() == 1:
                other.SetFormalCharge(-1)
