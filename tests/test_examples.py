"""The examples run, and are as short as they promise."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def run(name: str, folder: Path, *arguments: str) -> str:
    """What an example prints; it may write to the folder."""
    ran = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
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
def test_the_quickstart_predicts_explains_draws_and_saves(tmp_path: Path) -> None:
    metrics, sets, explanation = run("quickstart.py", tmp_path).splitlines()
    assert "'judge_accuracy'" in metrics
    assert sets.startswith("[[")
    assert explanation[0] in "01"
    assert (tmp_path / "explanation.png").stat().st_size > 1000
    assert (tmp_path / "motifs-model" / "model.safetensors").exists()


@pytest.mark.slow
def test_networkx_graphs_have_predictions_and_kept_edges(tmp_path: Path) -> None:
    printed = run("networkx_graphs.py", tmp_path)
    assert printed.startswith("['no ring' 'ring']")
    assert not list(tmp_path.iterdir())  # nothing is written unless asked for


@pytest.mark.slow
def test_scikit_learn_cross_validates(tmp_path: Path) -> None:
    mean, _, deviation = run("cross_validation.py", tmp_path).split()
    assert 0 <= float(deviation) <= float(mean) <= 1


@pytest.mark.slow
def test_a_registered_model_stands_in_a_comparison(tmp_path: Path) -> None:
    table = run("own_model.py", tmp_path).splitlines()
    assert [line.split("|")[1].strip() for line in table] == ["model", "---", "GNN", "Node count"]


@pytest.mark.slow
def test_collusion_prints_both_rows_side_by_side(tmp_path: Path) -> None:
    header, _, paper, ours = run("collusion.py", tmp_path, "--quick").strip().splitlines()
    assert header.count("|") == paper.count("|") == ours.count("|") == 10
    assert "mix 0" in paper
    assert "default" in ours
