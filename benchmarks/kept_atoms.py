"""How much of a known reason is in the kept parts of predicted molecules.

    python benchmarks/kept_atoms.py predictions.csv molecules.csv --smarts c1ccccc1 --positive 1

Reads what ``cores predict`` wrote, and the SMILES of the same molecules in the same order; their
labels, if there are any, give accuracy and coverage. For molecules that are predicted positive and
match the pattern: the share of the pattern's atoms that is kept, and of the kept atoms that are the
pattern's.
"""

import argparse
import csv
import json
from pathlib import Path
from statistics import mean

from rdkit import Chem


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a table."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def main() -> None:
    """Print the measures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("predictions", type=Path)
    parser.add_argument("molecules", type=Path)
    parser.add_argument("--smarts", required=True)
    parser.add_argument("--positive", default="1")
    parser.add_argument("--smiles-column", default="smiles")
    parser.add_argument("--label-column", default="label")
    options = parser.parse_args()
    pattern = Chem.MolFromSmarts(options.smarts)
    recall, precision, right, covered = [], [], [], []
    pairs = list(zip(rows_of(options.predictions), rows_of(options.molecules), strict=True))
    for predicted, given in pairs:
        if options.label_column in given:
            label = given[options.label_column]
            right.append(predicted["prediction"] == label)
            covered.append(label in map(str, json.loads(predicted["prediction_set"])))
        molecule = Chem.MolFromSmiles(given[options.smiles_column])
        matches = molecule.GetSubstructMatches(pattern, maxMatches=1000)
        atoms = {atom for match in matches for atom in match}
        kept = set(json.loads(predicted["kept_nodes"]))
        if atoms and predicted["prediction"] == options.positive:
            recall.append(len(atoms & kept) / len(atoms))
            precision.append(len(atoms & kept) / len(kept))
    ratio = mean(float(predicted["node_ratio"]) for predicted, _ in pairs)
    print(f"molecules {len(pairs)}, share of atoms kept {ratio:.3f}")
    if right:
        print(f"accuracy {mean(right):.3f}, coverage {mean(covered):.3f}")
    print(
        f"positive and matching {len(recall)}: recall of the pattern's atoms {mean(recall):.3f}, "
        f"precision {mean(precision):.3f}"
    )


if __name__ == "__main__":
    main()
