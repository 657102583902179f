"""Scores, quantile and sets against independent definitions."""

import math
from fractions import Fraction

import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cores.conformal import (
    aps_scores,
    class_conditional_quantiles,
    conformal_quantile,
    lac_scores,
    p_values,
    prediction_sets,
    randomised_aps_scores,
    raps_scores,
)

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
    exact = [[Fraction(1 + int(count), n + 1) for count in row] for row in at_least]
    assert sets.tolist() == [[p > Fraction(str(alpha)) for p in row] for row in exact]
    ours = p_values(calibration, scores)
    assert torch.allclose(ours, torch.tensor([[float(p) for p in row] for row in exact]))


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


@pytest.mark.parametrize(("n", "alpha"), [(50, 0.1), (99, 0.05), (200, 0.2)])
def test_coverage_over_calibration_draws_follows_its_beta_law(n: int, alpha: float) -> None:
    """With i.i.d. uniform scores the true coverage is q-hat itself, which is Beta(n + 1 - l, l)."""
    draws = torch.rand(4000, n, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    coverages = torch.stack([conformal_quantile(scores, alpha) for scores in draws])
    failures = math.floor((n + 1) * Fraction(str(alpha)))
    law = scipy.stats.beta(n + 1 - failures, failures)
    assert scipy.stats.kstest(coverages.numpy(), law.cdf).pvalue > 0.001
    assert 1 - alpha <= law.mean() <= 1 - alpha + 1 / (n + 1)


def test_classes_are_covered_alike_with_a_quantile_each() -> None:
    """Scores of class 1 are ten times those of class 0: one quantile would favour class 0."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(4000) % 2
    scores = torch.rand(4000, generator=generator) * torch.where(labels == 1, 10.0, 1.0)
    quantiles = class_conditional_quantiles(scores[:2000], labels[:2000], 2, alpha=0.1)
    covered = scores[2000:] <= quantiles[labels[2000:]]
    for label in (0, 1):
        rate = covered[labels[2000:] == label].double().mean().item()
        assert rate == pytest.approx(0.9, abs=0.03)
    sets = prediction_sets(torch.tensor([[0.95, 5.0]]), quantiles)
    assert sets.tolist() == [[False, True]]


def test_randomised_aps_lies_between_the_mass_before_a_class_and_with_it() -> None:
    generator = torch.Generator().manual_seed(0)
    probs = torch.rand(100, 4, generator=generator).softmax(dim=-1)
    whole = aps_scores(probs)
    assert torch.allclose(randomised_aps_scores(probs, torch.ones(100)), whole)
    assert torch.allclose(randomised_aps_scores(probs, torch.zeros(100)), whole - probs)


def test_randomised_aps_covers_exactly_where_deterministic_aps_cannot() -> None:
    """Two classes, 30 % errors: deterministic sets hold both labels, randomised ones 1 - alpha."""
    generator = torch.Generator().manual_seed(0)
    probs = torch.full((4000, 2), 0.3)
    probs[:, 0] = 0.7
    labels = (torch.rand(4000, generator=generator) < 0.3).long()[:, None]
    plain = aps_scores(probs)
    assert prediction_sets(plain, conformal_quantile(plain.gather(1, labels)[:2000, 0], 0.2)).all()
    scores = randomised_aps_scores(probs, torch.rand(4000, generator=generator))
    true = scores.gather(1, labels).squeeze(1)
    covered = true[2000:] <= conformal_quantile(true[:2000], 0.2)
    assert covered.double().mean().item() == pytest.approx(0.8, abs=0.03)


def test_raps_without_penalty_is_aps() -> None:
    probs = torch.rand(50, 5, generator=torch.Generator().manual_seed(0)).softmax(dim=-1)
    assert torch.equal(raps_scores(probs, penalty=0.0, free_rank=1), aps_scores(probs))
