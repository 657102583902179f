"""A dial that is set with a promise: by half of the calibration part, saved with the run."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cores import Cores
from cores.config import RunConfig
from cores.config.policy import SETTINGS
from cores.data.synthetic import ba_motifs
from cores.errors import UserError
from cores.runs.promise import Promise, promised_model, tuned_model
from cores.runs.run import evaluate_run, train_run
from cores.runs.trained import DialCalibration, TrainedModel
from cores.runs.tune import tune_run
from cores.training import judge

pytestmark = pytest.mark.usefixtures("unchecked")
GRAPHS = 400
NETWORK = {"network": {"hidden_dim": 8, "num_layers": 1}}
IN_EXPECTATION = Promise(0.1, "excess", None, per_class=False)


@pytest.fixture(scope="module")
def trained(dial_run: Path) -> TrainedModel:
    """A model whose calibration part is made up: each setting loses 1 % more than the next."""
    labels = torch.arange(GRAPHS) % 2
    right = torch.eye(2)[labels]
    place = torch.arange(GRAPHS).view(2, -1).T.flatten()  # spread over classes and halves
    probs = []
    for number in range(len(SETTINGS)):
        lost = place < (len(SETTINGS) - 1 - number) * GRAPHS // 100
        probs.append(torch.where(lost[:, None], right.flip(1), right))
    kept = torch.linspace(0.2, 1, len(SETTINGS))[:, None].expand(-1, GRAPHS)
    nobody = torch.empty(0, dtype=torch.long)
    dial = DialCalibration(torch.stack(probs), kept.clone(), right, labels, nobody)
    return replace(TrainedModel.load(dial_run), dial=dial)


def test_the_sparsest_setting_that_keeps_the_promise_is_taken(trained: TrainedModel) -> None:
    tuned, found = tuned_model(trained, IN_EXPECTATION)
    assert tuned.lam == found["lam"]
    assert 0.4 < found["lam"] < 0.7, "a tenth is lost at 0.5"
    assert found["observed_loss"] <= 0.1
    assert found["kept_ratio"] == pytest.approx(0.2 + 0.8 * found["lam"])
    assert found["graphs"] == found["calibration_graphs"] == GRAPHS // 2
    looser = tuned_model(trained, replace(IN_EXPECTATION, max_loss=0.15))[1]
    assert looser["lam"] < found["lam"]
    surer = tuned_model(trained, replace(IN_EXPECTATION, confidence=0.95))[1]
    assert surer["lam"] > found["lam"]
    assert surer["confidence"] == 0.95


def test_graphs_that_decided_calibrate_nothing(trained: TrainedModel) -> None:
    tuned, found = tuned_model(trained, IN_EXPECTATION)
    assert tuned.dial is not None
    assert trained.dial is not None
    chosen = set(tuned.dial.chosen_by.tolist())
    assert len(chosen) == found["graphs"]
    others = [graph for graph in range(GRAPHS) if graph not in chosen]
    place = SETTINGS.index(found["lam"])
    assert torch.equal(tuned.calibration.probs, trained.dial.probs[place][others])
    assert torch.equal(tuned.at(0.0).calibration.labels, trained.dial.labels[others])
    again, same = tuned_model(tuned, IN_EXPECTATION)
    assert same == found, "decided anew, by all that were held out"
    assert again.lam == tuned.lam


def test_a_rare_class_is_not_the_price(trained: TrainedModel) -> None:
    """All that is lost is of one class: a tenth of it at 0.75, where a twentieth of all is."""
    dial = trained.dial
    assert dial is not None
    lost = torch.arange(GRAPHS) % 20 == 0
    probs = torch.where(
        (lost[None] & (torch.tensor(SETTINGS) < 0.8)[:, None])[..., None],
        dial.full_probs.flip(1),
        dial.full_probs,
    )
    unfair = replace(trained, dial=replace(dial, probs=probs))
    assert tuned_model(unfair, replace(IN_EXPECTATION, max_loss=0.07))[1]["lam"] == 0.0
    fair = replace(IN_EXPECTATION, max_loss=0.07, per_class=True)
    assert tuned_model(unfair, fair)[1]["lam"] == 0.8


@pytest.mark.parametrize("loss", ["excess", "disagreement", "accuracy"])
def test_every_loss_can_be_promised(trained: TrainedModel, loss: str) -> None:
    found = tuned_model(trained, Promise(0.1, loss, 0.9, per_class=True))[1]
    assert found["loss"] == loss
    assert found["observed_loss"] <= 0.1


@pytest.mark.parametrize(
    ("promise", "told"),
    [
        (
            Promise(0.001, "excess", None, per_class=False),
            r"at most 0.001 takes 1998 calibration graphs in all, and there are 400; the least "
            r"that these can promise is 0.005",
        ),
        (
            Promise(0.01, "excess", 0.9, per_class=True),
            r"takes 460 calibration graphs of a class, and there are 200",
        ),
        (Promise(0.0, "excess", None, per_class=True), "`max_loss` must lie between 0 and 1"),
        (Promise(0.1, "excess", 1.0, per_class=True), "`confidence` must lie between 0 and 1"),
        (Promise(0.1, "regret", None, per_class=True), "`loss` is one of excess, disagreement"),
    ],
)
def test_what_cannot_be_promised_is_told(
    trained: TrainedModel, promise: Promise, told: str
) -> None:
    with pytest.raises(UserError, match=told):
        tuned_model(trained, promise)


def test_where_every_setting_loses_too_much_the_dial_is_left_alone(trained: TrainedModel) -> None:
    dial = trained.dial
    assert dial is not None
    wrong = dial.full_probs.flip(1).expand(len(SETTINGS), -1, -1)
    with pytest.raises(UserError, match=r"no setting keeps this promise: .* 1.000 on average"):
        tuned_model(replace(trained, dial=replace(dial, probs=wrong)), IN_EXPECTATION)


def test_graphs_that_were_asked_in_vain_calibrate_nothing(trained: TrainedModel) -> None:
    """They have been looked at; what becomes of the sets must not depend on their answer."""
    dial, config = trained.dial, trained.config
    assert dial is not None
    promised = replace(config.reward, promised=True, max_loss=0.1)
    asked = replace(trained, config=replace(config, reward=promised))
    wrong = dial.full_probs.flip(1).expand(len(SETTINGS), -1, -1)
    found, said = promised_model(replace(asked, dial=replace(dial, probs=wrong)))
    assert said["promise"] is None
    assert said["no_promise"].startswith("no setting keeps this promise")
    assert found.lam == trained.lam
    assert len(found.calibration) == GRAPHS // 2
    given, said = promised_model(asked)
    assert given.lam == said["promise"]["lam"] != trained.lam
    assert promised_model(trained) == (trained, {}), "nothing was asked for"


def test_a_class_without_graphs_is_too_small_for_a_promise(trained: TrainedModel) -> None:
    """It is no setting's fault, and all graphs go on to calibrate."""
    dial, config = trained.dial, trained.config
    assert dial is not None
    one_class = dial.labels == 0
    some = DialCalibration(
        dial.probs[:, one_class],
        dial.kept_ratio[:, one_class],
        dial.full_probs[one_class],
        dial.labels[one_class],
        dial.chosen_by,
    )
    lacking = replace(trained, dial=some)
    each = replace(IN_EXPECTATION, per_class=True)
    told = "takes 18 calibration graphs of a class, and there are 0"
    with pytest.raises(UserError, match=told):
        tuned_model(lacking, each)
    assert tuned_model(lacking, IN_EXPECTATION)[1]["graphs"] == GRAPHS // 4
    promised = replace(config.reward, promised=True, max_loss=0.1)
    asked = replace(lacking, config=replace(config, reward=promised))
    found, said = promised_model(asked)
    assert found is asked
    assert told in said["no_promise"]


