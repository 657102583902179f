"""The second package comes in by its entry point; a plugin that fails is told in one line."""

from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from cores import Cores, UserError, load_dataset, plugins
from cores.__main__ import main
from cores.cli.commands import all_commands
from cores.config.models import MODELS, PRESETS
from cores.config.run import RunConfig, own_groups

SCRIPT = """
from dataclasses import dataclass

import cores
from cores.training.journal import Journal
from cores.training.stopping import EarlyStopping


@dataclass(frozen=True)
class HalfConfig:
    share: float = 0.5


def settings(model, dataset, conv):
    return {"network": {"hidden_dim": 8, "num_layers": 1}}


def train(model, config, data, random, folder, report, key):
    model.policy.node_head.bias.data.fill_(config.preset_settings.share)
    stopping = EarlyStopping(model, 1)
    journal = Journal(folder, {"model": model, "random": random}, key=key)
    for epoch in journal.epochs(config.training.epochs):
        journal.record(loss=0.0)
        report(epoch, {"loss": 0.0})
    return journal, stopping


cores.register_preset(
    "half", settings, own=HalfConfig, train=train, fixed={"effects": {"steps": 0}}
)
"""


@pytest.fixture
def half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A script with a preset that has settings and a training of its own."""
    before = dict(PRESETS)
    monkeypatch.setattr("cores.runs.scripts._imported", [])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "half.py").write_text(SCRIPT)
    yield tmp_path / "half.py"
    PRESETS.clear()
    PRESETS.update(before)


def test_what_the_package_brings_is_there_where_it_is_installed() -> None:
    plugins.load_plugins()
    assert {"sagpool", "gpool", "diffpool", "gsat", "gmt", "sugar"} <= MODELS.keys()
    assert {"default", "paper", "authors"} <= PRESETS.keys()
    assert "paper" in own_groups()
    names = {command.name for command in all_commands()}
    brought = {"reproduce", "compare-explanations", "search", "benchmark"}
    assert {"train", "predict", *brought} <= names


def test_a_broken_plugin_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in ("nowhere_to_be_found:register", "math:no_such_name", "math:pi"):
        monkeypatch.setattr(plugins, "_waiting", [EntryPoint("bad", place, plugins.GROUP)])
        assert main(["datasets"]) == 2
        told = capsys.readouterr().err
        assert told.startswith(f"cores: the plugin {place} cannot be loaded (")
        assert told.count("\n") == 1


@pytest.mark.usefixtures("few_motifs", "short_judge")
def test_a_preset_with_a_training_of_its_own_runs_by_command(
    half: Path, ask: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    command = ("train", "--import", half, "--dataset", "motifs", "--preset", "half")
    command += ("--half.share", "5", "--epochs", "2", "--device", "cpu", "--out", run)
    status, _, err = ask(*command)
    assert status == 0, err
    assert '"share": 5.0' in (run / "config.json").read_text()
    assert '"effects"' not in (run / "config.json").read_text()
    assert len((run / "history.jsonl").read_text().splitlines()) == 2
    status, _, err = ask(*command, "--effects.steps", "3", "--resume")
    assert (status, err) == (2, "cores: the preset half trains without effects.steps, got 3\n")


@pytest.mark.usefixtures("short_judge")
def test_a_preset_with_a_training_of_its_own_serves_the_estimator(
    half: Path, tmp_path: Path
) -> None:
    exec(half.read_text(), {"__name__": "half"})
    graphs = load_dataset("motifs")[:60]
    settings = {"preset": "half", "half": {"share": -9.0}}
    model = Cores(epochs=2, device="cpu", progress=False, judge=False, settings=settings)
    model.fit(graphs)
    assert model.metrics_["epochs"] == 2
    assert model.metrics_["node_ratio"] == 1.0, "nothing is likely to be removed"
    model.save(tmp_path / "model")
    again = Cores.load(tmp_path / "model")
    assert again.settings["preset"] == "half"
    assert again.settings["half"] == {"share": -9.0}
    assert (again.predict(graphs) == model.predict(graphs)).all()
    with pytest.raises(UserError, match=r"unknown setting 'half\.shar'"):
        RunConfig.from_settings({"preset": "half", "half": {"shar": 1.0}})
