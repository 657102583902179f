"""Learning rates over a training, by hand."""

import math

import pytest
import torch
from torch.optim import SGD, Optimizer

from cores.training.schedule import Cosine, plateau


def optimizer(*rates: float) -> Optimizer:
    return SGD([{"params": [torch.nn.Parameter(torch.ones(1))], "lr": rate} for rate in rates])


def rates(of: Optimizer) -> list[float]:
    return [group["lr"] for group in of.param_groups]


def test_a_cosine_falls_from_every_rate_to_its_share_and_stays_there() -> None:
    two = optimizer(0.4, 0.2)
    schedule = Cosine(two, epochs=4, final_share=0.1)
    seen = []
    for _ in range(5):
        schedule.step(0.0)
        seen.append(rates(two))
    heights = [(1 + math.cos(math.pi * epoch / 4)) / 2 for epoch in (1, 2, 3, 4, 4)]
    for (first, second), height in zip(seen, heights, strict=True):
        assert first == pytest.approx(0.4 * (0.1 + 0.9 * height))
        assert second == pytest.approx(first / 2)
    assert seen[1][0] == pytest.approx(0.4 * 0.55)  # halfway
    assert seen[-1][0] == pytest.approx(0.04)


def test_a_cosine_goes_on_where_its_state_was_taken() -> None:
    whole, cut = optimizer(0.4), optimizer(0.4)
    first, second = Cosine(whole, 4, 0.1), Cosine(cut, 4, 0.1)
    for _ in range(2):
        first.step(0.0)
    second.load_state_dict(first.state_dict())
    first.step(0.0)
    second.step(0.0)
    assert rates(whole) == rates(cut)


def test_a_plateau_lowers_the_rate_after_more_than_patience_epochs_without_a_better_score() -> None:
    one = optimizer(0.4)
    schedule = plateau(one, factor=0.5, patience=2, min_rate=0.15)
    seen = []
    for score in (0.5, 0.7, 0.7, 0.6, 0.6, 0.8, 0.1, 0.1, 0.1):
        schedule.step(score)
        seen.append(rates(one)[0])
    assert seen == [0.4] * 4 + [0.2] * 4 + [0.15]


def test_a_rate_below_the_lowest_is_never_raised() -> None:
    one = optimizer(0.01)
    schedule = plateau(one, factor=0.5, patience=0, min_rate=0.1)
    for score in (0.5, 0.4, 0.3):
        schedule.step(score)
    assert rates(one) == [0.01]
