"""A model with a dial after its training: every setting has predictions and sets of its own."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cores import Cores, load_dataset
from cores.config.policy import SETTINGS
from cores.data.splits import split_dataset
from cores.errors import UserError
from cores.evaluation.predictions import predict
from cores.graphs.store import GraphStore
from cores.models.sparse import SparseClassifier
from cores.runs import predict as prediction
from cores.runs.curve import curve_lines, dial_curve
from cores.runs.inputs import PredictOptions
from cores.runs.opened import Run
from cores.runs.predict import predict_file
from cores.runs.run import evaluate_run
from cores.runs.trained import TrainedModel
from cores.training.state import load_state, save_state

ONE_LAMBDA = "this model was trained for one lambda; train with reward.dial"
STEPS = r"`lam` goes from 0 to 1 in steps of 0.05, got"


@pytest.fixture(scope="module")
def trained(dial_run: Path) -> TrainedModel:
    return TrainedModel.load(dial_run)


@pytest.fixture(scope="module")
def parts(trained: TrainedModel) -> dict[str, GraphStore]:
    """Calibration and test graphs."""
    data, config = load_dataset("motifs"), trained.config
    split = split_dataset(data, config.split, config.parts)
    return {name: data.graphs.subset(getattr(split, name)) for name in ("calibration", "test")}


@pytest.fixture
def plain_run(molecule_run: Path) -> Path:
    """Without a dial."""
    return molecule_run


def network(trained: TrainedModel) -> SparseClassifier:
    assert isinstance(trained.model, SparseClassifier)
    return trained.model


@pytest.mark.parametrize("lam", [0.0, 0.3, 0.45, 1.0])
def test_sets_are_calibrated_where_the_dial_stands(
    trained: TrainedModel, parts: dict[str, GraphStore], lam: float
) -> None:
    asked = trained.at(lam)
    assert asked.lam == lam
    expected = predict(network(trained).at(lam), parts["calibration"]).probs
    assert torch.equal(asked.calibration.probs, expected)
    assert torch.equal(asked.calibration.labels, parts["calibration"].y)
    assert trained.lam == 0.5, "the model itself stays where it is"


def test_settings_differ_and_a_larger_one_keeps_more(
    trained: TrainedModel, parts: dict[str, GraphStore]
) -> None:
    kept = [
        float(predict(trained.at(lam).model, parts["test"]).node_ratio.mean())
        for lam in (0, 0.5, 1)
    ]
    assert kept == sorted(kept)
    assert kept[0] < kept[1] < kept[2]
    assert not torch.equal(trained.at(0).calibration.probs, trained.at(1).calibration.probs)


def test_the_setting_of_the_run_is_there_without_asking(trained: TrainedModel) -> None:
    assert trained.at(None) is trained
    assert trained.at(np.float32(0.5)) is trained
    assert trained.dial is not None
    assert torch.equal(trained.dial.probs[10], trained.calibration.probs)


def test_a_model_with_other_sets_is_the_same_but_for_what_was_named(trained: TrainedModel) -> None:
    config = trained.config
    assert trained.with_sets(None, None, None).config == config
    other = trained.with_sets(0.3, "aps", True)
    assert (other.config.alpha, other.config.sets.score) == (0.3, "aps")
    assert other.config.sets.per_class
    assert other.model is trained.model
    assert trained.with_sets(None, "aps", None).config.alpha == config.alpha


@pytest.mark.parametrize("lam", [0.33, -0.05, 1.05, float("nan"), "0.3"])
def test_only_settings_of_the_grid_can_be_asked_for(trained: TrainedModel, lam: Any) -> None:
    with pytest.raises(UserError, match=STEPS):
        trained.at(lam)


def test_a_model_without_a_dial_says_so_and_saves_no_more_than_before(plain_run: Path) -> None:
    plain = TrainedModel.load(plain_run)
    assert plain.lam is None
    with pytest.raises(UserError, match=ONE_LAMBDA):
        plain.at(0.3)
    state = load_state(plain_run / "model.safetensors")
    assert set(state["calibration"]) == {"probs", "labels"}
    assert "dial" not in state


def test_a_model_without_calibration_has_its_own_setting_alone(
    trained: TrainedModel, dial_run: Path
) -> None:
    old = replace(trained, dial=None)
    assert old.at(0.5) is old
    with pytest.raises(UserError, match="no prediction sets at other settings of its dial"):
        old.at(0.3)


@pytest.mark.parametrize(
    ("name", "damage", "reason"),
    [
        ("probs", lambda values: values[:3], "ValueError"),
        ("probs", lambda values: values / 0, "ValueError"),
        ("probs", lambda values: values.tolist(), "TypeError"),
        ("kept_ratio", lambda values: values[:, :2], "ValueError"),
        ("kept_ratio", lambda values: values.long(), "ValueError"),
        ("full_probs", lambda values: values[:2], "ValueError"),
        ("labels", lambda values: values + 9, "ValueError"),
        ("chosen_by", lambda values: torch.tensor([10_000]), "ValueError"),
        ("chosen_by", lambda values: torch.tensor([-1]), "ValueError"),
        ("chosen_by", lambda values: torch.tensor([0.5]), "ValueError"),
        ("chosen_by", lambda values: torch.tensor(0), "ValueError"),
    ],
)
def test_a_damaged_calibration_of_the_dial_is_refused(
    dial_run: Path, tmp_path: Path, name: str, damage: Any, reason: str
) -> None:
    run = Path(shutil.copytree(dial_run, tmp_path / "run"))
    state = load_state(run / "model.safetensors")
    state["dial"][name] = damage(state["dial"][name])
    save_state(run / "model.safetensors", state)
    with pytest.raises(UserError, match=rf"does not fit .*{reason}"):
        TrainedModel.load(run)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda it: replace(it, model=it.model.at(0.33)), "its dial stands at 0.33"),
        (lambda it: replace(it, model=it.model.at(float("nan"))), "its dial stands at nan"),
    ],
)
def test_a_damaged_dial_is_refused(
    trained: TrainedModel, dial_run: Path, tmp_path: Path, damage: Any, told: str
) -> None:
    run = Path(shutil.copytree(dial_run, tmp_path / "run"))
    damage(trained).save(run)
    with pytest.raises(UserError, match=told):
        TrainedModel.load(run)


@pytest.fixture
def graphs_file(tmp_path: Path, parts: dict[str, GraphStore]) -> Path:
    """Twenty test graphs as JSON lines."""
    lines = []
    for at in range(20):
        graph = parts["test"].graph(at)
        pairs = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]].T.tolist()
        lines.append(json.dumps({"nodes": graph.x.tolist(), "edges": pairs}))
    (tmp_path / "new.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path / "new.jsonl"


def test_a_record_tells_its_setting(dial_run: Path, graphs_file: Path, tmp_path: Path) -> None:
    shares = {}
    for lam in (None, 0.0, 1.0):
        out = tmp_path / f"{lam}.jsonl"
        predict_file(dial_run, str(graphs_file), out, PredictOptions(lam=lam), device="cpu")
        records = [json.loads(line) for line in out.read_text().splitlines()]
        assert {record["lam"] for record in records} == {0.5 if lam is None else lam}
        shares[lam] = sum(record["node_ratio"] for record in records)
    assert shares[0.0] < shares[None] < shares[1.0]
    out = tmp_path / "table.csv"
    predict_file(dial_run, str(graphs_file), out, PredictOptions(lam=0.3), device="cpu")
    head, first, *_ = out.read_text().splitlines()
    assert head.split(",")[-2:] == ["lam", "error"]
    assert first.endswith(",0.3,")


def test_a_prediction_goes_on_at_its_own_setting_alone(
    dial_run: Path, graphs_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prediction, "CHUNK", 8)
    whole = tmp_path / "whole.csv"
    predict_file(dial_run, str(graphs_file), whole, PredictOptions(lam=0.3), device="cpu")
    real, calls = Run.records, iter(range(3))

    def once(self: Run, rows: Any) -> Any:
        if next(calls) == 1:
            raise KeyboardInterrupt
        return real(self, rows)

    job = dial_run, str(graphs_file), tmp_path / "o.csv"
    monkeypatch.setattr(Run, "records", once)
    with pytest.raises(KeyboardInterrupt):
        predict_file(*job, PredictOptions(lam=0.3), device="cpu")
    monkeypatch.setattr(Run, "records", real)
    for lam in (0.35, None):
        with pytest.raises(UserError, match="holds pieces of another prediction"):
            predict_file(*job, PredictOptions(lam=lam), device="cpu")
    predict_file(*job, PredictOptions(lam=0.3), device="cpu")
    assert (tmp_path / "o.csv").read_bytes() == whole.read_bytes()


def test_without_a_dial_records_have_no_setting(plain_run: Path) -> None:
    assert "lam" not in Run.open(plain_run, PredictOptions(), device="cpu").fields
    with pytest.raises(UserError, match=ONE_LAMBDA):
        Run.open(plain_run, PredictOptions(lam=0.3), device="cpu")


@pytest.mark.usefixtures("short_judge")
def test_metrics_are_those_of_the_setting(dial_run: Path) -> None:
    usual, sparse = (
        evaluate_run(dial_run, PredictOptions(lam=lam), device="cpu") for lam in (None, 0.1)
    )
    assert (usual["lam"], sparse["lam"]) == (0.5, 0.1)
    assert sparse["node_ratio"] < usual["node_ratio"]
    assert sparse["full_accuracy"] == usual["full_accuracy"]


def test_the_estimator_is_asked_at_any_setting(
    dial_run: Path, parts: dict[str, GraphStore], trained: TrainedModel
) -> None:
    model = Cores.load(dial_run, device="cpu")
    test = parts["test"].subset(torch.arange(30))
    graphs = [test.graph(at) for at in range(30)]
    before = model.predict_proba(graphs)
    found = model.predict_proba(graphs, lam=0.1)
    np.testing.assert_allclose(found, predict(trained.at(0.1).model, test).probs, atol=1e-6)
    assert not np.allclose(found, before)
    named = model.classes_[found.argmax(axis=1)]
    np.testing.assert_array_equal(model.predict(graphs, lam=0.1), named)
    expected = trained.at(0.1).calibration.sets(torch.from_numpy(found), 0.3, trained.config.sets)
    inside = [
        [label in labels for label in model.classes_]
        for labels in model.predict_set(graphs, 0.3, lam=0.1)
    ]
    assert inside == expected.tolist()
    kept = [sum(int(e.node_mask.sum()) for e in model.explain(graphs, lam=lam)) for lam in (0, 1)]
    assert kept[0] < kept[1]
    labels = model.classes_[test.y.numpy()]
    assert model.score(graphs, labels, lam=0.1) == pytest.approx((named == labels).mean())
    np.testing.assert_array_equal(model.predict_proba(graphs), before)
    with pytest.raises(UserError, match=STEPS):
        model.predict(graphs, lam=0.33)


@pytest.mark.usefixtures("short_judge")
def test_a_curve_has_the_metrics_of_every_setting(dial_run: Path) -> None:
    seen: list[int] = []
    curve = dial_curve(dial_run, points=6, device="cpu", advance=seen.append)
    assert [point["lam"] for point in curve.points] == [0.0, 0.2, 0.4, 0.5, 0.6, 0.8, 1.0]
    assert len(seen) == 7
    kept = [point["kept_ratio"] for point in curve.points]
    assert kept == sorted(kept, key=lambda share: share or 0)
    (own,) = (point for point in curve.points if point["lam"] == curve.lam)
    measured = evaluate_run(dial_run, device="cpu")
    for name in ("accuracy", "balanced_accuracy", "judge_accuracy", "judge_random_accuracy"):
        assert own[name] == measured[name], name
    assert (own["coverage"], own["set_size"]) == (measured["coverage"], measured["set_size"])
    assert own["kept_ratio"] == pytest.approx(measured["node_ratio"])
    assert curve.full_accuracy == measured["full_accuracy"]
    assert curve.plain_accuracy is None
    head, lines = curve_lines(curve)
    assert len(lines) == 7
    assert [line[0].endswith("*") for line in lines] == [False, False, False, True, *[False] * 3]
    assert {len(line) for line in lines} == {len(head)}


def test_a_curve_needs_a_dial_and_a_number_of_settings_that_divides_it(
    dial_run: Path, plain_run: Path
) -> None:
    with pytest.raises(UserError, match=ONE_LAMBDA):
        dial_curve(plain_run, device="cpu")
    with pytest.raises(UserError, match="`settings` must be one of 2, 3, 5, 6, 11, 21, got 7"):
        dial_curve(dial_run, points=7, device="cpu")
    with pytest.raises(UserError, match="`plain` names a cores-node; it must be one that keeps"):
        dial_curve(dial_run, plain=dial_run, device="cpu")
    assert len(SETTINGS) == 21
