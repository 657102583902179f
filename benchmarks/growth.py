"""How training and predicting grow on a GPU: from ten thousand to a million graphs.

    python benchmarks/growth.py [--graphs 10000,1000000] [--device cuda]

Random graphs of NCI1's sizes. Training is an epoch of a student and three referees on randomly
masked graphs, and graphs per second count those that each of them learns from; predicting is a
policy's choice and what its classifier says of it. From the GPU's memory, and streamed from the
host's. Prints a line per measurement.
"""

import argparse
import time

import torch

from cores.config.presets import preset_config
from cores.evaluation.predictions import predict
from cores.graphs.batches import cut
from cores.graphs.store import GraphStore
from cores.models.build import build_classifier, build_model
from cores.models.sparse import SparseClassifier
from cores.training.learner import Learner, masked_chunks
from cores.training.stacked import stacked_fit
from cores.training.state import RandomState
from cores.training.supervised import fit_epoch
from cores_paper.benchmark import DIMS, nci1_like_graphs

LEARNERS = 4
FEW = 100_000
"""With fewer graphs, two epochs go before the first that counts: the first steps are recorded."""
SECONDS = 5.0
"""Epochs are repeated until so much time has passed."""


def waited(device: torch.device) -> float:
    """The time once a device has done all it was asked to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


class Workload:
    """A student, its referees and a policy on the graphs of a store."""

    def __init__(self, graphs: GraphStore) -> None:
        self.graphs, self.device = graphs, graphs.device
        self.config = preset_config("NCI1", "cores-node", "gin", "default", {})
        self.random = RandomState(0, self.device)
        model = build_model(self.config, DIMS).to(self.device)
        assert isinstance(model, SparseClassifier)
        self.model = model
        others = [build_classifier(self.config, DIMS, model.scaler) for _ in range(LEARNERS - 1)]
        self.learners = [
            Learner(classifier.to(self.device), graphs.view(), graphs.view(), self.config)
            for classifier in (model.classifier, *others)
        ]
        self.stacked = stacked_fit([learner.step for learner in self.learners])

    def train(self) -> None:
        """An epoch."""
        size = self.config.training.batch_size
        if self.stacked is not None:
            self.stacked.fit(masked_chunks(self.learners, size, "node", self.random))
            return
        for learner in self.learners:
            chunks = masked_chunks([learner], size, "node", self.random)
            fit_epoch(learner.step, (each for chunk in chunks for each in cut(chunk.batch, size)))

    def predict(self) -> None:
        """Every graph once."""
        predict(self.model, self.graphs)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", default="10000,1000000")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    device = torch.device(options.device)
    print("graphs     memory  trained/s  predicted/s")
    for number in map(int, options.graphs.split(",")):
        made = nci1_like_graphs(number, seed=0)
        for memory in ("device", "host"):
            graphs = made.to(device) if memory == "device" else made.streamed(device)
            work = Workload(graphs)
            rates = []
            for action, visits in ((work.train, LEARNERS * number), (work.predict, number)):
                for _ in range(2 if number < FEW else 0):
                    action()
                epochs, begin = 0, waited(device)
                while waited(device) - begin < SECONDS:
                    action()
                    epochs += 1
                rates.append(epochs * visits / (waited(device) - begin))
            print(f"{number:<10,} {memory:<7} {rates[0]:>9,.0f} {rates[1]:>12,.0f}", flush=True)


if __name__ == "__main__":
    main()
