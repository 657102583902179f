"""Models of the user's own: a script registers them, and every command knows them."""

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from distributed import LocalCluster

from cores.config.models import CONVS, MODELS
from cores.config.presets import preset_config
from cores.runs import scripts
from cores.runs.runner import run_all
from cores.runs.scripts import import_scripts

Ask = Callable[..., tuple[int, str, str]]

SCRIPT = '''
from dataclasses import dataclass
from torch import nn
from cores.config.registration import register_model
from cores.models.network import GraphModel, pooled

@dataclass(frozen=True)
class Settings:
    """A linear layer on the mean of the features."""

    bias: bool = True
    """Whether it has a bias."""

class MeanOfFeatures(GraphModel):
    def __init__(self, dims, config, conv, own):
        super().__init__(dims)
        self.linear = nn.Linear(dims.num_features, dims.num_classes, bias=own.bias)

    def logits(self, batch):
        h = self.features(batch)
        return self.linear(pooled(h, batch.batch, batch.num_graphs, ("mean",)))

print("registering")
register_model("my-mean", MeanOfFeatures, title="Mean of features", settings=Settings)
'''
TRAIN = ["--model", "my-mean", "--epochs", "1", "--device", "cpu"]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture(autouse=True)
def _registries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test registers is forgotten after it."""
    before = dict(MODELS), dict(CONVS)
    monkeypatch.setattr(scripts, "_imported", [])
    yield
    for table, rows in zip((MODELS, CONVS), before, strict=True):
        table.clear()
        table.update(rows)


def test_a_scripts_model_is_trained_and_evaluated(ask: Ask, script: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    arguments = ["--import", script, *TRAIN, "--my-mean.bias", "false", "--out", run, "--json"]
    status, out, err = ask("train", *arguments)
    assert status == 0, err
    assert json.loads(out)["model"] == "my-mean", "what the script prints does not mix with it"
    assert "registering" in err
    config = json.loads((run / "config.json").read_text())["config"]
    assert config["my-mean"] == {"bias": False}
    status, out, _ = ask("evaluate", run, "--import", script, "--json", "--device", "cpu")
    assert status == 0
    assert json.loads(out)["model"] == "my-mean"


def test_without_the_script_a_run_of_its_model_is_refused(
    ask: Ask, script: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert ask("train", f"--import={script}", *TRAIN, "--out", run)[0] == 0
    del MODELS["my-mean"]
    status, _, err = ask("evaluate", run)
    assert (status, err.count("\n")) == (2, 1)
    assert "unknown model 'my-mean'" in err


def test_help_knows_a_scripts_model(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from cores.__main__ import main

    with pytest.raises(SystemExit):
        main(["train", "--import", str(script), "--help-all"])
    text = capsys.readouterr().out
    assert "my-mean, random (default:" in " ".join(text.split())
    assert "my-mean: A linear layer on the mean of the features:" in text
    assert "Whether it has a bias (default: true)." in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot import TMP/mine.py: there is no such file"),
        ("x = 1\nraise ZeroDivisionError('oh\\nno')\n", "line 2: ZeroDivisionError: oh no"),
        ("def broken(:\n", "cannot import TMP/mine.py: SyntaxError"),
        ("import sys\nsys.exit(3)\n", "line 2: SystemExit: 3"),
        (SCRIPT.replace('"my-mean", ', '"gnn", '), "there is a model 'gnn' already"),
        (SCRIPT.replace('"my-mean", ', '"other", '), "unknown model 'my-mean'"),
    ],
)
def test_a_script_that_fails_gets_one_line(
    ask: Ask, tmp_path: Path, text: str | None, message: str
) -> None:
    if text is not None:
        (tmp_path / "mine.py").write_text(text.replace('print("registering")', ""))
    path = tmp_path / "mine.py"
    status, out, err = ask("train", "--import", path, *TRAIN, "--out", tmp_path / "run")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message.replace("TMP", str(tmp_path)) in err


def test_import_without_a_file_is_refused(ask: Ask) -> None:
    status, _, err = ask("train", "--import")
    assert (status, err.count("\n")) == (2, 1)
    assert "--import: expected one argument; see cores train --help" in err


def test_a_module_is_imported_by_its_name(
    ask: Ask, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script.rename(script.with_name("module_of_mine.py"))
    status, _, err = ask("train", "--import", "module_of_mine")
    assert status == 2
    assert "cannot import module_of_mine: there is no such module; give the path of a .py" in err
    monkeypatch.syspath_prepend(script.parent)
    import_scripts(["module_of_mine"])
    assert MODELS["my-mean"].title == "Mean of features"


def test_a_script_called_like_a_library_does_not_hide_it(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("dumps = None\n")
    import_scripts([str(tmp_path / "json.py")])
    import json as library

    assert library.dumps is not None


@pytest.mark.usefixtures("quick_workers")
def test_a_scripts_model_is_in_the_table(
    ask: Ask, script: Path, tu_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["--import", script.name, "--models", "gnn,my-mean", "--splits", "1"]
    arguments += ["--datasets", tu_folder, "--device", "cpu", "--out", "runs"]
    status, out, err = ask("reproduce", "comparison-gin", "--quick", *arguments)
    assert status == 0, err
    assert "Mean of features" in out
    table = (tmp_path / "runs" / "comparison-gin.md").read_text()
    assert "| dataset | GNN | Mean of features |" in table


@pytest.mark.usefixtures("quick_workers")
def test_workers_of_a_cluster_know_a_scripts_model(script: Path, tmp_path: Path) -> None:
    import_scripts([str(script)])
    short = {"training": {"epochs": 1}, "my-mean": {"bias": False}}
    config = preset_config("motifs", "my-mean", "gin", "default", short)
    with LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
    ) as cluster:
        address = cluster.scheduler_address
        (there,) = run_all([config], tmp_path / "there", scheduler=address, device="cpu")
        assert there.failure is None
        scripts._imported.append(str(tmp_path / "gone.py"))
        (gone,) = run_all([config], tmp_path / "gone", scheduler=address, device="cpu")
    assert gone.failure == f"cannot import {tmp_path / 'gone.py'}: there is no such file"
