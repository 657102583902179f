"""`cores datasets` lists what is known, measures what is here and downloads nothing unasked."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cores.data import catalogue
from cores.data.catalogue import DATASETS
from cores.errors import UserError

Ask = Callable[..., tuple[int, str, str]]

GENERATED = ("motifs", "BA_Shapes", "Tree_Cycles")
"""Datasets that need no file."""


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of datasets whose download was tried; there is no network."""
    tried: list[str] = []

    def unreachable(spec: catalogue.DatasetSpec, path: Path) -> Path:
        tried.append(spec.name)
        raise UserError(f"cannot download {spec.name}; put its zip at {path}")

    monkeypatch.setattr(catalogue, "_downloaded", unreachable)
    return tried


@pytest.mark.usefixtures("no_data")
def test_without_data_all_are_listed_and_none_is_downloaded(
    ask: Ask, downloads: list[str], tmp_path: Path
) -> None:
    status, out, err = ask("datasets")
    assert (status, err, downloads) == (0, "", [])
    lines = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert set(DATASETS) - set(GENERATED) <= set(lines)
    cache = tmp_path / "cache" / "cores-gnn"
    assert f"downloaded on first use to {cache}/tu/BZR.zip" in lines["BZR"]
    assert f"downloaded on first use to {cache}/tu_cleaned/MUTAG.zip" in lines["MUTAG"]
    assert f"put it at {cache}/other/Benzene.npz" in lines["Benzene"]
    assert f"Also known: {', '.join(GENERATED)}" in out

    status, out, _ = ask("datasets", "--json")
    found = json.loads(out)
    assert found["datasets"] == []
    assert found["missing"] == [name for name in DATASETS if name not in GENERATED]
    assert found["others"] == list(GENERATED)


@pytest.mark.usefixtures("no_data")
def test_a_dataset_that_is_named_is_downloaded_or_fails_in_one_line(
    ask: Ask, downloads: list[str]
) -> None:
    status, out, err = ask("datasets", "ptc")
    assert (status, out, downloads) == (2, "", ["PTC"])
    assert err.count("\n") == 1
    assert "cannot download PTC; put its zip at" in err


@pytest.mark.data
def test_what_is_in_the_users_folder_is_measured_and_the_rest_has_a_place_there(
    ask: Ask, data_root: Path, tmp_path: Path, downloads: list[str]
) -> None:
    (tmp_path / "tu_cleaned").symlink_to(data_root / "tu_cleaned")
    _, out, _ = ask("datasets", "--json", "--data-root", tmp_path)
    found = json.loads(out)
    assert [row["dataset"] for row in found["datasets"]] == ["MUTAG"]
    named = json.loads(ask("datasets", "mutag", "--json", "--data-root", tmp_path)[1])
    assert named == {"datasets": found["datasets"], "missing": [], "others": []}
    _, out, _ = ask("datasets", "--data-root", tmp_path)
    assert f"put it at {tmp_path}/tu/BZR.zip" in out
    assert not downloads


def test_a_data_folder_that_is_not_there_is_refused(ask: Ask, tmp_path: Path) -> None:
    status, _, err = ask("datasets", "--data-root", tmp_path / "none")
    assert status == 2
    assert "does not exist; set --data-root to the right one" in err


def test_a_dataset_that_a_script_registers_is_listed(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(catalogue.REGISTERED, "paths", list)  # gone again after the test
    script = tmp_path / "mine.py"
    script.write_text(
        "import networkx as nx\n"
        "from cores.data.catalogue import register_dataset\n"
        "graphs = [nx.path_graph(3 + n % 2, create_using=nx.Graph) for n in range(20)]\n"
        "for number, graph in enumerate(graphs):\n"
        "    graph.graph['y'] = number % 2\n"
        "register_dataset('paths', lambda: graphs)\n"
    )
    status, out, err = ask("datasets", "paths", "--import", script, "--json")
    assert status == 0, err
    assert [row["graphs"] for row in json.loads(out)["datasets"]] == [20]


def test_a_mistake_in_a_file_is_told_as_it_was_found(ask: Ask, tmp_path: Path) -> None:
    """UserError is a ValueError, which a handler of damaged files must not take for damage."""
    assert issubclass(UserError, ValueError)
    (tmp_path / "other").mkdir()
    np.savez(tmp_path / "other" / "BA_2Motifs.npz", x=np.zeros(3))
    status, _, err = ask("datasets", "BA_2Motifs", "--data-root", tmp_path)
    assert status == 2
    assert err.startswith(f"cores: {tmp_path}/other/BA_2Motifs.npz lacks the array")
