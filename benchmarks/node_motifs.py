"""Are the motifs found that decide the class of a node? Runs on BA_Shapes and Tree_Cycles.

    cores train --dataset Tree_Cycles --model cores-edge --out runs/cycles
    python benchmarks/node_motifs.py metrics runs/cycles … [--part selection] [--lams 0.5,0.9]
    python benchmarks/node_motifs.py evidence runs/cycles [--lams 0.9]

``metrics`` prints a line per run and setting of its dial: the accuracy on the nodes of a part, from
what is kept and from full neighbourhoods; the share of edges that is kept; the ROC-AUC of the keep
probabilities of the edges, and of the nodes, against the motif of the node in question, over nodes
that have one; and how well the kept edges are those of the motif (IoU). Settings are compared on
the selection part; the test part is for figures that are reported.

``evidence`` tells what the classifier needs of a motif, on the nodes of the selection part that are
in one: the mean probability of a node's class from the full neighbourhood, from the motif alone,
and from the motif's edges within two hops; then, by the distances of an edge's ends from the node,
the share of edges that the policy keeps.
"""

from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Batch

from cores.data.splits import split_dataset
from cores.evaluation.predictions import predict
from cores.graphs.subgraphs import remove_edges, roots_of
from cores.models.sparse import SparseClassifier
from cores.runs.device import tuned_cpu
from cores.runs.fit import measure
from cores.runs.table import Table
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


def distances(batch: Batch, hops: int) -> Tensor:
    """Count the hops between every node and the node that its graph is the neighbourhood of."""
    found = torch.where(roots_of(batch), 0, hops + 1)
    source, target = batch.edge_index
    for _ in range(hops):
        found = found.scatter_reduce(0, source, found[target] + 1, "amin")
    return found


def evidence(run: Path, lam: float | None) -> None:
    """Print what a run's classifier needs of a motif, and what its policy keeps."""
    trained, data = load_run(run)
    config, model = trained.config, trained.at(lam).model
    assert isinstance(model, SparseClassifier)
    graphs = data.graphs.subset(split_dataset(data, config.split, config.parts).selection)
    batch, truth = graphs.batch(torch.arange(len(graphs.y))), graphs.edge_truth
    assert truth is not None
    near, far = distances(batch, config.network.num_layers)[batch.edge_index].sort(dim=0).values
    owner = batch.batch[batch.edge_index[0]]
    explained = torch.bincount(owner[truth], minlength=len(graphs.y)) > 0
    parts = {"full": truth | True, "motif": truth, "motif, two hops": truth & (far < 3)}
    with torch.no_grad():
        for name, kept in parts.items():
            probs = model.classifier(remove_edges(batch, ~kept)).softmax(dim=-1)
            own = probs.gather(1, batch.y[:, None])[explained]
            print(f"{name:<16} {float(own.mean()):.3f}")
        removed = predict(model, graphs).removed_edges
    for name, chosen in (("motif", truth), ("other", ~truth)):
        chosen = chosen & explained[owner]
        for ends in torch.stack([near, far])[:, chosen].unique(dim=1).t():
            here = chosen & (near == ends[0]) & (far == ends[1])
            share = float((~removed[here]).float().mean())
            print(f"{name} {int(ends[0])}–{int(ends[1])}: kept {share:.2f} of {int(here.sum())}")


def main() -> None:
    """Print what was asked for."""
    options = parser(__doc__)
    options.add_argument("what", choices=["metrics", "evidence"])
    add_runs(options)
    options.add_argument("--part", choices=["selection", "test"], default="test")
    options.add_argument("--lams", help="settings of the dial; default: the run's")
    given = options.parse_args()
    lams = [None] if given.lams is None else [float(lam) for lam in given.lams.split(",")]
    asked = [(run, lam) for run in given.runs for lam in lams]
    with tuned_cpu():
        if given.what == "metrics":
            lines = [metrics(run, given.part, lam) for run, lam in asked]
            print(Table(["dataset", "model", "split", "lam", *METRICS], lines).markdown())
            return
        for run, lam in asked:
            evidence(run, lam)


if __name__ == "__main__":
    main()
