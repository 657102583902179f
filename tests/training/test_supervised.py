"""Supervised training learns, and says so when it cannot."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cores.config import NetworkConfig, TrainingConfig
from cores.data.dataset import Dataset, Dims, numbered
from cores.data.synthetic import ba_motifs
from cores.errors import UserError
from cores.graphs.store import GraphStore
from cores.models.classifier import Classifier
from cores.training.state import RandomState
from cores.training.supervised import fit_scaler, train

GRAPHS = ba_motifs(num_graphs=60, base_size=5, motifs=("star", "clique"))
SMALL = NetworkConfig(hidden_dim=16, num_layers=2)


def fitted(
    config: TrainingConfig, folder: Path | None = None, graphs: GraphStore = GRAPHS
) -> tuple[Classifier, dict[str, float]]:
    random = RandomState(0, torch.device("cpu"))
    classifier = Classifier(Dims(graphs.num_features, 2), SMALL, "gin")
    last: dict[str, float] = {}
    train(
        classifier, graphs, graphs, config, random, folder, lambda _, metrics: last.update(metrics)
    )
    return classifier, last


def test_a_small_task_is_learnt() -> None:
    _, last = fitted(TrainingConfig(epochs=60, learning_rate=0.01))
    assert last["selection_accuracy"] == 1.0
    assert last["loss"] < 0.1


def test_history_grows_by_a_whole_line_per_epoch(tmp_path: Path) -> None:
    fitted(TrainingConfig(epochs=4), tmp_path)
    lines = (tmp_path / "history.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == [1, 2, 3, 4]
    assert json.loads(lines[0]).keys() == {
        "epoch",
        "loss",
        "selection_accuracy",
        "selection_loss",
        "learning_rate",
    }


def small_features(scale: float) -> Dataset:
    graphs = replace(
        GRAPHS, x=torch.randn(len(GRAPHS.x), 2, dtype=torch.float64).mul(scale).float()
    )
    return Dataset("mine.npz", graphs, ("0", "1"), numbered(2), continuous=(0, 1))


def test_features_too_small_to_be_scaled_are_named_with_their_column() -> None:
    dataset = small_features(1e-40)
    classifier = Classifier(dataset.dims, SMALL, "gin")
    message = r"mine.npz: the values of 'feature 0' are too small for single precision .*; scale"
    with pytest.raises(UserError, match=message):
        fit_scaler(classifier, dataset.graphs, dataset)
    fit_scaler(classifier, small_features(1e-20).graphs, small_features(1e-20))


def test_features_that_are_too_large_are_not_blamed_on_the_learning_rate() -> None:
    graphs = replace(GRAPHS, x=torch.full_like(GRAPHS.x, 1e38))
    with pytest.raises(UserError, match=r"in epoch 1: node features reach 1e\+38 after scaling"):
        fitted(TrainingConfig(epochs=2), graphs=graphs)
    with pytest.raises(UserError, match=r"lower training\.learning_rate"):
        fitted(TrainingConfig(epochs=3, learning_rate=2e9))


def test_patience_ends_training() -> None:
    random = RandomState(0, torch.device("cpu"))
    classifier = Classifier(Dims(10, 2), SMALL, "gin")
    config = TrainingConfig(epochs=500, patience=3, learning_rate=0.5)
    journal, stopping = train(classifier, GRAPHS, GRAPHS, config, random)
    assert journal.epoch == stopping.best_epoch + 3 < 500


def test_best_and_last_weights_differ_when_the_last_epoch_is_not_the_best() -> None:
    settings = {"epochs": 12, "learning_rate": 0.05, "min_learning_rate": 0.05}
    best, _ = fitted(TrainingConfig(weights="best", **settings))
    last, _ = fitted(TrainingConfig(weights="last", **settings))
    pairs = zip(best.parameters(), last.parameters(), strict=True)
    assert not all(torch.equal(a, b) for a, b in pairs)


def test_class_weights_lift_the_rare_class() -> None:
    """Where features say nothing, an unweighted model guesses the majority, a weighted one not."""
    rare = torch.cat([torch.arange(0, 60, 2), torch.tensor([1, 3, 5])])
    graphs = GRAPHS.subset(rare)
    blind = GraphStore(**{**vars(graphs), "edge_index": torch.zeros_like(graphs.edge_index)})
    batch = blind.batch(torch.arange(len(blind)))
    settings = {"epochs": 40, "learning_rate": 0.01, "weights": "last"}
    plain, _ = fitted(TrainingConfig(**settings), graphs=blind)
    weighted, _ = fitted(TrainingConfig(class_weights=True, **settings), graphs=blind)
    rare_probability = [
        model.eval()(batch).softmax(-1)[:, 1].mean().item() for model in (plain, weighted)
    ]
    assert rare_probability[0] < 0.2 < rare_probability[1]


def test_fitting_a_networks_scaler_reads_the_columns_that_the_dataset_names() -> None:
    graphs = replace(GRAPHS, x=torch.arange(10.0).expand(len(GRAPHS.x), 10).clone())
    graphs.x[0] += 1
    names = numbered(10)
    dataset = Dataset("toy", graphs, ("a", "b"), names, continuous=(1, 2), clipped=(2,))
    classifier = Classifier(dataset.dims, SMALL, "gin")
    fit_scaler(classifier, graphs, dataset)
    scaler = classifier.scaler
    assert (scaler.mean != 0).nonzero().flatten().tolist() == [1, 2]
    assert scaler.low.isfinite().nonzero().flatten().tolist() == [2]


def test_an_exploding_loss_is_the_users_to_mend() -> None:
    broken = replace(GRAPHS, x=GRAPHS.x * float("inf"))
    with pytest.raises(UserError, match=r"the loss is nan in epoch 1: node features reach inf"):
        fitted(TrainingConfig(epochs=3), graphs=broken)
