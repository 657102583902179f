"""Conformalised quantile regression: intervals that are wider where a number is harder to tell."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from cores.config import NetworkConfig, RewardConfig, RunConfig, SetsConfig
from cores.data.dataset import Dims
from cores.models.build import build_model, network_dims
from cores.models.classifier import Classifier
from cores.runs.trained import uncalibrated
from cores.tasks import REGRESSION
from cores.tasks.calibration import ValueCalibration
from cores.tasks.regression import QuantileHead, ValueHead, pinball_losses

NUMBERS = Dims(num_features=2, num_classes=0, task="regression")
DIMS = replace(NUMBERS, quantile_alpha=0.2)
QUIET, NOISY = 0.2, 2.0


def noisy_batch(generator: torch.Generator, graphs: int) -> Batch:
    """Graphs of one node: its first number is the target's mean, its second tells the noise."""
    noisy = torch.arange(graphs) % 2
    means = torch.rand(graphs, generator=generator)
    noise = torch.randn(graphs, generator=generator) * torch.where(noisy == 1, NOISY, QUIET)
    x = torch.stack([means, noisy.float()], dim=-1)
    edges = torch.empty(2, 0, dtype=torch.long)
    every = zip(x, 50 + means + noise, strict=True)
    return Batch.from_data_list(
        [Data(x=row[None], edge_index=edges, y=y[None]) for row, y in every]
    )


def quantile_classifier() -> Classifier:
    torch.manual_seed(0)
    network = NetworkConfig(hidden_dim=8, num_layers=1, batch_norm=False)
    return Classifier(DIMS, network, "gin")


@pytest.fixture(scope="module")
def trained() -> Classifier:
    model, batch = quantile_classifier(), noisy_batch(torch.Generator().manual_seed(1), 1000)
    assert isinstance(model.head, QuantileHead)
    model.head.fit(batch.y, "squared")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(200):
        optimizer.zero_grad()
        model.loss(batch).backward()
        optimizer.step()
    return model.eval()


@torch.no_grad()
def outputs_of(model: Classifier, batch: Batch) -> Tensor:
    return model.outputs(model.logits(batch))


def test_quantiles_are_where_the_loss_says(trained: Classifier) -> None:
    batch = noisy_batch(torch.Generator().manual_seed(2), 4000)
    value, lower, upper = outputs_of(trained, batch).unbind(-1)
    assert ((lower < value) & (value < upper)).all()
    noisy = batch.x[:, 1] == 1
    for group, noise in ((noisy, NOISY), (~noisy, QUIET)):
        y, width = batch.y[group], (upper - lower)[group]
        assert float((y < lower[group]).float().mean()) == pytest.approx(0.1, abs=0.06)
        assert float((y > upper[group]).float().mean()) == pytest.approx(0.1, abs=0.06)
        assert float(width.mean()) == pytest.approx(2 * 1.2816 * noise, rel=0.35)


def test_intervals_are_wider_where_the_noise_is(trained: Classifier) -> None:
    known, new = (noisy_batch(torch.Generator().manual_seed(seed), 400) for seed in (3, 4))
    calibration = ValueCalibration(outputs_of(trained, known), known.y)
    values, noisy = outputs_of(trained, new), new.x[:, 1] == 1
    for alpha in (0.2, 0.05):  # the model's own, and another one
        ends = calibration.sets(values, alpha, SetsConfig())
        width = ends[:, 1] - ends[:, 0]
        assert float(width[noisy].min()) > 2 * float(width[~noisy].max())
        coverage = ValueCalibration.set_metrics(ends, new.y)["coverage"]
        assert coverage == pytest.approx(1 - alpha, abs=0.07)
    numbers = ValueCalibration(calibration.probs[:, :1], calibration.labels)
    ends = numbers.sets(values[:, :1], 0.2, SetsConfig())
    assert (ends[:, 1] - ends[:, 0]).std() < 1e-4  # without quantiles they are all alike


