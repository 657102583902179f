"""Runs of CORES: what they hold and measure, equal seeds, and going on after an interruption."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
import torch

from cores.config import RunConfig
from cores.config.presets import preset_config
from cores.data import datasets
from cores.data.datasets import load_dataset
from cores.data.splits import split_dataset
from cores.data.synthetic import ba_motifs
from cores.errors import UserError
from cores.evaluation.predictions import predict
from cores.explain.run import explain_test_graphs
from cores.models.sparse import SparseClassifier
from cores.runs.inputs import PredictOptions
from cores.runs.run import evaluate_run, train_run
from cores.runs.trained import TrainedModel
from cores.training import judge as judges

MODELS = ("cores-node", "cores-edge", "cores-both")


pytestmark = pytest.mark.usefixtures("few_motifs", "short_judge", "unchecked")
Trained = Callable[[str], Path]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trained]:
    """Gives the folder of a run, made once for each model; nobody writes there."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        # As the fixtures of this module do it for a test.
        patch.setattr(datasets, "ba_motifs", partial(ba_motifs, num_graphs=200))
        patch.setattr(judges, "EPOCHS", 1)
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))

        def run(model: str) -> Path:
            train_run(config(model), folder / model, device="cpu", resume=True)
            return folder / model

        yield run


def config(model: str = "cores-node", **changes: Any) -> RunConfig:
    settings = {
        "dataset": "motifs",
        "model": model,
        "network": {"hidden_dim": 8, "num_layers": 2, "dropout": 0.1},
        "training": {"epochs": 6, "batch_size": 64},
        "ppo": {"env_steps": 64, "samples": 2, "ppo_epochs": 2},
        "committee": {"members": 2, "warm_up": 0.5},
    }
    return RunConfig.from_settings(settings | changes)


def files(folder: Path) -> dict[str, bytes]:
    """All that a run wrote, without the time it took."""
    found = {name: (folder / name).read_bytes() for name in ("history.jsonl", "model.safetensors")}
    metrics = json.loads((folder / "metrics.json").read_text())
    del metrics["seconds"]
    return found | {"metrics.json": json.dumps(metrics).encode()}


@pytest.mark.parametrize("model", MODELS)
def test_a_run_measures_what_the_contract_names(model: str, trained: Trained) -> None:
    run = trained(model)
    metrics = json.loads((run / "metrics.json").read_text())
    for name in ("judge_accuracy", "judge_full_accuracy", "judge_random_accuracy", "full_accuracy"):
        assert 0 <= metrics[name] <= 1
    for name in ("sufficiency", "weak", "minimal", "committee_std", "calibration_error"):
        assert 0 <= metrics[name] <= 1
    assert (metrics["members"], metrics["sufficiency"], metrics["minimal"]) == (2, 0.8, 1)
    assert metrics["questions"] > 1
    for name in ("node_auc", "edge_auc", "node_recall", "coverage", "set_size"):
        assert metrics[name] is not None
    assert 0 <= metrics["edge_ratio"] <= 1
    assert 0 < metrics["node_ratio"] <= 1
    assert metrics["pieces"] >= 0.5 * (model != "cores-edge")  # of which no edge may be left
    if model != "cores-both":
        assert (metrics["node_ratio"] == 1) == (model == "cores-edge" or metrics["edge_ratio"] == 1)
    evaluated = evaluate_run(run, device="cpu")
    assert all(evaluated[name] == metrics[name] for name in ("accuracy", "node_auc", "coverage"))
    assert evaluated["judge_accuracy"] == metrics["judge_accuracy"]
    explanations, names = explain_test_graphs(run, 3)
    assert len(explanations) == 3
    assert all(explanation.prediction in names for explanation in explanations)


@pytest.mark.parametrize("model", ["cores-node", "cores-edge"])
def test_two_equal_seeds_give_equal_bytes(model: str, trained: Trained, tmp_path: Path) -> None:
    train_run(config(model), tmp_path / "again", device="cpu")
    assert files(tmp_path / "again") == files(trained(model))


