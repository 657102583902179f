"""Measured seconds as rows of a CSV file, and as tables (Tables 11 and 12). Needs no torch."""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from cores import UserError
from cores.files import in_turn, read_text, write_atomically
from cores_paper.tables.style import model_title, ordered_datasets, ordered_models
from cores_paper.tables.table import Table
from cores_paper.tables.targets import PLAIN_GNN, published_seconds

REPEATS = {"train": 3, "inference": 5}
"""How often each action is timed; an epoch on single graphs takes minutes."""


@dataclass(frozen=True)
class Timing:
    """Seconds of a model for one action at one batch size."""

    dataset: str
    model: str
    action: str
    """``train``: an epoch; ``inference``: one prediction. Both are keys of ``REPEATS``."""
    batch_size: int
    seconds: float
    """Median over the repeats."""
    ratio: float
    """To the plain GNN, measured in alternation with it."""
    repeats: int
    machine: str
    commit: str


NAMES = [field.name for field in fields(Timing)]


def read_timings(path: Path) -> list[Timing]:
    """Read a file of timings, empty without a file; an invalid line is an error with its number."""
    if not path.exists():
        return []
    lines = csv.reader(io.StringIO(read_text(path)))
    timings = []
    try:
        if next(lines, []) != NAMES:
            raise UserError(f"{path}: the first line must name the columns {', '.join(NAMES)}")
        for line in filter(None, lines):
            dataset, model, action, batch_size, seconds, ratio, repeats, machine, commit = line
            measured = float(seconds), float(ratio)
            if action not in REPEATS or not all(map(math.isfinite, measured)):
                raise ValueError
            size = int(batch_size)
            named = dataset, model, action, size, *measured, int(repeats), machine, commit
            timings.append(Timing(*named))
    except UserError:
        raise
    except (ValueError, csv.Error):
        raise UserError(f"{path}: line {lines.line_num} is not a measured time") from None
    return timings


def merge_timings(path: Path, new: Iterable[Timing]) -> list[Timing]:
    """Add timings to a file, replacing older ones of the same setting; returns all, sorted."""
    with in_turn(path):
        merged = {_setting(timing): timing for timing in (*read_timings(path), *new)}
        timings = [merged[setting] for setting in sorted(merged)]
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, NAMES, lineterminator="\n")
        writer.writeheader()
        for timing in timings:
            rounded = {"seconds": f"{timing.seconds:.4g}", "ratio": f"{timing.ratio:.4g}"}
            writer.writerow(asdict(timing) | rounded)
        write_atomically(path, buffer.getvalue().encode())
    return timings


def _setting(timing: Timing) -> tuple[str, str, str, int, int, str]:
    """What a newer timing must share with the one it replaces."""
    machine = (timing.machine, timing.repeats)
    return timing.action, timing.dataset, *machine, timing.batch_size, timing.model


def timing_table(timings: Sequence[Timing], action: str) -> Table:
    """A line per dataset and batch size: the GNN's milliseconds, and every model's ratio to it.

    The paper's ratio, which it measured on single graphs, is in brackets.
    """
    timings = [timing for timing in timings if timing.action == action]
    models = ordered_models({timing.model for timing in timings} - {PLAIN_GNN})
    head = ["dataset", "graphs at once", "GNN, ms", *map(model_title, models)]
    lines = []
    for dataset in ordered_datasets(timing.dataset for timing in timings):
        on_dataset = [timing for timing in timings if timing.dataset == dataset]
        for batch_size in sorted({timing.batch_size for timing in on_dataset}):
            by_model = {
                timing.model: timing for timing in on_dataset if timing.batch_size == batch_size
            }
            paper = published_seconds(action, dataset) if batch_size == 1 else {}
            gnn = _milliseconds(by_model[PLAIN_GNN].seconds) if PLAIN_GNN in by_model else "–"
            texts = [dataset, str(batch_size), gnn]
            for model in models:
                ratio = f"{by_model[model].ratio:.2f}" if model in by_model else "–"
                brackets = f" ({paper[model] / paper[PLAIN_GNN]:.1f})" if model in paper else ""
                texts.append(f"{ratio}{brackets}")
            lines.append(texts)
    return Table(head, lines)


def _milliseconds(seconds: float) -> str:
    """Three significant digits, but no exponent.

    >>> _milliseconds(0.00123456), _milliseconds(1.73456)
    ('1.23', '1735')
    """
    number = 1000 * seconds
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"
