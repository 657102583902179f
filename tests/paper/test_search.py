"""The search: valid proposals, a fixed yardstick, nothing lost, settings that can be used."""

import json
import os
import signal
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from cores.evaluation.dial import predict_settings
from cores.training.dial import SELECTION_SETTINGS

from cores.config import RunConfig, merged
from cores.config.models import CONVS, MODELS
from cores.config.presets import preset_config
from cores.data.datasets import load_dataset
from cores.data.inputs.columns import ColumnNames
from cores.errors import UserError
from cores.runs.fit import PreparedData
from cores.runs.runner import Job, run_folder
from cores.runs.trained import TrainedModel
from cores.training.journal import Journal
from cores.training.rollouts import selection_reward
from cores_paper import search as searching
from cores_paper.presets import search_space
from cores_paper.search import search, selection_score

Killed = Callable[[Callable[[], object]], None]
Ended = Iterator[tuple[RunConfig, str | None]]


@pytest.fixture
def inline(runs_here: None, short_judge: None, few_motifs: None) -> None:
    """Runs of a moment, in this process."""


def base(model: str = "gnn", **changes: Any) -> RunConfig:
    short = {"training": {"epochs": 2}, "network": {"hidden_dim": 8, "num_layers": 1}}
    return preset_config("motifs", model, "gin", "default", short | changes)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("conv", CONVS)
def test_every_value_of_the_space_is_a_valid_setting(model: str, conv: str) -> None:
    config = preset_config("motifs", model, conv, "default", {})
    space = search_space(config)
    assert space
    for name, values in space.items():
        for value in values:
            changes = searching._settings(config, {name: json.dumps(value)})
            RunConfig.from_settings(merged(config.settings, changes))


def test_nothing_is_searched_for_that_a_model_does_not_read() -> None:
    spaces = {
        model: search_space(preset_config("motifs", model, "gin", "default", {}))
        for model in ("gnn", "sugar")
    }
    assert spaces["gnn"].keys() - spaces["sugar"].keys() == {"network.pooling"}


def test_a_critic_is_searched_for_where_there_is_one() -> None:
    paper = preset_config("MUTAG", "cores-node", "gin", "paper", {})
    default = preset_config("MUTAG", "cores-node", "gin", "default", {"reward": {"lam": 0.5}})
    assert set(search_space(paper)) - set(search_space(default)) == {
        "paper.value_coef",
        "critic_lr_ratio",
        "parts.policy",
    }
    proposed = {"critic_lr_ratio": "2.0", "policy_lr_ratio": "3.0", "ppo.entropy_coef": "0.001"}
    settings = searching._settings(paper, proposed)
    found, own = settings["ppo"], settings["paper"]
    assert found["learning_rate"] == paper.training.learning_rate / 3
    assert own["critic_learning_rate"] == found["learning_rate"] / 2
    assert found["final_entropy_coef"] == 0.001  # the paper's does not fall
    fallen = searching._settings(default, proposed)["ppo"]["final_entropy_coef"]
    assert fallen == pytest.approx(
        0.001 * default.ppo.final_entropy_coef / default.ppo.entropy_coef
    )


@pytest.mark.usefixtures("inline")
def test_a_search_tries_the_kind_of_policy_that_its_settings_ask_for(tmp_path: Path) -> None:
    """With a dial there is no lambda to try; with one lambda, the trials have it and no dial."""
    for changes, dial in (({}, True), ({"reward": {"lam": 0.8}}, False)):
        asked = base("cores-node", **changes)
        assert ("reward.lam" in search_space(asked)) is not dial
        folder = tmp_path / str(dial)
        search(asked, folder, trials=1, sampler="random")
        settings = tomllib.loads((folder / "settings.toml").read_text())
        config = preset_config("motifs", "cores-node", "gin", "default", settings)
        assert config.reward.dial is dial
        assert run_folder(folder, config).is_dir()  # the settings are those of the trial


@pytest.mark.usefixtures("inline")
def test_a_dial_is_worth_its_mean_reward_over_the_settings(tmp_path: Path) -> None:
    asked = base("cores-node")
    (tried,) = search(asked, tmp_path, trials=1, sampler="random")
    run = run_folder(tmp_path, RunConfig.from_settings(merged(asked.settings, tried.settings)))
    trained = TrainedModel.load(run)
    part = PreparedData.of(load_dataset("motifs"), trained.config, torch.device("cpu"))
    graphs = part.part("selection")
    found = predict_settings(trained.model, graphs.view(), SELECTION_SETTINGS)
    rewards = [
        selection_reward(probs, graphs.y, kept, replace(asked.reward, lam=lam)).mean()
        for probs, kept, lam in zip(found.probs, found.kept_ratio, SELECTION_SETTINGS, strict=True)
    ]
    assert tried.score == pytest.approx(float(torch.stack(rewards).mean()))


def test_processes_that_share_a_study_propose_different_settings(tmp_path: Path) -> None:
    studies = [searching._study(base(), tmp_path) for _ in range(2)]
    proposed = [
        searching._proposed(base(), searching._asked(study, tmp_path, "me", 0, "random"))
        for study in studies
        for _ in range(2)
    ]
    assert len({config.key for config in proposed}) == 4


