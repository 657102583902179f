"""The committee: the mean of its members' predictions, at one temperature."""

from copy import deepcopy

import pytest
import torch
from torch_geometric.data import Batch

from cores.config import NetworkConfig, RunConfig
from cores.config.spec import TaskName
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.models.build import build_model
from cores.models.classifier import Classifier
from cores.models.committee import Committee
from cores.models.sparse import SparseClassifier

SMALL = NetworkConfig(hidden_dim=8, num_layers=1)
TASKS: list[TaskName] = ["classification", "multilabel", "regression"]


def member(task: TaskName = "classification", seed: int = 0) -> Classifier:
    torch.manual_seed(seed)
    classes = 0 if task == "regression" else 3
    network = Classifier(Dims(10, classes, task=task), SMALL, "gin").eval()
    torch.nn.init.normal_(network.head.weight)  # that of numbers starts at zero
    return network


def committee(task: TaskName = "classification", members: int = 3) -> Committee:
    first, *others = [member(task, seed) for seed in range(members)]
    for other in others:
        other.scaler = first.scaler
    return Committee([first, *others]).eval()


@pytest.fixture(scope="module")
def batch() -> Batch:
    return next(iter(ba_motifs(num_graphs=6, seed=0).batches(6)))


def outputs(model: Classifier | Committee, batch: Batch) -> torch.Tensor:
    with torch.no_grad():
        return model.outputs(model.logits(batch))


@pytest.mark.parametrize("task", TASKS)
def test_the_prediction_is_the_mean_of_the_members_predictions(
    task: TaskName, batch: Batch
) -> None:
    """Of classes and labels the mean probability, not that of the mean logits."""
    together = committee(task)
    each = torch.stack([outputs(member, batch) for member in together.members])
    assert not torch.allclose(each[0], each[1])
    assert torch.allclose(outputs(together, batch), each.mean(dim=0), atol=1e-6)
    spread = together.spread(together.member_logits(batch))
    assert torch.allclose(spread, each.std(dim=0, correction=0).amax(dim=1), atol=1e-6)


@pytest.mark.parametrize("task", TASKS)
def test_a_committee_of_equal_members_is_that_member(task: TaskName, batch: Batch) -> None:
    first = member(task)
    together = Committee([first, deepcopy(first), deepcopy(first)]).eval()
    assert torch.allclose(outputs(together, batch), outputs(first, batch), atol=1e-6)
    assert together.spread(together.member_logits(batch)).abs().max() < 1e-6


def test_a_temperature_makes_probabilities_even_and_keeps_the_likeliest_class(
    batch: Batch,
) -> None:
    together = committee()
    before = outputs(together, batch)
    together.temperature.fill_(2.0)
    after = outputs(together, batch)
    assert torch.equal(before.argmax(-1), after.argmax(-1))
    expected = before.sqrt() / before.sqrt().sum(-1, keepdim=True)
    assert torch.allclose(after, expected, atol=1e-6)
    together.temperature.fill_(1e4)
    assert torch.allclose(outputs(together, batch), torch.full((6, 3), 1 / 3), atol=1e-3)


def test_a_temperature_divides_the_log_odds_of_every_label(batch: Batch) -> None:
    together = committee("multilabel")
    odds = outputs(together, batch).logit()
    together.temperature.fill_(2.0)
    assert torch.allclose(outputs(together, batch).logit(), odds / 2, atol=1e-5)


def test_numbers_have_no_temperature(batch: Batch) -> None:
    together = committee("regression")
    before = outputs(together, batch)
    together.temperature.fill_(2.0)
    assert torch.equal(outputs(together, batch), before)


def test_members_that_are_sure_give_probabilities(batch: Batch) -> None:
    together = committee()
    for each in together.members:
        with torch.no_grad():
            each.head.weight.mul_(1e4)
    assert outputs(together, batch).isfinite().all()
    assert torch.allclose(outputs(together, batch).sum(-1), torch.ones(6))


def test_a_saved_state_restores_members_and_temperature(batch: Batch) -> None:
    saved, loaded = committee(), committee(members=3)
    saved.temperature.fill_(1.7)
    for each in loaded.members:
        torch.nn.init.zeros_(each.head.weight)
    loaded.load_state_dict(saved.state_dict())
    assert float(loaded.temperature) == pytest.approx(1.7)
    assert torch.equal(outputs(loaded, batch), outputs(saved, batch))
    with pytest.raises(RuntimeError):
        committee(members=2).load_state_dict(saved.state_dict())


def test_members_are_built_apart_and_share_their_scaler() -> None:
    config = RunConfig.from_settings({"model": "cores-node", "committee": {"members": 3}})
    built = build_model(config, Dims(10, 2))
    assert isinstance(built, SparseClassifier)
    assert isinstance(built.classifier, Committee)
    first, *others = built.classifier.members
    assert len(others) == 2
    for other in others:
        assert other.scaler is first.scaler is built.policy.scaler
        assert not torch.equal(other.head.weight, first.head.weight)
