"""What several benchmarks read and write: tables, and runs with their data."""

import argparse
import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from cores.data.dataset import Dataset
from cores.runs.opened import Run
from cores.runs.trained import TrainedModel


def parser(doc: str | None) -> argparse.ArgumentParser:
    """Make a parser whose help is a module's docstring, commands included."""
    return argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def add_runs(options: argparse.ArgumentParser) -> None:
    """Let several runs be named, and where their data lie."""
    options.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    options.add_argument("--data-root", type=Path, metavar="FOLDER")


def load_run(run: Path, data_root: Path | None = None) -> tuple[TrainedModel, Dataset]:
    """Load the model of a run, and the dataset that it was trained on."""
    opened = Run.open(run, device="cpu")
    return opened.trained, opened.dataset(data_root)


def read_rows(path: Path) -> list[dict[str, str]]:
    """Read the rows of a CSV file."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write_rows(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV file."""
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(head)
        table.writerows(rows)


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Write a mean and, of several values, their standard deviation.

    >>> spread([0.5, 1.0], digits=2)
    '0.75 ± 0.35'
    """
    from statistics import fmean, stdev

    deviation = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{fmean(values):.{digits}f}{deviation}"
