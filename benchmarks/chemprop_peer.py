"""CORES beside chemprop, on the same molecules and the same splits.

    python benchmarks/chemprop_peer.py --chemprop PATH/bin/chemprop --data FILE.csv --out FOLDER

For every split a file ``split-N/data.csv`` says which molecules are for training, validation and
test, and both programs read it. Both run by their command lines, with their default settings, on
one CPU thread. Measured are the seconds of training
(with the judge), molecules per second in predicting, and
accuracy, balanced accuracy and ROC-AUC on the test part; and, for positive test molecules, how fast
rationales come and how many of the true atoms they hold: those that CORES gives with every
prediction against a tree search (``rationales.py``) that asks the same model.

Rows are added to ``results.csv`` and ``rationales.csv`` in the folder as they come; what is there
is not measured again. Needs rdkit and scikit-learn.
"""

import argparse
import csv
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from rdkit import Chem, rdBase

from cores.runs.table import Table
from rationales import (
    Atoms,
    Rationale,
    Score,
    SearchSettings,
    best_rationale,
    matched_atoms,
    recall_and_precision,
)

PARTS = ("train", "val", "test")
CHEMPROP = "chemprop"
EXPLAINED = "cores-node"
"""The model whose rationales are measured."""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
RESULTS = (
    *("split", "program", "train_molecules", "test_molecules", "train_seconds", "epochs"),
    *("predict_seconds", "predict_startup_seconds", "molecules_per_second"),
    "molecules_per_second_with_startup",
    *("accuracy", "balanced_accuracy", "roc_auc", "kept_share"),
)
RATIONALES = (
    *("split", "method", "molecules", "found", "seconds_per_molecule", "molecules_per_second"),
    *("scored_per_molecule", "atoms", "atoms_share", "recall", "precision"),
)
Row = dict[str, Any]


@dataclass(frozen=True)
class Molecule:
    """A row of the data: its name, and 1 for the positive class."""

    name: str
    smiles: str
    label: int


@dataclass(frozen=True)
class Prediction:
    """Of a test molecule: the probability of the positive class, and the atoms kept if any."""

    probability: float
    kept: Atoms | None = None


def part_names(labels: Sequence[Any], seed: int, shares: Sequence[float]) -> list[str]:
    """Divide molecules into train, val and test, every class in the same shares.

    Args:
        labels: A label per molecule.
        seed: Of the division.
        shares: Of the three parts; they add up to one.

    Returns:
        The name of a part per molecule; every part has at least one molecule of every class.

    Raises:
        ValueError: If a class has fewer than three molecules.
    """
    numbers = random.Random(seed)
    names = [""] * len(labels)
    for label in sorted(set(labels)):
        members = [index for index, other in enumerate(labels) if other == label]
        if len(members) < len(PARTS):
            raise ValueError(f"class {label} has fewer than three molecules")
        numbers.shuffle(members)
        sizes = [max(1, round(share * len(members))) for share in shares[1:]]
        sizes.insert(0, len(members) - sum(sizes))
        start = 0
        for name, size in zip(PARTS, sizes, strict=True):
            for index in members[start : start + size]:
                names[index] = name
            start += size
    return names


def read_molecules(
    path: Path, smiles_column: str, label_column: str, positive: str | None, limit: int | None
) -> list[Molecule]:
    """The molecules that RDKit can read; a sample of them where there is a limit."""
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    for column in (smiles_column, label_column):
        if not lines or column not in lines[0]:
            raise SystemExit(f"{path} has no rows with a column {column}")
    labels = sorted({line[label_column] for line in lines})
    if len(labels) != 2:
        raise SystemExit(f"{path} needs two labels in {label_column}, has {len(labels)}")
    positive = labels[-1] if positive is None else positive
    if positive not in labels:
        raise SystemExit(f"no molecule has the label {positive}; there are {', '.join(labels)}")
    if limit is not None and limit < len(lines):
        lines = random.Random(0).sample(lines, limit)
    found = [
        Molecule(f"molecule-{number}", line[smiles_column], int(line[label_column] == positive))
        for number, line in enumerate(lines, 1)
        if Chem.MolFromSmiles(line[smiles_column]) is not None
    ]
    print(f"{path.name}: {len(found)} of {len(lines)} molecules read; label {positive} is 1")
    return found


