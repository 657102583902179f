"""The reward has the values and ranges that the paper states."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cores.reward import (
    conformal_reward,
    performance_reward,
    pieces_penalty,
    sparsity_reward,
)

shares = st.floats(0, 1, width=32)


@given(st.floats(0.01, 0.99))
def test_sparsity_reward_is_95_percent_at_the_desired_ratio(desired: float) -> None:
    ratio = torch.tensor([desired], dtype=torch.float64)
    assert sparsity_reward(ratio, desired).item() == pytest.approx(0.95, abs=1e-9)


@given(st.floats(0.05, 0.95), shares, shares)
def test_sparsity_reward_falls_from_1_to_0_as_more_is_kept(d: float, a: float, b: float) -> None:
    low, high = sorted((a, b))
    rewards = sparsity_reward(torch.tensor([0.0, low, high, 1.0]), d)
    assert rewards[0] == 1
    assert rewards[-1] == 0
    assert (rewards.diff() <= 0).all()


@given(shares, shares, st.floats(0, 1), st.integers(0, 2))
@settings(max_examples=200)
def test_each_case_stays_in_the_papers_range(
    performance: float, sparsity: float, lam: float, case: int
) -> None:
    sets = torch.tensor([[[True, False], [True, True], [False, True]][case]])
    low, high = [(0, 1), (0, 0.5), (-1, 0)][case]
    reward = conformal_reward(
        torch.tensor([performance]), torch.tensor([sparsity]), sets, torch.tensor([0]), lam
    )
    assert low - 1e-6 <= reward.item() <= high + 1e-6


def test_reward_is_zero_when_wrong_and_nothing_was_removed() -> None:
    nothing_removed = sparsity_reward(torch.tensor([1.0]), 0.3)
    wrong = torch.tensor([[False, True]])
    reward = conformal_reward(torch.tensor([0.1]), nothing_removed, wrong, torch.tensor([0]), 0.5)
    assert reward.item() == 0


def test_an_empty_set_is_punished_like_a_wrong_one() -> None:
    empty = torch.tensor([[False, False]])
    reward = conformal_reward(
        torch.tensor([0.9]), torch.tensor([0.7]), empty, torch.tensor([0]), 0.5
    )
    assert reward.item() == pytest.approx(-0.7)


def test_performance_is_the_true_classes_probability() -> None:
    probs = torch.tensor([[0.2, 0.8], [0.6, 0.4]])
    assert performance_reward(probs, torch.tensor([1, 1])).tolist() == pytest.approx([0.8, 0.4])


def test_lambda_weighs_performance_against_sparsity_where_one_label_is_left() -> None:
    sets = torch.tensor([[True, False, False], [True, True, False], [True, True, True]])
    parts = torch.tensor([0.9, 0.6, 0.6]), torch.tensor([0.5, 0.5, 0.5])
    reward = conformal_reward(*parts, sets, torch.tensor([0, 0, 0]), lam=0.2)
    assert reward.tolist() == pytest.approx([0.2 * 0.9 + 0.8 * 0.5, 0.3, 0.2])


@given(st.lists(st.integers(0, 9), min_size=1), st.integers(1, 4))
def test_only_pieces_beyond_those_allowed_are_penalised(pieces: list[int], most: int) -> None:
    penalty = pieces_penalty(torch.tensor(pieces), torch.full((len(pieces),), 10), most)
    assert penalty.tolist() == pytest.approx([max(0, each - most) / 10 for each in pieces])
