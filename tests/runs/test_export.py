"""Exported files say what the trained model says, and the example on them cuts."""

import json
import runpy
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jaxtyping
import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn
from torch_geometric.data import Batch, Data

from cores.config import RunConfig
from cores.data.dataset import Dims
from cores.data.encoding import Encoding
from cores.errors import ProgramError, UserError
from cores.models.build import build_model
from cores.models.committee import Committee
from cores.models.sparse import SparseClassifier
from cores.runs import export
from cores.runs.export import TOLERANCE, export_run, max_difference, parts_of, random_batch
from cores.runs.folder import write_identity
from cores.runs.trained import DataSchema, TrainedModel
from cores.tasks.calibration import ClassCalibration

pytestmark = pytest.mark.usefixtures("unchecked")
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "onnx_cut.py"
BOTH = "committee.onnx", "policy.onnx"
SCHEMA = DataSchema(
    *(("C", "N", "O", "size"), ("single", "double"), ("no", "yes"), (0, 1), "none"),
    Encoding.of_columns(4, 2),
)


def untrained(model: str, conv: str, edge_features: bool = False, **settings: Any) -> TrainedModel:
    """A small model whose policy removes about half of what it sees."""
    small = {} if model in ("gnn", "mlp", "sagpool") else {"committee": {"members": 2}}
    network = {"hidden_dim": 8, "num_layers": 1, "edge_features": edge_features}
    config = RunConfig.from_settings(
        {"dataset": "motifs", "model": model, "conv": conv, "network": network} | small | settings
    )
    torch.manual_seed(0)
    built = build_model(config, Dims(4, 2, 2)).eval()
    if isinstance(built, SparseClassifier):
        for name in {"node_head", "edge_head"} & set(dict(built.policy.named_children())):
            nn.init.normal_(getattr(built.policy, name).weight, std=3)
            nn.init.zeros_(getattr(built.policy, name).bias)
        assert isinstance(built.classifier, Committee)
        built.classifier.temperature.fill_(1.7)
    probs, labels = torch.rand(40, 2).softmax(dim=-1), torch.arange(40) % 2
    calibration = ClassCalibration(probs, labels)
    return TrainedModel(config, SCHEMA, built, calibration, torch.arange(0))


def saved(trained: TrainedModel, run: Path) -> Path:
    run.mkdir()
    write_identity(run, trained.config, asdict(trained.schema), torch.device("cpu"))
    trained.save(run)
    return run