def test_an_interrupted_run_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    train_run(config(), tmp_path / "whole", device="cpu")

    def go_on(stop: int) -> None:
        def interrupt(epoch: int, metrics: dict[str, float]) -> None:
            if epoch == stop:
                raise KeyboardInterrupt

        train_run(config(), tmp_path / "cut", device="cpu", resume=True, report=interrupt)

    for stop in (2, 3, 5):  # in the warm-up, when the policy begins, and later
        with pytest.raises(KeyboardInterrupt):
            go_on(stop)
    go_on(-1)
    assert files(tmp_path / "cut") == files(tmp_path / "whole")


def test_a_run_of_a_plain_model_keeps_its_name_whatever_the_settings_of_a_policy(
    tmp_path: Path,
) -> None:
    one = config("gnn")
    other = config("gnn", ppo={"clip": 0.4}, reward={"lam": 0.9})
    assert one.key == other.key
    assert config("cores-node").key != config("cores-node", reward={"lam": 0.9}).key
    assert "ppo" not in one.settings


def test_a_classifier_that_would_never_learn_is_refused() -> None:
    with pytest.raises(UserError, match="the classifiers learn in the warm-up only"):
        config(training={"epochs": 1})


@pytest.mark.parametrize(
    ("share", "epochs", "warm_up"), [(0.13, 2, 1), (0.13, 20, 2), (0.99, 4, 3), (0.5, 240, 120)]
)
def test_a_warm_up_is_an_epoch_at_least_and_leaves_one(
    share: float, epochs: int, warm_up: int
) -> None:
    short = config(training={"epochs": epochs}, committee={"warm_up": share})
    assert short.warm_up_epochs == warm_up


