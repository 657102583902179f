"""An exported model decides as the trained one does, and the page on it runs as printed."""

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import jaxtyping
import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn

from cores.config import RunConfig
from cores.config.policy import SETTINGS
from cores.data.dataset import Dims
from cores.data.encoding import Encoding
from cores.errors import ProgramError, UserError
from cores.models.build import build_model
from cores.models.sparse import SparseClassifier
from cores.runs import export
from cores.runs.export import TOLERANCE, export_run, max_difference, random_batch, tensor_model
from cores.runs.folder import write_identity
from cores.runs.trained import DataSchema, DialCalibration, TrainedModel
from cores.tasks.calibration import ClassCalibration

pytestmark = pytest.mark.usefixtures("unchecked")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "serve.md"
SCHEMA = DataSchema(
    *(("C", "N", "O", "size"), ("single", "double"), ("no", "yes"), (0, 1), "none"),
    Encoding.of_columns(4, 2),
)


def untrained(model: str, conv: str, edge_features: bool = False, **settings: Any) -> TrainedModel:
    """A small model whose policy removes about half of what it sees."""
    network = {"hidden_dim": 8, "num_layers": 1, "edge_features": edge_features}
    config = RunConfig.from_settings(
        {"dataset": "motifs", "model": model, "conv": conv, "network": network, **settings}
    )
    torch.manual_seed(0)
    built = build_model(config, Dims(4, 2, 2)).eval()
    if isinstance(built, SparseClassifier):
        for name in {"node_head", "edge_head"} & set(dict(built.policy.named_children())):
            nn.init.normal_(getattr(built.policy, name).weight, std=3)
            nn.init.zeros_(getattr(built.policy, name).bias)
    probs, labels = torch.rand(40, 2).softmax(dim=-1), torch.arange(40) % 2
    dial = None
    if isinstance(built, SparseClassifier) and config.reward.dial:
        everywhere = probs.repeat(len(SETTINGS), 1, 1), torch.ones(len(SETTINGS), 40)
        dial = DialCalibration(*everywhere, probs, labels, torch.arange(0))
    calibration = ClassCalibration(probs, labels)
    return TrainedModel(config, SCHEMA, built, calibration, torch.arange(0), dial)


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
    """A run of cores-node with its exported model."""
    run = saved(untrained("cores-node", "gin"), tmp_path_factory.mktemp("runs") / "run")
    export_run(run)
    return run


@pytest.mark.parametrize(
    ("model", "conv", "edge_features"),
    [("cores-edge", "gcn", True), ("cores-both", "gat", False)],
)
def test_the_file_decides_as_the_model(
    model: str, conv: str, edge_features: bool, tmp_path: Path
) -> None:
    trained = untrained(model, conv, edge_features)
    exported = export_run(saved(trained, tmp_path / "run"), tmp_path / "new" / "mine.onnx")
    assert exported.inputs == ("x", "edge_index", "batch", "edge_attr")[: 3 + edge_features]
    assert exported.max_difference <= TOLERANCE
    content = (tmp_path / "new" / "mine.onnx").read_bytes()
    assert len(content) == exported.bytes
    others = [random_batch(trained, sizes, seed=7) for sizes in ((1,), (2, 1, 40), (9,) * 12)]
    assert max_difference(content, tensor_model(trained), others) <= TOLERANCE


def test_a_model_with_a_dial_is_exported_at_its_setting(tmp_path: Path) -> None:
    trained = untrained("cores-node", "gin", reward={"dial": True})
    assert isinstance(trained.model, SparseClassifier)
    trained.model.policy.node_head.weight.data[0, -1] = -20  # the column of lambda
    trained = replace(trained, model=trained.model.at(0.35))
    run = saved(trained, tmp_path / "run")
    assert export_run(run).max_difference <= TOLERANCE
    content = (run / "model.onnx").read_bytes()
    known = {entry.key: entry.value for entry in onnx.load(run / "model.onnx").metadata_props}
    assert json.loads(known["lam"]) == 0.35
    elsewhere = replace(trained, model=trained.model.at(0.9))
    batches = [random_batch(trained, (9,) * 12, seed=7)]
    assert max_difference(content, tensor_model(trained), batches) <= TOLERANCE
    assert max_difference(content, tensor_model(elsewhere), batches) > 0.1


def test_removal_is_in_the_file_and_leaves_something_of_every_graph(node_run: Path) -> None:
    session = onnxruntime.InferenceSession(node_run / "model.onnx")
    batch = random_batch(TrainedModel.load(node_run), (1, 1, 7, 20), seed=3)
    names = [output.name for output in session.get_outputs()]
    outputs = session.run(None, {name: value.numpy() for name, value in batch.items()})
    found = dict(zip(names, outputs, strict=True))
    owner, kept = batch["batch"].numpy(), found["node_kept"]
    assert not kept.all()
    assert set(owner[kept]) == set(owner)
    ends = batch["edge_index"].numpy()
    np.testing.assert_array_equal(found["edge_kept"], kept[ends].all(axis=0))

    changed = batch["x"].numpy().copy()
    changed[~kept] += 1e-3  # too little to change a decision
    fed = {name: value.numpy() for name, value in batch.items()} | {"x": changed}
    again = session.run(None, fed)
    np.testing.assert_array_equal(again[names.index("node_kept")], kept)
    np.testing.assert_array_equal(again[names.index("probs")], found["probs"])


def test_the_file_names_its_columns_and_calibrates_its_sets(node_run: Path) -> None:
    properties = onnx.load(node_run / "model.onnx").metadata_props
    known = {entry.key: json.loads(entry.value) for entry in properties}
    assert known["feature_names"] == ["C", "N", "O", "size"]
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
    content = (node_run / "model.onnx").read_bytes()
    assert not max_difference(content, tensor_model(trained), [batch]) <= TOLERANCE


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
    proto = onnx.load(node_run / "model.onnx")
    monkeypatch.setattr(export, "traced", lambda *_: proto)
    trained = untrained("cores-node", "gin")
    head = trained.model.get_submodule("classifier.head")
    assert isinstance(head, nn.Linear)
    nn.init.constant_(head.weight, 0.5)
    run = saved(trained, tmp_path / "run")
    with pytest.raises(ProgramError, match="differs from that of"):
        export_run(run)
    assert not (run / "model.onnx").exists()


def test_without_onnx_the_error_names_the_extra(
    node_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "find_spec", lambda _: None)
    with pytest.raises(UserError, match=r"pip install 'cores-gnn\[onnx\]'"):
        export_run(node_run)


def test_the_example_on_the_page_runs(
    node_run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(node_run.parent)
    page = PAGE.read_text().replace("runs/mutag", node_run.name)
    (code,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    exec(code, {})
    assert capsys.readouterr().out.count("\n") == 2
