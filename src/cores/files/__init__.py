"""Files that are whole or not there, and folders that one process holds.

A folder may come from somebody else: what is written in it stays in it, wherever its links lead.
"""

import errno
import fcntl
import json
import os
import re
import time
from collections.abc import Iterable, Iterator
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
DEEPEST = 100
"""Levels that JSON may be nested; what walks through it by recursion is safe then."""


class HeldError(UserError):
    """Another process holds the folder."""


def cache_folder() -> Path:
    """The user's folder for what can be made or downloaded again."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cores-gnn"
    except RuntimeError:  # a user whom the system does not know, as in some containers
        raise UserError("there is no home folder; set XDG_CACHE_HOME to a folder") from None


def make_folder(path: Path) -> None:
    """Make a folder and those above it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {path}: {error.strerror or error}") from None


def unlinked(path: Path) -> Path:
    """The path of a file or folder that is ours to write to, which a link is not."""
    if path.is_symlink():
        raise UserError(f"{path} is a link, and what is written here must stay here; remove it")
    return path


def open_unlinked(path: Path, flags: int) -> int:
    """Open a file that is no link; the descriptor is closed in new processes."""
    try:
        return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode=0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            unlinked(path)
        raise


@contextmanager
def atomic_writer(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of ``path`` once it is whole.

    A reader, or a kill at any moment, finds the old content or the new. A link is replaced, too,
    not followed.
    """
    # Not by the process's number: on a shared disk, those of two machines may be the same.
    temporary = path.with_name(f".{path.name}.{uuid4().hex[:12]}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_atomically(path: Path, content: bytes) -> None:
    """Write a whole file by :func:`atomic_writer`."""
    try:
        with atomic_writer(path) as file:
            file.write(content)
    except OSError as error:
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
        lock = open_unlinked(folder / LOCK, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror or error}") from None
    try:
        patience = time.monotonic() + ASKING
        while not _taken(lock, fcntl.LOCK_EX):
            if time.monotonic() > patience:
                raise HeldError(f"another process is writing to {folder}; wait for it")
            time.sleep(ASKING / 20)
        for path in filter(is_leftover, folder.iterdir()):
            path.unlink()
        yield
    finally:
        os.close(lock)


def is_held(folder: Path) -> bool:
    """Return whether a living process holds the folder by :func:`locked`."""
    try:
        lock = open_unlinked(folder / LOCK, os.O_RDONLY | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        return not _taken(lock, fcntl.LOCK_SH)
    finally:
        os.close(lock)


def _taken(lock: int, kind: int) -> bool:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def is_leftover(path: Path) -> bool:
    """Return whether :func:`atomic_writer` left this file because it was killed."""
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
        return parsed_json(read_text(path))
    except UserError:
        raise
    except ValueError as error:
        raise UserError(f"{path} is not valid JSON ({told(error)})") from None


def parsed_json(text: str) -> Any:
    """One JSON value; raises ``ValueError``, also where it is nested too deeply to be handled."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    level = [value]
    for _ in range(DEEPEST):
        level = [item for nested in level for item in _items(nested)]
        if not level:
            return value
    raise ValueError("nested too deeply")


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
