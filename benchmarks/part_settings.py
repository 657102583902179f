"""What each choice behind a part is worth, on calibration parts alone.

Trains runs of the default preset, and measures every one on its calibration part at several
sufficiencies, ways of cutting, proposers and sources of the class. The defaults of
``ExplanationConfig`` were chosen from its rows, on splits 101 and 102::

    python benchmarks/part_settings.py --splits 101-102 --data-root DATA --out rows.csv

A row is added as soon as it is known; rows that are there already are left out.
"""

import argparse
import csv
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Batch

from cores.config.presets import preset_config
from cores.data.datasets import load_dataset
from cores.evaluation.predictions import predict
from cores.graphs.masks import drawn_once, smoothed
from cores.models.sparse import SparseClassifier
from cores.runs.device import choose_device
from cores.runs.fit import PreparedData, fit_model, measure
from cores.runs.workers import shared_gpu
from cores.training.judge import judge_parts, train_judge

NINE = "BZR,COX2,DD,ENZYMES,MUTAG,NCI1,NCI109,PROTEINS,PTC"
COLUMNS = (
    *("dataset", "model", "split", "members", "lam", "proposer", "class_from", "parts"),
    *("sufficiency", "graphs", "accuracy", "full_accuracy", "kept", "weak", "minimal"),
    *("one_unit", "questions", "seconds", "judge_accuracy", "judge_full_accuracy"),
    *("judge_random_accuracy", "calibration_error", "temperature", "train_seconds"),
)


@dataclass(frozen=True)
class Job:
    """One training, and how it is measured."""

    dataset: str
    model: str
    split: int
    members: int
    lams: tuple[float, ...]
    data_root: Path
    device: str

    @property
    def name(self) -> tuple[str, ...]:
        """Name it as its rows do."""
        return (self.dataset, self.model, str(self.split), str(self.members))


def choices(first: bool) -> Iterator[dict[str, Any]]:
    """List the settings that are measured of one policy; of later ones, where they matter most."""
    yield {"class_from": "part", "parts": "policy"}
    yield {"class_from": "part", "parts": "minimal"}
    yield {"parts": "minimal"}
    if not first:
        return
    yield {"parts": "policy"}
    for proposer, parts in product(("policy", "effects", "random"), ("cut", "minimal")):
        if (proposer, parts) != ("policy", "minimal"):
            yield {"proposer": proposer, "parts": parts}
    for sufficiency in (0.5, 0.7, 0.9):
        yield {"sufficiency": sufficiency}


def run(job: Job) -> list[dict[str, Any]]:
    """Train a committee and a policy for every lambda; measure them on the calibration part."""
    with tempfile.TemporaryDirectory() as folder:
        return [row for lam in job.lams for row in of_lambda(job, lam, Path(folder))]


def of_lambda(job: Job, lam: float, folder: Path) -> list[dict[str, Any]]:
    """Measure one policy; those of other values share its committee."""
    torch.set_num_threads(1)
    changes: dict[str, Any] = {
        "split": job.split,
        "reward": {"lam": lam},
        "committee": {"members": job.members},
    }
    config = preset_config(job.dataset, job.model, "gin", "default", changes)
    dataset = load_dataset(job.dataset, data_root=job.data_root)
    device = choose_device(job.device)
    data = PreparedData.of(dataset, config, device)
    begun = time.perf_counter()
    run_folder = folder / str(lam)
    run_folder.mkdir()
    fitted = fit_model(config, data, folder=run_folder, warm_ups=folder / "shared").trained
    train_seconds = time.perf_counter() - begun
    judge = train_judge(dataset, judge_parts(dataset, config), config, device)
    graphs = data.part("calibration")
    rows = []
    model = fitted.model
    assert isinstance(model, SparseClassifier)
    effects, temperature = model.effects, model.classifier.get_buffer("temperature")
    for choice in choices(lam == job.lams[0]):
        proposer = choice.get("proposer", "policy")
        model.effects = RandomOrder() if proposer == "random" else effects  # type: ignore[assignment]
        asked = {**choice, "proposer": "effects" if proposer == "random" else proposer}
        shown = replace(config.explanation, **asked)
        trained = replace(
            fitted,
            config=replace(config, explanation=shown),
            model=model.showing(shown),
        )
        begun = time.perf_counter()
        found = predict(trained.model, graphs)
        seconds = time.perf_counter() - begun
        metrics = measure(trained, graphs, config.alpha, judge, predictions=found)
        kept = found.kept_ratio(graphs, config.spec.removes or "node")
        elements = graphs.num_nodes if config.removal == "node" else graphs.pairs.ptr.diff()
        row = {
            "dataset": job.dataset,
            "model": job.model,
            "split": job.split,
            "lam": lam,
            "members": job.members,
            "graphs": len(graphs),
            "kept": float(kept.mean()),
            "one_unit": float((kept.cpu() * elements < 1.5).double().mean()),
            "seconds": seconds,
            "train_seconds": train_seconds,
            "temperature": float(temperature),
            "proposer": proposer,
            "class_from": shown.class_from,
            "parts": shown.parts,
            "sufficiency": shown.sufficiency,
        }
        row |= {name: metrics[name] for name in COLUMNS if name not in row}
        rows.append(row)
    return rows


class RandomOrder(torch.nn.Module):
    """Scores by chance, smooth over the graph: an order that nobody learnt."""

    def forward(self, batch: Batch) -> torch.Tensor:
        """Score nodes, or undirected edges by the smaller of their ends."""
        values = smoothed(batch, *drawn_once(batch))  # [N]
        return values[batch.pair_index].amin(dim=0) if "pair_index" in batch else values


def main() -> None:
    """Train what is missing, and write rows as they come."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", default=NINE)
    parser.add_argument("--models", default="cores-node,cores-edge")
    parser.add_argument("--splits", default="101-105")
    parser.add_argument("--lams", default="0.5,0.75,0.9")
    parser.add_argument("--members", default="5")
    parser.add_argument("--data-root", type=Path, required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    first, _, last = options.splits.partition("-")
    lams = tuple(map(float, options.lams.split(",")))
    jobs = [
        Job(dataset, model, split, members, lams, options.data_root, options.device)
        for split in range(int(first), int(last or first) + 1)
        for members in map(int, options.members.split(","))
        for dataset in options.datasets.split(",")
        for model in options.models.split(",")
    ]
    there = set()
    if options.out.exists():
        with options.out.open() as file:
            there = {tuple(row[name] for name in COLUMNS[:4]) for row in csv.DictReader(file)}
    with (
        shared_gpu(options.device, options.workers),
        options.out.open("a", newline="") as file,
        ProcessPoolExecutor(options.workers, get_context("spawn"), max_tasks_per_child=8) as pool,
    ):
        writer = csv.DictWriter(file, COLUMNS)
        if not there:
            writer.writeheader()
        runs = {pool.submit(run, job): job for job in jobs if job.name not in there}
        for number, done in enumerate(as_completed(runs), start=1):
            try:
                writer.writerows(done.result())
                file.flush()
            except Exception as error:  # the other runs go on
                print(f"{runs[done].name}: {error!r}", flush=True)
            print(f"{number} of {len(runs)}: {' '.join(runs[done].name)}", flush=True)


if __name__ == "__main__":
    main()
