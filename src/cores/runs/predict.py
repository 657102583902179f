"""Predictions for files of graphs: streamed in chunks, in processes or on a cluster, resumable.

A file is predicted in pieces of :data:`~cores.data.inputs.sources.CHUNK` rows. Each piece is
written to a folder beside the output as soon as it is done, and never computed twice; the output
is joined from the pieces at the end. Memory does not grow with the file.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from cores.data.inputs.sources import CHUNK, holds_rows, partitions, suffix_of
from cores.data.raw import SHOWN, Rows
from cores.errors import UserError
from cores.files import (
    LOCK,
    atomic_writer,
    locked,
    make_folder,
    read_json,
    unlinked,
    write_atomically,
    write_json,
)
from cores.runs.cluster import Certificates
from cores.runs.folder import MODEL
from cores.runs.inputs import PredictOptions
from cores.runs.opened import Run
from cores.runs.records import Record, RecordFormat
from cores.runs.workers import Item, in_workers

Advance = Callable[[int], None]
"""Called with the number of rows that are done."""
JOB = "job.json"
"""In a folder of pieces: what is predicted there, by what."""
_PIECE = re.compile(r"(\d{8})\.(\d+)\.(\d+)\.piece")
"""Number, rows, and rows with an error."""


@dataclass(frozen=True)
class PredictSummary:
    """Counts of what was predicted."""

    records: int
    errors: int
    """Rows that are no graphs."""
    first_errors: tuple[str, ...]


def predict_records(
    run: Path,
    source: str,
    options: PredictOptions,
    *,
    device: str = "auto",
    data_root: Path | None = None,
) -> Iterator[tuple[list[Record], tuple[str, ...]]]:
    """Predict an input chunk by chunk; yields records and their fields."""
    predictor = Run.open(run, options, device=device)
    for rows in predictor.rows(source, data_root, CHUNK):
        yield predictor.records(rows), predictor.fields


def predict_file(
    run: Path,
    source: str,
    out: Path,
    options: PredictOptions,
    *,
    device: str = "auto",
    data_root: Path | None = None,
    workers: int = 1,
    advance: Advance = lambda rows: None,
    summarise: Path | None = None,
) -> PredictSummary:
    """Predict a file into a file; the same command again goes on where it was interrupted.

    The summary is also written to ``summarise``, before the file is there; it may then have no
    rows.
    """
    predictor = _opened(run, options, device)
    kind = predictor.format_of(out)
    if out.exists():
        raise UserError(f"{out} exists already; delete it, or choose another `out`")
    make_folder(out.absolute().parent)
    pieces = pieces_folder(out)
    with locked(pieces):
        check_job(pieces, _job(run, source, options, kind))
        job = partial(_predict_piece, run.absolute(), options, device, pieces.absolute(), kind)
        try:
            chunks = enumerate(predictor.rows(source, data_root, CHUNK))
            there = {piece.number: piece.rows for piece in finished_pieces(pieces)}
            advance(sum(there.values()))
            waiting = (chunk for chunk in chunks if chunk[0] not in there)
            with _here_or_in_workers(waiting, job, device, workers) as ended:
                for (_, rows), failure in ended:
                    if failure is not None:
                        raise UserError(failure)
                    advance(len(rows))
            summary = pieces_summary(pieces)
            if summary.records == summary.errors and summarise is None:
                first = "; ".join(summary.first_errors)
                said = f"no row of {source} can be used: {first}"
                raise UserError(said if summary.records else f"{source} holds no graphs")
        except UserError:
            done = pieces_summary(pieces)
            if done.records == done.errors:  # nothing to go on from
                shutil.rmtree(pieces)
            raise
        if summarise is not None:
            write_json(summarise, asdict(summary) | {"files": file_states(Path(source))})
        join_pieces(pieces, kind, out)
    shutil.rmtree(pieces)
    return summary


def _here_or_in_workers(
    items: Iterable[Item],
    job: Callable[[Item], str | None],
    device: str,
    workers: int,
    scheduler: str | None = None,
    certificates: Certificates | None = None,
) -> AbstractContextManager[Iterator[tuple[Item, str | None]]]:
    """Do a job for every item: in this process where one worker is asked for."""
    if workers == 1 and scheduler is None:
        return closing((item, job(item)) for item in items)
    return in_workers(items, job, device, workers, scheduler, certificates)


def _opened(run: Path, options: PredictOptions, device: str) -> Run:
    """Open a run, once in every process until the model's file changes."""
    model = run / MODEL
    changed = model.stat().st_mtime_ns if model.exists() else None
    return _opened_at(run.absolute(), options, device, changed)


