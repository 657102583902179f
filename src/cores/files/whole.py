"""Files that are whole or not there, and folders that one process holds."""

import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from cores.errors import UserError, told
from cores.files.limits import LINE, check_regular, told_size

LOCK = "lock"
"""File in a folder that one process holds."""
ASKING = 0.2
"""Seconds in which whoever asks if a folder is held has certainly let go of it."""


class HeldError(UserError):
    """Another process holds the folder."""


def cache_folder() -> Path:
    """The user's folder for what can be made or downloaded again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cores-gnn"


def make_folder(path: Path) -> None:
    """Make a folder and those above it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {path}: {error.strerror or error}") from None


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a kill at any moment, finds the old content or the new."""
    # Not by the process's number: on a shared disk, those of two machines may be the same.
    temporary = path.with_name(f".{path.name}.{uuid4().hex[:12]}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        if temporary.exists():
            temporary.unlink()
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error


@contextmanager
def in_turn(path: Path) -> Iterator[None]:
    """Wait for other processes that change a file of this folder; the lock dies with the process.

    For a file that is read, changed and written again: two at once would lose one's changes.
    """
    try:
        folder = os.open(path.parent, os.O_RDONLY)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from None
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make a folder and hold it alone; the lock dies with the process."""
    make_folder(folder)
    try:
        lock = (folder / LOCK).open("w")
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror or error}") from None
    with lock:
        patience = time.monotonic() + ASKING
        while not _taken(lock, fcntl.LOCK_EX):
            if time.monotonic() > patience:
                raise HeldError(f"another process is writing to {folder}; wait for it")
            time.sleep(ASKING / 20)
        for path in filter(is_leftover, folder.iterdir()):
            path.unlink()
        yield


def is_held(folder: Path) -> bool:
    """Whether a living process holds the folder by :func:`locked`."""
    if not (folder / LOCK).exists():
        return False
    with (folder / LOCK).open() as lock:
        return not _taken(lock, fcntl.LOCK_SH)


def _taken(lock: IO[str], kind: int) -> bool:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def is_leftover(path: Path) -> bool:
    """Whether :func:`write_atomically` left this file because it was killed."""
    return re.fullmatch(r"\..+\.[0-9a-f]{12}\.tmp", path.name) is not None


def write_json(path: Path, value: Any) -> None:
    """Write one JSON value, atomically."""
    write_atomically(path, (json.dumps(value, indent=2) + "\n").encode())


def read_text(path: Path) -> str:
    """Read a text file of ours or of the user's whole, if it is small enough for that."""
    check_regular(path)
    try:
        LINE.check(path.stat().st_size, f"{path} has {told_size(path.stat().st_size)}")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8 text") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None


def read_json(path: Path) -> Any:
    """Read one JSON value."""
    try:
        return json.loads(read_text(path))
    except UserError:
        raise
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not valid JSON ({told(error)})") from None
