"""The examples run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.mark.slow
def test_collusion_prints_both_rows_side_by_side(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, str(EXAMPLES / "collusion.py"), "--quick"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
    )
    header, _, paper, ours = ran.stdout.strip().splitlines()
    assert header.count("|") == paper.count("|") == ours.count("|") == 10
    assert "mix 0" in paper
    assert "default" in ours
