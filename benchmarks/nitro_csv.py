"""Make a file of molecules with a rule that is known: does it contain a nitro group?

    python benchmarks/nitro_csv.py --molecules 2000 --positives 0.05 --out nitro.csv

The molecules are made from small rings and chains with substituents. Some substituents that are no
nitro groups share its atoms and charges, so that an element alone does not decide.
"""

import argparse
import csv
import random
from pathlib import Path

from rdkit import Chem

CORES = (
    "c1ccc({0})cc1{1}", "c1cc({0})ncc1{1}", "c1({0})ccc({1})cc1", "C1CCC({0})CC1{1}",
    "C1CC({0})OC1{1}", "C1CN({0})CCC1{1}", "CC({0})CC{1}", "CCC({0})CCC{1}", "c1c({0})[nH]cc1{1}",
    "c1sc({0})cc1{1}", "C({0})OCC{1}", "c1ccc2c(c1)cc({0})cc2{1}", "O=C(NC{0})CC{1}",
    "C1CC({0})C1{1}", "c1oc({0})cc1{1}", "CC(C)({0})CC{1}",
)  # fmt: skip
OTHERS = (
    "O", "N", "F", "Cl", "Br", "C", "CC", "OC", "C#N", "C(=O)O", "C(=O)N", "C(F)(F)F", "C=O",
    "S(=O)(=O)C", "N(C)C", "C(=O)[O-]", "[N+](C)(C)C", "C(=O)OC", "N=O", "N=[N+]=[N-]", "CCO", "SC",
)  # fmt: skip
NITRO = "[N+](=O)[O-]"


def made(random_state: random.Random, positive: bool) -> str:
    """One molecule, as canonical SMILES."""
    core = random_state.choice(CORES)
    first, second = random_state.choice(OTHERS), random_state.choice(OTHERS)
    if positive:
        first, second = random_state.sample([NITRO, second], 2)
    if random_state.random() < 0.5:
        second = "C" * random_state.randint(1, 4) + second
    molecule = Chem.MolFromSmiles(core.format(first, second))
    return "" if molecule is None else Chem.MolToSmiles(molecule)


def molecules(count: int, share: float, seed: int) -> list[tuple[str, int]]:
    """As many distinct molecules, of which a share has a nitro group."""
    random_state = random.Random(seed)
    pattern = Chem.MolFromSmarts(NITRO)
    found: dict[str, int] = {}
    wanted = {1: round(count * share), 0: count - round(count * share)}
    while len(found) < count:
        label = int(sum(found.values()) < wanted[1])
        smiles = made(random_state, bool(label))
        if smiles and Chem.MolFromSmiles(smiles).HasSubstructMatch(pattern) == bool(label):
            found.setdefault(smiles, label)
    rows = list(found.items())
    random_state.shuffle(rows)
    return rows


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--molecules", type=int, default=2000)
    parser.add_argument("--positives", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows = molecules(options.molecules, options.positives, options.seed)
    with options.out.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "smiles", "nitro"])
        table.writerows(
            (f"mol{number}", smiles, label) for number, (smiles, label) in enumerate(rows)
        )


if __name__ == "__main__":
    main()
