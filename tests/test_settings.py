"""The shipped settings are the published ones, and every one of them builds."""

import ast
import csv
from pathlib import Path

import pytest

from cores.errors import UserError
from cores.models.classifier import Classifier
from cores.settings import PAPER_DATASETS, preset_config, published

CONVS = ("gin", "gcn", "gat")


@pytest.mark.parametrize("dataset", PAPER_DATASETS)
@pytest.mark.parametrize("conv", CONVS)
def test_every_published_setting_builds_a_classifier(dataset: str, conv: str) -> None:
    config = preset_config(dataset, "gnn", conv, "paper", {})
    Classifier(3, 2, config.network, conv)
    assert config.parts.selection == config.parts.calibration == 0
    figures = published("gnn")[dataset][conv]["reported_accuracy"]
    assert 50 < figures["mean"] < 100
    assert figures["std"] > 0


def test_there_are_27_of_them() -> None:
    assert {(d, c) for d, convs in published("gnn").items() for c in convs} == {
        (dataset, conv) for dataset in PAPER_DATASETS for conv in CONVS
    }


def test_the_users_changes_come_last() -> None:
    config = preset_config("MUTAG", "mlp", "gin", "paper", {"training": {"epochs": 3}})
    assert config.training.epochs == 3
    assert config.training.patience == 800
    assert config.model == "mlp"


def test_a_dataset_without_published_settings_is_refused() -> None:
    with pytest.raises(UserError, match="no settings for gnn with gin on motifs; use --preset"):
        preset_config("motifs", "gnn", "gin", "paper", {})


@pytest.mark.data
def test_they_equal_the_published_tables(data_root: Path) -> None:
    """Every value of the published configuration files, and the accuracy the paper reports."""
    paper = data_root.parent / "paper"
    if not paper.is_dir():
        pytest.skip("needs the paper's tables beside the datasets")
    network = {"batch_norm", "dropout", "gat_heads", "gin_eps", "gin_train_eps", "hidden_dim"}
    network |= {"num_layers", "pooling"}
    compared = 0
    with (paper / "official_configs.csv").open() as file:
        for row in csv.DictReader(file):
            if row["model"] != "gnn":
                continue
            section = published("gnn")[row["dataset"].removesuffix("_FM")][row["conv"]]
            name, text = row["parameter"], row["value"]
            value = ast.literal_eval(text)
            if name == "split_sizes":
                assert section["parts"]["policy"] == value[1]
            elif name in network:
                assert section["network"][name] == value, row
            else:
                name = name.replace("scheduler_", "schedule_")
                assert section["training"][name] == value, row
            compared += 1
    assert compared == 27 * 10 + 9 + 2 * 9
    for conv in CONVS:
        with (paper / f"results_{conv}.csv").open() as file:
            for row in csv.DictReader(file):
                if row["model"] == "gnn" and row["metric"] == "accuracy" and row["std_percent"]:
                    figures = published("gnn")[row["dataset"]][conv]["reported_accuracy"]
                    assert figures["mean"] == float(row["mean_percent"])
                    assert figures["std"] == float(row["std_percent"])
