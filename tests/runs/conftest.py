"""Files to be predicted, chunks so small that they have several, and models compared."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from cores.__main__ import main
from cores.runs import predict

Table = Callable[..., str]
Compared = Callable[[list[str], str, tuple[str, str], Sequence[str]], str]


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


@pytest.fixture
def compared(
    runs_here: None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Compared:
    """Compares two models on the data that options name; gives the text of the picture.

    Checks the task, the two columns of the table, and that rows have these metrics of the runs.
    """

    def compare(
        options: list[str], task: str, columns: tuple[str, str], metrics: Sequence[str]
    ) -> str:
        monkeypatch.setenv("COLUMNS", "80")
        (tmp_path / "small.toml").write_text(
            "[network]\nhidden_dim = 8\nnum_layers = 1\n"
            "[committee]\nmembers = 2\n[ppo]\nenv_steps = 8\nsamples = 2\n"
        )
        asked = ["compare", *options, "--models", "gnn,cores-node", "--splits", "1"]
        asked += ["--epochs", "4", "--settings", str(tmp_path / "small.toml")]
        asked += ["--device", "cpu", "--out", str(tmp_path / "runs")]
        assert main(asked) == 0
        _, head, *lines = capsys.readouterr().out.splitlines()
        assert head.split() == ["model", "runs", *columns, "kept", "judge", "random", "seconds"]
        assert [line.split("  ")[0] for line in lines[:2]] == ["GNN", "CORES nodes"]
        assert max(map(len, (head, *lines[:-2]))) <= 80, "but for the names of files"
        assert main([*asked, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["task"] == task
        for row in found["rows"]:
            run = next((tmp_path / "runs").glob(f"*{row['key']}*"))
            measured = json.loads((run / "metrics.json").read_text())
            for name in metrics:
                assert row[name] == (measured[name] and pytest.approx(measured[name], rel=1e-5))
        assert all(Path(path).stat().st_size > 5000 for path in found["pictures"])
        return Path(found["pictures"][1]).read_text()

    return compare
