"""Several labels from file to records: trained, measured, predicted, explained, and refused."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import is_classifier

from cores import Cores, UserError, load_dataset
from cores.__main__ import main
from cores.config import RunConfig
from cores.data.inputs.columns import ColumnNames
from cores.explain.run import explain_run
from cores.explain.survey import Conditions
from cores.models.sparse import SparseClassifier
from cores.runs.curve import curve_lines, sufficiency_curve
from cores.runs.inputs import PredictOptions
from cores.runs.predict import predict_file
from cores.runs.run import evaluate_run, train_run
from cores.runs.trained import TrainedModel

pytestmark = pytest.mark.usefixtures("short_judges")
SMALL = {
    "network": {"hidden_dim": 8, "num_layers": 1},
    "ppo": {"env_steps": 8, "samples": 2},
}
NAMES = ("oxygen", "long")
COLUMNS = ColumnNames(label="oxygen,long")


def smiles_of(number: int) -> str:
    return "C" * (1 + number % 9) + "O" * (number % 4 // 2)


def labels_of(number: int) -> tuple[int, str]:
    return int(number % 4 // 2 > 0), "yes" if number % 9 > 3 else "no"


def known_of(number: int) -> list[Any]:
    """With a third of the values missing, and all of one row."""
    drawn = random.Random(number)
    return [
        value if drawn.random() > 1 / 3 and number != 5 else None for value in labels_of(number)
    ]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("labels") / "labels.csv"
    cells = [["" if value is None else value for value in known_of(at)] for at in range(180)]
    rows = [f"m{at},{smiles_of(at)},{row[0]},{row[1]}" for at, row in enumerate(cells)]
    path.write_text("\n".join(["id,smiles,oxygen,long", *rows]) + "\n")
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
    train_run(config_of(table, "gnn", 30), out, device="cpu", columns=COLUMNS)
    return out


@pytest.fixture(scope="module")
def cores_run(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("committee") / "run"
    train_run(config_of(table, "cores-node", 6), out, device="cpu", columns=COLUMNS)
    return out


def metrics_of(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "metrics.json").read_text())
    return found


def test_several_columns_are_several_labels(table: Path) -> None:
    dataset = load_dataset(table, columns=COLUMNS)
    assert dataset.task == "multilabel"
    assert dataset.class_names == NAMES
    assert dataset.labels == ((0, 1), ("no", "yes"))
    numbered = [at for at in range(180) if known_of(at) != [None, None]]
    assert dataset.ids == tuple(f"m{at}" for at in numbered)
    expected = [
        [np.nan if value is None else float(value in (1, "yes")) for value in known_of(at)]
        for at in numbered
    ]
    assert np.array_equal(dataset.graphs.y.numpy(), np.array(expected), equal_nan=True)
    assert "line 7 (m5): has no label" in str(dataset.unusable)
    one = load_dataset(table, columns=ColumnNames(label="long"), task="multilabel")
    assert one.class_names == ("long",)
    with pytest.raises(UserError, match=r"has no column 'wide' \(`label_column`\)"):
        load_dataset(table, columns=ColumnNames(label="oxygen,wide"))
    with pytest.raises(UserError, match='several labels per graph are for task="multilabel"'):
        load_dataset(table, columns=COLUMNS, task="classification")
    with pytest.raises(UserError, match="needs names that differ"):
        load_dataset(table, columns=ColumnNames(label="long,long"))


def test_other_files_have_them_too(table: Path, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    rows = [dict(zip(NAMES, known_of(at), strict=True)) for at in range(40)]
    molecules = [{"smiles": smiles_of(at)} | row for at, row in enumerate(rows)]
    parquet.write_table(pa.Table.from_pylist(molecules), tmp_path / "m.parquet")
    expected = load_dataset(table, columns=COLUMNS)[
        : sum(any(row.values()) or 0 in row.values() for row in rows)
    ]
    found = load_dataset(tmp_path / "m.parquet", columns=COLUMNS)
    assert found.smiles == expected.smiles
    assert torch.equal(found.graphs.y.nan_to_num(9), expected.graphs.y.nan_to_num(9))
    for name, lines, columns in (
        ("fields", [{"nodes": 2, **row} for row in rows], COLUMNS),
        ("object", [{"nodes": 2, "label": row} for row in rows], None),
        ("list", [{"nodes": 2, "label": [*row.values()]} for row in rows], None),
    ):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("\n".join(map(json.dumps, lines)))
        graphs = load_dataset(path, columns=columns, task="multilabel").graphs
        assert torch.equal(graphs.y.nan_to_num(9), expected.graphs.y.nan_to_num(9)), name


def test_a_plain_network_learns_all_labels(plain: Path) -> None:
    metrics = metrics_of(plain)
    assert metrics["roc_auc"] > 0.9
    assert set(metrics["label_roc_auc"]) == {*NAMES}
    assert metrics["roc_auc"] == pytest.approx(sum(metrics["label_roc_auc"].values()) / 2)
    assert metrics["full_roc_auc"] == metrics["roc_auc"]
    assert metrics["judge_roc_auc"] is None
    assert metrics["coverage"] == pytest.approx(sum(metrics["label_coverage"].values()) / 2)
    assert metrics["verdicts"][0].startswith("Mean ROC-AUC of 2 labels")
    card = (plain / "README.md").read_text()
    assert "| label, known of | graphs |" in card
    assert "| oxygen | 1" in card


def test_measured_again_and_loaded_it_is_the_same(plain: Path, table: Path) -> None:
    names = ("roc_auc", "label_roc_auc", "average_precision", "coverage", "set_size")
    known = {name: metrics_of(plain)[name] for name in names}
    for dataset in (None, str(table)):
        again = evaluate_run(plain, dataset=dataset, device="cpu")
        assert {name: again[name] for name in names} == known
    estimator = Cores.load(plain, device="cpu")
    smiles = [smiles_of(at) for at in range(40)]
    assert is_classifier(estimator)
    assert estimator.label_names_ == NAMES
    assert [each.tolist() for each in estimator.classes_] == [[0, 1], ["no", "yes"]]
    predicted, probs = estimator.predict(smiles), estimator.predict_proba(smiles)
    assert predicted.shape == probs.shape == (40, 2)
    assert predicted[:, 1].tolist() == ["yes" if prob > 0.5 else "no" for prob in probs[:, 1]]
    truth = [labels_of(at) for at in range(40)]
    score = estimator.score(smiles, truth)
    right = [
        str(a) == str(b)
        for x, y in zip(predicted, truth, strict=True)
        for a, b in zip(x, y, strict=True)
    ]
    assert score == pytest.approx(np.mean(right))
    assert score > 0.8
    with pytest.raises(UserError, match="has maybe for the label long, the model knows no and yes"):
        estimator.score(smiles[:1], [[1, "maybe"]])
    # By their names they may come in any order, and a name that the model does not know is told.
    named = [dict(zip(reversed(NAMES), reversed(row), strict=True)) for row in truth]
    assert estimator.score(smiles, named) == score
    with pytest.raises(UserError, match="`y` has the label 'Oxygen'; did you mean oxygen"):
        estimator.score(smiles, [{"Oxygen": row[0], "long": row[1]} for row in truth])
    with pytest.raises(UserError, match="`y` holds no known value"):
        estimator.score(smiles[:2], [[None, None]] * 2)


def test_a_loaded_estimator_remembers_the_columns_of_its_training(
    plain: Path, table: Path, tmp_path: Path
) -> None:
    loaded = Cores.load(plain, device="cpu")
    with pytest.warns(UserWarning, match="15 rows could not be used: .* has no label"):
        accuracy = loaded.score(table)  # its labels are in columns that no name tells
    assert accuracy == loaded.score(load_dataset(table, columns=COLUMNS))
    loaded.save(tmp_path / "again")
    with pytest.warns(UserWarning, match="15 rows could not be used"):
        assert Cores.load(tmp_path / "again", device="cpu").score(table) == accuracy
    assert (
        evaluate_run(tmp_path / "again", dataset=str(table), device="cpu")["accuracy"] == accuracy
    )


def test_records_have_a_probability_and_a_set_of_every_label(
    cores_run: Path, table: Path, tmp_path: Path
) -> None:
    predict_file(cores_run, str(table), tmp_path / "p.jsonl", PredictOptions(), device="cpu")
    records = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert len(records) == 180
    assert list(records[0]) == [
        *("id", "prediction", "probabilities", "prediction_set", "kept_nodes", "kept_edges"),
        *("node_ratio", "edge_ratio", "pieces"),
        *("part_probability", "minimal", "weak", "questions", "committee_std"),
        *("kept_smiles", "error"),
    ]
    for record in records:
        sides = [max(prob, 1 - prob) for prob in record["probabilities"].values()]
        assert record["weak"] == (min(sides) < 0.8), "all labels have to be sure"
        assert record["part_probability"] >= min(0.8, *sides) - 1e-4
        for name, values in zip(NAMES, ((0, 1), ("no", "yes")), strict=True):
            assert record["prediction"][name] == values[record["probabilities"][name] > 0.5]
            assert {*record["prediction_set"][name]} <= {*values}
    predict_file(cores_run, str(table), tmp_path / "p.parquet", PredictOptions(), device="cpu")
    import pyarrow.parquet as parquet

    columns = parquet.read_table(tmp_path / "p.parquet").to_pydict()
    for field in ("prediction", "probabilities", "prediction_set"):
        assert columns[field] == [record[field] for record in records]
    options = PredictOptions(score="aps", per_class=True)
    predict_file(cores_run, str(table), tmp_path / "p.csv", options, device="cpu")


def test_the_report_shows_every_label(cores_run: Path, tmp_path: Path) -> None:
    page, survey = explain_run(
        cores_run, None, tmp_path / "r.html", Conditions(), PredictOptions(), device="cpu"
    )
    text = page.read_text()
    assert survey.graphs == metrics_of(cores_run)["test_graphs"]
    assert survey.right + survey.wrong == survey.graphs
    assert text.count("<dt>oxygen</dt>") == survey.graphs
    assert "; true: yes" in text
    explain_run(cores_run, None, tmp_path / "r.jsonl", Conditions(), PredictOptions(), device="cpu")
    lines = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert {*lines[0]["prediction"]} == {*NAMES}


def test_the_curve_is_measured_by_the_ranking(cores_run: Path, plain: Path) -> None:
    curve = sufficiency_curve(cores_run, plain=plain, device="cpu")
    assert {point["sufficiency"] for point in curve.points} >= {0.5, 0.8}
    assert all(0 <= point["roc_auc"] <= 1 for point in curve.points)  # type: ignore[operator]
    assert curve.full_accuracy is not None
    head, lines = curve_lines(curve)
    assert head[1] == "ROC-AUC"
    assert len(lines) == len(curve.points)
    history = (cores_run / "history.jsonl").read_text().splitlines()
    assert "selection_roc_auc" in json.loads(history[-1])


def test_the_estimator_from_lists() -> None:
    smiles = [smiles_of(at) for at in range(60)]
    truth = np.array([[float(o), float(long == "yes")] for o, long in map(labels_of, range(60))])
    truth[::3, 0] = np.nan
    truth[7] = np.nan  # it contributes nothing
    model = Cores(task="multilabel", epochs=2, judge=False, progress=False, settings=SMALL)
    model.fit(smiles, truth)
    assert model.label_names_ == ("label 0", "label 1")
    assert model.predict(smiles[:5]).dtype == np.int64
    sets = model.predict_set(smiles[:5], alpha=0.5)
    assert [len(row) for row in sets] == [2] * 5
    explanation = model.explain(smiles[:1], alpha=0.5)[0]
    assert explanation.prediction == model.predict(smiles[:1])[0].tolist()
    assert explanation.prediction_set == sets[0]
    assert explanation.probabilities == pytest.approx(model.predict_proba(smiles[:1])[0])
    sides = np.maximum(explanation.probabilities, 1 - explanation.probabilities)
    assert explanation.weak == (sides.min() < 0.8)
    with pytest.raises(UserError, match="predict_interval is for numbers"):
        model.predict_interval(smiles)
    again = Cores(
        removal=None,
        task="multilabel",
        epochs=2,
        progress=False,
        settings={"network": SMALL["network"]},
    )
    again.fit(smiles[:40], truth[:40], validation=(smiles[40:], truth[40:]))
    assert again.metrics_["test_graphs"] > 0


def test_all_predicted_sides_are_as_sure_from_the_part(cores_run: Path) -> None:
    trained = TrainedModel.load(cores_run).showing(0.51)
    dataset = load_dataset(trained.config.dataset, columns=COLUMNS)
    found = trained.model.predict(dataset.graphs.batch(torch.arange(20)))
    assert isinstance(trained.model, SparseClassifier)
    alone = trained.model.classifier.logits(found.subgraph.batch).sigmoid()
    told = torch.where(found.probs > 0.5, found.probs, 1 - found.probs).amin(dim=-1)
    from_part = torch.where(found.probs > 0.5, alone, 1 - alone).amin(dim=-1)
    assert (from_part >= told.clamp(max=0.51) - 1e-4).all()
    assert found.part is not None
    assert torch.allclose(found.part.probability, from_part, atol=1e-5)


def test_models_are_compared_by_the_ranking(table: Path, compared: Callable[..., str]) -> None:
    drawn = compared(
        ["--dataset", str(table), "--label-column", "oxygen,long"],
        "multilabel",
        ("ROC-AUC", "accuracy"),
        ("roc_auc", "judge_roc_auc", "node_ratio", "coverage"),
    )
    assert "ROC-AUC, %" in drawn


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("tune", "RUN", "--max-wrong", "0.1"), "`cores tune` is for classes"),
        (("export", "RUN"), "`cores export` is for classes"),
        (("evaluate", "RUN", "--explanations"), "--explanations is for classes"),
        (("explain", "RUN", "--class", "oxygen"), "--class is for classes"),
        (
            ("compare", "DATA", "--models", "gnn,gsat", "--out", "OUT"),
            "gsat knows classes alone; models for a multilabel task: gnn",
        ),
        (("search", "DATA", "--trials", "1", "--out", "OUT"), "is for classes"),
        (("train", "DATA", "--folds", "3", "--out", "OUT"), "--folds is for classes"),
        (("train", "DATA", "--pictures", "3", "--out", "OUT"), "--pictures is for"),
        (("train", "DATA", "--model", "gsat", "--out", "OUT"), "models for a multilabel task"),
        (("train", "DATA", "--class-weights", "--out", "OUT"), "is for classes"),
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
    data = ["--dataset", str(table), "--label-column", "oxygen,long"]
    names = {"RUN": [str(run)], "DATA": data, "OUT": [str(tmp_path / "out")]}
    assert main([each for name in arguments for each in names.get(name, [name])]) == 2
    (line,) = [
        line for line in capsys.readouterr().err.splitlines() if not line.startswith("note: ")
    ]
    assert told in line
