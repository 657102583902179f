"""Molecules as graphs: one fixed set of columns for every file, so that any model reads any file.

The columns are versioned (:data:`VERSION`): a change of them is a new version, and a model says
which one it was trained with. docs/inputs.md has the table.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cores.data.raw import InvalidRowError, RawGraphs, pointers
from cores.errors import UserError

VERSION = 1
"""Version of the columns below."""
ELEMENTS = ("H", "Li", "B", "C", "N", "O", "F", "Na", "Mg", "Si", "P", "S", "Cl", "K", "Ca", "Zn",
            "Se", "Br", "Sn", "I")  # fmt: skip
DEGREES = (0, 1, 2, 3, 4, 5)
CHARGES = (-2, -1, 0, 1, 2)
HYDROGENS = (0, 1, 2, 3, 4)
HYBRIDISATIONS = ("S", "SP", "SP2", "SP3", "SP3D", "SP3D2")
BOND_ORDERS = ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC")

ATOM_COLUMNS = (
    *(f"element = {symbol}" for symbol in (*ELEMENTS, "other")),
    *(f"degree = {number}" for number in (*DEGREES, "more")),
    *(f"charge = {number}" for number in CHARGES),
    *(f"hydrogens = {number}" for number in HYDROGENS),
    *(f"hybridisation = {name}" for name in (*HYBRIDISATIONS, "other")),
    "aromatic",
    "in ring",
)
"""One-hot groups of an atom, the last of a group for all that it does not list; flags."""
BOND_COLUMNS = (
    *(f"order = {name.lower()}" for name in (*BOND_ORDERS, "other")),
    "conjugated",
    "in ring",
)

_HYDROGEN = re.compile(r"\[\d*H")
"""Hydrogens written as atoms, and a few elements such as Hg."""
_WIDTHS = (len(ELEMENTS) + 1, len(DEGREES) + 1, len(CHARGES), len(HYDROGENS))
_OFFSETS = np.cumsum((0, *_WIDTHS))
_AROMATIC = len(ATOM_COLUMNS) - 2


@cache
def needs_rdkit() -> Any:
    """The ``rdkit.Chem`` module, with its own messages silenced: we report what it refuses."""
    try:
        from rdkit import Chem, rdBase
    except ImportError:
        raise UserError("molecules need rdkit: pip install 'cores-gnn[chem]'") from None
    rdBase.DisableLog("rdApp.*")
    return Chem


LONGEST_SMILES, LONGEST_BLOCK = 10_000, 2**19
"""Characters; no molecule that people work with has as many. rdkit needs four seconds for a SMILES
of that length made of rings, and four times as long for twice the length."""


def molecule_from_smiles(smiles: str) -> Any:
    """A molecule whose atoms are counted as in the SMILES.

    Hydrogens written as atoms of their own are taken into the atoms they are bound to; the others
    keep the numbers they have in the SMILES, as property ``input index``.
    """
    chem = needs_rdkit()
    if not smiles.strip():
        raise InvalidRowError("empty SMILES")
    if len(smiles) > LONGEST_SMILES:
        raise InvalidRowError(f"the SMILES has {len(smiles)} characters")

    def read() -> Any:
        if not _HYDROGEN.search(smiles):
            return chem.MolFromSmiles(smiles)
        settings = chem.SmilesParserParams()
        settings.removeHs = False
        return _without_hydrogens(chem.MolFromSmiles(smiles, settings))

    return _usable(read, f"invalid SMILES {_shortened(smiles)}")


def molecule_from_block(block: str) -> Any:
    """A molecule from an entry of an SD file; atoms are counted as there."""
    chem = needs_rdkit()
    if len(block) > LONGEST_BLOCK:
        raise InvalidRowError(f"the structure has {len(block)} characters")
    return _usable(
        lambda: _without_hydrogens(chem.MolFromMolBlock(block, removeHs=False)), "invalid structure"
    )


def _without_hydrogens(molecule: Any) -> Any:
    if molecule is None:
        return None
    for atom in _atoms(molecule):
        atom.SetIntProp("input index", atom.GetIdx())
    return needs_rdkit().RemoveHs(molecule)


def _usable(read: Callable[[], Any], reason: str) -> Any:
    try:
        molecule = read()
    except (ValueError, RuntimeError):  # what rdkit's C++ asserts, and text that is no UTF-8
        molecule = None
    if molecule is None:
        raise InvalidRowError(reason)
    if not molecule.GetNumAtoms():
        raise InvalidRowError("the molecule has no atoms")
    return molecule


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def input_indices(molecule: Any) -> list[int] | None:
    """The number that the input gives each atom; None where it is the molecule's own."""
    if not molecule.GetAtomWithIdx(0).HasProp("input index"):
        return None
    return [atom.GetIntProp("input index") for atom in _atoms(molecule)]


def _atoms(molecule: Any) -> Iterator[Any]:
    """Replace ``GetAtoms``, whose iterator counts the atoms again at every step."""
    return map(molecule.GetAtomWithIdx, range(molecule.GetNumAtoms()))


