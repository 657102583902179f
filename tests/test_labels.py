"""Several labels per graph: the row of the table of tasks, the head, metrics, sets and labels."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.data import Batch, Data

from cores import UserError
from cores.config import NetworkConfig, RewardConfig, SetsConfig
from cores.conformal import conformal_quantile, value_probs
from cores.data.dataset import Dims, checked
from cores.data.labels import binary_labels, given_values, plain_labels
from cores.data.lists import from_graphs
from cores.models.classifier import Classifier
from cores.models.stack import stackable
from cores.tasks import CLASSIFICATION, MULTILABEL, metrics, selection_score
from cores.tasks.calibration import ClassCalibration, LabelCalibration
from cores.tasks.classification import ClassHead
from cores.tasks.multilabel import LabelHead

NAN = math.nan
DIMS = Dims(num_features=1, num_classes=3, task="multilabel")


def classifier() -> Classifier:
    torch.manual_seed(0)
    return Classifier(DIMS, NetworkConfig(hidden_dim=8, num_layers=1), "gin")


def batch_of(labels: list[list[float]]) -> Batch:
    graphs = [
        Data(
            x=torch.full((2, 1), float(number)),
            edge_index=torch.tensor([[0, 1], [1, 0]]),
            y=torch.tensor([row]),
        )
        for number, row in enumerate(labels)
    ]
    return Batch.from_data_list(graphs)


def drawn(graphs: int, labels: int, missing: float = 0.3) -> tuple[Tensor, Tensor]:
    """Probabilities, and labels drawn by them, some of which are not known."""
    generator = torch.Generator().manual_seed(graphs)
    probs = torch.rand(graphs, labels, generator=generator)
    y = (torch.rand(graphs, labels, generator=generator) < probs).float()
    y[torch.rand(graphs, labels, generator=generator) < missing] = NAN
    return probs, y


def test_with_one_label_the_reward_is_that_of_two_classes() -> None:
    config = RewardConfig()
    probs, y = drawn(200, 1, missing=0.0)
    sparsity, lam = torch.rand(200), torch.rand(200)
    classes, pairs = y[:, 0].long(), value_probs(probs[:, 0])
    scores = MULTILABEL.conformal_scores(probs, y)
    assert torch.equal(scores, CLASSIFICATION.conformal_scores(pairs, classes))
    for q_hat in (None, conformal_quantile(scores, 0.2), torch.tensor(math.inf)):
        for weight in (0.3, lam):
            several = MULTILABEL.reward(probs, y, sparsity, q_hat, weight, config)
            one = CLASSIFICATION.reward(pairs, classes, sparsity, q_hat, weight, config)
            assert torch.equal(several, one)
            assert q_hat is not None or len(several.unique()) > 100


def test_with_more_it_is_the_mean_over_the_labels_that_are_known() -> None:
    config = RewardConfig()
    probs = torch.tensor([[0.9, 0.8, 0.3], [0.6, 0.5, 0.2]])
    y = torch.tensor([[1.0, 0.0, NAN], [NAN, NAN, NAN]])
    found = MULTILABEL.reward(probs, y, torch.tensor([0.5, 0.5]), None, 0.5, config)
    right = 0.5 * 0.9 + 0.5 * 0.5
    assert found.tolist() == pytest.approx([(right - 0.5) / 2, 0.0])
    assert len(MULTILABEL.conformal_scores(probs, y)) == 2
    changed = probs.clone()
    changed[0, 2] = 0.9
    assert torch.equal(
        MULTILABEL.reward(changed, y, torch.full((2,), 0.5), None, 0.5, config), found
    )


def test_the_loss_is_that_of_the_known_labels() -> None:
    model, batch = classifier(), batch_of([[1.0, 0.0, NAN], [NAN, NAN, NAN], [0.0, NAN, 1.0]])
    assert isinstance(model.head, LabelHead)
    logits = model.logits(batch)
    known = ~batch.y.isnan()
    expected = F.binary_cross_entropy_with_logits(logits[known], batch.y[known])
    assert float(model.loss(batch).detach()) == pytest.approx(float(expected.detach()))
    (gradient,) = torch.autograd.grad(model.head.loss(logits, batch.y, None), logits)
    assert torch.equal(gradient != 0, known)
    nothing = model.head.loss(logits, torch.full_like(logits, NAN), None)
    assert float(nothing.detach()) == 0
    assert model.outputs(logits).tolist() == logits.sigmoid().tolist()
    assert not stackable([model])


def test_what_a_part_loses_is_the_mean_of_what_two_classes_lose() -> None:
    head = LabelHead(4, 3)
    full, part = torch.randn(20, 3), torch.randn(20, 3)
    two = ClassHead(4, 2)

    def classes(logits: Tensor) -> Tensor:
        return torch.stack([torch.zeros_like(logits), logits], dim=-1)

    each = [two.lost(classes(full[:, at]), classes(part[:, at])) for at in range(3)]
    assert head.lost(full, part) == pytest.approx(torch.stack(each).mean(dim=0), abs=1e-6)
    assert torch.equal(head.predicted(full), (full > 0).float())


def test_shares_of_a_batch_count_by_their_known_labels() -> None:
    model, batch = classifier(), batch_of([[1.0, 0.0, NAN], [NAN, NAN, NAN], [0.0, NAN, 1.0]])
    parts = [batch_of([[1.0, 0.0, NAN], [NAN, NAN, NAN]]), batch_of([[0.0, NAN, 1.0]])]
    weights = [float(model.loss_weight(part.y, None)) for part in parts]
    assert weights == [2.0, 2.0]
    logits = model.logits(batch).split([2, 1])
    losses = [
        model.head.loss(*pair, None) for pair in zip(logits, (p.y for p in parts), strict=True)
    ]
    whole = (weights[0] * losses[0] + weights[1] * losses[1]) / sum(weights)
    assert float(model.loss(batch).detach()) == pytest.approx(float(whole.detach()))


def test_metrics_are_those_of_sklearn_on_the_known_labels() -> None:
    from sklearn import metrics as sklearn

    probs, y = drawn(300, 4)
    y[:, 3] = 1.0  # undefined
    truth = [(y[:, at][known], probs[:, at][known]) for at, known in enumerate((~y.isnan()).T)]
    auc = [sklearn.roc_auc_score(*pair) for pair in truth[:3]]
    assert metrics.label_roc_auc(probs, y)[:3] == pytest.approx(auc)
    assert metrics.label_roc_auc(probs, y)[3] is None
    assert metrics.mean_label_roc_auc(probs, y) == pytest.approx(sum(auc) / 3)
    precision = [sklearn.average_precision_score(*pair) for pair in truth[:3]]
    assert metrics.mean_label_average_precision(probs, y) == pytest.approx(sum(precision) / 3)
    known = ~y.isnan()
    right = sklearn.accuracy_score(y[known], (probs > 0.5)[known])
    assert metrics.label_accuracy(probs, y) == pytest.approx(right)
    balanced = [sklearn.balanced_accuracy_score(a, b > 0.5) for a, b in truth[:3]]
    of_last = float((probs[:, 3] > 0.5).double().mean())
    found = metrics.label_balanced_accuracy(probs, y)
    assert found == pytest.approx((sum(balanced) + of_last) / 4)
    frequent = sum(float(torch.stack([a == 0, a == 1]).sum(dim=1).max()) for a, _ in truth)
    assert metrics.label_majority_rate(y) == pytest.approx(frequent / int(known.sum()))


def test_graphs_without_a_known_label_leave_metrics_undefined() -> None:
    probs, y = torch.rand(3, 2), torch.full((3, 2), NAN)
    assert metrics.mean_label_roc_auc(probs, y) is None
    assert metrics.label_accuracy(probs, y) == 0
    assert metrics.label_balanced_accuracy(probs, y) == 0
    found = MULTILABEL.selection(probs, y, False)
    assert found.metrics == {"selection_roc_auc": 0.5, "selection_loss": 0.0}
    assert selection_score({"selection_roc_auc": 0.75, "selection_loss": 9.0}) == 0.75


def test_sets_of_every_label_are_those_of_two_classes() -> None:
    probs, y = drawn(120, 3)
    new, _ = drawn(50, 3)
    known = ~y.isnan()
    for config in (SetsConfig(), SetsConfig(score="aps", per_class=True)):
        found = LabelCalibration(probs, y).sets(new, 0.2, config)
        assert found.shape == (50, 3, 2)
        for at in range(3):
            there = known[:, at]
            alone = ClassCalibration(value_probs(probs[there, at]), y[there, at].long())
            assert torch.equal(found[:, at], alone.sets(value_probs(new[:, at]), 0.2, config))
    assert LabelCalibration(probs, y).class_counts == known.sum(dim=0).tolist()


def test_every_label_is_covered_as_promised_and_an_unknown_one_always() -> None:
    generator = torch.Generator().manual_seed(1)
    covered = []
    for _ in range(60):
        probs = torch.rand(400, 3, generator=generator)
        y = (torch.rand(400, 3, generator=generator) < probs).float()
        y[:, 1][torch.rand(400, generator=generator) < 0.5] = NAN
        y[:200, 2] = NAN
        calibration = LabelCalibration(probs[:200], y[:200])
        found = calibration.metrics(probs[200:], y[200:], 0.2, SetsConfig())
        covered.append(found["label_coverage"])
    means = torch.tensor(covered).mean(dim=0).tolist()
    assert means == pytest.approx([0.8, 0.8, 1.0], abs=0.015)


@pytest.mark.parametrize(
    ("given", "pairs", "numbers"),
    [
        ([[0, 1], [1, None]], ((0, 1), (0, 1)), [[0, 1], [1, NAN]]),
        ([[0.0, NAN], [1.0, 1.0]], ((0, 1), (0, 1)), [[0, NAN], [1, 1]]),
        ([["no", "1"], ["yes", "0.0"]], (("no", "yes"), (0, 1)), [[0, 1], [1, 0]]),
        (
            [[False, 3], [True, 5], [None, ""]],
            ((False, True), (3, 5)),
            [[0, 0], [1, 1], [NAN, NAN]],
        ),
        ([1, 0, None], ((0, 1),), [[1], [0], [NAN]]),
    ],
)
def test_two_values_are_found(given: list[Any], pairs: tuple[Any, ...], numbers: list[Any]) -> None:
    names, found, y = binary_labels(given)
    assert found == pairs
    assert torch.equal(y.nan_to_num(9), torch.tensor(numbers, dtype=torch.float32).nan_to_num(9))
    again = binary_labels(given_values(y, names, found))
    assert again[:2] == (names, found)
    assert torch.equal(again[2].nan_to_num(9), y.nan_to_num(9))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([[0, 1], [1, 2], [0, 0]], "the label label 1 has the values 0, 1, 2; it may have two"),
        ([[0.5, 1], [1, 0]], "the label label 0 has the value 0.5"),
        ([[0, 1], [1]], "graph 1 has 1 labels, all need as many"),
        ([["a", 1], ["a", 0]], "the label label 0 is always 'a'"),
        ([[[0], 1], [1, 0]], r"the label label 0 has the value \[0\]"),
    ],
)
def test_what_is_no_label_of_two_values_is_told(given: list[Any], told: str) -> None:
    with pytest.raises(UserError, match=told):
        binary_labels(given)


def graphs_with(labels: list[Any]) -> list[Data]:
    edges = torch.tensor([[0, 1], [1, 0]])
    return [Data(x=torch.ones(2, 1), edge_index=edges, y=torch.tensor([row])) for row in labels]


def test_lists_of_graphs_with_several_labels() -> None:
    rows = [[float(number % 2), NAN if number % 3 else 1.0 - number % 2] for number in range(30)]
    dataset = checked(from_graphs(graphs_with(rows), task="multilabel"))
    assert dataset.class_names == ("label 0", "label 1")
    assert dataset.graphs.y.shape == (30, 2)
    assert dataset.dims.num_outputs == 2
    assert plain_labels(dataset[:2]) == [
        {"label 0": 0, "label 1": 1},
        {"label 0": 1, "label 1": None},
    ]
    assert "2 labels each (33 % of the values missing)" in repr(dataset)
    with pytest.raises(UserError, match='several are for task="multilabel"'):
        from_graphs(graphs_with(rows))
    with pytest.raises(UserError, match="the label label 1 is never known; there is nothing"):
        checked(from_graphs(graphs_with([[row[0], NAN] for row in rows]), task="multilabel"))
    with pytest.raises(UserError, match="the label label 1 is always 1; there is nothing"):
        checked(from_graphs(graphs_with([[row[0], 1.0] for row in rows]), task="multilabel"))
    with pytest.raises(UserError, match="has 9 graphs; a multilabel task needs at least 10"):
        checked(from_graphs(graphs_with(rows[:9]), task="multilabel"))