def test_a_model_without_a_dial_has_nothing_to_tune(trained: TrainedModel) -> None:
    with pytest.raises(UserError, match="trained for one lambda"):
        tuned_model(replace(trained, dial=None), IN_EXPECTATION)


def test_the_setting_is_saved_with_the_run(dial_run: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(dial_run, tmp_path / "run"))
    found = tune_run(run, Promise(0.5, "disagreement", None, per_class=False)).promise
    loaded = TrainedModel.load(run)
    assert loaded.lam == found["lam"]
    assert loaded.dial is not None
    assert len(loaded.dial.chosen_by) == found["graphs"]
    assert len(loaded.calibration) == found["calibration_graphs"]
    assert json.loads((run / "promise.json").read_text()) == found


def test_the_command_says_what_is_promised(
    dial_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from cores.__main__ import main

    run = Path(shutil.copytree(dial_run, tmp_path / "run"))

    def ask(*options: Any) -> tuple[int, str, str]:
        status = main(["tune", str(run), *map(str, options)])
        said = capsys.readouterr()
        return status, said.out, said.err

    promise = ("--max-loss", 0.5, "--loss", "disagreement", "--no-per-class")
    status, out, _ = ask(*promise)
    assert status == 0
    assert out.startswith("Of all graphs, at most 50 % get another class than on the full graph")
    assert "calibration graphs, for new graphs that are like them." in out
    status, out, _ = ask(*promise, "--confidence", 0.9, "--json")
    assert status == 0
    assert json.loads(out)["confidence"] == 0.9
    status, _, err = ask("--max-loss", 0.001)
    assert status == 2
    assert err.count("\n") == 1


@pytest.fixture(scope="module")
def motifs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four hundred graphs: forty calibrate, ten of a class decide."""
    graphs, path = ba_motifs(num_graphs=400, seed=0), tmp_path_factory.mktemp("data") / "m.npz"
    names = ("x", "edge_index", "y", "node_ptr", "edge_ptr")
    np.savez(path, **{name: getattr(graphs, name).numpy() for name in names})
    return path


@pytest.fixture(scope="module")
def runs(
    motifs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, tuple[Path, dict[str, Any]]]]:
    """The same training without a promise, with one, and with one that cannot be given."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge, "EPOCHS", 1)
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        asked: dict[str, dict[str, Any]] = {
            "plain": {"max_loss": 0.4},
            "promised": {"max_loss": 0.4, "promised": True},
            "refused": {"max_loss": 0.001, "promised": True},
        }
        yield {
            name: (folder / name, train_run(settings(motifs, reward), folder / name, device="cpu"))
            for name, reward in asked.items()
        }


def settings(data: Path, reward: dict[str, Any]) -> RunConfig:
    return RunConfig.from_settings(
        {
            "dataset": str(data),
            "network": {"hidden_dim": 8, "num_layers": 1},
            "training": {"epochs": 2},
            "ppo": {"env_steps": 8, "samples": 2},
            "reward": {"dial": True, "referees": 2} | reward,
        }
    )


Runs = dict[str, tuple[Path, dict[str, Any]]]


def test_a_training_that_promises_is_a_training_and_a_tuning(runs: Runs, tmp_path: Path) -> None:
    run = Path(shutil.copytree(runs["plain"][0], tmp_path / "run"))
    promised, metrics = runs["promised"]
    tuned = tune_run(run, Promise(0.4, "excess", None, per_class=True), device="cpu")
    assert tuned.unmeasured is None
    assert tuned.promise == metrics["promise"]
    assert tuned.promise["graphs"] == tuned.promise["calibration_graphs"] == 20
    for name in ("promise.json", "model.safetensors"):
        assert (run / name).read_bytes() == (promised / name).read_bytes(), name
    assert json.loads((run / "metrics.json").read_text()) == tuned.metrics
    assert {**(tuned.metrics or {}), "seconds": 0} == {**metrics, "seconds": 0}
    texts = [(path / "README.md").read_text() for path in (run, promised)]
    cards = [text.partition("## How it was made")[0] for text in texts]
    seconds = [f"| seconds | {found['seconds']:.1f} |" for found in (tuned.metrics or {}, metrics)]
    assert cards[0].replace(seconds[0], "") == cards[1].replace(seconds[1], "")
    said = "Of every class, at most 40 % are right on the full graph and wrong on the kept part"
    assert cards[0].count(said) == 1
    assert "by 20 calibration graphs, for new graphs that are like them." in cards[0]
    assert said not in (runs["plain"][0] / "README.md").read_text()


def test_metrics_are_those_of_the_setting_that_was_tuned(runs: Runs, tmp_path: Path) -> None:
    run = Path(shutil.copytree(runs["plain"][0], tmp_path / "run"))
    known = runs["plain"][1] | {"lam": 0.33, "accuracy": 0.123}
    (run / "metrics.json").write_text(json.dumps(known))
    found = tune_run(run, Promise(0.4, "excess", None, per_class=True), device="cpu")
    assert found.metrics is not None
    assert found.metrics["lam"] == found.promise["lam"]
    measured = evaluate_run(run, device="cpu")
    for name in ("accuracy", "node_ratio", "coverage", "set_size", "judge_accuracy"):
        assert found.metrics[name] == measured[name], name
    assert f"| lam | {found.promise['lam']:.3f} |" in (run / "README.md").read_text()


def test_where_the_data_are_gone_metrics_say_of_which_setting_they_are(
    runs: Runs, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(runs["plain"][0], tmp_path / "run"))
    identity = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps(identity | {"source": "/nowhere/m.npz"}))
    before = runs["plain"][1]
    tuned = tune_run(run, Promise(0.4, "excess", None, per_class=True), device="cpu")
    assert "are no longer at /nowhere/m.npz" in (tuned.unmeasured or "")
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["accuracy"] == before["accuracy"]
    assert metrics["lam"] == before["lam"]
    assert metrics["promise"] == tuned.promise
    (mark,) = metrics["verdicts"]
    assert mark.startswith(f"Measured at lambda {before['lam']}, before the dial was set to")
    card = (run / "README.md").read_text()
    assert f"- {mark}" in card
    assert "| train part |" in card, "what it says of the data stays"


