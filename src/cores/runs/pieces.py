"""Pieces of a prediction: written as soon as they are done, and joined at the end.

They lie in a folder beside the output, with what decides their content, so that the same command
goes on where it was interrupted, and no other does.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from cores.data.raw import SHOWN
from cores.errors import UserError
from cores.files import LOCK, atomic_writer, read_json, unlinked, write_json
from cores.runs.records import RecordFormat

JOB = "job.json"
"""In a folder of pieces: what is predicted there, by what."""
_PIECE = re.compile(r"(\d{8})\.(\d+)\.(\d+)\.piece")
"""Number, rows, and rows with an error."""


@dataclass(frozen=True)
class PredictSummary:
    """What was predicted."""

    records: int
    errors: int
    """Rows that are no graphs."""
    first_errors: tuple[str, ...]


def pieces_folder(out: Path) -> Path:
    """Where the pieces of an output lie."""
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
    """What the pieces hold that are there."""
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
