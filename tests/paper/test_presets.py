"""The shipped settings are the published ones, and every one of them builds."""

import ast
import csv
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cores.config import RunConfig
from cores.config.presets import preset_config
from cores.data.catalogue import PAPER_DATASETS
from cores.data.dataset import Dims
from cores.errors import UserError
from cores.models.build import build_model
from cores_paper.presets import published

CONVS = ("gin", "gcn", "gat")


@pytest.mark.parametrize("dataset", PAPER_DATASETS)
@pytest.mark.parametrize("conv", CONVS)
def test_every_published_setting_builds_a_classifier(dataset: str, conv: str) -> None:
    config = preset_config(dataset, "gnn", conv, "paper", {})
    build_model(config, Dims(num_features=3, num_classes=2))
    assert config.parts.selection == config.parts.calibration == 0
    figures = published("gnn")[dataset][conv]["reported_accuracy"]
    assert 50 < figures["mean"] < 100
    assert figures["std"] > 0


def test_there_are_27_of_them() -> None:
    assert {(d, c) for d, convs in published("gnn").items() for c in convs} == {
        (dataset, conv) for dataset in PAPER_DATASETS for conv in CONVS
    }


@pytest.mark.parametrize("dataset", PAPER_DATASETS)
@pytest.mark.parametrize("model", ["cores-node", "cores-edge"])
def test_the_paper_preset_of_cores_is_algorithm_1_as_written(dataset: str, model: str) -> None:
    for conv in CONVS:
        config = preset_config(dataset, model, conv, "paper", {})
        plain = preset_config(dataset, "gnn", conv, "paper", {})
        assert config.network == plain.network
        assert config.training.learning_rate == plain.training.learning_rate
        assert config.training.batch_size == plain.training.batch_size
        assert (config.committee.members, config.committee.warm_up) == (1, 0), "no random masks"
        shown = config.explanation
        assert (shown.parts, shown.class_from) == ("policy", "part")
        ppo = config.ppo
        assert (ppo.samples, ppo.min_probability, ppo.ema_decay) == (1, 0, 0)
        assert (config.training.epochs, config.training.patience) == (1000, 500)
        own = config.preset_settings
        assert (own.order, own.weights, own.sets) == ("together", "best", "at-most")
        assert not config.samples
        assert own.critic_learning_rate <= ppo.learning_rate
        assert config.ppo.learning_rate <= config.training.learning_rate
        section = published(model)[dataset][conv]
        assert 0 < section["reported_node_ratio"]["mean"] <= 100
        assert 0 < section["reported_edge_ratio"]["mean"] <= 100


@pytest.mark.parametrize("model", ["cores-node", "cores-edge"])
def test_the_authors_preset_changes_schedule_reward_and_action_alone(model: str) -> None:
    for dataset in PAPER_DATASETS:
        for conv in CONVS:
            config = preset_config(dataset, model, conv, "authors", {})
            paper = preset_config(dataset, model, conv, "paper", {})
            plain = preset_config(dataset, "gnn", conv, "paper", {})
            own = config.preset_settings
            assert own.policy_patience in (5, 10, 15)
            assert own == replace(
                paper.preset_settings,
                order="in-turns",
                policy_patience=own.policy_patience,
                stop_metric=own.stop_metric,
                weights="last",
                sets="below-or-predicted",
                square_sparsity=True,
                penalise_full=True,
            )
            assert (config.reward, config.ppo) == (paper.reward, paper.ppo)
            assert config.training == replace(paper.training, patience=plain.training.patience)
            assert (config.samples, paper.samples) == (True, False)
            assert (config.network, config.parts) == (paper.network, paper.parts)


def test_the_published_values_of_the_authors_schedule_have_the_published_shape() -> None:
    """54 cells; how often each value occurs was counted in the published settings."""
    configs = [
        preset_config(dataset, model, conv, "authors", {})
        for model in ("cores-node", "cores-edge")
        for dataset in PAPER_DATASETS
        for conv in CONVS
    ]
    assert Counter(each.preset_settings.policy_patience for each in configs) == {
        5: 26,
        10: 9,
        15: 19,
    }
    assert Counter(each.preset_settings.stop_metric for each in configs) == {
        "loss": 42,
        "reward": 12,
    }
    assert Counter(each.preset_settings.scale for each in configs) == {1.0: 44, 5.0: 10}
    assert {each.preset_settings.scale for each in configs if each.conv == "gin"} == {1.0, 5.0}
    assert {each.training.epochs for each in configs} == {1000}