@pytest.mark.parametrize("scale", [1.0, 0.3, 3.0])
def test_intervals_cover_as_often_as_promised_however_wrong_the_quantiles(scale: float) -> None:
    """Noise that differs between graphs; quantiles that are right, too narrow, or too wide."""
    generator = torch.Generator().manual_seed(0)

    def drawn(number: int) -> tuple[Tensor, Tensor]:
        values = torch.randn(number, generator=generator)
        noise = 0.1 + 2 * torch.rand(number, generator=generator)
        apart = 1.2816 * noise * scale
        targets = values + noise * torch.randn(number, generator=generator)
        return torch.stack([values, values - apart, values + apart], dim=-1), targets

    for alpha in (0.2, 0.1):
        covered = []
        for _ in range(200):
            calibration = ValueCalibration(*drawn(99))
            values, targets = drawn(200)
            ends = calibration.sets(values, alpha, SetsConfig())
            assert (ends[:, 0] <= ends[:, 1]).all()
            covered.append(ValueCalibration.set_metrics(ends, targets)["coverage"])
        mean = sum(covered) / len(covered)
        assert mean == pytest.approx(1 - alpha, abs=0.01)


def test_too_few_graphs_give_intervals_without_end() -> None:
    calibration = ValueCalibration(torch.zeros(5, 3), torch.ones(5))
    ends = calibration.sets(torch.zeros(2, 3), 0.1, SetsConfig())
    assert ends.tolist() == [[-math.inf, math.inf]] * 2


def test_the_number_is_trained_by_its_own_loss_alone() -> None:
    head, plain = QuantileHead(2, 0.2), ValueHead(2)
    h, y = torch.randn(6, 2), torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 90.0])
    for each in (head, plain):
        each.fit(y, "absolute")
        each.loss(each(h), y, None).backward()
    assert head.weight.grad is not None
    assert plain.weight.grad is not None
    assert torch.allclose(head.weight.grad, plain.weight.grad, atol=1e-6)
    assert head.spread.weight.grad is not None
    assert (head.spread.weight.grad != 0).any()
    apart = math.log(2) * head.std
    errors = torch.stack([y - head.mean + apart, y - head.mean - apart], dim=-1) / head.std
    pinball = pinball_losses(errors, torch.tensor([0.1, 0.9])).sum(dim=-1).mean()
    found = head.loss(head(h), y, None) - plain.loss(plain(h), y, None)
    assert float(found.detach()) == pytest.approx(float(pinball), rel=1e-4)


def test_reward_and_selection_look_at_the_number_alone() -> None:
    values, targets = torch.tensor([[0.0, -9.0, 9.0], [1.0, 0.9, 7.0]]), torch.tensor([0.5, 3.0])
    given = torch.ones(2), torch.tensor(0.5), 0.5, RewardConfig(tolerance=1.0)
    assert torch.equal(
        REGRESSION.reward(values, targets, *given),
        REGRESSION.reward(values[:, :1], targets, *given),
    )
    assert REGRESSION.selection(values, targets, False) == REGRESSION.selection(
        values[:, :1], targets, False
    )
    assert REGRESSION.conformal_scores(values, targets).tolist() == [0.5, 2.0]


def test_without_the_setting_the_head_is_that_of_one_number() -> None:
    usual = RunConfig(dataset="masses.csv", model="cores-node", task="regression")
    assert network_dims(usual, NUMBERS) == NUMBERS
    model = build_model(usual, NUMBERS)
    start, known = "classifier.members.0.head.", {"weight", "bias", "mean", "std", "tolerance"}
    names = {name.removeprefix(start) for name in model.state_dict() if name.startswith(start)}
    assert names == known


@pytest.mark.parametrize("name", ["gnn", "mlp", "cores-node"])
def test_models_with_the_setting_have_quantiles(name: str) -> None:
    asked = RunConfig.from_settings({"model": name, "training": {"quantiles": True}})
    model = build_model(asked, NUMBERS)
    assert uncalibrated(model).probs.shape == (0, 3)
    classifier = getattr(model, "classifier", model)
    assert isinstance(classifier.head, QuantileHead)
    assert classifier.head.levels == (0.05, 0.95)
