"""Scores, quantile and sets against independent definitions."""

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cores.conformal import aps_scores, conformal_quantile, lac_scores, prediction_sets

ALPHAS = [0.01, 0.05, 0.1, 0.18, 0.2, 0.5]


def test_aps_of_the_least_likely_class_is_exactly_one() -> None:
    probs = torch.rand(1000, 7, generator=torch.Generator().manual_seed(0)).softmax(dim=-1)
    scores = aps_scores(probs)
    assert (scores.max(dim=-1).values == 1).all()
    assert (scores.gather(-1, probs.argmin(-1, keepdim=True)) == 1).all()


@given(st.integers(1, 200), st.sampled_from(ALPHAS), st.integers(0, 99))
@settings(max_examples=200, deadline=None)
def test_sets_are_the_labels_whose_p_value_exceeds_alpha(n: int, alpha: float, seed: int) -> None:
    """y is in C(x) exactly when (1 + #{s_i >= s(x, y)}) / (n + 1) > alpha."""
    generator = torch.Generator().manual_seed(seed)
    calibration = torch.rand(n, generator=generator)
    scores = torch.rand(5, 3, generator=generator)
    sets = prediction_sets(scores, conformal_quantile(calibration, alpha))
    at_least = (calibration[None, None, :] >= scores[..., None]).sum(dim=-1)
    p_values = [[Fraction(1 + int(count), n + 1) for count in row] for row in at_least]
    expected = [[p > Fraction(str(alpha)) for p in row] for row in p_values]
    assert sets.tolist() == expected


@pytest.mark.parametrize(
    ("n", "alpha", "rank"), [(19, 0.05, 19), (149, 0.18, 123), (9, 0.1, 9), (99, 0.1, 90)]
)
def test_the_rank_is_exact(n: int, alpha: float, rank: int) -> None:
    assert conformal_quantile(torch.arange(1.0, n + 1), alpha) == rank


def test_floats_would_have_missed_a_rank() -> None:
    """The reason for exact arithmetic, kept as a reminder."""
    assert math.ceil(150 * (1 - 0.18)) == 124


@pytest.mark.parametrize(("n", "alpha"), [(18, 0.05), (8, 0.1), (0, 0.5)])
def test_too_few_calibration_graphs_give_every_label(n: int, alpha: float) -> None:
    q_hat = conformal_quantile(torch.rand(n), alpha)
    assert q_hat == torch.inf
    assert prediction_sets(lac_scores(torch.tensor([[0.0, 1.0]])), q_hat).all()
