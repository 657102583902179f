"""The model card says what a folder holds, and nothing in the data can break it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cores import Cores
from cores.config import RunConfig
from cores.data.datasets import load_dataset
from cores.data.encoding import Encoding
from cores.data.molecules import ATOM_COLUMNS
from cores.runs import card as cards
from cores.runs.card import MARK, MOST_NAMES, DataFacts, escaped, write_card
from cores.runs.run import train_run
from cores.runs.trained import DataSchema

FACTS = DataFacts("toy.zip", [8, 4], {"train": 9, "test": 3}, {"graphs": "12", "classes": "2"})


def schema(
    nodes: tuple[str, ...] = ("carbon", "weight"),
    edges: tuple[str, ...] = (),
    classes: tuple[str, ...] = ("no", "yes"),
) -> DataSchema:
    encoding = Encoding.of_columns(len(nodes), len(edges))
    return DataSchema(nodes, edges, classes, tuple(range(len(classes))), "", encoding)


SCHEMA = schema()


def model_card(
    config: RunConfig,
    metrics: dict[str, Any],
    facts: DataFacts | None,
    schema: DataSchema = SCHEMA,
    **options: Any,
) -> str:
    return cards.model_card(config, schema, metrics, facts, **options)


METRICS: dict[str, Any] = {
    "accuracy": 0.98765,
    "judge_accuracy": 0.9,
    "node_auc": None,
    "verdicts": ["Accuracy 0.99 from 31 % of the nodes."],
}

UNJUDGED = {"judge_accuracy": None}


def small(dataset: Path | str) -> RunConfig:
    network = {"hidden_dim": 8, "num_layers": 1}
    training = {"epochs": 2}
    return RunConfig.from_settings(
        {"dataset": str(dataset), "model": "gnn", "network": network, "training": training}
    )


def test_a_card_holds_data_metrics_verdicts_settings_and_versions() -> None:
    config = RunConfig.from_settings({"seed": 3, "training": {"epochs": 12}})
    card = model_card(config, METRICS, FACTS)
    for line in (
        "# CORES nodes on toy.zip",
        "- Accuracy 0.99 from 31 % of the nodes.",
        "| accuracy | 0.988 | share of test graphs classified correctly |",
        "| graphs | 12 |",
        "| yes | 4 |",
        "| node features | 2: carbon, weight |",
        "| test part | 3 graphs |",
        "| seed | 3 | 0 |",
        "| training.epochs | 12 | 270 |",
        'model = Cores.load("FOLDER")',
    ):
        assert line in card.splitlines(), line
    assert "node_auc" not in card
    assert "cores predict FOLDER INPUT" in card
    assert "the judge, a classifier that never saw this model" in card
    assert "No judge has checked" in model_card(config, METRICS | UNJUDGED, FACTS)
    assert "judge" not in model_card(RunConfig(model="gnn"), METRICS | UNJUDGED, FACTS)
    whole, alone = "prediction is made from the whole graph", "nothing but the part that the policy"
    part = RunConfig.from_settings({"explanation": {"class_from": "part"}})
    for text, said, unsaid in (
        (model_card(RunConfig(), METRICS, FACTS), whole, alone),
        (model_card(part, METRICS, FACTS), alone, whole),
    ):
        assert said in text
        assert unsaid not in text
    for each in (whole, alone):
        assert each not in model_card(RunConfig(model="sagpool"), METRICS, FACTS)


def test_prediction_sets_are_promised_where_there_was_a_calibration_part() -> None:
    """A split column may give one that the settings do not, so its graphs are counted."""
    none = "There was no calibration part"
    without = RunConfig.from_settings({"parts": {"calibration": 0.0}})
    given = replace(FACTS, parts=FACTS.parts | {"calibration": 2})
    assert none not in model_card(without, METRICS, given)
    assert none in model_card(RunConfig(), METRICS, FACTS)
    assert none in model_card(RunConfig(), METRICS | {"coverage": None}, None)
    assert none not in model_card(without, METRICS | {"coverage": 0.9}, None)
    assert none in model_card(without, METRICS, None)
    assert none not in model_card(RunConfig(), METRICS, None)


def test_a_card_of_molecules_speaks_of_smiles() -> None:
    card = model_card(RunConfig(), METRICS, FACTS, schema(ATOM_COLUMNS))
    assert "From Python, on SMILES:" in card
    assert "model.predict(smiles)" in card
    assert "for new molecules" in card
    card = model_card(RunConfig(), METRICS, FACTS)
    assert "SMILES" not in card
    assert "model.predict(graphs)" in card


def test_edge_features_are_used_or_not() -> None:
    bonds = schema((), ("bond",))
    assert "| edge features | 1, used: bond |" in model_card(RunConfig(), METRICS, FACTS, bonds)
    unused = RunConfig.from_settings({"network": {"edge_features": False}})
    assert "| edge features | 1, not used: bond |" in model_card(unused, METRICS, FACTS, bonds)


@pytest.mark.parametrize(
    "name",
    ["a|b", "**bold**", "two\nlines\r\n## head", "`code`", "<script>", "[x](y)", "a\u2028b", "\\|"],
)
def test_names_from_data_are_text_and_nothing_else(name: str) -> None:

    def card(name: str) -> str:
        facts = DataFacts(name, [8], {"train": 8}, {})
        return model_card(RunConfig(), METRICS, facts, schema((name,), (name,), (name,)))

    lines, plain = card(name).splitlines(), card("x")
    assert len(lines) == len(plain.splitlines()), "no line more"
    assert f"| {escaped(name)} | 8 |" in lines
    bare = escaped(name).replace("\\\\", "")
    for mark in "|*`<[":
        assert bare.count(mark) == bare.count(f"\\{mark}"), mark


def test_a_card_of_many_classes_stays_short() -> None:
    facts = DataFacts("many", [2] * 1000, {"train": 2000}, {})
    names = tuple(f"c{number}" for number in range(1000))
    card = model_card(RunConfig(), METRICS, facts, schema(("f" * 500,) * 999, (), names))
    assert f"| {1000 - MOST_NAMES} more | {2 * (1000 - MOST_NAMES)} |" in card
    assert len(card) < 10_000


def test_a_run_folder_has_a_card_without_paths_and_one_without_still_loads(
    tmp_path: Path, tu_folder: Path
) -> None:
    run = tmp_path / "run"
    metrics = train_run(small(tu_folder), run, device="cpu")
    card = (run / "README.md").read_text()
    assert card.startswith(MARK)
    assert f"# GNN on {tu_folder.name}" in card
    assert str(tmp_path) not in card
    assert metrics["verdicts"]
    assert all(line in card for line in metrics["verdicts"])
    assert train_run(small(tu_folder), run, device="cpu", resume=True) == metrics
    (run / "README.md").unlink()
    Cores.load(run).save(tmp_path / "again")
    again = (tmp_path / "again" / "README.md").read_text()
    where = ", `cores evaluate FOLDER` to measure it again"
    assert again == card.replace(where, "") != card, "the model alone does not say where data are"
    config = run / "config.json"
    for damaged in (None, [], {"name": "x", "class_counts": 3, "parts": {}, "labels": {}}):
        config.write_text(json.dumps(json.loads(config.read_text()) | {"data": damaged}))
        out = tmp_path / f"saved {damaged}"
        Cores.load(run).save(out)
        assert "## Data" not in (out / "README.md").read_text()


def test_a_readme_of_the_users_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("my notes")
    write_card(tmp_path, model_card(RunConfig(), METRICS, FACTS))
    assert (tmp_path / "README.md").read_text() == "my notes"
    (tmp_path / "README.md").write_text(f"{MARK}\nof a run that was killed\n")
    write_card(tmp_path, model_card(RunConfig(), METRICS, FACTS))
    assert "toy.zip" in (tmp_path / "README.md").read_text()


def test_an_estimator_saves_a_card(tmp_path: Path) -> None:
    model = Cores(removal=None, epochs=1, progress=False, judge=False)
    model.fit(load_dataset("motifs")[:60]).save(tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text()
    assert "| graphs | 60 |" in card
    assert "## What was measured\n\n- " in card
