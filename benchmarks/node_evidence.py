"""What does a classifier of nodes need of a motif, and which of its edges does the policy keep?

    python benchmarks/node_evidence.py runs/cycles [--lam 0.9]

On the nodes of the selection part that are in a motif: the mean probability of a node's class from
the full neighbourhood, from the motif alone, and from the motif's edges within two hops; then, by
the distances of an edge's ends from the node, the share of edges that the policy keeps.
"""

import argparse
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Batch

from cores.data.splits import split_dataset
from cores.evaluation.predictions import predict
from cores.graphs.subgraphs import remove_edges, roots_of
from cores.models.sparse import SparseClassifier
from cores.runs.device import tuned_cpu
from cores.runs.inputs import PredictOptions
from cores.runs.run import Run


def distances(batch: Batch, hops: int) -> Tensor:
    """Hops between every node and the node that its graph is the neighbourhood of."""
    found = torch.where(roots_of(batch), 0, hops + 1)
    source, target = batch.edge_index
    for _ in range(hops):
        found = found.scatter_reduce(0, source, found[target] + 1, "amin")
    return found


def main() -> None:
    """Print what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--lam", type=float, default=None, help="default: the run's")
    options = parser.parse_args()
    run = Run.open(options.run, PredictOptions(lam=options.lam), device="cpu")
    config, model = run.config, run.trained.model
    assert isinstance(model, SparseClassifier)
    data = run.dataset()
    graphs = data.graphs.subset(split_dataset(data, config.split, config.parts).selection)
    batch, truth = graphs.batch(torch.arange(len(graphs.y))), graphs.edge_truth
    assert truth is not None
    near, far = distances(batch, config.network.num_layers)[batch.edge_index].sort(dim=0).values
    owner = batch.batch[batch.edge_index[0]]
    explained = torch.bincount(owner[truth], minlength=len(graphs.y)) > 0
    parts = {"full": truth | True, "motif": truth, "motif, two hops": truth & (far < 3)}
    with tuned_cpu(), torch.no_grad():
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


if __name__ == "__main__":
    main()
