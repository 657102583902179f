"""The page on extending runs as it is printed, and what it registers is used without an edit."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cores import Cores, UserError, load_dataset
from cores.__main__ import main
from cores.config.models import CONVS, MODELS
from cores.data.catalogue import REGISTERED
from cores.runs import scripts as imported

PAGE = Path(__file__).resolve().parents[1] / "docs" / "extending.md"


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The page's files in a folder; what they register is forgotten afterwards."""
    before = [dict(table) for table in (MODELS, CONVS, REGISTERED)]
    monkeypatch.setattr(imported, "_imported", [])  # workers import what it names
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL):
        name = code.splitlines()[0].removeprefix("# ")
        (tmp_path / name).write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield tmp_path
    for table, rows in zip((MODELS, CONVS, REGISTERED), before, strict=True):
        table.clear()
        table.update(rows)


def test_a_model_of_ones_own_trains_with_its_own_settings(
    scripts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", "--import", "rings.py", "--import", "deep_set.py", "--dataset", "rings"]
    command += ["--model", "deep-set", "--deep-set.width", "8", "--epochs", "2", "--json"]
    assert main([*command, "--out", "run", "--device", "cpu"]) == 0
    assert json.loads(capsys.readouterr().out)["model"] == "deep-set"
    saved = json.loads((scripts / "run" / "config.json").read_text())
    assert saved["config"]["deep-set"] == {"width": 8}


@pytest.mark.usefixtures("quick_workers")
def test_a_model_of_ones_own_stands_in_the_tables_of_commands(
    scripts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Trained in a worker process, which imports the scripts itself."""
    command = ["--import", "rings.py", "--import", "deep_set.py", "--models", "gnn,deep-set"]
    command += ["--device", "cpu"]
    reproduce = ["reproduce", "comparison-gin", "--datasets", "rings", "--splits", "1"]
    assert main([*reproduce, "--quick", "--out", "all", *command]) == 0
    assert "Deep Set" in capsys.readouterr().out
    assert "Deep Set" in (scripts / "all" / "comparison-gin.tex").read_text()
    compare = ["compare", "--dataset", "rings", "--epochs", "2", "--splits", "1"]
    assert main([*compare, "--out", "mine", *command]) == 0
    assert "Deep Set" in capsys.readouterr().out


@pytest.mark.usefixtures("short_judge")
def test_a_layer_of_ones_own_serves_every_network(scripts: Path) -> None:
    exec((scripts / "sage.py").read_text(), {"__name__": "sage"})
    model = Cores(conv="sage", epochs=2, judge=True, progress=False)
    model.fit(load_dataset("motifs")[:60])
    assert "SAGEConv" in str(model.policy_)
    assert "SAGEConv" in str(model.classifier_)


def test_a_dataset_of_ones_own_is_known_by_name(scripts: Path) -> None:
    exec((scripts / "rings.py").read_text(), {"__name__": "rings"})
    dataset = load_dataset("rings")
    assert repr(dataset) == "Dataset(rings: 120 graphs, 1 features, 2 classes)"
    assert dataset.class_names == ("path", "ring")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("raise RuntimeError('no luck')", "no luck"),
        ("import cores\ncores.register_model('gnn', int)", "there is a model 'gnn' already"),
        ("import cores\ncores.register_dataset('mutag', list)", "a dataset 'MUTAG' already"),
    ],
)
def test_a_script_that_fails_is_told_in_one_line(
    scripts: Path, capsys: pytest.CaptureFixture[str], script: str, message: str
) -> None:
    (scripts / "bad.py").write_text(script)
    assert main(["train", "--import", "bad.py", "--dataset", "motifs"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_registered_dataset_that_returns_no_graphs_is_refused(scripts: Path) -> None:
    from cores import register_dataset

    register_dataset("nothing", list)
    with pytest.raises(UserError, match="the list of graphs is empty"):
        load_dataset("nothing")