@pytest.fixture(scope="module", autouse=True)
def unchecked() -> Iterator[None]:
    """Sizes are symbols while a model is traced, which the checks of shapes do not know."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="module")
def node_run(tmp_path_factory: pytest.TempPathFactory, unchecked: None) -> Path:
    """A run of cores-node with its exported files."""
    run = saved(untrained("cores-node", "gin"), tmp_path_factory.mktemp("runs") / "run")
    export_run(run)
    return run


@pytest.mark.parametrize(
    ("model", "conv", "edge_features"),
    [("cores-edge", "gcn", True), ("cores-both", "gat", False)],
)
def test_the_files_say_what_the_model_says(
    model: str, conv: str, edge_features: bool, tmp_path: Path
) -> None:
    trained = untrained(model, conv, edge_features)
    exported = export_run(saved(trained, tmp_path / "run"), tmp_path / "new")
    functions = parts_of(trained)
    assert [Path(file.file).name for file in exported] == list(functions) == list(BOTH)
    others = [random_batch(trained, sizes, seed=7) for sizes in ((1,), (2, 1, 40), (9,) * 12)]
    for file, function in zip(exported, functions.values(), strict=True):
        assert file.inputs == ("x", "edge_index", "batch", "edge_attr")[: 3 + edge_features]
        assert file.max_difference <= TOLERANCE
        content = Path(file.file).read_bytes()
        assert len(content) == file.bytes
        assert max_difference(content, function, others) <= TOLERANCE


def outputs_of(path: Path, batch: dict[str, torch.Tensor]) -> dict[str, Any]:
    session = onnxruntime.InferenceSession(path)
    names = [output.name for output in session.get_outputs()]
    outputs = session.run(None, {name: value.numpy() for name, value in batch.items()})
    return dict(zip(names, outputs, strict=True))


def test_the_committee_gives_the_logarithm_of_its_mean_at_its_temperature(node_run: Path) -> None:
    trained = TrainedModel.load(node_run)
    batch = random_batch(trained, (1, 1, 7, 20), seed=3)
    found = outputs_of(node_run / "committee.onnx", batch)["log_probs"]
    graphs = Batch(**batch, ptr=torch.tensor([0, 1, 2, 9, 29]))
    members = trained.model.get_submodule("classifier.members")
    with torch.no_grad():
        mean = torch.stack([each.logits(graphs).softmax(dim=-1) for each in members]).mean(dim=0)
    expected = (mean.log() / 1.7).log_softmax(dim=-1)
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-5)


def test_the_policy_leaves_something_of_every_graph(node_run: Path) -> None:
    batch = random_batch(TrainedModel.load(node_run), (1, 1, 7, 20), seed=3)
    found = outputs_of(node_run / "policy.onnx", batch)
    owner, kept = batch["batch"].numpy(), found["node_kept"]
    assert not kept.all()
    assert set(owner[kept]) == set(owner)
    ends = batch["edge_index"].numpy()
    np.testing.assert_array_equal(found["edge_kept"], kept[ends].all(axis=0))
    large = owner >= 2
    np.testing.assert_array_equal(kept[large], found["node_score"][large] >= 0.5)


def test_the_file_names_its_columns_and_calibrates_its_sets(node_run: Path) -> None:
    for name in BOTH:
        properties = onnx.load(node_run / name).metadata_props
        known = {entry.key: json.loads(entry.value) for entry in properties}
        assert known["feature_names"] == ["C", "N", "O", "size"]
        assert (known["sufficiency"], known["class_from"]) == (0.8, "whole")
    assert known["class_names"] == ["no", "yes"]
    trained = TrainedModel.load(node_run)
    probs = torch.rand(100, 2).softmax(dim=-1)
    sets = trained.calibration.sets(probs, known["alpha"], trained.config.sets)
    np.testing.assert_array_equal(1 - probs.numpy() <= known["q_hat"], sets.numpy())


def test_a_run_without_calibration_part_has_no_quantile() -> None:
    trained = untrained("gnn", "gin").without_calibration()
    assert "q_hat" not in export.metadata(trained)


def test_an_infinite_quantile_is_one_at_which_sets_hold_every_class() -> None:
    trained = untrained("gnn", "gin", alpha=0.01, sets={"per_class": True})
    assert json.loads(export.metadata(trained)["q_hat"]) == [1.0, 1.0]


def test_a_number_that_is_none_is_no_agreement(node_run: Path) -> None:
    trained = TrainedModel.load(node_run)
    batch = random_batch(trained, (4,), seed=0)
    batch["x"][0] = torch.nan
    content = (node_run / "committee.onnx").read_bytes()
    function = parts_of(trained)["committee.onnx"]
    assert not max_difference(content, function, [batch]) <= TOLERANCE


@pytest.mark.parametrize("model", ["sagpool", "mlp"])
def test_other_models_are_refused(model: str, tmp_path: Path) -> None:
    run = saved(untrained(model, "gin"), tmp_path / "run")
    with pytest.raises(UserError, match=f"{model}.*; cores-node, cores-edge, cores-both and gnn"):
        export_run(run)


def test_a_model_that_is_connected_is_refused(tmp_path: Path) -> None:
    run = saved(untrained("cores-node", "gin", reward={"max_pieces": 1}), tmp_path / "run")
    with pytest.raises(UserError, match=r"reward\.max_pieces"):
        export_run(run)


def test_a_layer_that_cannot_be_traced_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a guard on data")

    monkeypatch.setattr(export, "traced", fail)
    run = saved(untrained("gnn", "gat"), tmp_path / "run")
    with pytest.raises(UserError, match="conv 'gat' cannot be exported"):
        export_run(run)


def test_a_file_that_disagrees_is_not_written(
    node_run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    proto = onnx.load(node_run / "committee.onnx")
    monkeypatch.setattr(export, "traced", lambda *_: proto)
    trained = untrained("gnn", "gin")
    head = trained.model.get_submodule("head")
    assert isinstance(head, nn.Linear)
    nn.init.constant_(head.weight, 0.5)
    run = saved(trained, tmp_path / "run")
    with pytest.raises(ProgramError, match="an exported file differs from the model of"):
        export_run(run)
    assert not list(run.glob("*.onnx"))


def test_without_onnx_the_error_names_the_extra(
    node_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "find_spec", lambda _: None)
    with pytest.raises(UserError, match=r"pip install 'cores-gnn\[onnx\]'"):
        export_run(node_run)


def test_a_plain_network_has_no_policy(tmp_path: Path) -> None:
    (exported,) = export_run(saved(untrained("gnn", "gin"), tmp_path / "run"))
    assert Path(exported.file).name == "committee.onnx"


def test_the_example_cuts(
    node_run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", [str(EXAMPLE), str(node_run)])
    found = runpy.run_path(str(EXAMPLE))
    part, order, probs = found["part"], found["order"], found["probs"]
    predicted, wanted = probs[-1].argmax(), min(0.8, probs[-1].max())
    sure = [row.argmax() == predicted and row[predicted] >= wanted for row in probs]
    assert sure.index(True) == len(part) - 1
    trained = TrainedModel.load(node_run)
    seen = np.sort(part)
    inside = found["edges"][:, np.isin(found["edges"], seen).all(axis=0)]
    graph = Data(
        x=torch.from_numpy(found["x"][seen]),
        edge_index=torch.from_numpy(np.searchsorted(seen, inside)),
    )
    assert isinstance(trained.model, SparseClassifier)
    with torch.no_grad():
        asked = trained.model.classifier(graph).softmax(dim=-1)
    np.testing.assert_allclose(asked[0], probs[len(part) - 1], atol=1e-5)
    assert capsys.readouterr().out.count("\n") == 1
    assert set(part) <= set(order)
