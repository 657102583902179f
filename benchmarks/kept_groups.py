"""What do models keep of molecules: which functional groups, and how much of a known reason?

    python benchmarks/kept_groups.py runs RUN… --class NAME [--smarts PATTERN]
    python benchmarks/kept_groups.py table predictions.csv molecules.csv --smarts PATTERN

``runs`` prints, for the elements and groups (RDKit's fragments) that most test molecules of a
predicted class have, the share of their atoms that is kept, mean and deviation over the runs,
beside the share of all atoms that is kept: chance. The runs are of a file with SMILES, or of a
dataset whose atoms are known (MUTAG, PTC, Mutagenicity, Benzene).

``table`` reads what ``cores predict`` wrote, and the SMILES of the same molecules in the same
order; their labels, if there are any, give accuracy and coverage. For molecules that are predicted
to be of the class and match the pattern: the share of the pattern's atoms that is kept, and of the
kept atoms that are the pattern's.
"""

import json
from collections import defaultdict
from pathlib import Path
from statistics import fmean

from rdkit import Chem

from cores.explain.atoms import atom_map
from cores.explain.explained import explained_graphs
from cores.explain.run import held_out_graphs
from cores.explain.survey import Kept, KeptChemistry, Part
from cores.runs.device import tuned_cpu
from cores.runs.inputs import PredictOptions
from cores.runs.opened import Run
from cores_paper.tables.table import Table
from inputs import parser, read_rows, spread

FEWEST_RUNS = 2
"""That must have a group for its line, where there are as many."""
MOST = 12
"""Lines of elements, and of groups."""


def matched(molecule: Chem.Mol, smarts: str) -> set[int]:
    """Find the atoms that a pattern matches somewhere."""
    matches = molecule.GetSubstructMatches(Chem.MolFromSmarts(smarts), maxMatches=1000)
    return {atom for match in matches for atom in match}


def kept_of(run: Path, predicted: str, smarts: str | None, data_root: Path | None) -> Kept:
    """Count what the model of a run keeps of its test molecules of a class."""
    predictor = Run.open(run, PredictOptions(), device="cpu")
    trained, chemistry = predictor.trained, KeptChemistry()
    for chunk in held_out_graphs(predictor, data_root):
        for graph in explained_graphs(chunk, trained, atom_map(trained.config.dataset)):
            if graph.molecule is None:
                raise SystemExit(f"{run} has no molecules")
            chemistry.add(graph)
            if smarts is not None and (found := matched(graph.molecule, smarts)):
                kept = sum(graph.marked[atom] for atom in found)
                chemistry.classes[graph.prediction].groups[smarts].add(len(found), kept)
    return chemistry.classes[predicted]


def line(name: str, parts: list[tuple[Part, Kept]]) -> list[str]:
    """Write a line of the table."""
    shares = [part.share for part, _ in parts]
    molecules = sum(part.molecules for part, _ in parts)
    lift = fmean(kept.lift(part) for part, kept in parts)
    return [name, str(molecules), spread(shares, 2), f"{lift:.2f}"]


def tell_runs(found: list[Kept]) -> None:
    """Print the groups that most molecules have."""
    rows = [line("all atoms", [(kept.all, kept) for kept in found])]
    for kind in ("elements", "groups"):
        parts: dict[str, list[tuple[Part, Kept]]] = defaultdict(list)
        for kept in found:
            for name, part in getattr(kept, kind).items():
                parts[name].append((part, kept))
        known = {n: each for n, each in parts.items() if len(each) >= min(FEWEST_RUNS, len(found))}
        frequent = sorted(known, key=lambda name: -sum(part.molecules for part, _ in known[name]))
        rows += [line(name, known[name]) for name in frequent[:MOST]]
    print(Table(["part", "molecules", "share kept", "lift"], rows).markdown())


def tell_table(predictions: Path, molecules: Path, smarts: str, positive: str, label: str) -> None:
    """Print how much of a pattern is kept in predicted molecules."""
    recall, precision, right, covered, ratio = [], [], [], [], []
    for predicted, given in zip(read_rows(predictions), read_rows(molecules), strict=True):
        ratio.append(float(predicted["node_ratio"]))
        if label in given:
            right.append(predicted["prediction"] == given[label])
            covered.append(given[label] in map(str, json.loads(predicted["prediction_set"])))
        atoms = matched(Chem.MolFromSmiles(given["smiles"]), smarts)
        kept = set(json.loads(predicted["kept_nodes"]))
        if atoms and predicted["prediction"] == positive:
            recall.append(len(atoms & kept) / len(atoms))
            precision.append(len(atoms & kept) / len(kept))
    print(f"molecules {len(ratio)}, share of atoms kept {fmean(ratio):.3f}")
    if right:
        print(f"accuracy {fmean(right):.3f}, coverage {fmean(covered):.3f}")
    print(
        f"positive and matching {len(recall)}: recall of the pattern's atoms {fmean(recall):.3f}, "
        f"precision {fmean(precision):.3f}"
    )


def main() -> None:
    """Print what is kept."""
    options = parser(__doc__)
    options.add_argument("what", choices=["runs", "table"])
    options.add_argument("inputs", nargs="+", type=Path, help="runs, or the two tables")
    options.add_argument("--class", dest="predicted", default="1", help="default: 1")
    options.add_argument("--smarts", help="a group to look for")
    options.add_argument("--data-root", type=Path, metavar="FOLDER")
    options.add_argument("--label-column", default="label")
    given = options.parse_args()
    if given.what == "table":
        predictions, molecules = given.inputs
        tell_table(predictions, molecules, given.smarts, given.predicted, given.label_column)
        return
    with tuned_cpu():
        kept = [
            kept_of(run, given.predicted, given.smarts, given.data_root) for run in given.inputs
        ]
    tell_runs([each for each in kept if each.all.molecules])


if __name__ == "__main__":
    main()