def test_the_control_of_the_authors_preset_is_the_published_gnn_on_73_percent() -> None:
    control = preset_config("DD", "random", "gat", "authors", {})
    plain = preset_config("DD", "gnn", "gat", "paper", {})
    assert control.model_config.ratio == 0.73
    assert (control.network, control.training) == (plain.network, plain.training)
    assert control.parts == plain.parts
    other = preset_config("DD", "random", "gat", "authors", {"random": {"ratio": 0.5}})
    assert other.model_config.ratio == 0.5


@pytest.mark.parametrize("model", ["gnn", "sagpool", "cores-both"])
def test_the_authors_preset_of_another_model_is_refused(model: str) -> None:
    with pytest.raises(UserError, match=f'not of {model}; use preset="paper"'):
        preset_config("MUTAG", model, "gin", "authors", {})


def test_nothing_of_all_this_is_in_the_default_preset() -> None:
    config = preset_config("MUTAG", "cores-node", "gin", "default", {})
    assert config.preset_settings is None
    assert "paper" not in config.settings


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"ppo": {"max_kl": 0.1}}, r"ppo\.max_kl, got 0\.1"),
        ({"reward": {"max_pieces": 1}}, r"reward\.max_pieces, got 1"),
        ({"committee": {"members": 3}}, r"committee\.members, got 3"),
        ({"explanation": {"parts": "minimal"}}, r"explanation\.parts, got minimal"),
    ],
)
def test_what_the_published_training_would_ignore_is_refused(
    changes: dict[str, Any], named: str
) -> None:
    for preset in ("paper", "authors"):
        with pytest.raises(UserError, match=f"the preset {preset} trains without {named}$"):
            preset_config("MUTAG", "cores-node", "gin", preset, changes)


def test_a_published_configuration_lists_what_its_training_reads_and_survives_json() -> None:
    config = preset_config("MUTAG", "cores-node", "gin", "authors", {"reward": {"lam": 0.3}})
    listed = config.settings
    assert listed["reward"].keys() == {"lam", "desired_ratio", "alpha", "penalty_size"}
    assert not {"effects", "committee", "explanation"} & listed.keys()
    assert RunConfig.from_settings(json.loads(json.dumps(listed))) == config
    assert config.changes["paper"]["weights"] == "last"


def test_the_users_changes_come_last() -> None:
    config = preset_config("MUTAG", "mlp", "gin", "paper", {"training": {"epochs": 3}})
    assert config.training.epochs == 3
    assert config.training.patience == 800
    assert config.model == "mlp"


def test_a_dataset_without_published_settings_is_refused() -> None:
    with pytest.raises(
        UserError, match='no settings for gnn with gin on motifs; use preset="default"'
    ):
        preset_config("motifs", "gnn", "gin", "paper", {})


@pytest.mark.data
@pytest.mark.parametrize("model", ["gnn", "sagpool", "gpool"])
def test_they_equal_the_published_tables(model: str, data_root: Path) -> None:
    """Every value of the published configuration files."""
    paper = data_root.parent / "paper"
    if not paper.is_dir():
        pytest.skip("needs the paper's tables beside the datasets")
    network = {"batch_norm", "dropout", "gat_heads", "gin_eps", "gin_train_eps", "hidden_dim"}
    network |= {"num_layers", "pooling"}
    compared = 0
    with (paper / "official_configs.csv").open() as file:
        for row in csv.DictReader(file):
            if row["model"] != model:
                continue
            section = published(model)[row["dataset"].removesuffix("_FM")][row["conv"]]
            name, text = row["parameter"], row["value"]
            value = ast.literal_eval(text)
            if name == "split_sizes":
                assert section["parts"]["policy"] == value[1]
            elif name in network:
                assert section["network"][name] == value, row
            elif name.startswith("topk_"):
                assert section[model][name.removeprefix("topk_")] == value, row
            else:
                name = name.replace("scheduler_", "schedule_")
                assert section["training"][name] == value, row
            compared += 1
    assert compared == 27 * (10 if model == "gnn" else 12) + 9 + 2 * 9


