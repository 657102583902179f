"""Which functional groups do models keep? Test molecules of several runs, by predicted class.

    python benchmarks/kept_groups.py RUN… --class NAME [--smarts PATTERN]

Prints, for the elements and groups that most molecules have, the share of their atoms that is kept,
mean and deviation over the runs, beside the share of all atoms that is kept: chance. Groups are
RDKit's fragments. The runs are of molecules: of a file with SMILES, or of a dataset whose atoms are
known (MUTAG, PTC, Mutagenicity, Benzene).
"""

import argparse
from collections import defaultdict
from pathlib import Path
from statistics import fmean, stdev

from rdkit import Chem

from cores.explain.atoms import atom_map
from cores.explain.explained import explained_graphs
from cores.explain.fragments import Kept, KeptChemistry, Part
from cores.explain.inputs import held_out_graphs
from cores.runs.device import tuned_cpu
from cores.runs.inputs import PredictOptions
from cores.runs.predictor import Predictor
from cores.runs.table import Table

FEWEST_RUNS = 2
"""That must have a group for its line, where there are as many."""


def kept_of(run: Path, predicted: str, smarts: str | None, data_root: Path | None) -> Kept:
    """What the model of a run keeps of its test molecules of a class."""
    predictor = Predictor(run, PredictOptions(), "cpu")
    trained = predictor.trained
    atoms = atom_map(trained.config.dataset)
    pattern = None if smarts is None else Chem.MolFromSmarts(smarts)
    chemistry = KeptChemistry()
    for chunk in held_out_graphs(predictor, data_root):
        for graph in explained_graphs(chunk, trained, atoms):
            if graph.molecule is None:
                raise SystemExit(f"{run} has no molecules")
            chemistry.add(graph)
            matches = () if pattern is None else graph.molecule.GetSubstructMatches(pattern)
            found = {atom for match in matches for atom in match}
            if smarts is not None and found:
                kept = sum(graph.marked[atom] for atom in found)
                chemistry.classes[graph.prediction].groups[smarts].add(len(found), kept)
    return chemistry.classes[predicted]


def line(name: str, parts: list[tuple[Part, Kept]]) -> list[str]:
    """Of the table."""
    shares = [part.share for part, _ in parts]
    lifts = [kept.lift(part) for part, kept in parts]
    spread = f" ± {stdev(shares):.2f}" if len(shares) > 1 else ""
    molecules = sum(part.molecules for part, _ in parts)
    return [name, str(molecules), f"{fmean(shares):.2f}{spread}", f"{fmean(lifts):.2f}"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--class", dest="predicted", required=True)
    parser.add_argument("--smarts", help="another group to count")
    parser.add_argument("--data-root", type=Path, default=None)
    parser.add_argument("--most", type=int, default=12, help="lines of groups")
    options = parser.parse_args()
    with tuned_cpu():
        found = [
            kept_of(run, options.predicted, options.smarts, options.data_root)
            for run in options.runs
        ]
    found = [kept for kept in found if kept.all.molecules]
    elements, groups = defaultdict(list), defaultdict(list)
    for kept in found:
        for name, part in kept.elements.items():
            elements[name].append((part, kept))
        for name, part in kept.groups.items():
            groups[name].append((part, kept))
    rows = [line("all atoms", [(kept.all, kept) for kept in found])]
    for parts in (elements, groups):
        known = {
            name: each for name, each in parts.items() if len(each) >= min(FEWEST_RUNS, len(found))
        }
        frequent = sorted(known, key=lambda name: -sum(part.molecules for part, _ in known[name]))
        rows += [line(name, known[name]) for name in frequent[: options.most]]
    print(Table(["part", "molecules", "share kept", "lift"], rows).markdown())


if __name__ == "__main__":
    main()
