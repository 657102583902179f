"""Are the motifs found that decide the class of a node? Runs on BA_Shapes and Tree_Cycles.

    cores train --dataset Tree_Cycles --model cores-edge --out runs/cycles
    python benchmarks/node_motifs.py runs/cycles … [--part selection] [--lams 0.5,0.9]

Prints a line per run and setting of its dial: the accuracy on the nodes of a part, from
what is kept and from full neighbourhoods; the share of edges that is kept; the ROC-AUC of the keep
probabilities of the edges, and of the nodes, against the motif of the node in question, over nodes
that have one; and how well the kept edges are those of the motif (IoU). Settings are compared on
the selection part; the test part is for figures that are reported.
"""

from pathlib import Path

from cores.data.splits import split_dataset
from cores.runs.device import tuned_cpu
from cores.runs.fit import measure
from cores_paper.tables.table import Table
from inputs import add_runs, load_run, parser

METRICS = ("accuracy", "full_accuracy", "edge_ratio", "edge_auc", "node_auc", "edge_iou")


def metrics(run: Path, part: str, lam: float | None) -> list[str]:
    """Measure a run; None takes the setting that was chosen when it was trained."""
    trained, data = load_run(run)
    trained, config = trained.at(lam), trained.config
    split = split_dataset(data, config.split, config.parts)
    found = measure(trained, data.graphs.subset(getattr(split, part)), config.alpha)
    cells = [found.get(name) for name in METRICS]
    setting = "–" if trained.lam is None else f"{trained.lam:g}"
    names = [config.dataset, config.model, str(config.split), setting]
    return [*names, *("–" if cell is None else f"{cell:.3f}" for cell in cells)]


def main() -> None:
    """Print the table."""
    options = parser(__doc__)
    add_runs(options)
    options.add_argument("--part", choices=["selection", "test"], default="test")
    options.add_argument("--lams", help="settings of the dial; default: the run's")
    given = options.parse_args()
    lams = [None] if given.lams is None else [float(lam) for lam in given.lams.split(",")]
    with tuned_cpu():
        lines = [metrics(run, given.part, lam) for run in given.runs for lam in lams]
    print(Table(["dataset", "model", "split", "lam", *METRICS], lines).markdown())


if __name__ == "__main__":
    main()
