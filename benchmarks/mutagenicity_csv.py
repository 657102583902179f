"""The TU dataset Mutagenicity as a CSV file of SMILES, for programs that read molecules.

    python benchmarks/mutagenicity_csv.py --data-root DATA --out mutagenicity.csv

The dataset gives elements, explicit hydrogens and the orders of bonds, but no charges; these follow
from the valences, e.g. +1 for a nitrogen with four bonds and -1 for an oxygen with one. A molecule
is dropped if its bonds are not all there (large molecules of the dataset were cut off), or if RDKit
cannot sanitise it. The label is 1 for mutagens, the dataset's class 0.
"""

from pathlib import Path
from typing import Any

from rdkit import Chem, rdBase

from cores import load_dataset
from inputs import parser, write_rows

ELEMENTS = ("C", "O", "Cl", "H", "N", "F", "Br", "S", "P", "I", "Na", "K", "Li", "Ca")
ORDERS = (Chem.BondType.SINGLE, Chem.BondType.DOUBLE, Chem.BondType.TRIPLE)
CHARGES = {
    ("N", 4): 1, ("N", 2): -1, ("O", 1): -1, ("O", 3): 1, ("S", 1): -1, ("S", 3): 1, ("P", 4): 1,
    ("Cl", 0): -1, ("Br", 0): -1, ("I", 0): -1, ("Na", 0): 1, ("K", 0): 1, ("Li", 0): 1,
    ("Ca", 0): 2,
}  # fmt: skip
"""By element and sum of bond orders."""
NEUTRAL = {
    "C": {4}, "H": {1}, "N": {3}, "O": {2}, "S": {2, 4, 6}, "P": {3, 5}, "F": {1}, "Cl": {1, 7},
    "Br": {1}, "I": {1, 7},
}  # fmt: skip
"""Sums of bond orders without a charge."""
MUTAGEN = "0"
"""Class of the mutagens, by the list of labels that comes with the dataset."""


def to_smiles(graph: Any) -> str | None:
    """The molecule of a graph with one-hot elements and orders of bonds; None if it is none."""
    mol = Chem.RWMol()
    names = [ELEMENTS[number] for number in graph.x.argmax(dim=1).tolist()]
    for name in names:
        atom = Chem.Atom(name)
        atom.SetNoImplicit(True)
        mol.AddAtom(atom)
    sums = [0] * len(names)
    orders = graph.edge_attr.argmax(dim=1).tolist()
    for (first, second), order in zip(graph.edge_index.t().tolist(), orders, strict=True):
        sums[first] += order + 1
        if first < second:
            mol.AddBond(first, second, ORDERS[order])
    for number, (name, total) in enumerate(zip(names, sums, strict=True)):
        if total in NEUTRAL.get(name, ()):
            continue
        if (name, total) not in CHARGES:
            return None
        mol.GetAtomWithIdx(number).SetFormalCharge(CHARGES[name, total])
    try:
        Chem.SanitizeMol(mol)
        text = str(Chem.MolToSmiles(Chem.RemoveHs(mol)))
    except (ValueError, RuntimeError):
        return None
    return text if Chem.MolFromSmiles(text) is not None else None


def main() -> None:
    """Convert what can be, and say how many."""
    options = parser(__doc__)
    options.add_argument("--data-root", required=True, help="folder with tu/Mutagenicity.zip")
    options.add_argument("--out", type=Path, required=True, help="CSV file to write")
    given = options.parse_args()
    rdBase.DisableLog("rdApp.*")
    dataset = load_dataset("Mutagenicity", given.data_root)
    rows = [
        (f"mutagenicity-{number}", smiles, int(dataset.class_names[int(graph.y)] == MUTAGEN))
        for number, graph in enumerate(dataset, 1)
        if (smiles := to_smiles(graph)) is not None
    ]
    write_rows(given.out, ("id", "smiles", "label"), rows)
    print(f"{len(rows)} of {len(dataset)} molecules written to {given.out}")


if __name__ == "__main__":
    main()
