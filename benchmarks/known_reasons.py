"""CORES on molecules whose reasons are known, beside plain networks.

    python benchmarks/known_reasons.py logp benzene.csv --molecules 2000 --epochs 170
    python benchmarks/known_reasons.py rotatable benzene.csv --molecules 1500
    python benchmarks/known_reasons.py labels benzene.csv --molecules 2000 --epochs 60

``logp`` and ``rotatable`` are numbers that are sums over atoms: to Crippen's logP every atom
contributes, to the number of rotatable bonds only their ends. The size of an atom's contribution is
the ground truth of how much it matters. Measured are mean errors, the share that is kept, the rank
correlation of the probability of keeping an atom with the size of its contribution, and the
coverage of prediction intervals over resplits of calibration and test molecules. With ``--chemprop
PATH/bin/chemprop`` its network is trained at its defaults, too, on the same molecules, of which it
takes a ninth to choose its epoch.

``labels`` say whether a molecule has a benzene ring, a carbonyl group or a halogen; a share of
their values is left out. One plain GNN that predicts all three is compared with three that predict
one each, by their ROC-AUC on all values; CORES is fitted to all three, and the share of each
substructure's atoms that it keeps is measured, beside the share of all atoms.

All models are fitted on the first molecules and measured on the last fifth.
"""

import argparse
import json
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rdkit import Chem
from rdkit.Chem import rdMolDescriptors
from rdkit.Chem.Lipinski import RotatableBondSmarts
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from chemprop_peer import Chemprop
from cores import Cores
from cores.conformal import conformal_quantile
from inputs import matched, parser, read_rows, write_rows

FRESH = 0.2
"""Share of the molecules that no model sees before it is measured."""
RESPLITS = 50
ALPHA = 0.1
LABELS = {"benzene": "c1ccccc1", "carbonyl": "[CX3]=[OX1]", "halogen": "[F,Cl,Br,I]"}
"""What a molecule must have, as SMARTS, by label."""
Array = NDArray[Any]


def logp(smiles: str) -> Array:
    """Crippen's contribution of every heavy atom to logP, those of its hydrogens included."""
    full = Chem.AddHs(Chem.MolFromSmiles(smiles))
    parts = [logp for logp, _ in rdMolDescriptors._CalcCrippenContribs(full)]
    return np.array(
        [
            parts[atom.GetIdx()]
            + sum(parts[each.GetIdx()] for each in atom.GetNeighbors() if each.GetAtomicNum() == 1)
            for atom in full.GetAtoms()
            if atom.GetAtomicNum() > 1
        ]
    )


def rotatable(smiles: str) -> Array:
    """Half of every rotatable bond that an atom is an end of."""
    molecule = Chem.MolFromSmiles(smiles)
    parts = np.zeros(molecule.GetNumAtoms())
    for bond in molecule.GetSubstructMatches(RotatableBondSmarts):
        parts[list(bond)] += 0.5
    return parts


TARGETS = {"logp": logp, "rotatable": rotatable}


def compare_sums(smiles: list[str], given: argparse.Namespace) -> dict[str, Any]:
    """Fit a plain GNN and CORES to a sum over atoms."""
    parts = [TARGETS[given.target](each) for each in smiles]
    targets = [float(each.sum()) for each in parts]
    last = len(smiles) - round(FRESH * len(smiles))
    found: dict[str, Any] = {"molecules": last}
    for name, removal in (("gnn", None), ("cores-node", "node")):
        own = given.settings if removal else {}
        model = Cores(
            removal, epochs=given.epochs, device=given.device, settings=own, task="regression"
        )
        model.fit(smiles[:last], targets[:last])
        found[name] = measured_sums(model, smiles[last:], np.array(targets[last:]), parts[last:])
        told = ("full_mae", "judge_mae", "judge_random_mae", "tolerance", "seconds")
        found[name] |= {key: model.metrics_[key] for key in told if key in model.metrics_}
    found["mae_ratio"] = found["cores-node"]["mae"] / found["gnn"]["mae"]
    if given.chemprop is not None:
        found["chemprop"] = chemprop(given.chemprop, smiles, targets, last)
    return found


def measured_sums(
    model: Cores, smiles: list[str], targets: Array, parts: list[Array]
) -> dict[str, float]:
    """Measure a fitted model on molecules that it has not seen."""
    explained = model.explain(smiles)
    errors = np.array([each.prediction for each in explained]) - targets
    found = {
        "mae": float(np.abs(errors).mean()),
        "node_ratio": float(np.mean([each.node_ratio for each in explained])),
        "coverage": resplit_coverage(model, errors),
    }
    contributions = np.concatenate(parts)
    scores = np.concatenate([each.node_score.numpy() for each in explained])
    if scores.std() > 0:
        found["rank_correlation"] = float(spearmanr(scores, np.abs(contributions)).statistic)
    effects = [each.node_effect for each in explained if each.node_effect is not None]
    if effects:
        told = np.concatenate([each.numpy() for each in effects])
        found["effect_correlation"] = float(spearmanr(told, contributions).statistic)
    return found


