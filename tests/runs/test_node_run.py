"""Nodes of one graph, from training to records and explanations."""

import json
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from threading import Event

import pytest
import torch
from torch_geometric.data import Data

from cores import Cores, UserError
from cores.config import RunConfig
from cores.explain.run import explain_run
from cores.explain.survey import Conditions
from cores.runs.compare import compare
from cores.runs.curve import sufficiency_curve
from cores.runs.inputs import PredictOptions
from cores.runs.predict import predict_records
from cores.runs.run import evaluate_run, train_run
from cores.runs.runner import Outcome
from cores.serve.explorer import Asked, Explorer
from cores.serve.limits import Deadline

SMALL = {
    "network": {"hidden_dim": 8, "num_layers": 2},
    "ppo": {"env_steps": 32, "samples": 2},
    "training": {"epochs": 2},
    "committee": {"members": 2},
}


def ladder(rungs: int = 30, first: int = 0) -> Data:
    """Two paths with rungs between some of their nodes; a node with a rung has class 1.

    Nodes are numbered from ``first``: before them are as many that have no edge.
    """
    left = torch.arange(rungs)
    held = left[left % 3 == 0]
    ends = torch.cat(
        [
            torch.stack([left[:-1], left[1:]]),
            torch.stack([left[:-1], left[1:]]) + rungs,
            torch.stack([held, held + rungs]),
        ],
        dim=1,
    )
    y = torch.zeros(2 * rungs + first, dtype=torch.int64)
    y[torch.cat([held, held + rungs]) + first] = 1
    ends = torch.cat([ends, ends.flip(0)], dim=1) + first
    return Data(x=torch.ones(len(y), 1), edge_index=ends, y=y)


@pytest.fixture(scope="module")
def graph_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nodes") / "graph.pt"
    torch.save(ladder(), path)
    return path