@lru_cache(maxsize=2)
def _opened_at(run: Path, options: PredictOptions, device: str, changed: int | None) -> Run:
    return Run.open(run, options, device=device)


def _predict_piece(
    run: Path,
    options: PredictOptions,
    device: str,
    pieces: Path,
    kind: RecordFormat,
    item: tuple[int, Rows],
) -> str | None:
    """Predict some rows and write them; returns why that failed, in one line."""
    number, rows = item
    try:
        records = _opened(run, options, device).records(rows)
        errors = [f"{record['id']}: {record['error']}" for record in records if record["error"]]
        if errors:
            write_json(pieces / f"{number:08d}.errors", errors[:SHOWN])
        name = f"{number:08d}.{len(records)}.{len(errors)}.piece"
        write_atomically(pieces / name, kind.encoded(records))
    except UserError as error:
        return str(error)
    return None


def _job(
    run: Path, source: str, options: PredictOptions, kind: RecordFormat, *, folder: bool = False
) -> dict[str, Any]:
    """Describe everything that decides the content of the pieces.

    Of a folder whose files are predicted one by one, each keeps the state of its own.
    """
    path = Path(source)
    model = hashlib.sha256((run / MODEL).read_bytes()).hexdigest()
    return json.loads(
        json.dumps(
            {
                "model": model,
                "input": str(path.absolute()) if path.exists() else source,
                "files": None if folder else file_states(path),
                "options": asdict(options),
                "rows": CHUNK,
                "format": [kind.kind, kind.packed],
            }
        )
    )


def predict_folder(
    run: Path,
    source: Path,
    out: Path,
    options: PredictOptions,
    *,
    device: str = "auto",
    workers: int = 1,
    scheduler: str | None = None,
    certificates: Certificates | None = None,
    advance: Advance = lambda files: None,
) -> PredictSummary:
    """Predict every file of a folder into a file of the same name; those done are left alone.

    With the address of a dask scheduler its workers do it; they must see the folders under the same
    paths.
    """
    if not holds_rows(source):
        raise UserError(f"{source} holds no csv, parquet, sdf, smi or jsonl files")
    predictor = _opened(run, options, device)
    outputs = _outputs(source, out)
    first = next(iter(outputs.values()))
    kind = predictor.format_of(first)
    make_folder(out)
    _check_outputs(out, outputs.values(), _job(run, str(source), options, kind, folder=True))
    waiting = [(file, output) for file, output in outputs.items() if not output.exists()]
    for file, output in outputs.items():
        if output.exists() and _read_summary(output)[1] != file_states(file):
            raise UserError(f"{file} has changed since {output} was written; delete that")
    advance(len(outputs) - len(waiting))
    job = partial(_predict_partition, run.absolute(), options, device)
    with _here_or_in_workers(waiting, job, device, workers, scheduler, certificates) as ended:
        for (file, _), failure in ended:
            if failure is not None:
                raise UserError(f"{file.name}: {failure}")
            advance(1)
    found = [_read_summary(path)[0] for path in outputs.values()]
    return PredictSummary(
        sum(summary.records for summary in found),
        sum(summary.errors for summary in found),
        tuple(error for summary in found for error in summary.first_errors)[:SHOWN],
    )


def _outputs(source: Path, out: Path) -> dict[Path, Path]:
    """The file to write for every file of a folder."""
    if out.exists() and out.samefile(source):
        raise UserError(f"{out} is the input; choose another `out`")
    outputs: dict[Path, Path] = {}
    for file in partitions(source):
        outputs[file.absolute()] = out.absolute() / _output_name(file)
    if len(set(outputs.values())) < len(outputs):
        raise UserError(f"{source} holds files that differ only in .gz; remove one of each")
    return outputs


