"""Measured seconds as rows of a CSV file. Needs no torch."""

import csv
import io
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from cores.errors import UserError
from cores.files import in_turn, write_atomically

REPEATS = {"train": 3, "inference": 5}
"""How often each action is timed: an epoch on single graphs takes minutes."""


@dataclass(frozen=True)
class Timing:
    """A model's seconds for one thing at one batch size."""

    dataset: str
    model: str
    action: str
    """``train``: an epoch; ``inference``: one call. Both are keys of ``REPEATS``."""
    batch_size: int
    seconds: float
    """Median over the repeats."""
    ratio: float
    """To the plain GNN, measured in turns with it."""
    repeats: int
    machine: str
    commit: str


def read_timings(path: Path) -> list[Timing]:
    """The rows of a file of seconds, none without a file; a line that does not fit is named."""
    if not path.exists():
        return []
    try:
        lines = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {error}") from None
    names = [field.name for field in fields(Timing)]
    if lines.fieldnames != names:
        raise UserError(f"{path}: the first line must name the columns {', '.join(names)}")
    timings = []
    for number, line in enumerate(lines, start=2):
        try:
            if line["action"] not in REPEATS:
                raise ValueError
            timings.append(
                Timing(
                    *(line["dataset"], line["model"], line["action"], int(line["batch_size"])),
                    *(float(line["seconds"]), float(line["ratio"]), int(line["repeats"])),
                    *(line["machine"], line["commit"]),
                )
            )
        except (KeyError, TypeError, ValueError):
            raise UserError(f"{path}: line {number} is not a measured time") from None
    return timings


def merge_timings(path: Path, new: Iterable[Timing]) -> list[Timing]:
    """Add rows to a file of seconds, a later one in place of an older; sorted."""
    with in_turn(path):
        merged = {_what(each): each for each in (*read_timings(path), *new)}
        timings = [merged[key] for key in sorted(merged)]
        buffer = io.StringIO()
        names = [field.name for field in fields(Timing)]
        writer = csv.DictWriter(buffer, names, lineterminator="\n")
        writer.writeheader()
        for each in timings:
            rounded = {"seconds": f"{each.seconds:.4g}", "ratio": f"{each.ratio:.4g}"}
            writer.writerow(asdict(each) | rounded)
        write_atomically(path, buffer.getvalue().encode())
    return timings


def _what(timing: Timing) -> tuple[str, str, str, int, int, str]:
    """What a later row replaces; never the one of another machine, or of more repeats."""
    setting = (timing.machine, timing.repeats)
    return timing.action, timing.dataset, *setting, timing.batch_size, timing.model
