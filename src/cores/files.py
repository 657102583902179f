"""Files that are whole or not there."""

import fcntl
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from cores.errors import UserError


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


def is_leftover(path: Path) -> bool:
    """Whether :func:`write_atomically` left this file because it was killed."""
    return re.fullmatch(r"\..+\.[0-9a-f]{12}\.tmp", path.name) is not None


def write_json(path: Path, value: Any) -> None:
    """Write one JSON value, atomically."""
    write_atomically(path, (json.dumps(value, indent=2) + "\n").encode())


def read_json(path: Path) -> Any:
    """Read one JSON value."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise UserError(f"{path} is not valid JSON ({error})") from None