def write_molecules(path: Path, molecules: Sequence[Molecule], parts: Sequence[str]) -> None:
    """One file for both programs."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "smiles", "label", "split"))
        for molecule, part in zip(molecules, parts, strict=True):
            writer.writerow((molecule.name, molecule.smiles, molecule.label, part))


def timed(command: Sequence[str | Path], log: Path) -> tuple[float, str]:
    """Run a command on one thread; its wall seconds and what it printed to standard output."""
    start = time.perf_counter()
    with log.open("w") as errors:
        done = subprocess.run(
            [str(word) for word in command],
            env=os.environ | ONE_THREAD,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            check=False,
        )
    seconds = time.perf_counter() - start
    if done.returncode:
        last = (done.stdout + log.read_text())[-2000:]
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{last}")
    return seconds, done.stdout


class Chemprop:
    """Training and predicting by ``chemprop``; its default model and length."""

    name = CHEMPROP

    def __init__(self, command: Path, epochs: int | None) -> None:
        self._command = command
        self._epochs = epochs

    def train(self, data: Path, run: Path, seed: int) -> tuple[float, int]:
        """Train a model; its seconds and epochs."""
        options: list[str] = []
        if self._epochs is not None:
            options = ["--epochs", str(self._epochs)]
            if self._epochs <= 2:  # it wants more epochs than there are for warming up: 2
                options += ["--warmup-epochs", "0"]
        seconds, _ = timed(
            [
                *(self._command, "train", "--data-path", data, "--output-dir", run),
                *("--smiles-columns", "smiles", "--target-columns", "label"),
                *("--splits-column", "split", "--task-type", "classification"),
                *("--accelerator", "cpu", "--devices", "1", "--pytorch-seed", str(seed)),
                *options,
            ],
            run.with_suffix(".train.log"),
        )
        # What it writes is not always TOML: one line is looked for.
        line = re.search(r"^epochs = (\d+)$", (run / "config.toml").read_text(), re.MULTILINE)
        if line is None:
            raise SystemExit(f"{run / 'config.toml'} does not say how many epochs there were")
        return seconds, int(line[1])

    def predict(self, data: Path, run: Path) -> tuple[float, list[Prediction]]:
        """Predict a file; the seconds, and a prediction per row."""
        out = run / f"{data.stem}-predictions.csv"
        seconds, _ = timed(
            [
                *(self._command, "predict", "--test-path", data, "--output", out),
                *("--smiles-columns", "smiles", "--accelerator", "cpu", "--devices", "1"),
                *("--model-paths", run / "model_0" / "best.pt"),
            ],
            run.with_suffix(".predict.log"),
        )
        with out.open(newline="") as file:  # it puts its prediction in the place of the label
            return seconds, [Prediction(float(line["label"])) for line in csv.DictReader(file)]


class Ours:
    """Training and predicting by ``cores``."""

    def __init__(self, model: str, epochs: int | None) -> None:
        self.name = model
        self._epochs = epochs
        self._command = [sys.executable, "-m", "cores"]

    def train(self, data: Path, run: Path, seed: int) -> tuple[float, int]:
        """Train a model; its seconds and epochs."""
        seconds, printed = timed(
            [
                *self._command,
                *("train", "--dataset", data, "--split-column", "split"),
                *("--model", self.name, "--seed", str(seed), "--device", "cpu"),
                *("--out", run, "--json"),
                *(() if self._epochs is None else ("--epochs", str(self._epochs))),
            ],
            run.with_suffix(".train.log"),
        )
        return seconds, int(json.loads(printed)["epochs"])

    def predict(self, data: Path, run: Path) -> tuple[float, list[Prediction]]:
        """Predict a file; the seconds, and a prediction per row."""
        out = run.with_name(f"{run.name}-{data.stem}.jsonl")
        out.unlink(missing_ok=True)
        seconds, _ = timed(
            [*self._command, "predict", run, data, "--out", out, "--device", "cpu"],
            run.with_suffix(".predict.log"),
        )
        return seconds, [
            our_prediction(json.loads(line)) for line in out.read_text().splitlines() if line
        ]


def our_prediction(record: Mapping[str, Any]) -> Prediction:
    """A record of ``cores predict``.

    >>> our_prediction({"probabilities": {"0": 0.25, "1": 0.75}, "kept_nodes": [2, 3]})
    Prediction(probability=0.75, kept=frozenset({2, 3}))
    """
    probabilities, kept = record["probabilities"], record.get("kept_nodes")
    one = probabilities["1"] if isinstance(probabilities, Mapping) else probabilities[1]
    return Prediction(float(one), None if kept is None else frozenset(kept))


def measured(
    program: "Chemprop | Ours", folder: Path, molecules: Sequence[Molecule], split: int
) -> tuple[Row, list[Prediction]]:
    """Train on a split, predict its test part, and time both.

    The start-up of predicting is the time for one molecule.
    """
    from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score

    data, test, one = (folder / name for name in ("data.csv", "test.csv", "one.csv"))
    with data.open(newline="") as file:
        parts = [line["split"] for line in csv.DictReader(file)]
    tests = [m for m, part in zip(molecules, parts, strict=True) if part == "test"]
    write_molecules(test, tests, ["test"] * len(tests))
    write_molecules(one, tests[:1], ["test"])
    run = folder / program.name
    shutil.rmtree(run, ignore_errors=True)  # of a measurement that was interrupted
    train_seconds, epochs = program.train(data, run, split)
    startup_predict, _ = program.predict(one, run)
    predict_seconds, predictions = program.predict(test, run)
    if len(predictions) != len(tests):
        raise SystemExit(f"{program.name}: {len(predictions)} predictions of {len(tests)}")
    truth = [molecule.label for molecule in tests]
    scores = [prediction.probability for prediction in predictions]
    chosen = [int(score >= 0.5) for score in scores]
    kept = [
        len(prediction.kept) / Chem.MolFromSmiles(molecule.smiles).GetNumAtoms()
        for molecule, prediction in zip(tests, predictions, strict=True)
        if prediction.kept is not None
    ]
    net = predict_seconds - startup_predict
    return {
        "split": split,
        "program": program.name,
        "train_molecules": parts.count("train"),
        "test_molecules": len(tests),
        "train_seconds": train_seconds,
        "epochs": epochs,
        "predict_seconds": predict_seconds,
        "predict_startup_seconds": startup_predict,
        # too few molecules to be seen beside the start-up: no rate
        "molecules_per_second": (len(tests) - 1) / net if net > 0 else None,
        "molecules_per_second_with_startup": len(tests) / predict_seconds,
        "accuracy": accuracy_score(truth, chosen),
        "balanced_accuracy": balanced_accuracy_score(truth, chosen),
        "roc_auc": roc_auc_score(truth, scores),
        "kept_share": statistics.fmean(kept) if kept else None,
    }, predictions


def classifier_score(run: Path) -> Score:
    """Scores by a trained model of ours: the probability of label 1."""
    import torch

    from cores import Cores

    torch.set_num_threads(1)
    model = Cores.load(run)
    column = [str(label) for label in model.classes_].index("1")

    def score(smiles: list[str]) -> Sequence[float]:
        return [float(row[column]) for row in model.predict_proba(smiles)]

    return score


def rationale_rows(
    folder: Path,
    split: int,
    count: int,
    predict_row: Mapping[str, Any],
    truth_smarts: str | None,
    settings: SearchSettings,
) -> list[Row]:
    """Rationales of positive test molecules that our model finds positive, by both methods."""
    with (folder / "test.csv").open(newline="") as file:
        tests = list(csv.DictReader(file))
    lines = (folder / f"{EXPLAINED}-test.jsonl").read_text().splitlines()
    predictions = [our_prediction(json.loads(line)) for line in lines if line]
    able = [
        (line["smiles"], prediction.kept)
        for line, prediction in zip(tests, predictions, strict=True)
        if line["label"] == "1"
        and prediction.probability >= settings.prop_delta
        and prediction.kept is not None
        and (truth_smarts is None or matched_atoms(line["smiles"], truth_smarts))
    ]
    chosen = random.Random(split).sample(able, min(count, len(able)))
    if not chosen:
        raise SystemExit(f"split {split}: no positive test molecule to explain")
    score = classifier_score(folder / EXPLAINED)
    score([chosen[0][0]])  # what is slow only once
    searched: list[Rationale] = []
    start = time.perf_counter()
    for smiles, _ in chosen:
        found = best_rationale(smiles, score, settings)
        assert found is not None  # read_molecules left out what RDKit cannot read
        searched.append(found)
    seconds = (time.perf_counter() - start) / len(chosen)
    with (folder / "rationales.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("smiles", "kept_atoms", "searched_atoms", "searched_smiles"))
        for (smiles, kept), found in zip(chosen, searched, strict=True):
            lists = (" ".join(map(str, sorted(atoms or ()))) for atoms in (kept, found.atoms))
            writer.writerow((smiles, *lists, found.smiles))
    rate = predict_row["molecules_per_second"]
    texts = [smiles for smiles, _ in chosen]
    ours = _of_atoms(texts, [kept for _, kept in chosen], truth_smarts)
    theirs = _of_atoms(texts, [found.atoms for found in searched], truth_smarts)
    scored = statistics.fmean(found.scored for found in searched)
    return [
        {
            "split": split,
            "method": EXPLAINED,
            "scored_per_molecule": 1,
            **ours,
            "seconds_per_molecule": 1 / float(rate) if rate not in (None, "") else None,
            "molecules_per_second": rate,
        },
        {
            "split": split,
            "method": "tree search",
            "scored_per_molecule": scored,
            **theirs,
            "seconds_per_molecule": seconds,
            "molecules_per_second": 1 / seconds,
        },
    ]


def _of_atoms(
    texts: Sequence[str], rationales: Sequence[Atoms | None], truth_smarts: str | None
) -> Row:
    """Sizes of rationales, and recall and precision; one not found recalls nothing."""
    found = [(text, atoms) for text, atoms in zip(texts, rationales, strict=True) if atoms]
    totals = [Chem.MolFromSmiles(text).GetNumAtoms() for text, _ in found]
    for (text, atoms), total in zip(found, totals, strict=True):
        if max(atoms) >= total:
            raise SystemExit(f"{text} has {total} atoms, a rationale has atom {max(atoms)}")
    sizes = [len(atoms) for _, atoms in found]
    shares = [size / total for size, total in zip(sizes, totals, strict=True)]
    row: Row = {"molecules": len(texts), "found": len(found)}
    row["atoms"] = statistics.fmean(sizes) if sizes else None
    row["atoms_share"] = statistics.fmean(shares) if shares else None
    if truth_smarts is not None:
        pairs = [recall_and_precision(a, matched_atoms(text, truth_smarts)) for text, a in found]
        row["recall"] = sum(recall for recall, _ in pairs) / len(texts)
        row["precision"] = statistics.fmean(p for _, p in pairs) if pairs else None
    return row


def add_rows(path: Path, columns: Sequence[str], rows: Sequence[Row]) -> None:
    """Add rows to a file, which gets its head with the first."""
    fresh = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, columns)
        if fresh:
            writer.writeheader()
        for row in rows:
            writer.writerow({name: _rounded(row.get(name)) for name in columns})


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a file; none if it is not there."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _rounded(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def markdown(rows: Sequence[Mapping[str, str]], by: str, columns: Sequence[str]) -> str:
    """Means over splits, with deviations where there are several."""
    lines = []
    for name in dict.fromkeys(row[by] for row in rows):
        own = [row for row in rows if row[by] == name]
        cells = [_mean([float(row[column]) for row in own if row[column]]) for column in columns]
        lines.append([name, str(len(own)), *cells])
    return Table(
        [by, "splits", *(column.replace("_", " ") for column in columns)], lines
    ).markdown()


def _mean(values: Sequence[float]) -> str:
    values = [value for value in values if isfinite(value)]
    if not values:
        return "–"
    mean = statistics.fmean(values)
    digits = 3 if mean < 10 else 1
    deviation = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{mean:.{digits}f}{deviation}"


def same_setup(folder: Path, setup: Mapping[str, Any]) -> None:
    """Refuse to mix measurements of different kinds in one folder."""
    path = folder / "setup.json"
    text = json.dumps(setup, indent=2) + "\n"
    if path.exists() and path.read_text() != text:
        raise SystemExit(f"{folder} holds a measurement with other options: see {path}")
    path.write_text(text)


def options() -> argparse.Namespace:
    """Of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--chemprop", type=Path, help="the command; not measured if not given")
    parser.add_argument("--data", type=Path, required=True, help="CSV file with SMILES and labels")
    parser.add_argument("--smiles-column", default="smiles")
    parser.add_argument("--label-column", default="label")
    parser.add_argument("--positive", help="the positive label (default: the last in order)")
    parser.add_argument("--out", type=Path, required=True, help="folder for everything")
    parser.add_argument("--splits", default="1,2,3", help="numbers, which are the seeds, too")
    parser.add_argument("--sizes", default="0.8,0.1,0.1", help="of training, validation, test")
    parser.add_argument("--models", default=f"{EXPLAINED},gnn", help="of ours")
    parser.add_argument("--epochs-chemprop", type=int, help="default: chemprop's own")
    parser.add_argument("--epochs-cores", type=int, help="default: our own")
    parser.add_argument("--limit", type=int, help="use only a sample of this many molecules")
    parser.add_argument("--rationales", type=int, default=50, help="molecules per split; 0: none")
    parser.add_argument("--rollouts", type=int, default=20, help="of the tree search")
    parser.add_argument("--min-atoms", type=int, default=8, help="of the tree search")
    parser.add_argument("--truth-smarts", help="pattern of the atoms that decide")
    return parser.parse_args()


