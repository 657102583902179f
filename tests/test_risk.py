"""P-values against scipy, and promises against worlds in which the true risk is known."""

import math
from functools import partial

import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from cores import UserError
from cores.risk import (
    accuracy_losses,
    betting_p_value,
    binomial_p_value,
    disagreements,
    excess_errors,
    graphs_needed,
    halves,
    in_every_class,
    learn_then_test,
    risk_controlled,
    smallest_risk,
    sparsest,
)

DRAWS = 2000


def draws_of(rates: Tensor, draws: int, n: int, seed: int = 0) -> Tensor:
    """Losses of 0 and 1, drawn anew for every setting."""
    uniform = torch.rand(draws, n, len(rates), generator=torch.Generator().manual_seed(seed))
    return uniform < rates


def within(share: float, limit: float, draws: int) -> bool:
    """A share of draws that is at most the limit, within three standard errors."""
    return share <= limit + 3 * math.sqrt(limit * (1 - limit) / draws)


@given(st.integers(1, 1500), st.floats(0.001, 0.9), st.data())
@settings(max_examples=100, deadline=None)
def test_the_binomial_p_value_is_that_of_scipy(n: int, epsilon: float, data: st.DataObject) -> None:
    lost = data.draw(st.integers(0, n))
    losses = (torch.arange(n) < lost)[:, None]
    expected = scipy.stats.binom.cdf(lost, n, epsilon)
    assert float(binomial_p_value(losses, epsilon)) == pytest.approx(expected, rel=1e-9, abs=1e-200)


@pytest.mark.parametrize("largest_loss", [1.0, 0.01])
def test_the_capital_of_the_gambler_is_that_of_a_loop_that_looks_only_back(
    largest_loss: float,
) -> None:
    n, epsilon, delta = 50, 0.2, 0.1
    signs = torch.randint(-1, 2, (n, 1), generator=torch.Generator().manual_seed(1))
    losses = largest_loss * signs.double()
    order = torch.randperm(n, generator=torch.Generator().manual_seed(0))
    capital, largest, total, squares, variance = 1.0, 0.0, 0.0, 0.25, 0.25
    for number, loss in enumerate(losses[order, 0].tolist(), start=1):
        bet = min(math.sqrt(2 * math.log(1 / delta) / (n * variance)), 0.9 / (1 - epsilon))
        capital *= 1 + bet * (epsilon - loss)
        largest = max(largest, capital)
        total += loss
        squares += (loss - total / (number + 1)) ** 2
        variance = squares / (number + 1)
    expected = min(1.0, 1 / largest)
    assert float(betting_p_value(losses, epsilon, delta)) == pytest.approx(expected)


@pytest.mark.parametrize("n", [20, 100, 1000])
@pytest.mark.parametrize("least", [0, -1])
def test_p_values_are_valid_where_the_risk_is_at_the_limit(n: int, least: int) -> None:
    """P(p <= u) <= u for a risk of epsilon; for losses of 0 and 1, and of -1, 0 and 1."""
    epsilon, draws = 0.1, DRAWS
    generator = torch.Generator().manual_seed(n)
    uniform = torch.rand(draws, n, 1, generator=generator)
    wrong, right = (epsilon, 0.0) if least == 0 else (0.25, 0.15)
    losses = (uniform < wrong).float() - (uniform > 1 - right).float()
    for delta in (0.05, 0.1, 0.2):
        values = [betting_p_value(losses, epsilon, delta)]
        if least == 0:
            values += [binomial_p_value(losses > 0, epsilon)]
        for value in values:
            assert within(float((value <= delta).double().mean()), delta, draws)


def test_sorted_graphs_do_not_mislead_the_gambler() -> None:
    """Classes one after the other: the risk of the first is 0, that of all is above epsilon."""
    losses = draws_of(torch.tensor([0.24]), DRAWS, 200).float()
    losses[:, :100] = 0
    share = float((betting_p_value(losses, 0.1, 0.1) <= 0.1).double().mean())
    assert within(share, 0.1, DRAWS)


