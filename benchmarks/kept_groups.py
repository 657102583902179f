"""How much of a known reason is kept of molecules, and how much of what is kept is the reason?

    python benchmarks/kept_groups.py predictions.csv molecules.csv --smarts PATTERN

Reads what ``cores predict`` wrote, and the SMILES of the same molecules in the same order; their
labels, if there are any, give accuracy and coverage. For molecules that are predicted to be of the
class and match the pattern: the share of the pattern's atoms that is kept, and of the kept atoms
that are the pattern's.
"""

import json
from pathlib import Path
from statistics import fmean

from rdkit import Chem

from inputs import matched, parser, read_rows


def main() -> None:
    """Print what is kept."""
    options = parser(__doc__)
    options.add_argument("predictions", type=Path)
    options.add_argument("molecules", type=Path)
    options.add_argument("--smarts", required=True, help="the atoms that decide")
    options.add_argument("--class", dest="predicted", default="1", help="default: 1")
    options.add_argument("--label-column", default="label")
    given = options.parse_args()
    recall, precision, right, covered, ratio = [], [], [], [], []
    for row, molecule in zip(read_rows(given.predictions), read_rows(given.molecules), strict=True):
        ratio.append(float(row["node_ratio"]))
        if label := molecule.get(given.label_column):
            right.append(row["prediction"] == label)
            covered.append(label in map(str, json.loads(row["prediction_set"])))
        atoms = matched(Chem.MolFromSmiles(molecule["smiles"]), given.smarts)
        kept = set(json.loads(row["kept_nodes"]))
        if atoms and row["prediction"] == given.predicted:
            recall.append(len(atoms & kept) / len(atoms))
            precision.append(len(atoms & kept) / len(kept))
    print(f"molecules {len(ratio)}, share of atoms kept {fmean(ratio):.3f}")
    if right:
        print(f"accuracy {fmean(right):.3f}, coverage {fmean(covered):.3f}")
    print(
        f"positive and matching {len(recall)}: recall of the pattern's atoms {fmean(recall):.3f}, "
        f"precision {fmean(precision):.3f}"
    )


if __name__ == "__main__":
    main()