def resplit_coverage(model: Cores, errors: Array) -> float:
    """Mean coverage when calibration and new molecules are mixed and divided anew, 50 times."""
    known = model._trained.calibration
    errors_known = known.labels - known.probs[:, 0]
    residuals = torch.cat([errors_known, torch.from_numpy(errors).float()]).abs()
    generator = torch.Generator().manual_seed(0)
    found = []
    for _ in range(RESPLITS):
        order = residuals[torch.randperm(len(residuals), generator=generator)]
        q_hat = conformal_quantile(order[: len(order) // 2], ALPHA)
        found.append(float((order[len(order) // 2 :] <= q_hat).double().mean()))
    return float(np.mean(found))


def chemprop(command: Path, smiles: list[str], targets: list[float], last: int) -> dict[str, float]:
    """Train chemprop on all molecules but the last, on which it is measured."""
    parts = ["val" if number % 9 == 8 else "train" for number in range(last)]
    parts += ["test"] * (len(smiles) - last)
    with tempfile.TemporaryDirectory() as name:
        folder, program = Path(name), Chemprop(command, task="regression")
        rows = list(zip(smiles, targets, parts, strict=True))
        write_rows(folder / "data.csv", ("smiles", "label", "split"), rows)
        write_rows(folder / "test.csv", ("smiles",), [[each] for each in smiles[last:]])
        seconds = program.train(folder / "data.csv", folder / "run", seed=0)
        _, predicted, _ = program.predict(folder / "test.csv", folder / "run")
    errors = np.array(predicted) - np.array(targets[last:])
    return {"mae": float(np.abs(errors).mean()), "seconds": seconds}


def matches(smiles: str) -> list[set[int]]:
    """Find the atoms of each label's substructure."""
    molecule = Chem.MolFromSmiles(smiles)
    return [matched(molecule, smarts) for smarts in LABELS.values()]


def compare_labels(smiles: list[str], given: argparse.Namespace) -> dict[str, Any]:
    """Fit plain GNNs and CORES to three labels, of which values are missing."""
    parts = [matches(each) for each in smiles]
    truth = np.array([[float(bool(atoms)) for atoms in row] for row in parts])
    gone = np.random.default_rng(given.seed).random(truth.shape) < given.missing
    labels = np.where(gone, np.nan, truth)
    last = len(smiles) - round(FRESH * len(smiles))
    fresh, answers = smiles[last:], truth[last:]

    def fitted(columns: list[int], removal: str | None) -> Cores:
        model = Cores(
            removal,
            task="multilabel",
            seed=given.seed,
            epochs=given.epochs,
            device=given.device,
            settings=given.settings,
        )
        return model.fit(smiles[:last], labels[:last][:, columns])

    def ranked(probs: Array) -> dict[str, Any]:
        auc = roc_auc_score(answers, probs, average=None)
        accuracy = float(((probs >= 0.5) == answers).mean())
        by_label = dict(zip(LABELS, auc.tolist(), strict=True))
        return {"roc_auc": float(auc.mean()), "label_roc_auc": by_label, "accuracy": accuracy}

    found: dict[str, Any] = {"molecules": last, "fresh": len(fresh)}
    if "gnn" in given.models:
        together = fitted([0, 1, 2], None)
        found["gnn, 3 labels"] = ranked(together.predict_proba(fresh))
        found["gnn, 3 labels"]["coverage"] = together.metrics_["coverage"]
        alone = [fitted([at], None).predict_proba(fresh) for at in range(len(LABELS))]
        found["3 gnn, 1 label each"] = ranked(np.concatenate(alone, axis=1))
    if "cores-node" in given.models:
        model = fitted([0, 1, 2], "node")
        told = ("full_roc_auc", "judge_roc_auc", "judge_random_roc_auc", "coverage", "set_size")
        found["cores-node"] = ranked(model.predict_proba(fresh))
        found["cores-node"] |= {name: model.metrics_[name] for name in (*told, "seconds")}
        explained = model.explain(fresh)
        kept = {"atoms": float(np.mean([each.node_ratio for each in explained]))}
        for at, name in enumerate(LABELS):
            both = zip(parts[last:], explained, strict=True)
            held = sum(len(row[at] & {*each.kept_nodes}) for row, each in both)
            kept[name] = held / sum(len(row[at]) for row in parts[last:])
        found["cores-node"]["kept"] = kept
    return found


def main() -> None:
    """Print what was measured as JSON."""
    options = parser(__doc__)
    options.add_argument("target", choices=[*TARGETS, "labels"])
    options.add_argument("table", type=Path, help="CSV with a column smiles")
    options.add_argument("--molecules", type=int, default=2000)
    options.add_argument("--epochs", type=int)
    options.add_argument("--settings", type=json.loads, default={}, help="of CORES, as JSON")
    options.add_argument("--device", default="auto")
    options.add_argument("--chemprop", type=Path, help="its command, for sums")
    options.add_argument("--missing", type=float, default=0.3, help="share of the labels' values")
    options.add_argument("--models", default="gnn,cores-node", help="for labels")
    options.add_argument("--seed", type=int, default=0, help="for labels")
    given = options.parse_args()
    smiles = [row["smiles"] for row in read_rows(given.table)]
    smiles = [each for each in smiles if "[H]" not in each]
    if given.target == "labels":
        some = random.Random(given.seed).sample(smiles, min(given.molecules, len(smiles)))
        found = compare_labels(some, given)
    else:
        found = compare_sums(smiles[: given.molecules], given)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