def _output_name(file: Path) -> str:
    """Name the output of a file: a table for molecules in files that hold no tables."""
    known = {".sdf": ".csv", ".smi": ".csv", ".tsv": ".csv", ".ndjson": ".jsonl"}
    kind = suffix_of(file)
    return file.name[: file.name.lower().rindex(kind)] + known.get(kind, kind)


def _check_outputs(out: Path, outputs: Iterable[Path], job: dict[str, Any]) -> None:
    """Refuse to add to predictions of another model, input or setting."""
    path = out / f".{JOB}"
    if any(output.exists() for output in outputs) and (not path.exists() or read_json(path) != job):
        raise UserError(f"{out} holds other files or predictions; choose another `out`")
    write_json(path, job)


def _summary_path(out: Path) -> Path:
    """Beside a predicted file of a folder; readers of such folders skip names with a dot."""
    return out.with_name(f".{out.name}.json")


def _read_summary(out: Path) -> tuple[PredictSummary, Any]:
    """The summary of a predicted file, and the state of its input."""
    path = _summary_path(out)
    found = read_json(path)
    try:
        first = tuple(map(str, found["first_errors"]))
        return PredictSummary(int(found["records"]), int(found["errors"]), first), found["files"]
    except (LookupError, TypeError, ValueError):
        raise UserError(f"{path} is damaged; delete it and {out} to predict again") from None


def _predict_partition(
    run: Path, options: PredictOptions, device: str, item: tuple[Path, Path]
) -> str | None:
    """Predict one file in a worker; returns why that failed, in one line."""
    source, out = item
    try:
        if out.exists():  # by a worker that was killed just after
            shutil.rmtree(pieces_folder(out), ignore_errors=True)
            return None
        predict_file(run, str(source), out, options, device=device, summarise=_summary_path(out))
    except UserError as error:
        return str(error)
    return None


def pieces_folder(out: Path) -> Path:
    """Return the folder of an output's pieces."""
    return unlinked(out.with_name(f"{out.name}.pieces"))


class Piece(NamedTuple):
    """Some rows of the output."""

    number: int
    rows: int
    errors: int
    path: Path


def finished_pieces(pieces: Path) -> list[Piece]:
    """The pieces that are there, in order."""
    named = ((_PIECE.fullmatch(path.name), path) for path in pieces.iterdir())
    return sorted(
        Piece(int(name[1]), int(name[2]), int(name[3]), path) for name, path in named if name
    )


def pieces_summary(pieces: Path) -> PredictSummary:
    """Count the rows and errors of the pieces that are there."""
    done = finished_pieces(pieces)
    first: list[str] = []
    for path in sorted(pieces.glob("*.errors")):
        told = read_json(path)
        if not (isinstance(told, list) and all(isinstance(line, str) for line in told)):
            raise UserError(f"{path} is damaged; delete {pieces} to start over")
        first += told
        if len(first) >= SHOWN:
            break
    return PredictSummary(
        sum(piece.rows for piece in done),
        sum(piece.errors for piece in done),
        tuple(first[:SHOWN]),
    )


def join_pieces(pieces: Path, kind: RecordFormat, out: Path) -> None:
    """Join the pieces to a file that is whole or not there."""
    try:
        with atomic_writer(out) as file:
            kind.join([piece.path for piece in finished_pieces(pieces)], file)
    except OSError as error:
        raise UserError(
            f"cannot write {out}: {error.strerror or error}; the same command goes on from there"
        ) from None


def file_states(path: Path) -> list[list[Any]]:
    """Name, size and time of the last change of a file, or of every file of a folder."""
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    found = ((file, file.stat()) for file in files if file.exists())
    return [[file.name, state.st_size, state.st_mtime_ns] for file, state in found]


def check_job(pieces: Path, job: dict[str, Any]) -> None:
    """Refuse to go on with pieces of another model, input or setting."""
    if not (pieces / JOB).exists() and any(path.name != LOCK for path in pieces.iterdir()):
        raise UserError(f"{pieces} is in the way; delete it, or choose another `out`")
    if finished_pieces(pieces) and read_json(pieces / JOB) != job:
        raise UserError(
            f"{pieces} holds pieces of another prediction; delete it, or choose another `out`"
        )
    write_json(pieces / JOB, job)