def main() -> None:
    """Measure what is not measured yet, and print the tables."""
    given = options()
    rdBase.DisableLog("rdApp.*")
    shares = [float(share) for share in given.sizes.split(",")]
    if len(shares) != len(PARTS) or min(shares) <= 0 or abs(sum(shares) - 1) > 1e-6:
        raise SystemExit("--sizes are three shares that add up to one")
    given.out.mkdir(parents=True, exist_ok=True)
    keys = (
        *("smiles_column", "label_column", "positive", "sizes", "limit"),
        *("epochs_chemprop", "epochs_cores", "rationales", "rollouts", "min_atoms"),
        "truth_smarts",
    )
    same_setup(given.out, {"data": given.data.name, **{key: getattr(given, key) for key in keys}})
    molecules = read_molecules(
        given.data, given.smiles_column, given.label_column, given.positive, given.limit
    )
    programs: list[Chemprop | Ours] = []
    if given.chemprop is not None:
        programs.append(Chemprop(given.chemprop, given.epochs_chemprop))
    programs += [Ours(model, given.epochs_cores) for model in given.models.split(",") if model]
    results, explained = given.out / "results.csv", given.out / "rationales.csv"
    search = SearchSettings(rollouts=given.rollouts, min_atoms=given.min_atoms)
    for split in (int(number) for number in given.splits.split(",")):
        folder = given.out / f"split-{split}"
        folder.mkdir(exist_ok=True)
        labels = [molecule.label for molecule in molecules]
        write_molecules(folder / "data.csv", molecules, part_names(labels, split, shares))
        for program in programs:
            done = {(row["split"], row["program"]) for row in read_rows(results)}
            if (str(split), program.name) not in done:
                row, _ = measured(program, folder, molecules, split)
                add_rows(results, RESULTS, [row])
                print(f"split {split}, {program.name}: {row['train_seconds']:.1f} s", flush=True)
        ours = [
            row
            for row in read_rows(results)
            if (row["split"], row["program"]) == (str(split), EXPLAINED)
        ]
        done_splits = {row["split"] for row in read_rows(explained)}
        if given.rationales and ours and str(split) not in done_splits:
            rows = rationale_rows(
                folder, split, given.rationales, ours[0], given.truth_smarts, search
            )
            add_rows(explained, RATIONALES, rows)
    print("\n" + markdown(read_rows(results), "program", [*RESULTS[4:], "test_molecules"]))
    if rows := read_rows(explained):
        print("\n" + markdown(rows, "method", RATIONALES[2:]))


if __name__ == "__main__":
    main()
