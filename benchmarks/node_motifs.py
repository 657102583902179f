"""Are the motifs found that decide the class of a node? Runs on BA_Shapes and Tree_Cycles.

    cores train --dataset Tree_Cycles --model cores-edge --out runs/cycles
    python benchmarks/node_motifs.py runs/cycles … [--part selection]

Prints a line per run: the accuracy on the nodes of a part, on full neighbourhoods and on what is
kept of them; the share of edges that is kept; and the ROC-AUC of the keep probabilities of the
edges, and of the nodes, against the motif of the node in question, over nodes that have one.
Settings are compared on the selection part; the test part is for figures that are reported.
"""

import argparse
from pathlib import Path

from cores.data.datasets import load_dataset
from cores.data.splits import split_dataset
from cores.runs.device import tuned_cpu
from cores.runs.fit import measure
from cores.runs.folder import read_source
from cores.runs.table import Table
from cores.runs.trained import TrainedModel

METRICS = ("accuracy", "full_accuracy", "edge_ratio", "edge_auc", "node_auc", "edge_iou")


def measured(run: Path, part: str) -> list[str]:
    """The cells of a run."""
    trained = TrainedModel.load(run)
    config = trained.config
    data = load_dataset(read_source(run), reach=config.network.reach)
    split = split_dataset(data, config.split, config.parts)
    found = measure(trained, data.graphs.subset(getattr(split, part)), config.alpha)
    cells = [found.get(name) for name in METRICS]
    names = [config.dataset, config.model, str(config.split)]
    return [*names, *("–" if cell is None else f"{cell:.3f}" for cell in cells)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--part", choices=["selection", "test"], default="test")
    options = parser.parse_args()
    with tuned_cpu():
        lines = [measured(run, options.part) for run in options.runs]
    print(Table(["dataset", "model", "split", *METRICS], lines).markdown())


if __name__ == "__main__":
    main()
