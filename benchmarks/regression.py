"""A regression whose reasons are known: a number that is a sum over the atoms of a molecule.

Crippen's logP is one, to which every atom contributes; the number of rotatable bonds is another, to
which only their ends do. The size of an atom's contribution is the ground truth of how much it
matters. Molecules come from a table of SMILES; a part of them is set aside, a plain GNN and CORES
are fitted on the rest, and both are measured on what was set aside: mean errors, the share that is
kept, the rank correlation of the probability of keeping an atom with the size of its contribution,
and the coverage of prediction intervals over resplits of calibration and test molecules.

    python benchmarks/regression.py benzene.csv --target logp --molecules 2000 --epochs 170
    python benchmarks/regression.py benzene.csv --target rotatable --molecules 2000

With ``--chemprop PATH/bin/chemprop`` its network is trained at its defaults, too, on the same
molecules, of which it takes a ninth to choose its epoch, and measured on those that were set aside.
"""

import argparse
import csv
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import spearmanr

from chemprop_peer import timed
from cores import Cores
from cores.config import SetsConfig
from cores.tasks.calibration import ValueCalibration

FRESH = 0.2
"""Share of the molecules that no model sees before it is measured."""
RESPLITS = 50
ALPHA = 0.1


def logp_contributions(smiles: str) -> NDArray[np.float64]:
    """Crippen's contribution of every heavy atom to logP, those of its hydrogens included."""
    from rdkit import Chem
    from rdkit.Chem import rdMolDescriptors

    full = Chem.AddHs(Chem.MolFromSmiles(smiles))
    parts = [logp for logp, _ in rdMolDescriptors._CalcCrippenContribs(full)]
    heavy = [atom for atom in full.GetAtoms() if atom.GetAtomicNum() > 1]
    return np.array(
        [
            parts[atom.GetIdx()]
            + sum(parts[each.GetIdx()] for each in atom.GetNeighbors() if each.GetAtomicNum() == 1)
            for atom in heavy
        ]
    )


def rotatable_contributions(smiles: str) -> NDArray[np.float64]:
    """Half of every rotatable bond that an atom is an end of."""
    from rdkit import Chem
    from rdkit.Chem.Lipinski import RotatableBondSmarts

    mol = Chem.MolFromSmiles(smiles)
    parts = np.zeros(mol.GetNumAtoms())
    for bond in mol.GetSubstructMatches(RotatableBondSmarts):
        parts[list(bond)] += 0.5
    return parts


TARGETS = {"logp": logp_contributions, "rotatable": rotatable_contributions}


def read_smiles(path: Path, count: int) -> list[str]:
    """The first molecules of a table that have no explicit hydrogens."""
    with path.open(newline="") as file:
        found = [row["smiles"] for row in csv.DictReader(file)]
    return [smiles for smiles in found if "[H]" not in smiles][:count]


def write_table(path: Path, **columns: list[Any]) -> None:
    """A table that `cores train --task regression` reads, and chemprop."""
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(columns)
        table.writerows(zip(*columns.values(), strict=True))


def chemprop_measured(
    command: Path, folder: Path, smiles: list[str], targets: list[float], test: int
) -> dict[str, float]:
    """Chemprop at its defaults, trained on all molecules but the last, on which it is measured."""
    parts = ["val" if number % 9 == 8 else "train" for number in range(len(smiles) - test)]
    data, held_out, found = (folder / name for name in ("data.csv", "test.csv", "found.csv"))
    write_table(data, smiles=smiles, target=targets, split=[*parts, *(["test"] * test)])
    write_table(held_out, smiles=smiles[-test:])
    common = ("--smiles-columns", "smiles", "--accelerator", "cpu", "--devices", "1")
    seconds, _ = timed(
        [
            *(command, "train", "--data-path", data, "--output-dir", folder / "run", *common),
            *("--target-columns", "target", "--splits-column", "split"),
            *("--task-type", "regression", "--pytorch-seed", "0"),
        ],
        folder / "train.log",
    )
    best = folder / "run" / "model_0" / "best.pt"
    timed(
        [
            *(command, "predict", "--test-path", held_out, "--output", found, *common),
            *("--model-paths", best),
        ],
        folder / "predict.log",
    )
    with found.open(newline="") as file:
        predicted = [float(row["target"]) for row in csv.DictReader(file)]
    errors = np.array(predicted) - np.array(targets[-test:])
    return {"mae": float(np.abs(errors).mean()), "seconds": seconds}


