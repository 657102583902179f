"""A dial that is set with a promise: by half of the calibration part, saved with the run."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from cores.config.policy import SETTINGS
from cores.errors import UserError
from cores.runs.trained import DialCalibration, TrainedModel
from cores.runs.tune import Promise, tune_run, tuned_model

GRAPHS = 400
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


def test_a_model_without_a_dial_has_nothing_to_tune(trained: TrainedModel) -> None:
    with pytest.raises(UserError, match="trained for one lambda"):
        tuned_model(replace(trained, dial=None), IN_EXPECTATION)


def test_the_setting_is_saved_with_the_run(dial_run: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(dial_run, tmp_path / "run"))
    found = tune_run(run, Promise(0.5, "disagreement", None, per_class=False))
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
    assert out.startswith("Of all graphs, at most 50.0% get another class than on the full graph")
    status, out, _ = ask(*promise, "--confidence", 0.9, "--json")
    assert status == 0
    assert json.loads(out)["confidence"] == 0.9
    status, _, err = ask("--max-loss", 0.001)
    assert status == 2
    assert err.count("\n") == 1
