"""The seconds of an epoch's parts on a dataset."""

import pytest
import torch

from cores.config import RunConfig
from cores.data.dataset import Dataset
from cores.data.synthetic import ba_motifs
from cores.errors import UserError
from cores_paper import speed
from cores_paper.speed import dataset_benchmark

CPU = torch.device("cpu")


def dataset() -> Dataset:
    graphs = ba_motifs(num_graphs=60, base_size=6, seed=0)
    return Dataset("motifs", graphs, ("house", "cycle"), tuple(map(str, range(10))))


def config(model: str = "cores-edge") -> RunConfig:
    settings = {"model": model, "network": {"hidden_dim": 8, "num_layers": 2}}
    return RunConfig.from_settings(settings)


def test_every_part_has_its_seconds_and_ratios_are_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    imports = {"import_seconds": 3.0, "import_torch_seconds": 2.0}
    monkeypatch.setattr(speed, "_import_seconds", lambda repeats: imports)
    found = dataset_benchmark(dataset(), config(), CPU, repeats=1)
    assert all(value > 0 for value in found.values())
    policy_epoch = sum(
        found[f"{part}_seconds"] for part in ("rollouts", "policy_updates", "selection")
    )
    plain = found["supervised_epoch_seconds"]
    assert found["policy_epoch_ratio"] == pytest.approx(policy_epoch / plain)
    classifiers = found["classifiers_epoch_seconds"]
    assert found["classifiers_epoch_ratio"] == pytest.approx(classifiers / plain)
    assert found["import_ratio"] == 1.5
    for size in (1, 32, 256):
        ratio = found[f"inference_{size}_seconds"] / found[f"classifier_inference_{size}_seconds"]
        assert found[f"inference_ratio_{size}"] == pytest.approx(ratio)


def test_imports_are_timed_in_processes_of_their_own() -> None:
    found = speed._import_seconds(1)
    assert 0 < found["import_torch_seconds"] < found["import_seconds"]


def test_a_model_without_a_policy_is_refused() -> None:
    with pytest.raises(UserError, match="gnn has no policy"):
        dataset_benchmark(dataset(), config("gnn"), CPU)
    with pytest.raises(UserError, match="must be positive"):
        dataset_benchmark(dataset(), config(), CPU, repeats=0)
