"""A regression from file to records: trained, measured, predicted, explained, and refused."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import is_regressor

from cores import Cores, UserError, load_dataset
from cores.__main__ import main
from cores.config import RunConfig
from cores.evaluation.predictions import predict
from cores.explain.run import explain_run
from cores.explain.survey import Conditions
from cores.models.sparse import SparseClassifier
from cores.runs.curve import sufficiency_curve
from cores.runs.inputs import PredictOptions
from cores.runs.predict import predict_file
from cores.runs.run import evaluate_run, train_run
from cores.runs.trained import TrainedModel
from cores.training import bilevel
from cores.training.rollouts import usual_error

pytestmark = pytest.mark.usefixtures("short_judges")
SMALL = {
    "network": {"hidden_dim": 8, "num_layers": 1},
    "ppo": {"env_steps": 8, "samples": 2},
}
CARBON, OXYGEN = 12.011, 15.999


def smiles_of(number: int) -> str:
    return "C" * (1 + number % 9) + "O" * (number % 4)


def mass_of(number: int) -> float:
    """Of the heavy atoms."""
    return CARBON * (1 + number % 9) + OXYGEN * (number % 4)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("masses") / "masses.csv"
    rows = [f"m{number},{smiles_of(number)},{mass_of(number)}" for number in range(180)]
    path.write_text("\n".join(["id,smiles,target", *rows, "bad,CC,nan", "worse,CC,inf"]) + "\n")
    return path


def config_of(table: Path, model: str, epochs: int, **reward: Any) -> RunConfig:
    settings = {
        "dataset": str(table),
        "model": model,
        "training": {"epochs": epochs, "learning_rate": 0.01},
        "network": SMALL["network"],
    }
    if model.startswith("cores"):
        settings |= {"ppo": SMALL["ppo"], "committee": {"members": 2}, "reward": reward}
    return RunConfig.from_settings(settings)


@pytest.fixture(scope="module")
def plain(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("plain") / "run"
    train_run(config_of(table, "gnn", 40), out, device="cpu")
    return out


@pytest.fixture(scope="module")
def cores_run(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("committee") / "run"
    train_run(config_of(table, "cores-node", 4, tolerance=9.0), out, device="cpu")
    return out


def metrics_of(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "metrics.json").read_text())
    return found


def test_numbers_are_found_and_bad_ones_are_told_by_their_line(table: Path) -> None:
    dataset = load_dataset(table)
    assert dataset.task == "regression"
    assert len(dataset) == 180
    assert dataset.graphs.y[5] == pytest.approx(mass_of(5), rel=1e-6)
    assert dataset.unusable is not None
    told = str(dataset.unusable)
    assert "line 182 (bad): has no label" in told
    assert "line 183 (worse): has the label 'inf'; a regression needs finite numbers" in told
    with pytest.raises(UserError, match="line 182"):
        load_dataset(table, on_error="fail")


def test_text_is_no_target(tmp_path: Path) -> None:
    path = tmp_path / "toxic.csv"
    path.write_text("smiles,label\n" + "CC,toxic\nCCC,safe\n" * 10)
    with pytest.raises(UserError, match=r"line 2 .* has the label 'toxic'; a regression needs num"):
        load_dataset(path, task="regression")


def test_few_or_whole_numbers_are_targets_if_asked(tmp_path: Path) -> None:
    path = tmp_path / "counts.jsonl"
    lines = [{"nodes": 1 + number % 5, "edges": [], "label": number % 5} for number in range(30)]
    path.write_text("\n".join(map(json.dumps, lines)))
    assert load_dataset(path).task == "classification"
    assert load_dataset(path, task="regression").graphs.y.tolist() == [n % 5 for n in range(30)]
    with pytest.raises(UserError, match="motifs has classes"):
        load_dataset("motifs", task="regression")


def test_a_plain_network_learns_in_the_unit_of_the_targets(plain: Path) -> None:
    metrics = metrics_of(plain)
    assert metrics["mae"] < 0.2 * metrics["constant_mae"]
    assert metrics["r2"] > 0.9
    assert metrics["rmse"] >= metrics["mae"]
    assert metrics["node_ratio"] == 1.0
    assert metrics["full_mae"] == metrics["mae"]
    assert metrics["judge_mae"] is None
    assert 0.5 <= metrics["coverage"] <= 1.0
    assert "accuracy" not in metrics
    assert metrics["verdicts"][0].startswith("Mean error")


def test_measured_again_and_loaded_it_is_the_same(plain: Path, table: Path) -> None:
    again, metrics = evaluate_run(plain, device="cpu"), metrics_of(plain)
    assert {name: again[name] for name in ("mae", "r2", "coverage", "interval_width")} == {
        name: metrics[name] for name in ("mae", "r2", "coverage", "interval_width")
    }
    elsewhere = evaluate_run(plain, dataset=str(table), device="cpu")
    assert elsewhere["test_graphs"] == metrics["test_graphs"]
    estimator = Cores.load(plain, device="cpu")
    smiles = [smiles_of(number) for number in range(20)]
    masses = [mass_of(number) for number in range(20)]
    assert is_regressor(estimator)
    assert estimator.predict(smiles) == pytest.approx(masses, abs=8 * metrics["mae"])
    assert estimator.score(smiles, masses) > 0.9
    with pytest.raises(UserError, match="predict_proba is for classes"):
        estimator.predict_proba(smiles)
    with pytest.raises(UserError, match="predict_interval"):
        estimator.predict_set(smiles)


def test_an_interrupted_training_goes_on_to_the_same_numbers(
    table: Path, cores_run: Path, tmp_path: Path, killed: Callable[[Callable[[], object]], None]
) -> None:
    import os
    import signal

    config = config_of(table, "cores-node", 4, tolerance=9.0)

    def report(epoch: int, _: dict[str, float]) -> None:
        if epoch == 3:
            os.kill(os.getpid(), signal.SIGKILL)

    out = tmp_path / "run"
    killed(lambda: train_run(config, out, device="cpu", report=report))
    found = train_run(config, out, device="cpu", resume=True)
    known = metrics_of(cores_run)
    assert found | {"seconds": 0} == known | {"seconds": 0}


def test_the_tolerance_is_the_users_and_is_kept(cores_run: Path) -> None:
    metrics = metrics_of(cores_run)
    assert metrics["tolerance"] == 9.0
    assert metrics["judge_mae"] > 0
    model = TrainedModel.load(cores_run).model
    assert isinstance(model, SparseClassifier)
    assert float(model.classifier.head.tolerance) == 9.0


def test_without_one_the_members_tell_the_tolerance(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[float] = []

    def usual(members: Any, alpha: float) -> torch.Tensor:
        told.append(float(usual_error(members, alpha)))
        assert (len(members), alpha) == (2, 0.09)
        return torch.tensor(told[-1])

    monkeypatch.setattr(bilevel, "usual_error", usual)
    metrics = train_run(config_of(table, "cores-edge", 3), tmp_path / "r", device="cpu")
    (usual_one,) = told  # once, when the warm-up has ended
    assert metrics["tolerance"] == pytest.approx(1.5 * usual_one)
    history = (tmp_path / "r" / "history.jsonl").read_text().splitlines()
    assert "selection_mae" in json.loads(history[-1])


def test_records_have_a_number_and_an_interval(
    cores_run: Path, table: Path, tmp_path: Path
) -> None:
    for alpha, name in ((0.5, "half.jsonl"), (0.1, "most.jsonl")):
        options = PredictOptions(alpha=alpha)
        predict_file(cores_run, str(table), tmp_path / name, options, device="cpu")
    half, most = (
        [json.loads(line) for line in (tmp_path / name).read_text().splitlines()]
        for name in ("half.jsonl", "most.jsonl")
    )
    assert list(half[0]) == [
        *("id", "prediction", "lower", "upper", "kept_nodes", "kept_edges"),
        *("node_ratio", "edge_ratio", "pieces"),
        *("part_probability", "minimal", "weak", "questions", "committee_std"),
        *("kept_smiles", "error"),
    ]
    for record in half[:180]:  # the number from the part alone
        assert abs(record["part_probability"] - record["prediction"]) <= 9.0 + 1e-3
        assert not record["weak"]
    for narrow, wide in zip(half[:180], most[:180], strict=True):
        assert wide["lower"] < narrow["lower"] < narrow["prediction"] < narrow["upper"]
        assert narrow["upper"] < wide["upper"]
    predict_file(cores_run, str(table), tmp_path / "p.parquet", PredictOptions(), device="cpu")
    import pyarrow.parquet as parquet

    columns = parquet.read_table(tmp_path / "p.parquet").to_pydict()
    assert columns["prediction"][:180] == [record["prediction"] for record in most[:180]]
    assert columns["upper"][0] == most[0]["upper"]
    with pytest.raises(UserError, match="is for classes"):
        predict_file(cores_run, str(table), tmp_path / "x.csv", PredictOptions(score="aps"))


def test_the_report_shows_numbers_and_intervals(cores_run: Path, tmp_path: Path) -> None:
    page, survey = explain_run(
        cores_run, None, tmp_path / "r.html", Conditions(), PredictOptions(), device="cpu"
    )
    text = page.read_text()
    assert survey.graphs == metrics_of(cores_run)["test_graphs"]
    assert "<dt>interval</dt>" in text
    assert "probability " not in text.split('class="gallery"')[1].split("</ul>")[0]
    assert "a number" in text
    with pytest.raises(UserError, match="`errors` is for classes"):
        explain_run(cores_run, None, tmp_path / "e.html", Conditions(errors=True), PredictOptions())


def test_the_tolerance_is_the_dial(cores_run: Path) -> None:
    """A larger one keeps less; there is no sufficiency."""
    trained = TrainedModel.load(cores_run)
    graphs = load_dataset(trained.config.dataset).graphs.subset(torch.arange(60))
    kept = []
    for tolerance in (0.5, 9.0, 1e6):
        trained.model.get_submodule("classifier.members.0.head").tolerance.fill_(tolerance)
        kept.append(float(predict(trained.model, graphs).node_ratio.mean()))
    assert kept == sorted(kept, reverse=True)
    assert kept[0] > kept[-1]
    with pytest.raises(UserError, match="no curve"):
        sufficiency_curve(cores_run, device="cpu")
    with pytest.raises(UserError, match=r"within the tolerance.*leave `sufficiency` out"):
        trained.showing(sufficiency=0.7)
    assert trained.showing(parts="cut").config.explanation.parts == "cut"


def test_the_estimator_from_lists(table: Path) -> None:
    smiles = [smiles_of(number) for number in range(60)]
    masses = np.array([mass_of(number) for number in range(60)])
    model = Cores(task="regression", epochs=2, judge=False, progress=False, settings=SMALL)
    assert is_regressor(model)
    model.fit(smiles, masses)
    found = model.predict_interval(smiles[:5], alpha=0.5)
    assert found.shape == (5, 2)
    predicted = model.predict(smiles[:5])
    assert ((found[:, 0] < predicted) & (predicted < found[:, 1])).all()
    explanation = model.explain(smiles[:1], alpha=0.5)[0]
    assert explanation.prediction == pytest.approx(float(predicted[0]))
    assert explanation.interval == pytest.approx(tuple(found[0].tolist()))
    assert explanation.correct is None
    with pytest.raises(UserError, match="`task` is one of"):
        Cores(task="ranking").fit(smiles, masses)


def test_a_run_with_quantiles_from_file_to_records(table: Path, tmp_path: Path) -> None:
    base = config_of(table, "cores-node", 4, tolerance=9.0)
    config = replace(base, training=replace(base.training, quantiles=True))
    run = tmp_path / "run"
    metrics = train_run(config, run, device="cpu")
    again = evaluate_run(run, device="cpu")
    names = ("mae", "coverage", "interval_width")
    assert [again[name] for name in names] == [metrics[name] for name in names]
    trained = TrainedModel.load(run)
    assert trained.calibration.probs.shape[1] == 3
    predict_file(run, str(table), tmp_path / "p.jsonl", PredictOptions(alpha=0.3), device="cpu")
    records = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()][:180]
    assert all(each["lower"] <= each["prediction"] <= each["upper"] for each in records)
    widths = [each["upper"] - each["lower"] for each in records]
    assert max(widths) - min(widths) > 1e-3  # in the default they are equal
    estimator = Cores.load(run, device="cpu")
    smiles = [smiles_of(number) for number in range(8)]
    ends = estimator.predict_interval(smiles, alpha=0.3)
    assert ends[:, 0] == pytest.approx([each["lower"] for each in records[:8]], rel=1e-4, abs=1e-3)
    explained = estimator.explain(smiles, alpha=0.3)
    assert [each.prediction for each in explained] == pytest.approx(estimator.predict(smiles))
    assert explained[0].interval == pytest.approx(tuple(ends[0].tolist()))
    page, _ = explain_run(
        run, None, tmp_path / "r.html", Conditions(), PredictOptions(alpha=0.3), device="cpu"
    )
    assert "<dt>interval</dt>" in page.read_text()


def test_quantiles_are_refused_where_there_are_classes(tmp_path: Path) -> None:
    path = tmp_path / "toxic.csv"
    path.write_text("smiles,label\n" + "CC,toxic\nCCC,safe\n" * 15)
    config = RunConfig.from_settings(
        {"dataset": str(path), "model": "gnn", "training": {"quantiles": True}}
    )
    with pytest.raises(UserError, match=r"has classes; training\.quantiles is for numbers"):
        train_run(config, tmp_path / "run", device="cpu")


def test_the_number_of_a_part_is_within_the_tolerance(cores_run: Path) -> None:
    trained = TrainedModel.load(cores_run)
    dataset = load_dataset(trained.config.dataset)
    found = trained.model.predict(dataset.graphs.batch(torch.arange(20)))
    assert isinstance(trained.model, SparseClassifier)
    alone = trained.model.classifier.logits(found.subgraph.batch)[:, 0]
    assert ((alone - found.probs[:, 0]).abs() <= 9.0 + 1e-3).all()
    assert found.part is not None
    assert torch.allclose(found.part.probability, alone, atol=1e-3)


def test_models_are_compared_by_their_errors(table: Path, compared: Callable[..., str]) -> None:
    drawn = compared(
        ["--dataset", str(table)],
        "regression",
        ("MAE", "R2"),
        ("mae", "judge_mae", "node_ratio", "coverage"),
    )
    assert "MAE; lower is better" in drawn


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("tune", "RUN", "--max-wrong", "0.1"), "`cores tune` is for classes"),
        (("export", "RUN"), "`cores export` is for classes"),
        (("evaluate", "RUN", "--explanations"), "--explanations is for classes"),
        (("evaluate", "RUN", "--score", "aps"), "is for classes"),
        (("explain", "RUN", "--uncertain"), "--uncertain is for classes"),
        (
            ("compare", "--dataset", "DATA", "--models", "gnn,gsat", "--out", "OUT"),
            "gsat knows classes alone; models for a regression task: gnn",
        ),
        (("search", "--dataset", "DATA", "--trials", "1", "--out", "OUT"), "is for classes"),
        (("train", "--dataset", "DATA", "--folds", "3", "--out", "OUT"), "--folds is for classes"),
        (("train", "--dataset", "DATA", "--pictures", "3", "--out", "OUT"), "--pictures is for"),
        (("train", "--dataset", "DATA", "--model", "gsat", "--out", "OUT"), "models for a regres"),
        (("train", "--dataset", "DATA", "--class-weights", "--out", "OUT"), "is for classes"),
        (("train", "--dataset", "DATA", "--score", "aps", "--out", "OUT"), "is for classes"),
    ],
)
def test_what_is_for_classes_says_so_in_a_line(
    arguments: tuple[str, ...],
    told: str,
    cores_run: Path,
    table: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = Path(shutil.copytree(cores_run, tmp_path / "run"))
    names = {"RUN": str(run), "DATA": str(table), "OUT": str(tmp_path / "out")}
    assert main([names.get(each, each) for each in arguments]) == 2
    (line,) = [
        line for line in capsys.readouterr().err.splitlines() if not line.startswith("note: ")
    ]
    assert told in line