@pytest.mark.parametrize(("n", "draws"), [(20, 4000), (100, 2000), (1000, 300)])
@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.2])
def test_risk_control_is_tight_where_losses_rise(n: int, draws: int, epsilon: float) -> None:
    """Between epsilon - 2 / (n + 1), by Theorem 2 of the paper, and epsilon."""
    rates = torch.linspace(0, 0.5, 101)
    generator = torch.Generator().manual_seed(n)
    losses = torch.rand(draws, n, 1, generator=generator) < rates
    controlled = risk_controlled(losses, epsilon).sum(dim=-1)
    risks = torch.cat([torch.zeros(1), rates])[controlled]
    error = float(risks.std()) / math.sqrt(draws)
    assert float(risks.mean()) <= epsilon + 3 * error
    assert float(risks.mean()) >= epsilon - 2 / (n + 1) - 0.005 - 3 * error


def test_many_settings_give_luck_no_chance() -> None:
    """All 50 have the same risk, above epsilon; in nearly every draw one of them looks fine."""
    losses = draws_of(torch.full((50,), 0.15), DRAWS, 20)
    looks_fine = (losses.sum(dim=1) + 1) / 21 <= 0.1
    assert looks_fine.any(dim=1).double().mean() > 0.9
    assert risk_controlled(losses, 0.1).any(dim=1).double().mean() * 0.15 <= 0.1
    losses = draws_of(torch.full((50,), 0.101), DRAWS, 100)
    assert (binomial_p_value(losses, 0.1) <= 0.1).any(dim=1).double().mean() > 0.5
    share = learn_then_test(losses, 0.1, 0.1).any(dim=1).double().mean()
    assert within(float(share), 0.1, DRAWS)


def test_the_envelope_counts_what_was_lost_at_any_denser_setting() -> None:
    losses = torch.zeros(19, 3, dtype=torch.bool)
    losses[:2, 1] = True
    assert risk_controlled(losses, 0.1).tolist() == [True, False, False]
    assert risk_controlled(losses.float(), 0.1).tolist() == [True, False, False]
    assert risk_controlled(losses[:, [1, 0, 2]], 0.15).tolist() == [True, True, True]


def test_equality_is_not_decided_by_rounding() -> None:
    """(0 + 1) / (n + 1) is epsilon."""
    for n in range(1, 500):
        epsilon = 1 / (n + 1)
        assert bool(risk_controlled(torch.zeros(n, 1, dtype=torch.bool), epsilon + 1e-12))
    assert bool(risk_controlled(torch.zeros(9, 1), 0.1))
    assert bool(risk_controlled(torch.arange(149)[:, None] < 26, 0.18))
    assert not bool(risk_controlled(torch.arange(149)[:, None] < 27, 0.18))


def test_a_rare_class_pays_unless_it_has_a_promise_of_its_own() -> None:
    labels = (torch.arange(1000) % 20 == 0).long()
    rates = torch.tensor([[0.0, 0.01], [0.0, 0.9]])[labels]  # [graphs, settings]
    losses = torch.rand(200, 1000, 2, generator=torch.Generator().manual_seed(0)) < rates
    for promise in (
        partial(risk_controlled, epsilon=0.1),
        partial(learn_then_test, epsilon=0.1, delta=0.1),
    ):
        assert promise(losses)[:, 1].all()
        controlled = in_every_class(promise, losses, labels, num_classes=2)
        assert controlled[:, 0].all()
        assert not controlled[:, 1].any()


def test_no_share_of_delta_is_due_to_a_class() -> None:
    """One class is just above epsilon, the other far below: the hardest case for every class."""
    labels = torch.arange(400) % 2
    rates = torch.tensor([[0.101], [0.01]])[labels]
    losses = torch.rand(DRAWS, 400, 1, generator=torch.Generator().manual_seed(0)) < rates
    promise = partial(learn_then_test, epsilon=0.1, delta=0.1)
    share = float(in_every_class(promise, losses, labels, 2).double().mean())
    assert share > 0.05
    assert within(share, 0.1, DRAWS)


def test_a_class_without_graphs_is_promised_nothing() -> None:
    losses, labels = torch.zeros(100, 2, dtype=torch.bool), torch.zeros(100, dtype=torch.long)
    for values in (losses, losses.float()):
        for promise in (
            partial(risk_controlled, epsilon=0.1),
            partial(learn_then_test, epsilon=0.1, delta=0.1),
        ):
            assert promise(values).all()
            assert not in_every_class(promise, values, labels, num_classes=2).any()


