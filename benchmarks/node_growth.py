"""How classifying nodes grows with the graph: time and memory at several numbers of nodes.

    python benchmarks/node_growth.py [--nodes 10000,30000,100000] [--layers 2] [--fan-out 5]

The graph is like one of citations: a node cites four earlier ones, those that are cited much more
often than others, and three of four from its own subject, which is its class. Every node has a
label, and 32 features of which some hint at it. Measured are, each size in a process of its own:
building the neighbourhoods of all nodes (a dataset in memory), an epoch of the classifier on
randomly masked neighbourhoods, and predicting every node by policy and classifier, a chunk of
neighbourhoods at a time. Seconds are of a CPU core, however busy the machine is; memory is the most
that the process held up to then. Prints a line per size, with the seconds per thousand nodes
behind each time.
"""

import argparse
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import torch
from torch_geometric.data import Data

from cores.config import RunConfig
from cores.config.presets import preset_config
from cores.data.nodes import NodeGraph, from_nodes
from cores.evaluation.predictions import predict
from cores.graphs.batches import cut
from cores.graphs.neighbourhoods import CHUNK
from cores.models.build import build_model
from cores.models.sparse import SparseClassifier
from cores.runs.device import tuned_cpu
from cores.training.learner import Learner, masked_chunks
from cores.training.state import RandomState
from cores.training.supervised import fit_epoch, fit_scaler

SUBJECTS, CITED, FEATURES = 7, 4, 32


def citations(nodes: int, seed: int = 0) -> Data:
    """A graph in which early nodes, and those of the own subject, are cited more often."""
    random = np.random.default_rng(seed)
    subject = random.integers(SUBJECTS, size=nodes)
    order = np.argsort(subject, kind="stable")
    first = np.searchsorted(subject[order], np.arange(SUBJECTS))
    rank = np.empty(nodes, dtype=np.int64)  # how many earlier nodes have the subject
    rank[order] = np.arange(nodes) - first[subject[order]]
    citing = np.arange(nodes).repeat(CITED)
    earlier = random.random(len(citing)) ** 2  # the square favours the earliest
    own = (random.random(len(citing)) < 0.75) & (rank[citing] > 0)
    within = first[subject[citing]] + (earlier * rank[citing]).astype(np.int64)
    cited = np.where(own, order[within], (earlier * citing).astype(np.int64))
    ends = torch.from_numpy(np.stack([citing, cited])[:, citing != cited])
    x = random.normal(size=(nodes, FEATURES)).astype(np.float32)
    x[np.arange(nodes), subject] += 1.0
    return Data(
        x=torch.from_numpy(x),
        edge_index=torch.cat([ends, ends.flip(0)], dim=1).unique(dim=1),
        y=torch.from_numpy(subject),
    )


def peak() -> float:
    """The most memory that this process has held, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def measured(config: RunConfig, nodes: int) -> list[float]:
    """Nodes of all neighbourhoods; then seconds and memory of building, training, predicting."""
    data, reach = citations(nodes), config.network.reach
    with tuned_cpu():
        begin = time.process_time()
        dataset = from_nodes(data, reach=reach)
        found = [float(len(dataset.graphs.x)), time.process_time() - begin, peak()]
        model = build_model(config, dataset.dims)
        assert isinstance(model, SparseClassifier)
        fit_scaler(model, dataset.graphs, dataset)
        graphs = dataset.graphs.with_pairs()
        learner = Learner(model.classifier, graphs.view(), graphs.view(), config)
        size, random = config.training.batch_size, RandomState(0, graphs.device)
        begin = time.process_time()
        chunks = masked_chunks([learner], size, "edge", random)
        fit_epoch(learner.step, (each for chunk in chunks for each in cut(chunk.batch, size)))
        found += [time.process_time() - begin, peak()]
        graph = NodeGraph(data)
        begin = time.process_time()
        for roots in torch.arange(nodes).split(CHUNK):
            predict(model, graph.neighbourhoods(roots, reach))
        return [*found, time.process_time() - begin, peak()]


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", default="10000,30000,100000")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--fan-out", type=int, default=5)
    options = parser.parse_args()
    network = {"num_layers": options.layers, "fan_out": options.fan_out}
    changes = {"network": network, "training": {"batch_size": 128}}
    config = preset_config("citations", "cores-edge", "gin", "default", changes)
    print(
        "| nodes | in a neighbourhood | built, s | GiB | an epoch, s | GiB | predicted, s | GiB |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for nodes in map(int, options.nodes.split(",")):
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            size, *cells = pool.submit(measured, config, nodes).result()
        told = [
            f"{cell:.2f}" if at % 2 else f"{cell:.1f} ({1000 * cell / nodes:.2f})"
            for at, cell in enumerate(cells)
        ]
        print(f"| {nodes:,} | {size / nodes:.1f} | {' | '.join(told)} |", flush=True)


if __name__ == "__main__":
    main()
