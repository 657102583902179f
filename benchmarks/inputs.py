"""Tables of benchmarks, and parts of molecules."""

import argparse
import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any


def parser(doc: str | None) -> argparse.ArgumentParser:
    """Make a parser whose help is a module's docstring, commands included."""
    return argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def matched(molecule: Any, smarts: str) -> set[int]:
    """Find the atoms of a molecule that a pattern matches somewhere."""
    from rdkit import Chem

    matches = molecule.GetSubstructMatches(Chem.MolFromSmarts(smarts), maxMatches=1000)
    return {atom for match in matches for atom in match}


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
    deviation = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{fmean(values):.{digits}f}{deviation}"
