"""How training and predicting grow with the number of graphs, or of nodes. Prints a line per size.

    python benchmarks/growth.py graphs [--sizes 10000,1000000] [--device cuda]
    python benchmarks/growth.py nodes [--sizes 10000,30000,100000] [--layers 2] [--fan-out 5]
    python benchmarks/growth.py files --molecules benzene.csv --out FOLDER [--sizes 10000,1000000]

``graphs``: random graphs of NCI1's sizes, from a GPU's memory and streamed from the host's.
Training is an epoch of a committee on randomly masked graphs, and graphs per second count those
that each member learns from; predicting is a policy's part and what the committee says of it.

``nodes``: a graph like one of citations. A node cites four earlier ones, those that are cited much
more often than others, and three of four from its own subject, which is its class; of its 32
features some hint at it. Measured are, each size in a process of its own: building the
neighbourhoods of all nodes, an epoch of the classifier on randomly masked neighbourhoods, and
predicting every node from the policy's part, a chunk at a time. Seconds are of a CPU core, in
brackets per thousand nodes; memory is the most that the process held up to then.

``files``: `cores predict` on molecules as JSON lines (elements as nodes, bond orders as edges),
over and over, by a CORES model and a plain GNN that were trained on some of them; one thread.
"""

import argparse
import json
import os
import resource
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from itertools import cycle, islice
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from cores import GraphModel
from cores.config import Removal, RunConfig
from cores.config.presets import preset_config
from cores.data.inputs.columns import ColumnNames
from cores.data.inputs.sources import read_rows
from cores.data.nodes import NodeGraph, from_nodes
from cores.evaluation.predictions import predict
from cores.graphs.batches import cut
from cores.graphs.neighbourhoods import CHUNK
from cores.graphs.store import GraphStore
from cores.models.build import build_model
from cores.models.committee import Committee
from cores.models.sparse import SparseClassifier
from cores.runs.device import tuned_cpu
from cores.training.learner import Learner, masked_chunks
from cores.training.stacked import stacked_fit
from cores.training.state import RandomState
from cores.training.supervised import fit_epoch, fit_scaler
from cores_paper.benchmark import DIMS, nci1_like_graphs
from cores_paper.tables.targets import POLICYS_PART
from inputs import parser

FEW = 100_000
"""With fewer graphs, two epochs go before the first that counts: the first steps are recorded."""
SECONDS = 5.0
"""Epochs are repeated until so much time has passed."""
SUBJECTS, CITED, FEATURES = 7, 4, 32
MODELS = ("cores-node", "gnn")


def waited(device: torch.device) -> float:
    """Tell the time once a device has done all it was asked to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


class Workload:
    """A committee and a policy on the graphs of a store."""

    def __init__(self, graphs: GraphStore) -> None:
        self.graphs = graphs
        self.config = preset_config("NCI1", "cores-node", "gin", "default", POLICYS_PART)
        self.random = RandomState(0, graphs.device)
        model = build_model(self.config, DIMS).to(graphs.device)
        self.model = model
        self.learners = learners(model, graphs, self.config)
        self.stacked = stacked_fit([learner.step for learner in self.learners])

    def train(self) -> None:
        """Train for an epoch."""
        size = self.config.training.batch_size
        if self.stacked is not None:
            self.stacked.fit(masked_chunks(self.learners, size, "node", self.random))
            return
        for learner in self.learners:
            fit(learner, size, "node", self.random)

    def predict(self) -> None:
        """Predict every graph once."""
        predict(self.model, self.graphs)


def learners(model: GraphModel, graphs: GraphStore, config: RunConfig) -> list[Learner]:
    """Train every member of a model's committee on all graphs."""
    assert isinstance(model, SparseClassifier)
    assert isinstance(model.classifier, Committee)
    view = graphs.view()
    return [Learner(member, view, view, config) for member in model.classifier.members]


def fit(learner: Learner, size: int, removal: Removal, random: RandomState) -> None:
    """Train a classifier for an epoch on randomly masked graphs."""
    chunks = masked_chunks([learner], size, removal, random)
    fit_epoch(learner.step, (each for chunk in chunks for each in cut(chunk.batch, size)))


def graphs(sizes: Iterable[int], given: argparse.Namespace) -> None:
    """Measure training and predicting from both memories."""
    device = torch.device(given.device)
    print("| graphs | memory | trained/s | predicted/s |\n|---|---|---|---|")
    for number in sizes:
        made = nci1_like_graphs(number, seed=0)
        for memory in ("device", "host"):
            work = Workload(made.to(device) if memory == "device" else made.streamed(device))
            rates = []
            for action, visits in (
                (work.train, len(work.learners) * number),
                (work.predict, number),
            ):
                for _ in range(2 if number < FEW else 0):
                    action()
                epochs, begin = 0, waited(device)
                while waited(device) - begin < SECONDS:
                    action()
                    epochs += 1
                rates.append(epochs * visits / (waited(device) - begin))
            print(f"| {number:,} | {memory} | {rates[0]:,.0f} | {rates[1]:,.0f} |", flush=True)


