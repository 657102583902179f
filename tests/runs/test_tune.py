"""A sufficiency that is set with a promise: by the calibration part, saved with the run."""

import json
import math
import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from cores import Cores
from cores.config import RunConfig
from cores.data.synthetic import ba_motifs
from cores.errors import UserError
from cores.runs.promise import SUFFICIENCIES, Promise, tuned_model, wrong_answers
from cores.runs.run import evaluate_run, train_run
from cores.runs.trained import TrainedModel
from cores.runs.tune import tune_run
from cores.tasks.calibration import ClassCalibration
from cores.training import judge

CPU = {"device": "cpu"}
DRAWS = 300


@pytest.fixture(scope="module")
def trained(drawn_run: Path) -> TrainedModel:
    return TrainedModel.load(drawn_run)


def predicted(graphs: int, seed: int, rare: int = 2) -> tuple[Tensor, Tensor]:
    """Probabilities and labels of a model that errs less where it is sure.

    Of graphs of class 1, one in ``rare``, half are told class 0, however sure that is.
    """
    generator = torch.Generator().manual_seed(seed)
    sure = 0.5 + 0.5 * torch.rand(graphs, generator=generator)
    labels = (torch.arange(graphs) % rare == 0).long()
    error = torch.where(labels == 1, 0.5, 1.2 * (1 - sure)) if rare > 2 else 1.2 * (1 - sure)
    right = torch.rand(graphs, generator=generator) >= error
    told = torch.where(right, labels, 1 - labels)
    probs = torch.where(told[:, None] == torch.arange(2), sure[:, None], 1 - sure[:, None])
    return probs, labels


def calibrated(trained: TrainedModel, probs: Tensor, labels: Tensor) -> TrainedModel:
    return replace(trained, calibration=ClassCalibration(probs, labels))


def wrong_shares(graphs: tuple[Tensor, Tensor]) -> dict[float, float]:
    """Of many graphs, the share that is told a wrong class without being weak."""
    values = torch.tensor(SUFFICIENCIES)
    shares = wrong_answers(*graphs, values).double().mean(dim=0).tolist()
    return dict(zip(SUFFICIENCIES, shares, strict=True))


@pytest.mark.parametrize("graphs", [40, 300])
@pytest.mark.parametrize("confidence", [None, 0.9])
def test_the_promise_holds_for_new_graphs(
    trained: TrainedModel, graphs: int, confidence: float | None
) -> None:
    true = wrong_shares(predicted(200_000, seed=0))
    assert true[0.5] > 0.25, "there is something to promise"
    risks = []
    for seed in range(1, DRAWS):
        drawn = calibrated(trained, *predicted(graphs, seed))
        try:
            risks.append(true[tuned_model(drawn, Promise(0.1, confidence))[1]["sufficiency"]])
        except UserError:  # nothing is promised
            risks.append(0.0)
    found = torch.tensor(risks)
    if confidence is None:
        assert float(found.mean()) <= 0.1 + 3 * float(found.std()) / math.sqrt(DRAWS)
        assert float(found.mean()) >= (0.05 if graphs == 40 else 0.09), "and little is given away"
    else:
        exceeded = float((found > 0.1).double().mean())
        assert exceeded <= 0.1 + 3 * math.sqrt(0.1 * 0.9 / DRAWS)


def test_the_least_sufficiency_that_keeps_the_promise_is_taken(trained: TrainedModel) -> None:
    model = calibrated(trained, *predicted(400, seed=1))
    tuned, found = tuned_model(model, Promise(0.1))
    assert tuned.config.explanation.sufficiency == found["sufficiency"]
    assert found["observed_wrong"] <= 0.1
    assert found["graphs"] == 400
    weak = (model.calibration.probs.amax(dim=-1) < found["sufficiency"]).double().mean()
    assert found["answered"] == pytest.approx(1 - float(weak))
    lower = dict(pairwise(SUFFICIENCIES))[found["sufficiency"]]
    wrong = wrong_answers(*predicted(400, seed=1), torch.tensor([lower])).sum()
    assert (int(wrong) + 1) / 401 > 0.1, "a lower one does not"
    looser, surer = (
        tuned_model(model, each)[1]["sufficiency"] for each in (Promise(0.2), Promise(0.1, 0.95))
    )
    assert looser < found["sufficiency"] < surer
    assert tuned.calibration is model.calibration, "sets keep the whole calibration part"


def test_a_rare_class_is_not_the_price(trained: TrainedModel) -> None:
    """One graph in twenty is of a class that is wrong half of the time, however sure."""
    model = calibrated(trained, *predicted(2000, seed=2, rare=20))
    found = tuned_model(model, Promise(0.2))[1]
    assert tuned_model(model, Promise(0.2, per_class=True))[1]["sufficiency"] > found["sufficiency"]


@pytest.mark.parametrize(
    ("graphs", "promise", "told"),
    [
        (
            *(100, Promise(0.001)),
            r"at most 0.001 wrong takes 999 calibration graphs in all, and there are 100; the "
            r"least that these can promise is 0.010",
        ),
        (100, Promise(0.01, 0.9, per_class=True), r"takes 230 calibration graphs of a class, and"),
        (0, Promise(0.1), "takes 9 calibration graphs in all, and there are 0"),
    ],
)
def test_too_few_graphs_promise_nothing(
    trained: TrainedModel, graphs: int, promise: Promise, told: str
) -> None:
    with pytest.raises(UserError, match=told):
        tuned_model(calibrated(trained, *predicted(graphs, seed=1)), promise)