def test_what_cannot_be_promised_is_no_reason_to_lose_a_training(runs: Runs) -> None:
    (run, metrics), (plain, _) = runs["refused"], runs["plain"]
    assert metrics["promise"] is None
    assert not (run / "promise.json").exists()
    told = "No promise: a loss of at most 0.001 takes 1998 calibration graphs of a class, and"
    assert metrics["verdicts"][-1].startswith(told)
    assert "where the training set it" in metrics["verdicts"][-1]
    assert told in (run / "README.md").read_text()
    refused, usual = TrainedModel.load(run), TrainedModel.load(plain)
    assert len(refused.calibration) == len(usual.calibration) == 40, "no graph was spent"


def test_a_promise_of_before_does_not_outlive_its_training(runs: Runs, tmp_path: Path) -> None:
    run = Path(shutil.copytree(runs["plain"][0], tmp_path / "run"))
    tune_run(run, Promise(0.4, "excess", None, per_class=True), device="cpu")
    (run / "metrics.json").unlink()
    config = TrainedModel.load(run).config
    train_run(config, run, device="cpu", resume=True)
    assert not (run / "promise.json").exists()


def test_the_estimator_promises_too(motifs: Path, runs: Runs, tmp_path: Path) -> None:
    config = runs["plain"][1]
    model = Cores.load(runs["plain"][0], device="cpu")
    tuned = model.tune(0.4)
    assert tuned is model
    found = model.metrics_["promise"]
    assert (found["max_loss"], found["per_class"], found["confidence"]) == (0.4, True, None)
    assert model._trained.lam == found["lam"]
    assert model.metrics_["accuracy"] == config["accuracy"]
    assert model.metrics_["verdicts"][0].startswith("Measured at lambda")
    model.save(tmp_path / "saved")
    assert json.loads((tmp_path / "saved" / "promise.json").read_text()) == found
    assert "promised at lambda" in (tmp_path / "saved" / "README.md").read_text()
    assert Cores.load(tmp_path / "saved", device="cpu").metrics_["promise"] == found
    assert model.tune(0.45, confidence=np.float64(0.5)).metrics_["promise"]["confidence"] == 0.5
    with pytest.raises(UserError, match=r"`max_loss` must lie between 0 and 1, got 1\.5"):
        model.tune(1.5)


def test_an_estimator_that_cannot_promise_warns(motifs: Path) -> None:
    small = {
        **NETWORK,
        "ppo": {"env_steps": 8, "samples": 2},
        "reward": {"referees": 2},
    }
    options: dict[str, Any] = {"epochs": 2, "progress": False, "judge": False, "device": "cpu"}
    with pytest.warns(UserWarning, match=r"no promise: a loss of at most 0.001 takes 1998"):
        model = Cores(max_loss=0.001, settings=small, **options).fit(str(motifs))
    assert model.metrics_["promise"] is None
    assert model.policy_.lam is not None, "a loss that is named asks for a dial"
    with pytest.warns(UserWarning, match="no promise: gnn has no dial"):
        plain = Cores(max_loss=0.1, removal=None, settings=NETWORK, **options).fit(str(motifs))
    assert plain.metrics_["verdicts"][-1] == "No promise: gnn has no dial."
    fixed = {"reward": {"dial": False}}
    with pytest.raises(UserError, match="`max_loss` is promised of a model with a dial"):
        Cores(max_loss=0.1, settings=fixed, **options).fit(str(motifs))