def test_edges_cannot_be_removed_where_there_are_none(
    tmp_path: Path, write_files: Callable[..., Path], tu_files: dict[str, str]
) -> None:
    bare = write_files("bare", {**tu_files, "toy_A.txt": "", "toy_edge_labels.txt": ""})
    with pytest.raises(UserError, match=r"no graph of .* has an edge to remove"):
        train_run(config("cores-edge", dataset=str(bare)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_cores_finds_the_motif(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo's run, shorter: the motif is what is kept, and the judge agrees."""
    graphs = ba_motifs(num_graphs=500)  # more than elsewhere: here it must learn
    monkeypatch.setattr(datasets, "ba_motifs", lambda *_, **__: graphs)
    monkeypatch.setattr(judges, "EPOCHS", 15)
    shorter = {
        "training": {"epochs": 64},
        "committee": {"warm_up": 0.75},
        "ppo": {"env_steps": 80, "batch_size": 32},
    }
    settings = preset_config("motifs", "cores-node", "gin", "default", shorter)
    metrics = train_run(settings, tmp_path / "run", device="cpu")
    assert metrics["accuracy"] > 0.95
    assert metrics["node_ratio"] < 0.5
    assert metrics["node_auc"] > 0.9
    assert metrics["node_recall"] > 0.95
    assert metrics["judge_accuracy"] > metrics["judge_random_accuracy"] + 0.1


def test_runs_that_differ_in_the_reward_share_their_warm_up(tmp_path: Path) -> None:
    """The second begins where the policy does, and ends as it would have ended alone."""
    first, second = (config(reward={"lam": lam}) for lam in (0.5, 0.0))
    train_run(first, tmp_path / "first", device="cpu", warm_ups=tmp_path / "shared")
    reported: list[int] = []

    def report(epoch: int, metrics: dict[str, float]) -> None:
        reported.append(epoch)

    train_run(
        second, tmp_path / "second", device="cpu", warm_ups=tmp_path / "shared", report=report
    )
    train_run(second, tmp_path / "alone", device="cpu")
    assert reported == [4, 5, 6, 7, 8, 9], "the policy's epochs, and as many for the effects"
    assert files(tmp_path / "second") == files(tmp_path / "alone")
    assert files(tmp_path / "second") != files(tmp_path / "first")


@pytest.mark.parametrize(
    "changes",
    [
        {"split": 2},
        {"seed": 1},
        {"committee": {"members": 3, "warm_up": 0.5}},
        {"reward": {"max_pieces": 1}},
    ],
    ids=str,
)
def test_what_changes_the_warm_up_changes_its_key(changes: dict[str, Any]) -> None:
    assert config(**changes).warm_up_key != config().warm_up_key


@pytest.mark.parametrize(
    "changes", [{"reward": {"lam": 0.9}}, {"explanation": {"sufficiency": 0.9, "parts": "cut"}}]
)
def test_what_comes_after_the_warm_up_does_not(changes: dict[str, Any]) -> None:
    assert config(**changes).warm_up_key == config().warm_up_key


def test_evaluate_may_draw_from_the_policy_and_repeats_itself(
    trained: Trained, tmp_path: Path
) -> None:
    run = trained("cores-node")
    mode = evaluate_run(run, device="cpu")
    drawn = PredictOptions(parts="policy")
    first, second = (evaluate_run(run, drawn, device="cpu", sample=True) for _ in range(2))
    assert first == second
    with pytest.raises(UserError, match="no sample of the policy is seen or shown"):
        evaluate_run(run, device="cpu", sample=True)
    assert first["node_ratio"] != mode["node_ratio"]
    assert mode["coverage"] is not None
    assert first["coverage"] is None  # its sets were calibrated on the mode
    told = evaluate_run(run, device="cpu", explanations=True)
    assert {name: told[name] for name in mode} == mode
    assert set(told) - set(mode) == {
        *(
            "sufficiency_loss",
            "comprehensiveness",
            "fidelity_minus",
            "fidelity_plus",
            "idempotence",
        ),
        *("permutation_stability", "edge_stability"),
    }
    train_run(config("gnn"), tmp_path / "gnn", device="cpu")
    for asked in ("sample", "explanations"):
        with pytest.raises(UserError, match=f"`{asked}` needs a model with a policy"):
            evaluate_run(tmp_path / "gnn", device="cpu", **{asked: True})


@pytest.mark.data
def test_the_authors_preset_and_its_control_run(data_root: Path, tmp_path: Path) -> None:
    for model in ("cores-edge", "random"):
        settings = preset_config("MUTAG", model, "gin", "authors", {"training": {"epochs": 3}})
        metrics = train_run(settings, tmp_path / model, data_root=data_root, device="cpu")
        assert metrics["preset"] == "authors"
        assert metrics["edge_ratio"] < 0.9


@pytest.mark.parametrize("model", MODELS)
def test_a_run_whose_kept_parts_are_connected(model: str, tmp_path: Path) -> None:
    """Of what is calibrated, measured, predicted and explained, loaded again or not."""
    reward = {"max_pieces": 1, "pieces_penalty": 0.5}
    metrics = train_run(config(model, reward=reward), tmp_path / "run", device="cpu")
    trained = TrainedModel.load(tmp_path / "run")
    assert isinstance(trained.model, SparseClassifier)
    assert trained.model.policy.max_pieces == 1
    graphs = load_dataset("motifs").graphs
    for parts in ("policy", "cut", "minimal"):
        predictions = predict(trained.showing(parts=parts).model, graphs)
        assert predictions.pieces is not None
        fewest = int(model != "cores-edge" or parts == "policy")  # else no edge may be left
        assert ((fewest <= predictions.pieces) & (predictions.pieces <= 1)).all()
    assert metrics["pieces"] == evaluate_run(tmp_path / "run", device="cpu")["pieces"] <= 1
    assert f"| pieces | {metrics['pieces']:.3f} |" in (tmp_path / "run" / "README.md").read_text()
    explanations, _ = explain_test_graphs(tmp_path / "run", 5)
    for explanation in explanations:
        assert explanation.pieces == 1 or not explanation.kept_edges
        kept = nx.Graph(explanation.kept_edges)
        if model != "cores-edge":
            kept.add_nodes_from(explanation.kept_nodes)
        assert nx.number_connected_components(kept) == explanation.pieces
    calibrated = trained.calibration
    part = split_dataset(load_dataset("motifs"), 1, trained.config.parts).calibration
    again = predict(trained.model, graphs.subset(part)).probs
    assert torch.equal(calibrated.probs, again)
