"""CORES beside chemprop, on the same molecules and the same splits.

    python benchmarks/chemprop_peer.py --chemprop PATH/bin/chemprop --data FILE.csv --out FOLDER

For every split a file ``split-N/data.csv`` says which molecules are for training, validation and
test, and both programs read it. Both run by their command lines, with their default settings, on
one CPU thread. Measured are the seconds of training (with the judge), molecules predicted per
second without the start of the program, and accuracy and ROC-AUC on the test part. The rows are in
``results.csv``. Needs rdkit and scikit-learn.
"""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rdkit import Chem, rdBase
from sklearn.metrics import accuracy_score, roc_auc_score

from cores_paper.tables.table import Table
from inputs import parser, read_rows, spread, write_rows

SHARES = (0.1, 0.1)
"""Of the molecules for validation and test."""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
MEASURED = ("train_seconds", "molecules_per_second", "accuracy", "roc_auc", "kept_share")
Molecule = tuple[str, str, int]
"""Its name, its SMILES, and 1 for the positive class."""


def part_names(labels: Sequence[int], seed: int) -> list[str]:
    """Name the part of every molecule; every class has the same shares, at least one molecule."""
    numbers = random.Random(seed)
    names = [""] * len(labels)
    for label in sorted(set(labels)):
        members = [index for index, other in enumerate(labels) if other == label]
        numbers.shuffle(members)
        val, test = (max(1, round(share * len(members))) for share in SHARES)
        for place, index in enumerate(reversed(members)):
            names[index] = "test" if place < test else "val" if place < test + val else "train"
    return names


def read_molecules(path: Path) -> list[Molecule]:
    """Read the molecules that RDKit understands; the last of two labels is 1."""
    rows = read_rows(path)
    labels = sorted({row["label"] for row in rows})
    if len(labels) != 2:
        raise SystemExit(f"{path} needs two labels, got {len(labels)}")
    return [
        (f"molecule-{number}", row["smiles"], int(row["label"] == labels[1]))
        for number, row in enumerate(rows, 1)
        if Chem.MolFromSmiles(row["smiles"]) is not None
    ]


def timed(*command: object) -> float:
    """Run a command on one thread; its wall seconds."""
    words = list(map(str, command))
    start = time.perf_counter()
    done = subprocess.run(
        words, env=os.environ | ONE_THREAD, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    return seconds


@dataclass(frozen=True)
class Chemprop:
    """``chemprop``: its default model and length."""

    command: Path
    task: str = "classification"
    name: str = "chemprop"

    def train(self, data: Path, run: Path, seed: int) -> float:
        """Train a model; its seconds."""
        return timed(
            *(self.command, "train", "--data-path", data, "--output-dir", run),
            *("--smiles-columns", "smiles", "--target-columns", "label"),
            *("--splits-column", "split", "--task-type", self.task),
            *("--accelerator", "cpu", "--devices", 1, "--pytorch-seed", seed),
        )

    def predict(self, data: Path, run: Path) -> tuple[float, list[float], None]:
        """Predict a file; the seconds and the numbers, which stand in the place of the label."""
        out = run / f"{data.stem}-predictions.csv"
        seconds = timed(
            *(self.command, "predict", "--test-path", data, "--output", out),
            *("--smiles-columns", "smiles", "--accelerator", "cpu", "--devices", 1),
            *("--model-paths", run / "model_0" / "best.pt"),
        )
        return seconds, [float(row["label"]) for row in read_rows(out)], None


@dataclass(frozen=True)
class Ours:
    """``cores``, with one of its models."""

    name: str

    def train(self, data: Path, run: Path, seed: int) -> float:
        """Train a model; its seconds."""
        return timed(
            *(sys.executable, "-m", "cores", "train", "--dataset", data),
            *("--split-column", "split", "--model", self.name, "--seed", seed),
            *("--device", "cpu", "--out", run),
        )

    def predict(self, data: Path, run: Path) -> tuple[float, list[float], float]:
        """Predict a file; seconds, numbers, and the share of the atoms that is kept."""
        out = run.with_name(f"{run.name}-{data.stem}.jsonl")
        seconds = timed(
            *(sys.executable, "-m", "cores", "predict", run, data, "--out", out, "--device", "cpu")
        )
        records = [json.loads(line) for line in out.read_text().splitlines()]
        kept = sum(record["node_ratio"] for record in records) / len(records)
        return seconds, [record["probabilities"]["1"] for record in records], kept


def measured(
    program: Chemprop | Ours, folder: Path, tests: Sequence[Molecule], seed: int
) -> list[Any]:
    """Train on a split, predict its test part, and time both; the start is that of one molecule."""
    test, one = folder / "test.csv", folder / "one.csv"
    for path, some in ((test, tests), (one, tests[:1])):
        write_rows(path, ("id", "smiles", "label"), some)
    run = folder / program.name
    train_seconds = program.train(folder / "data.csv", run, seed)
    start, *_ = program.predict(one, run)
    seconds, scores, kept = program.predict(test, run)
    truth, chosen = [label for *_, label in tests], [int(score >= 0.5) for score in scores]
    # too few molecules to be seen beside the start: no rate
    rate = (len(tests) - 1) / (seconds - start) if seconds > start else None
    accuracy, ranked = accuracy_score(truth, chosen), roc_auc_score(truth, scores)
    return [train_seconds, rate, accuracy, ranked, kept]


def main() -> None:
    """Measure every program on every split, and print means and deviations."""
    options = parser(__doc__)
    options.add_argument("--chemprop", type=Path, help="the command; not measured if not given")
    options.add_argument("--data", type=Path, required=True, help="CSV file with SMILES and labels")
    options.add_argument("--out", type=Path, required=True, help="a new folder for everything")
    options.add_argument("--splits", default="1,2,3", help="numbers, which are the seeds, too")
    options.add_argument("--models", default="cores-node,gnn", help="of ours")
    given = options.parse_args()
    rdBase.DisableLog("rdApp.*")
    molecules = read_molecules(given.data)
    programs: list[Chemprop | Ours] = [Ours(name) for name in given.models.split(",")]
    if given.chemprop is not None:
        programs.insert(0, Chemprop(given.chemprop))
    given.out.mkdir(parents=True)
    rows: list[list[Any]] = []
    for split in map(int, given.splits.split(",")):
        folder = given.out / f"split-{split}"
        folder.mkdir()
        parts = part_names([label for *_, label in molecules], split)
        lines = [(*each, part) for each, part in zip(molecules, parts, strict=True)]
        write_rows(folder / "data.csv", ("id", "smiles", "label", "split"), lines)
        tests = [each for each, part in zip(molecules, parts, strict=True) if part == "test"]
        for program in programs:
            rows.append([split, program.name, *measured(program, folder, tests, split)])
            write_rows(given.out / "results.csv", ("split", "program", *MEASURED), rows)
            print(f"split {split}, {program.name}: {rows[-1][2]:.1f} s", flush=True)
    table = []
    for program in programs:
        own = zip(*(row[2:] for row in rows if row[1] == program.name), strict=True)
        known = [[float(each) for each in column if each is not None] for column in own]
        table.append([program.name, *(spread(column) if column else "–" for column in known)])
    print(Table(["program", *(name.replace("_", " ") for name in MEASURED)], table).markdown())


if __name__ == "__main__":
    main()
