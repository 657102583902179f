"""Several labels of molecules whose reasons are known: substructures, with values missing.

Three labels say whether a molecule has a benzene ring, a carbonyl group or a halogen; a seeded
share of their values is left out. One plain GNN that predicts all three is compared with three that
predict one each, on the same split and at the same settings, by their ROC-AUC on all values of the
molecules that were set aside; then CORES is fitted to all three, and the share of each
substructure's atoms that it keeps is measured, beside the share of all atoms.

    python benchmarks/labels.py benzene.csv --molecules 2000 --epochs 60 --csv labels.csv
"""

import argparse
import csv
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cores import Cores
from cores.tasks.metrics import label_accuracy, label_roc_auc

FRESH = 0.2
"""Share of the molecules that no model sees before it is measured."""
LABELS = {"benzene": "c1ccccc1", "carbonyl": "[CX3]=[OX1]", "halogen": "[F,Cl,Br,I]"}
"""What a molecule must have, as SMARTS, by label."""


def read_smiles(path: Path, count: int, seed: int) -> list[str]:
    """So many molecules of a table, drawn at random, without explicit hydrogens."""
    with path.open(newline="") as file:
        found = [row["smiles"] for row in csv.DictReader(file) if "[H]" not in row["smiles"]]
    return random.Random(seed).sample(found, min(count, len(found)))


def matches(smiles: list[str]) -> list[list[set[int]]]:
    """Of each molecule and label, the atoms of the substructure."""
    from rdkit import Chem

    patterns = [Chem.MolFromSmarts(each) for each in LABELS.values()]
    molecules = [Chem.MolFromSmiles(each) for each in smiles]
    return [
        [{atom for match in one.GetSubstructMatches(part) for atom in match} for part in patterns]
        for one in molecules
    ]


def with_missing(truth: NDArray[np.float64], share: float, seed: int) -> NDArray[np.float64]:
    """The labels with a share of the values left out."""
    gone = np.random.default_rng(seed).random(truth.shape) < share
    return np.where(gone, np.nan, truth)


def write_table(path: Path, smiles: list[str], labels: NDArray[np.float64]) -> None:
    """A table that `cores train --label-column benzene,carbonyl,halogen` reads."""
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["smiles", *LABELS])
        for each, row in zip(smiles, labels.tolist(), strict=True):
            table.writerow([each, *("" if np.isnan(value) else int(value) for value in row)])


def ranked(probs: NDArray[Any], truth: NDArray[np.float64]) -> dict[str, Any]:
    """How well values are predicted that are all known."""
    found = torch.from_numpy(probs), torch.from_numpy(truth)
    auc = dict(zip(LABELS, label_roc_auc(*found), strict=True))
    mean = float(np.mean([value for value in auc.values() if value is not None]))
    return {"roc_auc": mean, "label_roc_auc": auc, "accuracy": label_accuracy(*found)}


def kept_of_parts(model: Cores, smiles: list[str], parts: list[list[set[int]]]) -> dict[str, Any]:
    """The share of each substructure's atoms that is kept, and of all atoms."""
    explained = model.explain(smiles)
    kept = [{*each.kept_nodes} for each in explained]
    found: dict[str, Any] = {"atoms": float(np.mean([each.node_ratio for each in explained]))}
    for at, name in enumerate(LABELS):
        atoms = sum(len(row[at]) for row in parts)
        found[name] = (
            sum(len(row[at] & here) for row, here in zip(parts, kept, strict=True)) / atoms
        )
    return found


def compared(
    smiles: list[str], missing: float, seed: int, options: dict[str, Any], models: list[str]
) -> dict[str, Any]:
    """The models, fitted on the first molecules and measured on the last ones."""
    parts = matches(smiles)
    truth = np.array([[float(bool(atoms)) for atoms in row] for row in parts])
    labels = with_missing(truth, missing, seed)
    last = len(smiles) - round(FRESH * len(smiles))
    fresh, answers = smiles[last:], truth[last:]
    found: dict[str, Any] = {
        "molecules": last,
        "fresh": len(fresh),
        "share_of_1": dict(zip(LABELS, truth.mean(axis=0).round(3).tolist(), strict=True)),
    }

    def fitted(columns: list[int], removal: str | None) -> Cores:
        model = Cores(removal, task="multilabel", seed=seed, **options)
        return model.fit(smiles[:last], labels[:last][:, columns])

    if "gnn" in models:
        together = fitted([0, 1, 2], None)
        found["gnn, 3 labels"] = ranked(together.predict_proba(fresh), answers)
        found["gnn, 3 labels"] |= {"coverage": together.metrics_["coverage"]}
        alone = [fitted([at], None).predict_proba(fresh) for at in range(len(LABELS))]
        found["3 gnn, 1 label each"] = ranked(np.concatenate(alone, axis=1), answers)
    if "cores-node" in models:
        model = fitted([0, 1, 2], "node")
        found["cores-node"] = ranked(model.predict_proba(fresh), answers)
        told = ("full_roc_auc", "judge_roc_auc", "judge_random_roc_auc", "coverage", "set_size")
        found["cores-node"] |= {name: model.metrics_[name] for name in (*told, "seconds")}
        found["cores-node"]["kept"] = kept_of_parts(model, fresh, parts[last:])
    return found


def main() -> None:
    """Print what was measured as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path, help="CSV with a column smiles")
    parser.add_argument("--molecules", type=int, default=2000)
    parser.add_argument("--missing", type=float, default=0.3, help="share of the values")
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", nargs="+", default=["gnn", "cores-node"])
    parser.add_argument("--settings", type=json.loads, default={}, help="as JSON")
    parser.add_argument("--csv", type=Path, default=None, help="also write the table of labels")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--no-judge", action="store_true")
    asked = parser.parse_args()
    smiles = read_smiles(asked.table, asked.molecules, asked.seed)
    if asked.csv is not None:
        truth = np.array([[float(bool(atoms)) for atoms in row] for row in matches(smiles)])
        write_table(asked.csv, smiles, with_missing(truth, asked.missing, asked.seed))
    options = {
        "epochs": asked.epochs,
        "device": asked.device,
        "settings": asked.settings,
        "judge": not asked.no_judge,
    }
    print(json.dumps(compared(smiles, asked.missing, asked.seed, options, asked.models), indent=2))


if __name__ == "__main__":
    main()