@pytest.mark.parametrize("delta", [None, 0.01, 0.05, 0.1])
@pytest.mark.parametrize("epsilon", [0.01, 0.05, 0.1, 0.18, 0.3])
def test_what_graphs_can_support_is_what_the_promises_need(
    epsilon: float, delta: float | None
) -> None:
    def promised(n: int, epsilon: float) -> bool:
        losses = torch.zeros(n, 1, dtype=torch.bool)
        if delta is None:
            return bool(risk_controlled(losses, epsilon))
        return bool(learn_then_test(losses, epsilon, delta))

    n = graphs_needed(epsilon, delta)
    assert promised(n, epsilon)
    assert not promised(n - 1, epsilon)
    least = smallest_risk(n, delta)
    assert promised(n, least * (1 + 1e-9))
    assert not promised(n, least * (1 - 1e-9))
    if delta:
        larger = math.ceil(1.2 * n)
        assert bool(learn_then_test(torch.zeros(larger, 1), epsilon, delta))


def test_without_graphs_nothing_is_promised() -> None:
    assert smallest_risk(0) == smallest_risk(0, delta=0.1) == 1
    for losses in (torch.zeros(0, 3), torch.zeros(0, 3, dtype=torch.bool)):
        assert not risk_controlled(losses, 0.9).any()
        assert not learn_then_test(losses, 0.9, 0.9).any()
    assert sparsest(torch.tensor([False]), torch.tensor([1.0])) is None


def test_the_sparsest_keeps_least_even_where_the_dial_does_not() -> None:
    kept = torch.tensor([1.0, 0.4, 0.5, 0.1])
    assert sparsest(torch.tensor([True, True, True, False]), kept) == 1


def test_losses_compare_with_the_whole_graph() -> None:
    labels, whole = torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 1, 0])
    parts = torch.tensor([[0, 1], [1, 0], [1, 2], [0, 2]])
    assert excess_errors(whole, parts, labels)[:, 1].tolist() == [True, False, True, False]
    assert disagreements(whole, parts)[:, 1].tolist() == [True, True, True, True]
    net = accuracy_losses(whole, parts, labels)
    assert net[:, 1].tolist() == [1, -1, 1, 0]
    for losses in (excess_errors(whole, parts, labels), disagreements(whole, parts), net):
        assert not losses[:, 0].any(), "nothing was removed"


def test_answers_that_turn_right_count_with_confidence_only() -> None:
    """A tenth turns wrong and a tenth right: no accuracy is lost."""
    whole = torch.zeros(1000, 1)
    signs = torch.tensor([1.0, -1.0] + [0.0] * 8).repeat(100)[:, None]
    losses = torch.cat([whole, signs], dim=1)
    assert learn_then_test(losses, 0.1, 0.1).tolist() == [True, True]
    assert not learn_then_test(losses > 0, 0.1, 0.1)[1]
    assert risk_controlled(losses, 0.1).tolist() == risk_controlled(losses > 0, 0.1).tolist()


def test_halves_have_no_graph_in_common_and_choose_only_where_they_can_promise() -> None:
    choosing, calibrating = halves(101, epsilon=0.1, delta=0.1)
    assert sorted(torch.cat([choosing, calibrating]).tolist()) == list(range(101))
    assert (len(choosing), len(calibrating)) == (51, 50)
    assert [len(part) for part in halves(44, 0.1, 0.1)] == [22, 22]
    assert [len(part) for part in halves(42, 0.1, 0.1)] == [0, 42]


@pytest.mark.parametrize("epsilon", [0.0, 1.0, -0.1, math.nan])
def test_a_risk_that_is_no_share_is_refused(epsilon: float) -> None:
    losses = torch.zeros(10, 2)
    with pytest.raises(UserError, match="`epsilon` must lie between 0 and 1"):
        risk_controlled(losses, epsilon)
    with pytest.raises(UserError, match="`delta` must lie between 0 and 1"):
        learn_then_test(losses, 0.1, epsilon)
    with pytest.raises(UserError, match="`epsilon`"):
        graphs_needed(epsilon)


@pytest.mark.parametrize("loss", [1.5, math.nan, math.inf])
def test_losses_above_one_are_refused(loss: float) -> None:
    losses = torch.zeros(10, 2)
    losses[3, 1] = loss
    with pytest.raises(UserError, match="at most 1"):
        risk_controlled(losses, 0.1)
    with pytest.raises(UserError, match="at most 1"):
        learn_then_test(losses, 0.1, 0.1)
