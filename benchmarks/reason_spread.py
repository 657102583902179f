"""How much of a known reason is kept, over splits and seeds, trained as `cores train` would.

    python benchmarks/reason_spread.py benzene.csv --smarts c1ccccc1 --splits 1-8 --seeds 0,1

A line of JSON per run: the share of the atoms that is kept, and of the pattern's atoms, in those
molecules that are predicted positive (the last class) and match it. Measured on the selection and
calibration parts, so that defaults may be chosen by it; nothing is predicted for the test part.
"""

import argparse
import json
from pathlib import Path
from statistics import mean

import torch
from rdkit import Chem

from cores.cli.values import numbers
from cores.config import merged
from cores.config.presets import own_data_settings, preset_config
from cores.data.dataset import Dataset
from cores.data.datasets import load_dataset
from cores.evaluation.predictions import predict
from cores.runs.device import tuned_cpu
from cores.runs.fit import PreparedData, fit_model
from cores.tasks.metrics import balanced_accuracy


@tuned_cpu()
def measured(dataset: Dataset, pattern: Chem.Mol, split: int, seed: int) -> dict[str, float]:
    """A run's kept share, and its share of the pattern."""
    settings = merged(own_data_settings(len(dataset)), {"split": split, "seed": seed})
    config = preset_config(dataset.name, "cores-node", "gin", "default", settings)
    data = PreparedData.of(dataset, config, torch.device("cpu"))
    model = fit_model(config, data).trained.model
    chosen = torch.cat([data.split.selection, data.split.calibration])
    graphs = data.graphs.subset(chosen)
    found = predict(model, graphs)
    kept = (~found.removed_nodes).split(graphs.num_nodes.tolist())
    positive = found.probs.argmax(dim=-1) == graphs.y.max()
    recall = []
    for graph, atoms_kept, counts in zip(chosen.tolist(), kept, positive.tolist(), strict=True):
        molecule = Chem.MolFromSmiles(dataset.smiles[graph])
        matches = molecule.GetSubstructMatches(pattern, maxMatches=1000)
        atoms = sorted({atom for match in matches for atom in match})
        if counts and atoms:
            recall.append(float(atoms_kept[atoms].float().mean()))
    return {
        "balanced_accuracy": balanced_accuracy(found.probs, graphs.y),
        "node_ratio": float(found.node_ratio.mean()),
        "recall": mean(recall) if recall else float("nan"),
    }


def main() -> None:
    """Print a line per run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("molecules", type=Path)
    parser.add_argument("--smarts", required=True)
    parser.add_argument("--splits", default="1")
    parser.add_argument("--seeds", default="0")
    options = parser.parse_args()
    dataset, pattern = load_dataset(options.molecules), Chem.MolFromSmarts(options.smarts)
    for split in numbers(options.splits, "--splits", first=1):
        for seed in numbers(options.seeds, "--seeds", first=0):
            found = measured(dataset, pattern, split, seed)
            print(json.dumps({"split": split, "seed": seed} | found), flush=True)


if __name__ == "__main__":
    main()
