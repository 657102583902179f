"""A trained model at several sufficiencies: its parts change, and nothing else does."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from cores import load_dataset
from cores.data.splits import split_dataset
from cores.errors import UserError
from cores.evaluation.predictions import Predictions, predict
from cores.graphs.store import GraphStore
from cores.runs import predict as prediction
from cores.runs.curve import SUFFICIENCIES, curve_lines, sufficiency_curve
from cores.runs.inputs import PredictOptions
from cores.runs.opened import Run
from cores.runs.predict import predict_file
from cores.runs.run import evaluate_run
from cores.runs.trained import TrainedModel

CPU = {"device": "cpu"}


@pytest.fixture(scope="module")
def trained(drawn_run: Path) -> TrainedModel:
    return TrainedModel.load(drawn_run)


@pytest.fixture(scope="module")
def test_part(trained: TrainedModel) -> GraphStore:
    """Test graphs."""
    data, config = load_dataset("motifs"), trained.config
    return data.graphs.subset(split_dataset(data, config.split, config.parts).test)


def facts(found: Predictions) -> Any:
    assert found.part is not None
    return found.part


def test_a_surer_part_is_larger_and_says_the_same(
    trained: TrainedModel, test_part: GraphStore
) -> None:
    found = {value: predict(trained.showing(value).model, test_part) for value in (0.5, 0.8, 0.95)}
    kept = [float(each.node_ratio.mean()) for each in found.values()]
    assert kept[0] < kept[1] < kept[2]
    weak = [int(facts(each).weak.sum()) for each in found.values()]
    assert weak[0] < weak[1] < weak[2]
    for value, each in found.items():
        assert torch.equal(each.probs, found[0.5].probs)
        strong = ~facts(each).weak
        assert bool((facts(each).probability[strong] >= value - 1e-5).all())
        whole = each.probs.amax(dim=-1)
        assert bool((facts(each).probability >= whole.clamp(max=value) - 1e-5).all())


def test_a_model_with_other_sets_is_the_same_but_for_what_was_named(trained: TrainedModel) -> None:
    config = trained.config
    assert trained.showing() is trained
    assert trained.with_sets(None, None, None).config == config
    other = trained.with_sets(0.3, "aps", True)
    assert (other.config.alpha, other.config.sets.score) == (0.3, "aps")
    assert other.config.sets.per_class
    assert other.model is trained.model
    assert trained.with_sets(None, "aps", None).config.alpha == config.alpha


@pytest.mark.parametrize("sufficiency", [0.49, 1.0, float("nan")])
def test_a_sufficiency_is_a_probability_that_one_class_alone_can_have(
    trained: TrainedModel, sufficiency: float
) -> None:
    with pytest.raises(UserError, match=r"`sufficiency` must lie in \[0.5, 1\), got"):
        trained.showing(sufficiency)


@pytest.fixture
def graphs_file(tmp_path: Path, test_part: GraphStore) -> Path:
    """Twenty test graphs as JSON lines."""
    lines = []
    for at in range(20):
        graph = test_part.graph(at)
        pairs = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]].T.tolist()
        lines.append(json.dumps({"nodes": graph.x.tolist(), "edges": pairs}))
    (tmp_path / "new.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path / "new.jsonl"


def test_a_prediction_goes_on_at_its_own_sufficiency_alone(
    drawn_run: Path, graphs_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prediction, "CHUNK", 8)
    whole, own = tmp_path / "whole.csv", PredictOptions(sufficiency=0.7)
    predict_file(drawn_run, str(graphs_file), whole, own, **CPU)
    real, calls = Run.records, iter(range(3))

    def once(self: Run, rows: Any) -> Any:
        if next(calls) == 1:
            raise KeyboardInterrupt
        return real(self, rows)

    job = drawn_run, str(graphs_file), tmp_path / "o.csv"
    monkeypatch.setattr(Run, "records", once)
    with pytest.raises(KeyboardInterrupt):
        predict_file(*job, own, **CPU)
    monkeypatch.setattr(Run, "records", real)
    for other in (PredictOptions(sufficiency=0.75), PredictOptions(sufficiency=0.7, parts="cut")):
        with pytest.raises(UserError, match="holds pieces of another prediction"):
            predict_file(*job, other, **CPU)
    predict_file(*job, own, **CPU)
    assert (tmp_path / "o.csv").read_bytes() == whole.read_bytes()


@pytest.mark.usefixtures("short_judge")
def test_metrics_are_those_of_the_sufficiency(drawn_run: Path) -> None:
    sparse, usual = (
        evaluate_run(drawn_run, PredictOptions(sufficiency=value), **CPU) for value in (0.6, None)
    )
    assert (sparse["sufficiency"], usual["sufficiency"]) == (0.6, 0.8)
    assert sparse["node_ratio"] < usual["node_ratio"]
    assert sparse["weak"] < usual["weak"]
    assert sparse["accuracy"] == usual["accuracy"] == usual["full_accuracy"]


@pytest.mark.usefixtures("short_judge")
def test_a_curve_has_the_metrics_of_every_sufficiency(drawn_run: Path) -> None:
    seen: list[int] = []
    curve = sufficiency_curve(drawn_run, device="cpu", advance=seen.append)
    assert [point["sufficiency"] for point in curve.points] == [*SUFFICIENCIES]
    assert len(seen) == len(SUFFICIENCIES)
    kept, weak = ([point[name] or 0 for point in curve.points] for name in ("kept_ratio", "weak"))
    assert weak == sorted(weak)
    assert kept[0] < kept[3] < kept[-1]
    (own,) = (point for point in curve.points if point["sufficiency"] == curve.sufficiency)
    measured = evaluate_run(drawn_run, **CPU)
    for name in ("accuracy", "judge_accuracy", "judge_random_accuracy", "weak", "minimal"):
        assert own[name] == measured[name], name
    assert (own["coverage"], own["set_size"]) == (measured["coverage"], measured["set_size"])
    assert own["kept_ratio"] == pytest.approx(measured["node_ratio"])
    assert curve.full_accuracy == measured["full_accuracy"]
    assert curve.plain_accuracy is None
    head, lines = curve_lines(curve)
    assert {len(line) for line in lines} == {len(head)}
    assert {"kept", "weak"} <= set(head)
    assert [line[0] for line in lines if "*" in line[0]] == ["0.80 *"]


def test_a_curve_needs_a_committee_and_a_plain_network_to_compare_with(
    drawn_run: Path, molecule_file: Path, train_tiny: Any
) -> None:
    with pytest.raises(UserError, match="gnn shows no parts; train cores-node"):
        sufficiency_curve(train_tiny(molecule_file, "gnn"), **CPU)
    with pytest.raises(UserError, match="`plain` names a cores-node; it must be one that keeps"):
        sufficiency_curve(drawn_run, plain=drawn_run, **CPU)
