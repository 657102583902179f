"""The clipped objective of Eq. (1), by hand."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cores.ppo import clipped_objective

numbers = st.floats(-3, 3, allow_subnormal=False)


def test_a_ratio_of_one_gives_the_advantage_itself() -> None:
    log_prob, advantage = torch.tensor([-0.3, -2.0]), torch.tensor([1.5, -0.5])
    assert torch.equal(clipped_objective(log_prob, log_prob, advantage, 0.2), advantage)


@given(numbers, numbers, numbers, st.floats(0.05, 0.5))
def test_it_is_the_smaller_of_the_plain_and_the_clipped_product(
    new: float, old: float, advantage: float, clip: float
) -> None:
    ratio = math.exp(new - old)
    clipped = min(max(ratio, 1 - clip), 1 + clip)
    expected = min(ratio * advantage, clipped * advantage)
    items = (torch.tensor([value], dtype=torch.float64) for value in (new, old, advantage))
    assert clipped_objective(*items, clip).item() == pytest.approx(expected)


@pytest.mark.parametrize(("advantage", "new", "moves"), [(1.0, 0.5, False), (-1.0, 0.5, True)])
def test_no_gradient_rewards_going_further_than_the_clip(
    advantage: float, new: float, moves: bool
) -> None:
    log_prob = torch.tensor([new], requires_grad=True)
    clipped_objective(log_prob, torch.zeros(1), torch.tensor([advantage]), 0.2).sum().backward()
    assert log_prob.grad is not None
    assert bool(log_prob.grad.item() != 0) == moves