@pytest.mark.parametrize("model", ["sagpool", "gpool"])
@pytest.mark.parametrize("conv", CONVS)
def test_every_published_setting_of_a_baseline_builds(model: str, conv: str) -> None:
    for dataset in PAPER_DATASETS:
        config = preset_config(dataset, model, conv, "paper", {})
        build_model(config, Dims(num_features=3, num_classes=2))
        assert 0 < config.model_config.ratio <= 1
        assert config.parts.selection == config.parts.calibration == 0


@pytest.mark.parametrize("model", ["diffpool", "sugar", "gsat", "random"])
def test_a_model_without_published_settings_has_the_default_preset_only(model: str) -> None:
    with pytest.raises(UserError, match=f"no settings for {model} with gin on MUTAG; use preset="):
        preset_config("MUTAG", model, "gin", "paper", {})
    assert preset_config("MUTAG", model, "gin", "default", {}).model == model


@pytest.mark.data
def test_the_settings_of_cores_equal_the_published_ones(data_root: Path) -> None:
    paper = data_root.parent / "paper"
    if not paper.is_dir():
        pytest.skip("needs the paper's tables beside the datasets")
    places = {
        **{name: ("ppo", name) for name in ("env_steps", "ppo_epochs", "entropy_coef")},
        "value_coef": ("paper", "value_coef"),
        "clip_eps": ("ppo", "clip"),
        "rl_scheduler_factor": ("paper", "schedule_factor"),
        "penalty_size": ("reward", "penalty_size"),
        "desired_ratio": ("reward", "desired_ratio"),
        "lambda": ("reward", "lam"),
        "alpha": ("reward", "alpha"),
        "reward_scale": ("paper", "scale"),
    }
    stops = {"training/ppo_loss___min": "loss", "training/ppo_rewards___max": "reward"}
    compared = 0
    with (paper / "official_configs.csv").open() as file:
        for row in csv.DictReader(file):
            model = row["model"].replace("_", "-")
            if model not in ("cores-node", "cores-edge"):
                continue
            section = published(model)[row["dataset"].removesuffix("_FM")][row["conv"]]
            name, text = row["parameter"], row["value"]
            dataset, conv = row["dataset"].removesuffix("_FM"), row["conv"]
            if name in ("ppo_patience", "ppo_stop_metric"):
                own = preset_config(dataset, model, conv, "authors", {}).preset_settings
                patience, metric = str(own.policy_patience), own.stop_metric
                assert (patience if name == "ppo_patience" else metric) == stops.get(text, text)
            elif name in places:
                group, setting = places[name]
                assert section[group][setting] == ast.literal_eval(text), row
                compared += 1
            elif name == "policy_lr_ratio":
                rate = section["training"]["learning_rate"] / float(text)
                assert section["ppo"]["learning_rate"] == pytest.approx(rate, rel=1e-4)
            elif name == "critic_lr_ratio":
                rate = section["ppo"]["learning_rate"] / float(text)
                assert section["paper"]["critic_learning_rate"] == pytest.approx(rate, rel=1e-4)
    assert compared == 2 * 27 * len(places)
    for conv in CONVS:
        with (paper / f"results_{conv}.csv").open() as file:
            for row in csv.DictReader(file):
                model = row["model"].replace("_", "-")
                if model in ("cores-node", "cores-edge") and row["std_percent"]:
                    figures = published(model)[row["dataset"]][conv][f"reported_{row['metric']}"]
                    assert figures["mean"] == float(row["mean_percent"])


@pytest.mark.data
@pytest.mark.parametrize("model", ["gnn", "sagpool", "gpool", "diffpool", "sugar"])
def test_what_the_paper_reports_is_shipped(model: str, data_root: Path) -> None:
    paper = data_root.parent / "paper"
    if not paper.is_dir():
        pytest.skip("needs the paper's tables beside the datasets")
    compared = 0
    for conv in CONVS:
        with (paper / f"results_{conv}.csv").open() as file:
            for row in csv.DictReader(file):
                if row["model"] != model or not row["std_percent"]:
                    continue
                figures = published(model)[row["dataset"]][conv].get(f"reported_{row['metric']}")
                if model == "gnn" and row["metric"] != "accuracy":
                    continue
                assert figures["mean"] == float(row["mean_percent"])
                assert figures["std"] == float(row["std_percent"])
                compared += 1
    assert compared == {"gnn": 27, "sagpool": 27, "gpool": 81, "diffpool": 8, "sugar": 6}[model]
