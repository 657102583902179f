"""The examples run, and are as short as they promise."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Captured = pytest.CaptureFixture[str]
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.fixture
def here(
    short_judge: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> Callable[..., str]:
    """Gives what an example prints that is run in this process, in a folder, for two epochs."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def run_here(name: str, *arguments: str) -> str:
        monkeypatch.setattr("sys.argv", [name, *arguments])
        code, trainings = re.subn(r"\bepochs=\d+", "epochs=2", (EXAMPLES / name).read_text())
        assert trainings == 1
        exec(compile(code, name, "exec"), {"__name__": "__main__"})
        return capsys.readouterr().out

    return run_here


def run(name: str, folder: Path) -> str:
    """What an example prints; it may write to the folder. Epochs that it names are two."""
    code = re.sub(r'"epochs": \d+', '"epochs": 2', (EXAMPLES / name).read_text())
    (folder / name).write_text(code)
    ran = subprocess.run(
        [sys.executable, name],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache")},
    )
    return ran.stdout


def statements(name: str) -> int:
    """Lines of code: neither blank, nor a comment, nor the module's docstring."""
    lines = (EXAMPLES / name).read_text().splitlines()[1:]
    return len([line for line in lines if line.strip() and not line.strip().startswith("#")])


@pytest.mark.parametrize(
    "name", ["quickstart.py", "networkx_graphs.py", "cross_validation.py", "own_model.py"]
)
def test_a_first_example_fits_on_a_card(name: str) -> None:
    assert statements(name) <= 15


@pytest.mark.slow
def test_the_quickstart_predicts_explains_draws_and_saves(here: Callable[..., str]) -> None:
    metrics, sets, explanation = here("quickstart.py").splitlines()
    assert "'judge_accuracy'" in metrics
    assert sets.startswith("[[")
    assert explanation[0] in "01"
    assert Path("explanation.png").stat().st_size > 1000
    assert Path("motifs-model", "model.safetensors").exists()


@pytest.mark.slow
def test_networkx_graphs_have_predictions_and_kept_edges(here: Callable[..., str]) -> None:
    printed = here("networkx_graphs.py")
    assert printed.startswith("['no ring' 'ring']")
    assert not list(Path.cwd().iterdir())  # nothing is written unless asked for


@pytest.mark.slow
def test_scikit_learn_cross_validates(here: Callable[..., str]) -> None:
    mean, _, deviation = here("cross_validation.py").split()
    assert 0 <= float(deviation) <= float(mean) <= 1


@pytest.mark.slow
def test_a_registered_model_stands_in_a_comparison(tmp_path: Path) -> None:
    table = run("own_model.py", tmp_path).splitlines()
    assert [line.split("|")[1].strip() for line in table] == ["model", "---", "GNN", "Node count"]


@pytest.mark.slow
def test_collusion_prints_both_rows_side_by_side(here: Callable[..., str]) -> None:
    header, _, paper, ours = here("collusion.py", "--quick").strip().splitlines()
    assert header.count("|") == paper.count("|") == ours.count("|") == 10
    assert "Algorithm 1" in paper
    assert "default" in ours
