"""Prediction sets from a calibration part: they cover as often as they promise, by any score."""

import pytest
import torch
from torch import Tensor

from cores.config import SetsConfig
from cores.tasks.calibration import (
    SCORES,
    ClassCalibration,
    LabelCalibration,
    ValueCalibration,
)

ALPHA, NAN = 0.2, float("nan")
DRAWS = 300

each_score = pytest.mark.parametrize("score", SCORES)


def predicted(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Graphs of three classes, one of them rare, by a model that is too sure of itself."""
    logits = 1.5 * torch.randn(count, 3, generator=generator) + torch.tensor([0.5, 0.0, -1.0])
    truth = (0.7 * logits).softmax(dim=-1)
    labels = torch.multinomial(truth, 1, generator=generator).squeeze(-1)
    return logits.softmax(dim=-1), labels


def shares(score: str, per_class: bool = False) -> tuple[Tensor, Tensor]:
    """Of many draws of 60 calibration and 40 test graphs: covered or not, and the true label."""
    generator, config = torch.Generator().manual_seed(0), SetsConfig(score, per_class)
    covered, true = [], []
    for _ in range(DRAWS):
        calibration = ClassCalibration(*predicted(60, generator))
        probs, labels = predicted(40, generator)
        sets = calibration.sets(probs, ALPHA, config)
        covered.append(sets.gather(-1, labels[:, None]).squeeze(-1))
        true.append(labels)
    return torch.stack(covered), torch.stack(true)


def margin(covered: Tensor) -> float:
    """Three standard errors of the mean over draws."""
    return 3 * float(covered.double().mean(dim=1).std()) / DRAWS**0.5


@each_score
def test_sets_cover_as_often_as_they_promise_on_average_over_draws(score: str) -> None:
    covered, _ = shares(score)
    assert covered.double().mean() >= 1 - ALPHA - margin(covered)


@pytest.mark.parametrize("score", ["lac", "randomised-aps"])
def test_sets_of_a_score_without_ties_cover_hardly_more_often(score: str) -> None:
    covered, _ = shares(score)
    assert covered.double().mean() <= 1 - ALPHA + 1 / 61 + margin(covered)


@each_score
def test_with_a_quantile_per_class_every_class_is_covered_as_often(score: str) -> None:
    covered, labels = shares(score, per_class=True)
    for label in range(3):
        mine = covered[labels == label].double()
        draws = len(mine) / 40  # the graphs of a draw share its quantiles: they count as one
        assert mine.mean() >= 1 - ALPHA - 3 * float(mine.std()) / draws**0.5, label


def test_one_quantile_for_all_covers_a_rare_class_less_often() -> None:
    """Else the test above would say nothing."""
    covered, labels = shares("lac")
    assert covered[labels == 2].double().mean() < 1 - ALPHA - 0.1


@each_score
def test_sets_of_graphs_that_come_one_at_a_time_cover_as_often(score: str) -> None:
    """Two classes, and a model that gives every graph the same probabilities, rightly."""
    generator, config = torch.Generator().manual_seed(0), SetsConfig(score)
    covered = []
    for _ in range(DRAWS):
        labels = (torch.rand(400, generator=generator) < 0.3).long()
        probs = torch.tensor([[0.7, 0.3]]).expand(400, 2)
        sets = ClassCalibration(probs, labels).sets(probs[:1], ALPHA, config)
        fresh = (torch.rand(20, generator=generator) < 0.3).long()
        covered.append(sets.expand(20, 2).gather(-1, fresh[:, None]).squeeze(-1))
    together = torch.stack(covered)
    assert together.double().mean() >= 1 - ALPHA - margin(together)


@each_score
def test_sets_are_the_same_each_time(score: str) -> None:
    generator = torch.Generator().manual_seed(0)
    calibration, (probs, _) = ClassCalibration(*predicted(60, generator)), predicted(40, generator)
    first, second = (calibration.sets(probs, ALPHA, SetsConfig(score)) for _ in range(2))
    assert torch.equal(first, second)


@each_score
@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.2, 0.5])
def test_a_set_holds_the_labels_whose_p_value_exceeds_alpha(
    score: str, per_class: bool, alpha: float
) -> None:
    generator, config = torch.Generator().manual_seed(1), SetsConfig(score, per_class)
    for count in (9, 19, 60):
        calibration = ClassCalibration(*predicted(count, generator))
        probs, _ = predicted(40, generator)
        p_values = calibration.p_values(probs, config)
        assert torch.equal(p_values > alpha, calibration.sets(probs, alpha, config))


def test_a_calibration_part_without_graphs_gives_every_label() -> None:
    nothing = ClassCalibration(torch.empty(0, 2), torch.empty(0, dtype=torch.int64))
    probs = torch.tensor([[1.0, 0.0]])
    assert len(nothing) == 0
    for per_class in (False, True):
        assert nothing.sets(probs, 0.5, SetsConfig(per_class=per_class)).all()


def test_coverage_counts_sets_with_the_true_label() -> None:
    scores = torch.linspace(0.05, 0.45, 9)  # nine: the quantile at alpha = 0.1 is the largest
    calibration = ClassCalibration(torch.stack([1 - scores, scores], dim=-1), torch.zeros(9).long())
    probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.3, 0.7]])
    sets = calibration.sets(probs, 0.1, SetsConfig())
    found = ClassCalibration.set_metrics(sets, torch.tensor([0, 0, 1, 1]))
    assert found["coverage"] == 0.75, "all but the third, whose true label has score 0.6"
    assert found["set_size"] == 1.0


def test_promises_are_told_in_words() -> None:
    classes = ClassCalibration(torch.ones(50, 2), torch.tensor([0] * 20 + [1] * 30))
    numbers = ValueCalibration(torch.zeros(50, 1), torch.zeros(50))
    labels = LabelCalibration(
        torch.ones(30, 2), torch.tensor([[1.0, 1.0]] * 20 + [[NAN, 1.0]] * 10)
    )
    assert classes.promise(0.1, per_class=False) == (
        "At error rate 0.1 a set misses the true label at most 10 % of the time, on average, if "
        "the graphs are like the 50 calibration graphs."
    )
    assert classes.promise(0.01, per_class=False) == (
        "50 calibration graphs are too few for error rate 0.01: every set holds every label. From "
        "0.0197 on, sets can leave one out."
    )
    few = "20 calibration graphs of a class are too few for error rate 0.04: every set holds that"
    assert classes.promise(0.04, per_class=True).startswith(few)
    assert numbers.promise(0.1, per_class=False) == (
        "At error rate 0.1 an interval misses the true number at most 10 % of the time, on "
        "average, if the graphs are like the 50 calibration graphs."
    )
    assert numbers.promise(0.01, per_class=False) == (
        "50 calibration graphs are too few for error rate 0.01: no interval has an end. From "
        "0.0197 on, they have."
    )
    assert labels.promise(0.1, per_class=False) == (
        "At error rate 0.1 the sets of each label miss its true value at most 10 % of the time, on "
        "average, if the graphs are like the calibration graphs, of which 20 to 30 have one."
    )
    assert labels.promise(0.04, per_class=False) == (
        "20 calibration graphs are too few for error rate 0.04: sets of such labels hold both "
        "values. From 0.0477 on, all can leave one out."
    )
    for kind, sets in ((ClassCalibration, "sets"), (ValueCalibration, "intervals")):
        told = f"The run has no calibration part, so there are no prediction {sets}."
        assert kind.empty(1).promise(0.1, per_class=False) == told