@cache
def _columns() -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Columns of elements, hybridisations and bond orders, by rdkit's numbers of them."""
    chem = needs_rdkit()
    number = chem.GetPeriodicTable().GetAtomicNumber
    return (
        _places([number(symbol) for symbol in ELEMENTS]),
        _places([chem.HybridizationType.names[name] for name in HYBRIDISATIONS]),
        _places([chem.BondType.names[name] for name in BOND_ORDERS]),
    )


def _places(listed: Sequence[Any]) -> NDArray[np.int64]:
    """Column of each number; the one after the listed ones for all others."""
    columns = np.full(256, len(listed), dtype=np.int64)
    columns[[*map(int, listed)]] = np.arange(len(listed))
    return columns


def molecule_graphs(molecules: Sequence[Any]) -> RawGraphs:
    """Molecules laid end to end: atoms are nodes, and every bond two directed edges."""
    atoms = [
        (
            atom.GetAtomicNum(),
            atom.GetDegree(),
            atom.GetFormalCharge(),
            atom.GetTotalNumHs(),
            int(atom.GetHybridization()),
            atom.GetIsAromatic(),
            atom.IsInRing(),
        )
        for molecule in molecules
        for atom in _atoms(molecule)
    ]
    bonds = [
        (
            bond.GetBeginAtomIdx(),
            bond.GetEndAtomIdx(),
            int(bond.GetBondType()),
            bond.GetIsConjugated(),
            bond.IsInRing(),
        )
        for molecule in molecules
        for bond in map(molecule.GetBondWithIdx, range(molecule.GetNumBonds()))
    ]
    both = np.repeat(np.array(bonds, dtype=np.int64).reshape(-1, 5), 2, axis=0)  # [E, 5]
    both[1::2, :2] = both[1::2, 1::-1]
    counts = [(each.GetNumAtoms(), 2 * each.GetNumBonds()) for each in molecules]
    node_counts, edge_counts = np.array(counts, dtype=np.int64).reshape(-1, 2).T
    return RawGraphs(
        pointers(node_counts),
        pointers(edge_counts),
        np.ascontiguousarray(both[:, :2].T),
        _atom_features(np.array(atoms, dtype=np.int64).reshape(-1, 7)),
        _bond_features(both[:, 2:]),
    )


def _atom_features(atoms: NDArray[np.int64]) -> NDArray[np.float32]:
    elements, hybridisations, _ = _columns()
    codes = np.stack(
        [
            elements[atoms[:, 0]],
            atoms[:, 1].clip(0, len(DEGREES)),
            atoms[:, 2].clip(CHARGES[0], CHARGES[-1]) - CHARGES[0],
            atoms[:, 3].clip(0, HYDROGENS[-1]),
            hybridisations[atoms[:, 4]],
        ],
        axis=1,
    )
    x = np.zeros((len(atoms), len(ATOM_COLUMNS)), dtype=np.float32)
    x[np.arange(len(atoms))[:, None], codes + _OFFSETS] = 1
    x[:, _AROMATIC:] = atoms[:, 5:]
    return x


def _bond_features(bonds: NDArray[np.int64]) -> NDArray[np.float32]:
    features = np.zeros((len(bonds), len(BOND_COLUMNS)), dtype=np.float32)
    features[np.arange(len(bonds)), _columns()[2][bonds[:, 0]]] = 1
    features[:, -2:] = bonds[:, 1:]
    return features


def kept_smiles(molecule: Any, kept_atoms: Sequence[int], kept_bonds: Sequence[int]) -> str:
    """The kept part of a molecule as SMILES that any tool reads; ``*`` marks where it was cut.

    Args:
        molecule: The whole molecule.
        kept_atoms: Numbers of the atoms that are kept.
        kept_bonds: Numbers of the bonds that are kept; both ends of each are kept.

    >>> toluene = molecule_from_smiles("Cc1ccccc1")
    >>> kept_smiles(toluene, [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6])
    '*c1ccccc1'
    """
    chem = needs_rdkit()
    kept, cut = set(kept_atoms), set(range(molecule.GetNumBonds())) - set(kept_bonds)
    if not kept:
        return ""
    if len(kept) == molecule.GetNumAtoms() and not cut:
        return chem.MolToSmiles(molecule)
    # Bonds between two atoms that are gone need no cut, and cutting one costs time.
    ends = {number: molecule.GetBondWithIdx(number) for number in cut}
    cut = {
        number
        for number, bond in ends.items()
        if bond.GetBeginAtomIdx() in kept or bond.GetEndAtomIdx() in kept
    }
    if any(ends[number].GetIsAromatic() for number in cut):
        # A piece of an aromatic ring has no aromatic form: write its double bonds out.
        molecule = chem.Mol(molecule)
        chem.Kekulize(molecule, clearAromaticFlags=True)
    labels = [(0, 0)] * len(cut)
    pieces = chem.FragmentOnBonds(molecule, sorted(cut), dummyLabels=labels) if cut else molecule
    marks = [
        atom.GetIdx()
        for atom in islice(_atoms(pieces), molecule.GetNumAtoms(), None)
        if atom.GetNeighbors()[0].GetIdx() in kept
    ]
    text = chem.MolFragmentToSmiles(pieces, [*kept, *marks])
    whole = chem.MolFromSmiles(text)  # aromatic again where a whole ring is kept
    return text if whole is None else chem.MolToSmiles(whole)
