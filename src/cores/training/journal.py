"""History of a run, a line per epoch, and the checkpoint that a killed run resumes from."""

import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from torch.optim import Adam

from cores import ranks
from cores.errors import UserError
from cores.files import make_folder, open_unlinked, unlinked, write_atomically
from cores.training.state import (
    RandomState,
    check_fits,
    fingerprint,
    load_state,
    restore_adam,
    save_state,
)

HISTORY = "history.jsonl"
CHECKPOINT = "checkpoint.safetensors"


@runtime_checkable
class Stateful(Protocol):
    """Anything whose state can be taken and put back: a model, an optimiser, a schedule."""

    def state_dict(self) -> Mapping[str, Any]:
        """Take the state."""

    def load_state_dict(self, state: Any, /) -> Any:
        """Put it back."""


@dataclass(frozen=True)
class SharedState:
    """A file with the state after an epoch that several runs have in common."""

    path: Path
    epoch: int

    @property
    def key(self) -> str:
        """The file's name, which says what the state depends on."""
        return self.path.stem


class Journal:
    """Writes ``history.jsonl`` and the checkpoint of a run, and resumes from them.

    On a CPU a run is a deterministic function of its checkpoint, so it does not matter how old that
    is: epochs after it are repeated, to the same numbers, and their lines are cut from the history.
    Of processes that train together, the first one writes, and all resume from what it reads.

    Args:
        folder: Where to write; None keeps nothing.
        state: Everything the training changes, by name; restored if the folder has a checkpoint.
        shared: A state that runs have in common; the first of them writes it, and a run without a
            checkpoint of its own begins with it. Not for processes that train together.
        key: Names the settings and data of the run; a checkpoint of another run is refused.
    """

    OVERHEAD = 0.05
    """Largest share of the time spent on saving states."""

    def __init__(
        self,
        folder: Path | None,
        state: Mapping[str, Stateful],
        shared: "SharedState | None" = None,
        key: str = "",
    ) -> None:
        self.folder = folder if ranks.leads() else None
        self.state = state
        self.shared = shared
        self.key = key
        self.epoch = 0
        self._seconds_before = 0.0
        self._saving_seconds = 0.0
        self._started = self._saved_at = time.perf_counter()
        with ranks.copied(None if folder is None else folder / CHECKPOINT) as checkpoint:
            if checkpoint is not None:
                self._restore(checkpoint, key)
            elif folder is not None and shared is not None and shared.path.exists():
                history = self._restore(shared.path, shared.key)
                write_atomically(folder / HISTORY, history.encode())
                self._save(folder / CHECKPOINT, key)
        if self.folder is not None:
            _cut(self.folder / HISTORY, lines=self.epoch)

    @property
    def seconds(self) -> float:
        """Time spent on this run, over all its interruptions."""
        return self._seconds_before + time.perf_counter() - self._started

    def epochs(self, most: int) -> Iterator[int]:
        """Numbers of the epochs still to run, from 1."""
        while self.epoch < most:
            yield self.epoch + 1

    def record(self, **metrics: float) -> None:
        """Close an epoch: append its line, and save the state if it is time."""
        self.epoch += 1
        if ranks.current() is not None:
            self._check_alike()
        if self.folder is None:
            return
        line = json.dumps({"epoch": self.epoch, **metrics}) + "\n"
        waited = time.perf_counter() - self._saved_at
        saves = waited * self.OVERHEAD >= self._saving_seconds
        begun = time.perf_counter()
        _append(self.folder / HISTORY, line, lasting=saves)
        if saves:
            self._save(self.folder / CHECKPOINT, self.key)
            self._saved_at = time.perf_counter()
            self._saving_seconds = self._saved_at - begun
        if self.shared is not None and self.epoch == self.shared.epoch:
            make_folder(self.shared.path.parent)
            history = (self.folder / HISTORY).read_text(encoding="utf-8")
            self._save(self.shared.path, self.shared.key, history)

    def _check_alike(self) -> None:
        """Refuse to go on where processes that train together have come apart."""
        mine = fingerprint({name: part.state_dict() for name, part in self.state.items()})
        if ranks.of_first(lambda: mine) != mine:
            raise UserError(
                f"the processes of this training differ after epoch {self.epoch}; use machines "
                "and versions of one kind, and layers that draw no random numbers of their own"
            )

    def _save(self, path: Path, key: str, history: str = "") -> None:
        parts = {name: part.state_dict() for name, part in self.state.items()}
        spent = {"epoch": self.epoch, "seconds": self.seconds}
        save_state(path, {"key": key, **spent, "parts": parts, "history": history})

    def _restore(self, path: Path, key: str) -> str:
        """Put the state back; returns the history that was shared with it."""
        saved = load_state(path)
        if saved.get("key", key) != key:  # version 0.2 wrote none
            raise UserError(
                f"{path} belongs to a run of other settings or data; delete it to start over"
            )
        try:
            for name, part in self.state.items():
                _put_back(part, saved["parts"][name])
            epoch, seconds, history = saved["epoch"], saved["seconds"], saved["history"]
            if not (type(epoch) is int and epoch >= 0 and type(seconds) is float):
                raise ValueError("neither an epoch nor seconds")
            self.epoch, self._seconds_before = epoch, seconds
            return str(history)
        except (LookupError, AttributeError, RuntimeError, ValueError, TypeError) as error:
            raise UserError(
                f"{path} does not fit this run ({type(error).__name__}); delete it to start over"
            ) from None


def _put_back(part: Stateful, state: Any) -> None:
    """Put a state back, if it could be that of the part: not every part looks at what it gets."""
    if isinstance(part, Adam):
        restore_adam(part, state)
        return
    fresh = part.state_dict()
    if isinstance(part, RandomState) and state["cuda"] is None:  # begun on a CPU
        fresh = {**fresh, "cuda": None}
    check_fits(state, fresh)
    part.load_state_dict(state)


def _append(path: Path, line: str, lasting: bool) -> None:
    """Append a line; a lasting one is on the disk before the checkpoint that counts on it."""
    try:
        # What blocks, a pipe without a reader, is refused.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK
        file = open_unlinked(path, flags)
        with os.fdopen(file, "a", encoding="utf-8") as history:
            history.write(line)
            history.flush()
            if lasting:
                os.fsync(file)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error


def _cut(path: Path, lines: int) -> None:
    """Cut a history back to its first lines, which must be whole.

    It is written anew, lest a hard link lets us cut a file outside of the folder.
    """
    history = unlinked(path).read_bytes() if path.is_file() else b""
    kept = history.splitlines(keepends=True)[:lines]
    whole = sum(line.endswith(b"\n") for line in kept)
    if whole < lines:
        raise UserError(
            f"{path} holds {whole} epochs, and its checkpoint is of epoch {lines}: it was cut or "
            f"replaced; delete {CHECKPOINT} there to start over"
        )
    if history:
        write_atomically(path, b"".join(kept))
