"""Files and folders that several processes want at once, or that somebody else has made."""

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cores.errors import UserError
from cores.files import is_held, locked, read_json, write_atomically


def test_a_folder_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert not is_held(folder)
    with locked(folder):
        assert is_held(folder)
        with pytest.raises(UserError, match="another process is writing"), locked(folder):
            pass
    assert not is_held(folder)


def test_asking_who_holds_a_folder_keeps_nobody_out(tmp_path: Path) -> None:
    """To ask takes the lock for a moment; whoever wants to hold the folder waits that long."""
    with locked(tmp_path):
        pass
    until = time.monotonic() + 1

    def ask() -> None:
        while time.monotonic() < until:
            is_held(tmp_path)

    with ThreadPoolExecutor(1) as other:
        asked = other.submit(ask)
        while time.monotonic() < until:
            with locked(tmp_path):
                pass
    asked.result()


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A file outside of the folder that is written to."""
    path = tmp_path / "precious.txt"
    path.write_text("precious")
    return path


def test_a_lock_that_is_a_link_is_refused_and_its_target_kept(
    tmp_path: Path, precious: Path
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "lock").symlink_to(precious)
    with pytest.raises(UserError, match=r"run/lock is a link"), locked(folder):
        pass
    with pytest.raises(UserError, match=r"run/lock is a link"):
        is_held(folder)
    (folder / "lock").unlink()
    os.link(precious, folder / "lock")  # a hard link cannot be told, but nothing is written
    with locked(folder):
        assert is_held(folder)
    assert precious.read_text() == "precious"


def test_asking_does_not_wait_for_the_writer_of_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lock")
    assert not is_held(tmp_path)


def test_a_written_file_takes_the_place_of_a_link(
    tmp_path: Path, precious: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "metrics.json"
    path.symlink_to(precious)
    write_atomically(path, b"new")
    assert not path.is_symlink()
    assert path.read_bytes() == b"new"

    class Guessed:
        hex = "0123456789ab"

    monkeypatch.setattr("cores.files.uuid4", Guessed)
    (tmp_path / ".metrics.json.0123456789ab.tmp").symlink_to(precious)
    with pytest.raises(UserError, match="cannot write"):
        write_atomically(path, b"newer")
    assert path.read_bytes() == b"new"
    assert precious.read_text() == "precious"


@pytest.mark.parametrize("depth", [101, 100_000])
def test_json_that_is_nested_too_deeply_is_told_in_a_line(tmp_path: Path, depth: int) -> None:
    path = tmp_path / "config.json"
    path.write_text("[" * depth + "]" * depth)
    with pytest.raises(UserError, match=r"config.json is not valid JSON \(nested too deeply\)"):
        read_json(path)
    path.write_text(json.dumps({"a": [{"b": [1]}]}))
    assert read_json(path) == {"a": [{"b": [1]}]}