@pytest.mark.parametrize("asked", [(0.0,), (1.0,), (0.1, 1.0), (math.nan,)])
def test_a_promise_is_a_share(asked: tuple[float, ...]) -> None:
    with pytest.raises(UserError, match="must lie between 0 and 1, got"):
        Promise(*asked)


def test_where_sure_answers_are_wrong_nothing_is_promised(trained: TrainedModel) -> None:
    labels = torch.arange(100) % 2
    wrong = torch.eye(2)[1 - labels]
    with pytest.raises(UserError, match=r"no sufficiency keeps this promise: even at 0.99, 1.000"):
        tuned_model(calibrated(trained, wrong, labels), Promise(0.1))


def test_only_what_tells_the_class_can_be_promised(trained: TrainedModel) -> None:
    """Elsewhere graphs are weak by another view than the one that was calibrated."""
    model = calibrated(trained, *predicted(100, seed=1))
    with pytest.raises(UserError, match="needs other `parts`"):
        tuned_model(model.showing(parts="policy"), Promise(0.3))
    reward = replace(model.config.reward, max_pieces=1)
    connected = replace(model, config=replace(model.config, reward=reward))
    with pytest.raises(UserError, match=r"reward.max_pieces=0"):
        tuned_model(connected, Promise(0.3))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A short training on four hundred graphs, forty of which calibrate; and its metrics."""
    folder = tmp_path_factory.mktemp("runs")
    graphs, path = ba_motifs(num_graphs=400, seed=0), folder / "m.npz"
    names = ("x", "edge_index", "y", "node_ptr", "edge_ptr")
    np.savez(path, **{name: getattr(graphs, name).numpy() for name in names})
    config = RunConfig.from_settings(
        {
            "dataset": str(path),
            "network": {"hidden_dim": 8, "num_layers": 1},
            "training": {"epochs": 2},
            "ppo": {"env_steps": 8, "samples": 2},
            "committee": {"members": 2},
        }
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge, "EPOCHS", 1)
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        yield folder / "run", train_run(config, folder / "run", device="cpu")


def test_the_sufficiency_is_saved_with_the_run_and_its_metrics_are_measured_again(
    run: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    out, before = Path(shutil.copytree(run[0], tmp_path / "run")), run[1]
    found = tune_run(out, Promise(0.4), device="cpu")
    assert found.unmeasured is None
    assert found.promise["sufficiency"] != before["sufficiency"]
    assert found.promise["graphs"] == 40
    assert TrainedModel.load(out).config.explanation.sufficiency == found.promise["sufficiency"]
    assert json.loads((out / "promise.json").read_text()) == found.promise
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics == found.metrics
    assert metrics["promise"] == found.promise
    assert metrics["sufficiency"] == found.promise["sufficiency"]
    measured = evaluate_run(out, device="cpu")
    for name in ("accuracy", "node_ratio", "weak", "coverage", "set_size", "judge_accuracy"):
        assert metrics[name] == measured[name], name
    said = "Of all graphs, at most 40 % get a wrong class without being weak"
    assert (out / "README.md").read_text().count(said) == 1
    assert said not in (run[0] / "README.md").read_text()

    (out / "metrics.json").unlink()
    train_run(
        RunConfig.from_settings(json.loads((out / "config.json").read_text())["config"]),
        out,
        device="cpu",
        resume=True,
    )
    assert not (out / "promise.json").exists(), "no promise outlives its training"


def test_where_the_data_are_gone_metrics_say_of_which_sufficiency_they_are(
    run: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    out, before = Path(shutil.copytree(run[0], tmp_path / "run")), run[1]
    identity = json.loads((out / "config.json").read_text())
    (out / "config.json").write_text(json.dumps(identity | {"source": "/nowhere/m.npz"}))
    tuned = tune_run(out, Promise(0.4), device="cpu")
    assert "are no longer at /nowhere/m.npz" in (tuned.unmeasured or "")
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["accuracy"] == before["accuracy"]
    assert metrics["sufficiency"] == before["sufficiency"]
    assert metrics["promise"] == tuned.promise
    (mark,) = metrics["verdicts"]
    assert mark.startswith(f"Measured at a sufficiency of {before['sufficiency']}, before it was")
    card = (out / "README.md").read_text()
    assert f"- {mark}" in card
    assert "| train part |" in card, "what it says of the data stays"


def test_the_estimator_promises_too(run: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    model = Cores.load(run[0], device="cpu")
    assert model.tune(0.4) is model
    found = model.metrics_["promise"]
    assert (found["max_wrong"], found["per_class"], found["confidence"]) == (0.4, False, None)
    assert model.metrics_["accuracy"] == run[1]["accuracy"]
    assert model.metrics_["verdicts"][0].startswith("Measured at a sufficiency of")
    model.save(tmp_path / "saved")
    assert json.loads((tmp_path / "saved" / "promise.json").read_text()) == found
    loaded = Cores.load(tmp_path / "saved", device="cpu")
    assert loaded.metrics_["promise"] == found
    again = model.tune(0.45, confidence=np.float64(0.5), per_class=True).metrics_["promise"]
    assert (again["confidence"], again["per_class"]) == (0.5, True)
    with pytest.raises(UserError, match=r"`max_wrong` must lie between 0 and 1, got 1\.5"):
        model.tune(1.5)