@pytest.fixture(scope="module", params=["cores-node", "cores-edge"])
def run(
    request: pytest.FixtureRequest, graph_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    out = tmp_path_factory.mktemp("runs") / request.param
    settings = {"dataset": str(graph_file), "model": request.param, **SMALL}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cores.training.judge.EPOCHS", 2)
        patch.setattr("cores.training.judge.FEWEST_EPOCHS", 2)
        train_run(RunConfig.from_settings(settings), out, device="cpu")
    return out


def test_there_is_a_record_for_every_node(run: Path, graph_file: Path) -> None:
    chunks = predict_records(run, str(graph_file), PredictOptions(), device="cpu")
    records = [record for chunk, _ in chunks for record in chunk]
    assert [record["id"] for record in records] == [str(node) for node in range(60)]
    assert all(node in record["kept_nodes"] for node, record in enumerate(records))
    edges = {tuple(sorted(edge)) for edge in ladder().edge_index.t().tolist()}
    assert all(tuple(edge) in edges for record in records for edge in record["kept_edges"])
    assert {record["prediction"] for record in records} <= {0, 1}
    assert all(record["minimal"] and record["questions"] > 0 for record in records)
    for record in records:
        wanted = min(0.8, record["probability"])
        assert record["part_probability"] >= wanted - 1e-4


@pytest.mark.usefixtures("short_judge")
def test_the_run_is_measured_again(run: Path, graph_file: Path) -> None:
    metrics = evaluate_run(run, device="cpu", explanations=True)
    named = evaluate_run(run, dataset=str(graph_file), device="cpu")
    saved = json.loads((run / "metrics.json").read_text())
    assert metrics["accuracy"] == named["accuracy"] == saved["accuracy"]
    assert named["test_graphs"] == 6  # not those that it was trained on
    assert metrics["comprehensiveness"] is not None


def test_nodes_are_explained(run: Path, graph_file: Path, tmp_path: Path) -> None:
    for source, out in ((None, "own.jsonl"), (str(graph_file), "all.jsonl")):
        explain_run(run, source, tmp_path / out, Conditions(), PredictOptions(), device="cpu")
        first = json.loads((tmp_path / out).read_text().splitlines()[0])
        assert int(first["id"]) in [node["node"] for node in first["nodes"] if node["kept"]]
    path, _ = explain_run(
        run, None, tmp_path / "page.html", Conditions(), PredictOptions(), device="cpu"
    )
    assert path.read_text().count("<svg") > 0


def test_another_graph_is_predicted_alike_where_neighbourhoods_are_alike(run: Path) -> None:
    model = Cores.load(run, device="cpu")
    here, there = ladder(), ladder(first=5)  # no node has more neighbours than the fan-out
    known, new = model.predict_proba(here), model.predict_proba(there)
    torch.testing.assert_close(torch.tensor(new[5:]), torch.tensor(known), atol=1e-6, rtol=0)
    with pytest.raises(UserError, match="the model classifies nodes; give one graph"):
        model.predict([here])


@pytest.fixture
def short_judge() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cores.training.judge.EPOCHS", 2)
        patch.setattr("cores.training.judge.FEWEST_EPOCHS", 2)
        yield


@pytest.mark.usefixtures("short_judge")
def test_the_curve_is_of_the_nodes_of_the_test_part(run: Path) -> None:
    curve = sufficiency_curve(run, device="cpu")
    saved = json.loads((run / "metrics.json").read_text())
    own = next(point for point in curve.points if point["sufficiency"] == saved["sufficiency"])
    assert own["accuracy"] == saved["accuracy"]
    assert curve.test_graphs == 6


@pytest.mark.usefixtures("short_judge")
@pytest.mark.usefixtures("quick_workers")
def test_models_are_compared_on_nodes_and_those_of_whole_graphs_fail_with_a_line(
    graph_file: Path, tmp_path: Path
) -> None:
    ended: list[Outcome] = []
    models = ("gnn", "mlp", "random", "cores-both", "sagpool")
    rows = compare(
        str(graph_file),
        models,
        tmp_path,
        splits=(1,),
        settings=SMALL,
        device="cpu",
        done=ended.append,
    )
    assert [row["model"] for row in rows] == ["gnn", "mlp", "random", "cores-both"]
    assert {row["test_graphs"] for row in rows} == {"6"}
    (failed,) = [outcome.failure for outcome in ended if outcome.failure is not None]
    assert "sagpool classifies whole graphs" in str(failed)


def test_a_page_shows_the_nodes_of_the_test_part_and_takes_no_files(
    run: Path, tmp_path: Path
) -> None:
    explorer = Explorer(run, PredictOptions(), "cpu")
    found = explorer.of_test_part(0, 3, Asked(alpha=0.1))
    assert found.total == 6
    assert len(found.graphs) == 3
    for record in found.records:
        assert int(record["id"]) in record["kept_nodes"]
    (tmp_path / "graph.jsonl").write_text('{"nodes": [[1.0], [1.0]], "edges": [[0, 1]]}\n')
    with pytest.raises(UserError, match="the model classifies nodes of one graph, these are whole"):
        explorer.of_file(tmp_path / "graph.jsonl", Deadline(Event()), Asked())


@pytest.mark.parametrize("task", ["regression", "multilabel"])
def test_nodes_have_one_class_each(task: str, tmp_path: Path) -> None:
    torch.save(ladder(), tmp_path / "graph.pt")
    told = f'nodes are classified; leave task="{task}" out'
    for source in (ladder(), tmp_path / "graph.pt"):
        with pytest.raises(UserError, match=told):
            Cores(task=task, device="cpu", progress=False).fit(source)


def test_models_of_whole_graphs_refuse_nodes(graph_file: Path, tmp_path: Path) -> None:
    config = RunConfig.from_settings({"dataset": str(graph_file), "model": "diffpool"})
    with pytest.raises(UserError, match="diffpool classifies whole graphs"):
        train_run(config, tmp_path / "run", device="cpu")


def test_masks_divide_the_nodes_of_an_estimator() -> None:
    data = ladder()
    order = torch.randperm(60, generator=torch.Generator().manual_seed(0))
    for name, part in zip(
        ("train_mask", "val_mask", "test_mask"), order.split([40, 10, 10]), strict=True
    ):
        data[name] = torch.zeros(60, dtype=torch.bool)
        data[name][part] = True
    settings = {"network": SMALL["network"]}
    model = Cores(removal=None, epochs=2, device="cpu", progress=False, settings=settings)
    model.fit(data)
    assert model.metrics_["test_graphs"] == 10
    assert model.score(data) == pytest.approx(model.metrics_["accuracy"])
    assert len(model.predict(data)) == 60
    new = copy(data)
    del new.train_mask, new.val_mask
    assert model.score(new) == model.score(data), "only fitting needs the others"
