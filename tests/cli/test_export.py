"""`cores export` as a user meets it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import jaxtyping
import pytest

Ask = Callable[..., tuple[int, str, str]]
SMALL = ["--epochs", "1", "--network.hidden_dim", "8", "--network.num_layers", "1"]


@pytest.fixture(autouse=True)
def unchecked() -> Iterator[None]:
    """Sizes are symbols while a model is traced, which the checks of shapes do not know."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def test_train_then_export(ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, copy = tmp_path / "run", tmp_path / "copy"
    assert ask("train", "--dataset", "motifs", "--model", "gnn", *SMALL, "--out", run)[0] == 0
    status, out, err = ask("export", run, "--json")
    assert (status, err) == (0, "")
    (exported,) = json.loads(out)["files"]
    assert exported["file"] == str(run / "committee.onnx")
    assert exported["bytes"] == (run / "committee.onnx").stat().st_size
    assert exported["max_difference"] <= 1e-5

    import onnx

    from cores.runs import export

    monkeypatch.setattr(export, "traced", lambda *_: onnx.load(run / "committee.onnx"))
    status, out, _ = ask("export", run, "--format", "onnx", "--out", copy)
    assert status == 0
    assert out.startswith(f"file: {copy / 'committee.onnx'} (")
    assert "outputs: log_probs" in out
    assert (copy / "committee.onnx").exists()


def test_a_folder_without_a_run_is_told_in_one_line(ask: Ask, tmp_path: Path) -> None:
    status, out, err = ask("export", tmp_path)
    assert (status, out) == (2, "")
    assert err == f"cores: {tmp_path} holds no run: config.json is missing\n"