@pytest.mark.usefixtures("inline")
@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_a_search_goes_on_and_proposes_something_new(tmp_path: Path, sampler: Any) -> None:
    search(base(), tmp_path, trials=2, sampler=sampler)
    tried = search(base(), tmp_path, trials=4, sampler=sampler)
    assert sorted(each.number for each in tried) == [0, 1, 2, 3]
    assert len({json.dumps(each.settings, sort_keys=True) for each in tried}) == 4
    assert tried == sorted(tried, key=lambda each: each.score or 0.0, reverse=True)


@pytest.mark.usefixtures("inline")
def test_the_settings_found_are_those_of_the_best_run(tmp_path: Path) -> None:
    best = search(base(), tmp_path, trials=3)[0]
    settings = tomllib.loads((tmp_path / "settings.toml").read_text())
    config = preset_config("motifs", settings["model"], settings["conv"], "default", settings)
    run = run_folder(tmp_path, config)
    assert run.is_dir()
    assert selection_score(run, config.reward) == best.score


def test_a_line_break_in_a_name_is_no_setting() -> None:
    config = RunConfig.from_settings(base().settings | {"dataset": "a\nseed = 7\n.csv"})
    text = searching._toml(config, searching.Tried(0, {}, 0.5))
    assert "seed" not in tomllib.loads(text)
    assert text.count("#") == 1


@pytest.mark.usefixtures("inline")
def test_columns_of_a_file_are_read_as_named(tmp_path: Path, molecule_table: Any) -> None:
    table = molecule_table(60).replace("id,smiles,label", "name,text,active")
    (tmp_path / "mine.csv").write_text(table)
    columns = ColumnNames(smiles="text", label="active")
    config = RunConfig.from_settings(base("mlp").settings | {"dataset": str(tmp_path / "mine.csv")})
    (tried,) = search(config, tmp_path / "study", trials=1, sampler="random", columns=columns)
    assert tried.failure is None


@pytest.mark.usefixtures("inline")
def test_the_yardstick_does_not_move_with_what_is_tried(tmp_path: Path) -> None:
    """A trial that asks for less of the graph is not praised for asking."""
    yardstick = base("cores-node", reward={"lam": 0.5})
    for each in search(yardstick, tmp_path, trials=2, sampler="random"):
        config = RunConfig.from_settings(merged(yardstick.settings, each.settings))
        run = run_folder(tmp_path, config)
        assert each.score == selection_score(run, yardstick.reward)
        assert each.score != selection_score(run, config.reward)


def test_a_failed_trial_is_told_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first_fails(runs: Iterable[RunConfig], job: Job, workers: int) -> Ended:
        for number, config in enumerate(runs):
            yield config, job(config) if number else "the loss is nan"

    monkeypatch.setattr("cores.runs.workers.in_processes", first_fails)
    tried = search(base(), tmp_path, trials=2)
    assert [each.failure for each in tried] == [None, "the loss is nan"]
    monkeypatch.setattr(
        "cores.runs.workers.in_processes",
        lambda runs, job, workers: ((each, "bad") for each in runs),
    )
    with pytest.raises(UserError, match="all 2 trials failed, the first: bad"):
        search(base(), tmp_path / "other", trials=2)


def test_a_device_that_is_not_there_costs_no_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(UserError, match="torch sees no CUDA device"):
        search(base(), tmp_path / "study", trials=2, device="cuda")
    assert not (tmp_path / "study").exists()


@pytest.mark.usefixtures("inline")
def test_a_folder_of_another_search_or_of_something_else_is_refused(tmp_path: Path) -> None:
    search(base(), tmp_path / "one", trials=1)
    with pytest.raises(UserError, match="holds a search of other settings"):
        search(base("mlp"), tmp_path / "one", trials=1)
    with pytest.raises(UserError, match="holds one and no search"):
        search(base(), tmp_path, trials=1)
    (tmp_path / "links").mkdir()
    journal = tmp_path / "one" / "study.log"
    (tmp_path / "links" / "study.log").symlink_to(journal)
    with pytest.raises(UserError, match=r"study\.log is a link"):
        search(base(), tmp_path / "links", trials=1)
    for damage in ("garbage\n", '{"a": 1}\n'):
        journal.write_text(damage)
        with pytest.raises(UserError, match=r"study\.log is damaged"):
            search(base(), tmp_path / "one", trials=1)


@pytest.mark.usefixtures("inline")
def test_a_killed_search_ends_as_one_that_was_not(
    tmp_path: Path, tu_folder: Path, monkeypatch: pytest.MonkeyPatch, killed: Killed
) -> None:
    """SIGKILL in the middle of the second of three runs."""
    wanted = replace(base(), dataset=str(tu_folder))
    whole = search(wanted, tmp_path / "whole", trials=3, sampler="random")
    real, lines = Journal.record, list[str]()

    def record(journal: Journal, **metrics: float) -> None:
        real(journal, **metrics)
        lines.append("epoch")
        if len(lines) == 3:
            os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "record", record)
        killed(lambda: search(wanted, tmp_path / "killed", trials=3, sampler="random"))
    begun, finished = (
        {path.parent.name for path in (tmp_path / "killed").glob(f"*/{name}")}
        for name in ("history.jsonl", "metrics.json")
    )
    assert len(begun) == 2
    assert len(finished) == 1
    assert search(wanted, tmp_path / "killed", trials=3, sampler="random") == whole
    for pattern in ("settings.toml", "*/history.jsonl", "*/model.safetensors"):
        files = [
            {path.relative_to(root): path.read_bytes() for path in root.glob(pattern)}
            for root in (tmp_path / "whole", tmp_path / "killed")
        ]
        assert files[0] == files[1], pattern
