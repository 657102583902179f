"""The temperature of a committee: found again where it is known, and nobody's random numbers."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from cores.config import NetworkConfig, RunConfig
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.graphs.store import GraphStore
from cores.models.build import build_model
from cores.models.committee import Committee
from cores.models.sparse import SparseClassifier
from cores.training import temperature
from cores.training.temperature import TEMPERATURES, fit_temperature


def model_of(dims: Dims) -> SparseClassifier:
    torch.manual_seed(0)
    small = NetworkConfig(hidden_dim=8, num_layers=1)
    config = RunConfig.from_settings(
        {"model": "cores-node", "network": vars(small), "committee": {"members": 2}}
    )
    model = build_model(config, dims)
    assert isinstance(model, SparseClassifier)
    return model.eval()


def committee_of(model: SparseClassifier) -> Committee:
    assert isinstance(model.classifier, Committee)
    return model.classifier


def labelled(graphs: GraphStore, labels: Tensor) -> GraphStore:
    return replace(graphs, y=labels)


def says(model: SparseClassifier, monkeypatch: pytest.MonkeyPatch, logits: Tensor) -> None:
    """Every member gives these logits to the graphs, whatever is left of them."""
    committee = committee_of(model)
    monkeypatch.setattr(
        type(committee), "member_logits", lambda self, batch: torch.stack([logits, logits])
    )


@pytest.mark.parametrize("true", [0.5, 1.0, 2.0])
def test_a_known_temperature_is_found_again(true: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels are drawn from the distribution at that temperature."""
    monkeypatch.setattr(temperature, "evaluation_batch", lambda device: 4000)
    graphs = ba_motifs(num_graphs=4000, base_size=2, seed=0)
    model = model_of(Dims(10, 3))
    logits = 2 * torch.randn(4000, 3, generator=torch.Generator().manual_seed(1))
    torch.manual_seed(2)
    labels = (logits / true).softmax(-1).multinomial(1).squeeze(1)
    says(model, monkeypatch, logits)
    fit_temperature(model, labelled(graphs, labels), balanced=False)
    assert float(committee_of(model).temperature) == pytest.approx(true, rel=0.1)


def test_a_rare_class_counts_alike_where_classes_are_balanced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The members are right and unsure of the frequent class, and always wrong on the rare one."""
    graphs = ba_motifs(num_graphs=100, seed=0)
    labels = torch.tensor([0] * 95 + [1] * 5)
    model = model_of(Dims(10, 2))
    says(model, monkeypatch, torch.tensor([[1.0, 0.0]]).expand(100, 2))
    fit_temperature(model, labelled(graphs, labels), balanced=False)
    assert float(committee_of(model).temperature) < 1
    fit_temperature(model, labelled(graphs, labels), balanced=True)
    assert float(committee_of(model).temperature) == pytest.approx(float(TEMPERATURES[-1]))


def test_the_temperature_is_the_same_each_time_and_takes_no_random_numbers() -> None:
    graphs = ba_motifs(num_graphs=40, seed=0)
    model = model_of(Dims(10, 2))
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        fit_temperature(model, graphs, balanced=False)
        assert torch.equal(torch.get_rng_state(), before)
        found.append(float(committee_of(model).temperature))
    assert found[0] == found[1] != 1.0


def test_parts_count_beside_the_full_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs, sizes = ba_motifs(num_graphs=40, seed=0), []
    model = model_of(Dims(10, 2))
    asked = Committee.member_logits

    def member_logits(self: Committee, batch: Any) -> Tensor:
        sizes.append(len(batch.x) / len(graphs.x))
        return asked(self, batch)

    monkeypatch.setattr(Committee, "member_logits", member_logits)
    fit_temperature(model, graphs, balanced=False)
    assert sizes[0] == 1
    assert len(sizes) == 1 + temperature.MASKS
    assert all(0.3 < size < 0.8 for size in sizes[1:])


def test_where_there_is_nothing_to_measure_the_temperature_stays() -> None:
    graphs = ba_motifs(num_graphs=10, seed=0)
    model = model_of(Dims(10, 2))
    fit_temperature(model, graphs.subset(torch.arange(0)), balanced=False)
    assert float(committee_of(model).temperature) == 1
    numbers = model_of(Dims(10, 0, task="regression"))
    fit_temperature(numbers, labelled(graphs, torch.rand(10)), balanced=False)
    assert float(committee_of(numbers).temperature) == 1
    labels = model_of(Dims(10, 2, task="multilabel"))
    fit_temperature(labels, labelled(graphs, torch.full((10, 2), torch.nan)), balanced=False)
    assert float(committee_of(labels).temperature) == 1
