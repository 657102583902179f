"""The rows of the table of tasks: what a regression does where a classification has classes."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from cores import UserError
from cores.config import NetworkConfig, RewardConfig, SetsConfig
from cores.config.spec import TaskName
from cores.conformal import conformal_quantile
from cores.data.dataset import Dims, checked
from cores.data.labels import MANY, as_targets, found_task, target_problem
from cores.data.lists import from_graphs
from cores.models.classifier import Classifier
from cores.models.stack import stackable
from cores.reward import interval_reward, value_performance_reward
from cores.tasks import CLASSIFICATION, MULTILABEL, REGRESSION, selection_score
from cores.tasks.calibration import ValueCalibration
from cores.tasks.metrics import mean_absolute_error, r2, root_mean_squared_error
from cores.tasks.regression import ValueHead

DIMS = Dims(num_features=1, num_classes=0, task="regression")


def classifier() -> Classifier:
    torch.manual_seed(0)
    return Classifier(DIMS, NetworkConfig(hidden_dim=8, num_layers=1), "gin")


def batch_of(targets: list[float]) -> Batch:
    graphs = [
        Data(
            x=torch.full((2, 1), float(number)),
            edge_index=torch.tensor([[0, 1], [1, 0]]),
            y=torch.tensor([target]),
        )
        for number, target in enumerate(targets)
    ]
    return Batch.from_data_list(graphs)


def test_right_means_more_than_half_of_the_performance_reward() -> None:
    errors = torch.linspace(-3, 3, 601)
    reward = value_performance_reward(errors, tolerance=0.7)
    assert torch.equal(reward > 0.5, errors.abs() < 0.7)
    assert ((reward >= 0) & (reward <= 1)).all()


def test_sure_and_right_is_paid_for_sparsity_and_wrong_pays_for_it() -> None:
    error, sparsity = torch.tensor([0.1, 0.5]), torch.tensor([0.8, 0.8])
    found = interval_reward(error, sparsity, torch.tensor(0.3), tolerance=0.4, lam=0.25)
    assert found.tolist() == pytest.approx([0.25 * (1 - 0.1 / 0.8) + 0.75 * 0.8, -0.8])


def test_unsure_is_paid_for_the_error_alone_and_the_less_the_wider_the_interval() -> None:
    error = torch.tensor([0.2])
    for sparsity in (0.1, 0.9):
        kept = torch.tensor([sparsity])
        found = [
            float(interval_reward(error, kept, torch.tensor(width), tolerance=0.4, lam=0.5))
            for width in (0.8, 1.6)
        ]
        assert found == pytest.approx([0.75 / 2, 0.75 / 4])
    outside = interval_reward(torch.tensor([0.9]), torch.tensor([0.6]), torch.tensor(0.8), 0.4, 0.5)
    assert float(outside) == pytest.approx(-0.6)


def test_an_interval_without_end_is_unsure_of_everything() -> None:
    found = interval_reward(
        torch.tensor([9.0]), torch.tensor([0.5]), torch.tensor(math.inf), 1.0, 0.5
    )
    assert float(found) == 0


def test_a_head_predicts_the_mean_at_first_and_errs_in_deviations() -> None:
    model, batch = classifier(), batch_of([90.0, 100.0, 110.0])
    assert isinstance(model.head, ValueHead)
    model.head.fit(batch.y, "squared")
    assert model.logits(batch).squeeze(-1).tolist() == pytest.approx([100.0] * 3)
    assert float(model.loss(batch).detach()) == pytest.approx(1.0)  # the variance, in deviations
    model.head.fit(batch.y, "absolute")
    deviation = batch.y.std(correction=0)
    assert float(model.loss(batch).detach()) == pytest.approx(20 / 3 / float(deviation))
    assert torch.equal(model.outputs(model.logits(batch)), model.logits(batch))
    assert not stackable([model])


def test_the_scale_of_the_targets_is_saved_with_the_weights() -> None:
    model, batch, other = classifier(), batch_of([4.0, 8.0, 9.0]), classifier()
    model.head.fit(batch.y, "squared")  # type: ignore[union-attr]
    other.load_state_dict(model.state_dict())
    assert torch.equal(other.logits(batch), model.logits(batch))


def test_what_a_part_loses_is_how_far_its_number_is_from_that_of_the_graph() -> None:
    head = ValueHead(3)
    head.fit(torch.tensor([1.0, 5.0]), "squared")
    full, part = torch.tensor([[1.0], [2.0], [9.0]]), torch.tensor([[3.0], [1.0], [-90.0]])
    assert torch.equal(head.predicted(full), torch.tensor([1.0, 2.0, 9.0]))
    assert head.lost(full, part).tolist() == [1.0, 0.5, 3.0]


def test_constant_targets_leave_a_scale() -> None:
    model, batch = classifier(), batch_of([3.0, 3.0])
    model.head.fit(batch.y, "squared")  # type: ignore[union-attr]
    assert float(model.loss(batch).detach()) == 0


@pytest.mark.parametrize(
    ("labels", "asked", "found"),
    [
        ([0.5 + number for number in range(MANY + 1)], "auto", "regression"),
        ([0.5 + number for number in range(MANY)], "auto", "classification"),
        ([float(number) for number in range(100)], "auto", "classification"),
        ([str(number / 7) for number in range(100)], "auto", "regression"),
        ([number / 7 for number in range(100)], "classification", "classification"),
        (["toxic", *(number / 7 for number in range(100))], "auto", "classification"),
        ([0, 1], "regression", "regression"),
    ],
)
def test_the_task_is_found_by_the_labels(labels: list[Any], asked: Any, found: TaskName) -> None:
    assert found_task(labels, asked) == found


def test_what_is_no_target_is_told() -> None:
    assert target_problem("1e3") is None
    assert as_targets(["1e3", 2, -0.5]).tolist() == [1000.0, 2.0, -0.5]
    for label in (math.nan, math.inf, "-inf", 1e300, 10**400):
        assert "finite numbers" in str(target_problem(label))
    for label in ("toxic", [1.0, 2.0], None):
        assert "needs numbers" in str(target_problem(label))


def graphs_with(targets: list[Any]) -> list[Data]:
    edges = torch.tensor([[0, 1], [1, 0]])
    return [Data(x=torch.ones(2, 1), edge_index=edges, y=target) for target in targets]


def test_lists_with_bad_targets_are_refused_in_a_line() -> None:
    good = [torch.tensor([number / 7]) for number in range(30)]
    dataset = checked(from_graphs(graphs_with(good)))
    assert dataset.task == "regression"
    assert dataset.class_names == ()
    assert dataset.graphs.y.dtype == torch.float32
    with pytest.raises(UserError, match="graph 30 has the label nan; a regression needs finite"):
        from_graphs(graphs_with([*good, torch.tensor([math.nan])]))
    with pytest.raises(UserError, match="a float; classes are whole numbers"):
        from_graphs(graphs_with(good), task="classification")
    with pytest.raises(UserError, match="every graph has the label 2"):
        checked(from_graphs(graphs_with([2] * 30), task="regression"))
    with pytest.raises(UserError, match="has 9 graphs"):
        checked(from_graphs(graphs_with(list(range(9))), task="regression"))


def test_errors_are_measured() -> None:
    values, targets = torch.tensor([[1.0], [2.0], [6.0]]), torch.tensor([1.0, 3.0, 4.0])
    assert mean_absolute_error(values, targets) == pytest.approx(1.0)
    assert root_mean_squared_error(values, targets) == pytest.approx(math.sqrt(5 / 3))
    assert r2(values, targets) == pytest.approx(1 - 5 / (14 / 3))
    assert r2(values, torch.full((3,), 2.0)) is None


def test_intervals_hold_the_target_as_often_as_promised() -> None:
    generator = torch.Generator().manual_seed(0)

    def drawn(number: int) -> tuple[Tensor, Tensor]:
        values = torch.randn(number, 1, generator=generator)
        return values, values[:, 0] + torch.randn(number, generator=generator)

    covered = []
    for _ in range(100):
        calibration = ValueCalibration(*drawn(99))
        values, targets = drawn(200)
        covered.append(calibration.metrics(values, targets, 0.2, SetsConfig())["coverage"])
    assert sum(covered) / 100 == pytest.approx(0.8, abs=0.01)


def test_too_few_graphs_give_intervals_without_end() -> None:
    calibration = ValueCalibration(torch.zeros(5, 1), torch.ones(5))
    found = calibration.metrics(torch.zeros(2, 1), torch.zeros(2), 0.1, SetsConfig())
    assert found == {"coverage": 1.0, "interval_width": None}


def test_the_reward_knows_no_harm_before_the_tolerance_is_known() -> None:
    values, targets = torch.zeros(3, 1), torch.tensor([0.0, 1.0, 1e6])
    unknown = REGRESSION.reward(values, targets, torch.ones(3), None, 0.5, RewardConfig())
    assert unknown.tolist() == pytest.approx([1.0] * 3)
    known = RewardConfig(tolerance=1.0)
    found = REGRESSION.reward(values, targets, torch.ones(3), None, 0.5, known)
    assert found.tolist() == pytest.approx([1.0, 0.75, -1.0])
    scores = REGRESSION.conformal_scores(values, targets)
    assert float(conformal_quantile(scores[:2], 0.5)) == 1.0


def test_epochs_are_compared_by_the_metric_of_the_task() -> None:
    assert selection_score({"selection_mae": 2.0}) == -2.0


def test_a_part_supports_a_class_by_its_probability_where_it_is_first() -> None:
    told, probs = torch.tensor([[0.9, 0.1]] * 2), torch.tensor([[0.7, 0.3], [0.2, 0.8]])
    support = CLASSIFICATION.support(probs, told, None)
    assert support.tolist() == pytest.approx([0.7, -0.8])
    assert CLASSIFICATION.probability(support).tolist() == pytest.approx([0.7, 0.2])
    assert CLASSIFICATION.wanted(0.8, None) == 0.8


def test_a_part_supports_several_labels_by_the_least_sure_side() -> None:
    told = torch.tensor([[0.9, 0.1]] * 2)
    probs = torch.tensor([[0.7, 0.4], [0.7, 0.6]])  # the second says another value
    support = MULTILABEL.support(probs, told, None)
    assert support.tolist() == pytest.approx([0.6, -0.6])
    assert MULTILABEL.probability(support).tolist() == pytest.approx([0.6, 0.4])


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_a_part_supports_a_number_within_the_tolerance_in_any_unit(unit: float) -> None:
    told, values = torch.tensor([[3.0]] * 3) * unit, torch.tensor([[3.0], [3.4], [2.4]]) * unit
    support = REGRESSION.support(values, told, 0.5 * unit)
    assert support.tolist() == pytest.approx([0.0, -0.8, -1.2], abs=1e-5)
    assert REGRESSION.wanted(0.8, 0.5 * unit) == -1.0
    assert REGRESSION.probability(support) is None
