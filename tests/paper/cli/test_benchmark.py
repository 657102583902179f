"""`cores benchmark`: ratios, beside those of before, and the parts of an epoch on a dataset."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from cores.config import RunConfig
from cores.data.dataset import Dataset

Ask = Callable[..., tuple[int, str, str]]


def test_the_benchmark_refuses_a_gpu(ask: Ask) -> None:
    status, _, err = ask("benchmark", "--device", "cuda")
    assert status == 2
    assert "defined on one CPU thread" in err


def test_the_benchmark_tells_which_ratios_are_worse_than_in_a_file(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {"loader_ratio": 0.2, "inference_ratio_1": 2.0, "loader_seconds": 1e-9}
    now = {"loader_ratio": 0.3, "inference_ratio_1": 2.1, "loader_seconds": 1.0}
    monkeypatch.setattr("cores_paper.benchmark.benchmark", lambda repeats: now)
    path = tmp_path / "before.json"
    path.write_text(json.dumps(before))
    _, out, _ = ask("benchmark", "--json", "--compare", path)
    assert json.loads(out) == {**now, "slower": {"loader_ratio": 1.5}}
    _, out, err = ask("benchmark", "--compare", path)
    assert "before" in out
    assert "loader_ratio is 1.50 times what it was" in out + err
    path.write_text(json.dumps(now))
    _, out, err = ask("benchmark", "--compare", path)
    assert "no ratio is worse" in out + err
    for wrong in ("[]", "{}", '{"loader_ratio": "fast"}', '{"loader_ratio": 0}', '{"a": 1}'):
        path.write_text(wrong)
        status, _, err = ask("benchmark", "--compare", path)
        assert status == 2
        assert "before.json holds no ratios" in err
    status, _, err = ask("benchmark", "--compare", tmp_path / "none.json")
    assert status == 2
    assert "none.json" in err


def test_the_benchmark_gives_ratios_and_their_seconds(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cores_paper.benchmark.LARGE_BATCH", 4)
    _, out, _ = ask("benchmark", "--json", "--repeats", "1")
    figures = json.loads(out)
    ratio = figures["loader_seconds"] / figures["pyg_loader_seconds"]
    assert figures["loader_ratio"] == pytest.approx(ratio)
    assert figures["classifier_ratio"] > 0
    for parts in ("cut", "minimal"):
        slower = max(figures[f"{parts}_{removal}_seconds"] for removal in ("node", "edge"))
        ratio = slower / figures["one_classifier_seconds"]
        assert figures[f"{parts}_ratio"] == pytest.approx(ratio)
    assert 1 < figures["cut_questions"] < figures["questions"]


def test_the_benchmark_of_a_dataset_is_of_that_data_and_device(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of the user's is measured with the settings that it would be trained with."""
    seen: list[tuple[Any, ...]] = []

    def note(dataset: Dataset, config: RunConfig, device: torch.device, repeats: int) -> Any:
        seen.append((len(dataset), config.model, config.training.batch_size, device.type, repeats))
        return {"import_ratio": 1.5}

    monkeypatch.setattr("cores_paper.speed.dataset_benchmark", note)
    path = tmp_path / "mine.jsonl"
    lines = [
        {"nodes": ["C"] * 3, "edges": [[0, 1], [1, 2]], "label": number % 2}
        for number in range(2100)
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    _, out, _ = ask("benchmark", "--json", "--dataset", path, "--model", "cores-edge")
    assert json.loads(out) == {"import_ratio": 1.5}
    ask("benchmark", "--dataset", "motifs", "--repeats", "2", "--device", "cpu")
    assert seen == [(2100, "cores-edge", 128, "cpu", 15), (1000, "cores-node", 128, "cpu", 2)]
