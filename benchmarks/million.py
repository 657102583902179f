"""How `cores predict` grows: rate and memory from ten thousand to a million graphs, and a cluster.

    python benchmarks/million.py --molecules benzene.csv --out FOLDER [--lines 10000,1000000]

Writes molecules as JSON lines (elements as nodes, bond orders as edges), over and over, trains a
CORES model and a plain GNN on some of them for a few epochs, and predicts each file with both, one
process and one thread. With ``--cluster`` the graphs are also divided into files that two dask
workers predict; one of them is killed on the way, and the output is compared with that of a single
process, byte for byte.
"""

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path

from cores.data.inputs.columns import ColumnNames
from cores.data.inputs.sources import read_rows

CORES = [sys.executable, "-m", "cores"]
EPOCHS = 4
"""Of the models: what they predict does not matter here."""
TRAINED_ON = 1000
FILES = 20
"""Of the folder that the cluster predicts."""


@dataclass(frozen=True)
class Measured:
    """A command that has ended."""

    seconds: float
    peak_mb: float


def measured(*arguments: str) -> Measured:
    """Run the command line in a process of its own, on one thread."""
    begin = time.perf_counter()
    pid = os.posix_spawn(CORES[0], [*CORES, *arguments], os.environ | {"OMP_NUM_THREADS": "1"})
    _, status, usage = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"failed: cores {' '.join(arguments)}")
    return Measured(time.perf_counter() - begin, usage.ru_maxrss / 1024)


def graph_lines(table: Path) -> list[str]:
    """Molecules of a table as JSON lines without identifiers."""
    lines = []
    for rows in read_rows(table, ColumnNames()):
        parsed = rows.parse()
        for molecule, label in zip(parsed.molecules, parsed.labels, strict=True):
            edges = [
                [bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), str(bond.GetBondType())]
                for bond in molecule.GetBonds()
            ]
            nodes = [atom.GetSymbol() for atom in molecule.GetAtoms()]
            record = {"nodes": nodes, "edges": edges, "label": label}
            lines.append(json.dumps(record, separators=(",", ":")))
    return lines


def numbered(lines: list[str], first: int, count: int) -> Iterator[str]:
    """The lines over and over, with identifiers."""
    turn = islice(cycle(lines), first % len(lines), None)
    for number, line in zip(range(first, first + count), turn, strict=False):
        yield f'{{"id":"g{number}",{line[1:]}\n'


def write_lines(path: Path, lines: list[str], first: int, count: int) -> None:
    """Write a file, unless it is there."""
    if not path.exists():
        with path.open("w") as file:
            file.writelines(numbered(lines, first, count))


def digest(paths: list[Path]) -> str:
    """Of the content of files, one after the other."""
    found = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            for block in iter(lambda: file.read(1 << 20), b""):
                found.update(block)
    return found.hexdigest()


def on_cluster(run: Path, folder: Path, out: Path) -> tuple[float, int]:
    """Predict a folder on two workers, one of which is killed; seconds, and files done by then."""
    dask = Path(sys.executable).with_name("dask")
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    quiet = partial(
        subprocess.Popen, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    file = out.with_suffix(".scheduler.json")
    file.unlink(missing_ok=True)
    local = ["--host", "127.0.0.1"]
    started = [
        quiet(
            [dask, "scheduler", *local, "--port", "0", "--scheduler-file", file, "--no-dashboard"]
        )
    ]
    try:
        while not file.exists():
            time.sleep(0.2)
        address = json.loads(file.read_text())["address"]
        started += [
            quiet([dask, "worker", address, *local, "--nthreads", "1", "--no-nanny"])
            for _ in range(2)
        ]
        begin = time.perf_counter()
        command = [*CORES, "predict", str(run), str(folder), "--out", str(out)]
        client = subprocess.Popen([*command, "--scheduler", address], env=environment)
        while len(list(out.glob("*.jsonl"))) < FILES // 4:
            if client.poll() is not None:
                raise SystemExit("the cluster's client ended too early")
            time.sleep(0.2)
        done = len(list(out.glob("*.jsonl")))
        started[1].send_signal(signal.SIGKILL)
        if client.wait() != 0:
            raise SystemExit("the prediction on the cluster failed")
        return time.perf_counter() - begin, done
    finally:
        for process in started:
            process.kill()


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--molecules", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--lines", default="10000,1000000")
    parser.add_argument("--cluster", action="store_true")
    options = parser.parse_args()
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    lines = graph_lines(options.molecules)
    write_lines(out / "train.jsonl", lines, 0, TRAINED_ON)
    for model in ("cores-node", "gnn"):
        if not (out / model).exists():
            data = ["--dataset", str(out / "train.jsonl"), "--model", model]
            measured("train", *data, "--epochs", str(EPOCHS), "--out", str(out / model))
    counts = [int(count) for count in options.lines.split(",")]
    print(
        "| graphs | model | seconds | graphs per second | peak memory, MB |\n|---|---|---|---|---|"
    )
    for count in counts:
        write_lines(out / f"{count}.jsonl", lines, 0, count)
        for model in ("cores-node", "gnn"):
            result = out / f"{model}-{count}.jsonl"
            result.unlink(missing_ok=True)
            took = measured(
                "predict", str(out / model), str(out / f"{count}.jsonl"), "--out", str(result)
            )
            cells = (f"{count:,}", model, f"{took.seconds:.1f}", f"{count / took.seconds:,.0f}")
            print(f"| {' | '.join(cells)} | {took.peak_mb:.0f} |", flush=True)
    if options.cluster:
        count = counts[-1]
        folder = out / f"{count}-files"
        folder.mkdir(exist_ok=True)
        for number in range(FILES):
            share = count // FILES
            write_lines(folder / f"part{number:03d}.jsonl", lines, number * share, share)
        predicted = out / f"{count}-predicted"
        seconds, done = on_cluster(out / "cores-node", folder, predicted)
        same = digest(sorted(predicted.glob("*.jsonl"))) == digest(
            [out / f"cores-node-{count}.jsonl"]
        )
        print(
            f"\nCluster: {count:,} graphs in {seconds:.1f} s ({count / seconds:,.0f} per second); "
            f"one of two workers killed after {done} of {FILES} files; output "
            f"{'identical' if same else 'DIFFERENT'} to that of one process."
        )


if __name__ == "__main__":
    main()
