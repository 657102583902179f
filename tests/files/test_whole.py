"""Files and folders that several processes want at once."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cores.errors import UserError
from cores.files import is_held, locked


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
