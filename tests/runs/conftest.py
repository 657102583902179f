"""Files to be predicted, and chunks so small that they have several."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cores.runs import predict

Table = Callable[..., str]


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of 8 rows, so that a small file has several."""
    monkeypatch.setattr(predict, "CHUNK", 8)


@pytest.fixture
def new_file(tmp_path: Path, molecule_table: Table) -> Path:
    """Thirty rows without labels, three of them no molecules."""
    lines = molecule_table(30, labelled=False).splitlines()
    lines[3], lines[11], lines[30] = "m2,C(", "m10,", "m29"
    (tmp_path / "new.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "new.csv"