def measured(
    model: Cores, graphs: list[Any], targets: list[float], parts: list[NDArray[np.float64]]
) -> dict[str, float]:
    """A fitted model on molecules that it has not seen."""
    explained = model.explain(graphs)
    errors = np.array([each.prediction for each in explained]) - np.array(targets)
    found = {
        "mae": float(np.abs(errors).mean()),
        "node_ratio": float(np.mean([each.node_ratio for each in explained])),
        "coverage": resplit_coverage(model, errors),
    }
    scores = np.concatenate([each.node_score.numpy() for each in explained])
    if scores.std() > 0:
        sizes = np.abs(np.concatenate(parts))
        found["rank_correlation"] = float(spearmanr(scores, sizes).statistic)
    effects = [each.node_effect for each in explained if each.node_effect is not None]
    if effects:
        told = np.concatenate([each.numpy() for each in effects])
        found["effect_correlation"] = float(spearmanr(told, np.concatenate(parts)).statistic)
    return found


def resplit_coverage(model: Cores, errors: NDArray[np.float64]) -> float:
    """Mean coverage when calibration and new molecules are mixed and divided anew, 50 times."""
    known = model._trained.calibration
    residuals = torch.cat([known.labels - known.probs[:, 0], -torch.from_numpy(errors).float()])
    generator = torch.Generator().manual_seed(0)
    found = []
    for _ in range(RESPLITS):
        order = residuals[torch.randperm(len(residuals), generator=generator)]
        half = len(order) // 2
        calibration = ValueCalibration(torch.zeros(half, 1), order[:half])
        intervals = calibration.sets(torch.zeros(len(order) - half, 1), ALPHA, SetsConfig())
        found.append(ValueCalibration.set_metrics(intervals, order[half:])["coverage"])
    return float(np.mean(found))


def compared(
    graphs: list[Any],
    targets: list[float],
    parts: list[NDArray[np.float64]],
    settings: dict[str, Any],
    epochs: int | None,
    device: str = "auto",
) -> dict[str, Any]:
    """A plain GNN and CORES, fitted on the first graphs and measured on the last ones."""
    last = len(graphs) - round(FRESH * len(graphs))
    found: dict[str, Any] = {"molecules": last}
    for name, removal in (("gnn", None), ("cores-node", "node")):
        own = settings if removal else {}
        model = Cores(removal, epochs=epochs, device=device, settings=own, task="regression")
        model.fit(graphs[:last], targets[:last])
        found[name] = measured(model, graphs[last:], targets[last:], parts[last:])
        told = ("full_mae", "judge_mae", "judge_random_mae", "tolerance", "seconds")
        found[name] |= {key: model.metrics_[key] for key in told if key in model.metrics_}
    found["mae_ratio"] = found["cores-node"]["mae"] / found["gnn"]["mae"]
    return found


def main() -> None:
    """Print what was measured as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path, help="CSV with a column smiles")
    parser.add_argument("--target", choices=TARGETS, default="logp")
    parser.add_argument("--molecules", type=int, default=2000)
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--settings", type=json.loads, default={}, help="of CORES, as JSON")
    parser.add_argument("--csv", type=Path, default=None, help="also write the table of targets")
    parser.add_argument("--chemprop", type=Path, default=None, help="its command, to compare with")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    smiles = read_smiles(options.table, options.molecules)
    parts = [TARGETS[options.target](each) for each in smiles]
    targets = [float(each.sum()) for each in parts]
    if options.csv is not None:
        write_table(options.csv, smiles=smiles, target=targets)
    found = compared(smiles, targets, parts, options.settings, options.epochs, options.device)
    if options.chemprop is not None:
        test = len(smiles) - found["molecules"]
        with tempfile.TemporaryDirectory() as folder:
            found["chemprop"] = chemprop_measured(
                options.chemprop, Path(folder), smiles, targets, test
            )
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