def citations(nodes: int, seed: int = 0) -> Data:
    """Make a graph in which early nodes, and those of the own subject, are cited more often."""
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


def measured_nodes(config: RunConfig, nodes: int) -> list[float]:
    """Count the nodes of all neighbourhoods; seconds and GiB of building, training, predicting."""
    data, reach, found = citations(nodes), config.network.reach, []
    begin = time.process_time()

    def lap() -> None:
        nonlocal begin
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        found.extend([time.process_time() - begin, memory])
        begin = time.process_time()

    with tuned_cpu():
        dataset = from_nodes(data, reach=reach)
        lap()
        model = build_model(config, dataset.dims)
        fit_scaler(model, dataset.graphs, dataset)
        learner = learners(model, dataset.graphs.with_pairs(), config)[0]
        begin = time.process_time()
        fit(learner, config.training.batch_size, "edge", RandomState(0, dataset.graphs.device))
        lap()
        graph = NodeGraph(data)
        begin = time.process_time()
        for roots in torch.arange(nodes).split(CHUNK):
            predict(model, graph.neighbourhoods(roots, reach))
        lap()
    return [float(len(dataset.graphs.x)), *found]


def nodes(sizes: Iterable[int], given: argparse.Namespace) -> None:
    """Measure each size in a process of its own."""
    network = {"num_layers": given.layers, "fan_out": given.fan_out}
    changes = {"network": network, "training": {"batch_size": 128}, **POLICYS_PART}
    config = preset_config("citations", "cores-edge", "gin", "default", changes)
    head = "nodes | in a neighbourhood | built, s | GiB | an epoch, s | GiB | predicted, s | GiB"
    print(f"| {head} |\n{'|---' * 8}|")
    for number in sizes:
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            size, *cells = pool.submit(measured_nodes, config, number).result()
        told = [
            f"{cell:.2f}" if at % 2 else f"{cell:.1f} ({1000 * cell / number:.2f})"
            for at, cell in enumerate(cells)
        ]
        print(f"| {number:,} | {size / number:.1f} | {' | '.join(told)} |", flush=True)


def command(*arguments: object) -> tuple[float, float]:
    """Run the command line in a process of its own, on one thread; seconds and peak MB."""
    begin = time.perf_counter()
    words = [sys.executable, "-m", "cores", *map(str, arguments)]
    pid = os.posix_spawn(words[0], words, os.environ | {"OMP_NUM_THREADS": "1"})
    _, status, usage = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"failed: {' '.join(words)}")
    return time.perf_counter() - begin, usage.ru_maxrss / 1024


def graph_lines(table: Path) -> list[str]:
    """Write the molecules of a table as JSON lines without identifiers."""
    lines = []
    for rows in read_rows(table, ColumnNames()):
        parsed = rows.parse()
        for molecule, label in zip(parsed.molecules, parsed.labels, strict=True):
            edges = [
                [bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), str(bond.GetBondType())]
                for bond in molecule.GetBonds()
            ]
            atoms = [atom.GetSymbol() for atom in molecule.GetAtoms()]
            lines.append(json.dumps({"nodes": atoms, "edges": edges, "label": label}))
    return lines


def files(sizes: Iterable[int], given: argparse.Namespace) -> None:
    """Train two models for a few epochs, and measure how they predict files."""
    given.out.mkdir(parents=True)
    lines = graph_lines(given.molecules)
    for count in (1000, *sizes):
        with (given.out / f"{count}.jsonl").open("w") as file:
            for number, line in enumerate(islice(cycle(lines), count)):
                file.write(f'{{"id": "g{number}", {line[1:]}\n')
    for model in MODELS:
        data = given.out / "1000.jsonl"
        command("train", "--dataset", data, "--model", model, "--epochs", 4, *_out(given, model))
    print("| graphs | model | seconds | graphs per second | peak memory, MB |\n" + "|---" * 5 + "|")
    for count in sizes:
        for model in MODELS:
            source, result = given.out / f"{count}.jsonl", _out(given, f"{model}-{count}.jsonl")
            seconds, peak = command("predict", given.out / model, source, *result)
            cells = f"{count:,} | {model} | {seconds:.1f} | {count / seconds:,.0f}"
            print(f"| {cells} | {peak:.0f} |", flush=True)


def _out(given: argparse.Namespace, name: str) -> tuple[str, Path]:
    return "--out", given.out / name


def main() -> None:
    """Measure, and print."""
    options = parser(__doc__)
    options.add_argument("what", choices=["graphs", "nodes", "files"])
    options.add_argument("--sizes", default="10000,1000000")
    options.add_argument("--device", default="cuda", help="of graphs")
    options.add_argument("--layers", type=int, default=2, help="of the network for nodes")
    options.add_argument("--fan-out", type=int, default=5)
    options.add_argument("--molecules", type=Path, help="table for files")
    options.add_argument("--out", type=Path, help="a new folder for files")
    given = options.parse_args()
    sizes = list(map(int, given.sizes.split(",")))
    {"graphs": graphs, "nodes": nodes, "files": files}[given.what](sizes, given)


if __name__ == "__main__":
    main()
