"""Which settings of a dial lose no more than promised: risk control on held-out graphs.

A model has a dial: its densest setting keeps the whole graph, others keep less. For every held-out
graph and every setting there is a loss. Two promises can be made of settings chosen by them:

* in expectation, :func:`risk_controlled` (conformal risk control, Angelopoulos et al. 2024):
  the loss of a new graph is at most epsilon, on average over held-out and new graphs;
* with confidence, :func:`learn_then_test` (Angelopoulos et al. 2021): with probability 1 - delta
  over the held-out graphs, the risk of this very model at the chosen setting is at most epsilon.

Columns of losses are settings, fixed beforehand, the densest first. Losses are at most 1. Both
functions tell which settings are controlled, always the first few; any of them may be used, and
:func:`sparsest` picks one. Where none is, nothing can be promised but the whole graph.

Pure functions of tensors; nothing here knows of models or data. Leading dimensions, where they are
allowed, are independent draws of held-out graphs.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cores.errors import UserError

Losses = Bool[Tensor, "*draws graphs settings"] | Float[Tensor, "*draws graphs settings"]
"""Bool where a graph is lost or not, float where losses have sizes."""

Controlled = Bool[Tensor, "*draws settings"]
PValues = Float[Tensor, "*draws settings"]

LARGEST_BET = 0.9
"""Of what a bet could be before a single loss of 1 takes all of the capital."""


def excess_errors(
    whole: Int[Tensor, " graphs"],
    parts: Int[Tensor, "graphs settings"],
    labels: Int[Tensor, " graphs"],
) -> Bool[Tensor, "graphs settings"]:
    """Right on the whole graph, wrong on the part that a setting keeps.

    Args:
        whole: Classes predicted from whole graphs.
        parts: Classes predicted at every setting.
        labels: True classes.

    >>> whole, labels = torch.tensor([1, 1]), torch.tensor([1, 0])
    >>> excess_errors(whole, torch.tensor([[1, 0], [1, 0]]), labels)
    tensor([[False,  True],
            [False, False]])
    """
    return (whole == labels)[:, None] & (parts != labels[:, None])


def disagreements(
    whole: Int[Tensor, " graphs"], parts: Int[Tensor, "graphs settings"]
) -> Bool[Tensor, "graphs settings"]:
    """Not the class that is predicted from the whole graph; needs no labels.

    >>> disagreements(torch.tensor([1, 1]), torch.tensor([[1, 0], [1, 0]]))
    tensor([[False,  True],
            [False,  True]])
    """
    return parts != whole[:, None]


def accuracy_losses(
    whole: Int[Tensor, " graphs"],
    parts: Int[Tensor, "graphs settings"],
    labels: Int[Tensor, " graphs"],
) -> Float[Tensor, "graphs settings"]:
    """1 where an answer turns wrong, -1 where it turns right: their mean is the accuracy lost.

    >>> whole, labels = torch.tensor([1, 1]), torch.tensor([1, 0])
    >>> accuracy_losses(whole, torch.tensor([[1, 0], [1, 0]]), labels)
    tensor([[ 0.,  1.],
            [ 0., -1.]])
    """
    return (whole == labels).float()[:, None] - (parts == labels[:, None]).float()


def risk_controlled(losses: Losses, epsilon: float) -> Controlled:
    """Conformal risk control: settings with (n R + 1) / (n + 1) <= epsilon.

    Theorem 1 of Angelopoulos, Bates, Fisch, Lei and Schuster (2024): if losses never fall from a
    setting to a sparser one, then at the sparsest of these settings, and so at all of them, the
    expected loss of a new graph is at most epsilon.

    Losses that do fall are replaced by their envelope, per graph the largest loss at this or any
    denser setting. Only this direction will do: it bounds the loss from above, and never falls
    from a setting to a sparser one (the largest over sparser settings never rises). So the promise
    holds for the envelope and all the more for the loss; it costs power where a graph that was
    lost once is not lost at sparser settings. The largest of the *mean* losses over denser settings
    would cost less, but is valid only as n grows.

    An answer that turns right makes up for nothing here: the whole graph's loss is 0, so the
    envelope is never below 0, and :func:`accuracy_losses` are controlled as
    :func:`excess_errors` are. Only :func:`learn_then_test` counts them.

    >>> losses = torch.zeros(19, 3, dtype=torch.bool)
    >>> losses[:4, 2] = True
    >>> risk_controlled(losses, epsilon=0.1)
    tensor([ True,  True, False])
    """
    _check(losses, epsilon)
    # Summed as integers where losses are, so that equality is not decided by rounding.
    total = losses.cummax(dim=-1).values.double().sum(dim=-2)
    return total <= float((losses.size(-2) + 1) * Fraction(str(epsilon)) - 1)


def learn_then_test(losses: Losses, epsilon: float, delta: float) -> Controlled:
    """Learn then test: with probability 1 - delta the risks of all these settings are <= epsilon.

    Fixed-sequence testing (Angelopoulos, Bates, Candès, Jordan and Lei 2021): from the densest
    setting to sparser ones, each is tested at level delta, until the first whose risk may exceed
    epsilon. A wrong setting passes only if the first wrong one in this order did, so that no
    correction for many settings is due. Losses may rise and fall as they like. The test is the
    exact one for losses that are bool, and :func:`betting_p_value` for others.

    Args:
        losses: Of independent graphs.
        epsilon: The largest risk that is allowed.
        delta: Probability, over held-out graphs, that some setting is wrong.

    >>> losses = torch.zeros(40, 3, dtype=torch.bool)
    >>> losses[:4, 2] = True
    >>> learn_then_test(losses, epsilon=0.1, delta=0.1)
    tensor([ True,  True, False])
    """
    _check(losses, epsilon)
    _check_share("delta", delta)
    if losses.dtype == torch.bool:
        values = binomial_p_value(losses, epsilon)
    else:
        values = betting_p_value(losses, epsilon, delta)
    return (values <= delta).cummin(dim=-1).values


def in_every_class(
    controlled: Callable[[Tensor], Tensor],
    losses: Losses,
    labels: Int[Tensor, " graphs"],
    num_classes: int,
) -> Controlled:
    """Settings that are controlled in every class, from the graphs of that class alone.

    The promise then holds for the worst class, so for the mean over classes and for all graphs,
    however frequent a class is or becomes. Nothing need be divided among the classes. With
    confidence: a setting is wrong if it is in *some* class, and passes only if the test of that
    class fails, which has probability delta (an intersection-union test). In expectation: the
    setting is at least as dense as the one that the new graph's class alone would allow. The price
    is that each class needs :func:`graphs_needed` graphs of its own.

    Args:
        controlled: One of the two promises, of losses alone.
        losses: Of all graphs.
        labels: True classes.
        num_classes: A class without graphs allows no setting.

    >>> losses = torch.tensor([[False, False, True]] + [[False, False, False]] * 38)
    >>> labels = torch.tensor([1] * 9 + [0] * 30)
    >>> def promise(losses): return risk_controlled(losses, epsilon=0.1)
    >>> promise(losses), in_every_class(promise, losses, labels, num_classes=2)
    (tensor([True, True, True]), tensor([ True,  True, False]))
    """
    classes = [controlled(losses[..., labels == label, :]) for label in range(num_classes)]
    return torch.stack(classes).all(dim=0)


def sparsest(
    controlled: Bool[Tensor, " settings"], kept_ratio: Float[Tensor, " settings"]
) -> int | None:
    """The controlled setting that keeps the smallest share; None where none is controlled.

    >>> sparsest(torch.tensor([True, True, False]), torch.tensor([1.0, 0.6, 0.3]))
    1
    """
    if not controlled.any():
        return None
    return int(kept_ratio.masked_fill(~controlled, torch.inf).argmin())


def binomial_p_value(losses: Bool[Tensor, "*draws graphs settings"], epsilon: float) -> PValues:
    """P(Bin(n, epsilon) <= graphs lost): exact for losses of 0 and 1.

    >>> binomial_p_value(torch.zeros(22, 1, dtype=torch.bool), epsilon=0.1)
    tensor([0.0985], dtype=torch.float64)
    """
    tail = _binomial_tail(losses.size(-2), epsilon).to(losses.device)
    return tail[losses.sum(dim=-2)]


def betting_p_value(
    losses: Float[Tensor, "*draws graphs settings"], epsilon: float, delta: float
) -> PValues:
    """One over the largest capital of a gambler who bets, graph by graph, on a risk below epsilon.

    Waudby-Smith and Ramdas (2024): the capital is the product of 1 + b_t (epsilon - L_t), where the
    bet b_t knows only the graphs before t. If the risk exceeds epsilon, the capital shrinks on
    average and reaches 1 / p with a probability of at most p (Ville). Bets are larger where
    losses have varied less, which makes this test the strongest of those that were compared for
    losses of many sizes and for those in [-1, 1] (results/promise.md).

    Graphs are bet on in one order, drawn with a fixed seed, since they may come sorted by class.

    Args:
        losses: At most 1; they may be negative.
        epsilon: The risk that is tested.
        delta: The level at which bets are the strongest; the p-value is valid at any.

    >>> betting_p_value(torch.zeros(40, 1), epsilon=0.1, delta=0.1)
    tensor([0.0228], dtype=torch.float64)
    """
    n = losses.size(-2)
    if n == 0:
        return losses.new_ones(losses.sum(dim=-2).shape, dtype=torch.float64)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(0)).to(losses.device)
    bet_on = losses[..., order, :].double()
    count = torch.arange(2, n + 2, device=losses.device)[:, None]  # [n, 1] graphs seen, plus one
    mean = bet_on.cumsum(dim=-2) / count
    variance = (0.25 + (bet_on - mean).square().cumsum(dim=-2)) / count
    start = torch.full_like(variance[..., :1, :], 0.25)
    past = torch.cat([start, variance[..., :-1, :]], dim=-2)
    bets = (2 * math.log(1 / delta) / (n * past)).sqrt().clamp(max=LARGEST_BET / (1 - epsilon))
    capital = (bets * (epsilon - bet_on)).log1p().cumsum(dim=-2)  # logarithms
    return (-capital.amax(dim=-2)).exp().clamp(max=1)


def smallest_risk(n: int, delta: float | None = None) -> float:
    """The smallest epsilon that ``n`` graphs can support, when none of them is lost.

    In expectation 1 / (n + 1); with confidence 1 - delta it solves (1 - epsilon)^n = delta. With a
    promise for every class, n is the number of graphs of the rarest.

    >>> round(smallest_risk(28), 4), round(smallest_risk(28, delta=0.1), 4)
    (0.0345, 0.0789)
    """
    if delta is None:
        return 1 / (n + 1)
    _check_share("delta", delta)
    return -math.expm1(math.log(delta) / n) if n else 1.0


def graphs_needed(epsilon: float, delta: float | None = None) -> int:
    """The smallest number of graphs that can support ``epsilon``, if none of them is lost.

    For losses that are 0 or 1. With confidence, losses of other sizes need about an eighth more
    (:func:`betting_p_value`).

    >>> graphs_needed(0.05), graphs_needed(0.05, delta=0.1)
    (19, 45)
    """
    _check_share("epsilon", epsilon)
    if delta is None:
        return math.ceil(1 / Fraction(str(epsilon)) - 1)
    _check_share("delta", delta)
    return math.ceil(math.log(delta) / math.log1p(-epsilon))


def halves(
    n: int, epsilon: float, delta: float | None = None, seed: int = 0
) -> tuple[Int[Tensor, " choosing"], Int[Tensor, " calibrating"]]:
    """Which of ``n`` graphs choose the setting, and which calibrate prediction sets at it.

    Sets are calibrated at the chosen setting. The graphs that chose it lose less there than new
    graphs do, so their quantile is too small for new ones; graphs that had no say are
    exchangeable with new ones at whatever setting was chosen, and coverage is exact. Two random
    halves, then. Where a half is too small to promise ``epsilon``, no graph chooses, and all
    calibrate. That is decided by the number of graphs alone: to divide them, find no setting, and
    then calibrate with all would let their losses decide again.

    For a promise in every class, divide each class.

    >>> [part.tolist() for part in halves(9, epsilon=0.2)]
    [[8, 0, 2, 3, 7], [1, 4, 5, 6]]
    >>> [len(part) for part in halves(20, epsilon=0.05)]
    [0, 20]
    """
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    choosing = (n + 1) // 2
    if choosing < graphs_needed(epsilon, delta):
        choosing = 0
    return order[:choosing], order[choosing:]


def _binomial_tail(n: int, epsilon: float) -> Float[Tensor, " counts"]:
    """P(Bin(n, epsilon) <= k) for k = 0 ... n, summed in logarithms."""
    k = torch.arange(n + 1, dtype=torch.float64)
    choices = math.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)
    log_mass = choices + k * math.log(epsilon) + (n - k) * math.log1p(-epsilon)
    return log_mass.logcumsumexp(dim=0).exp().clamp(max=1)


def _check(losses: Tensor, epsilon: float) -> None:
    _check_share("epsilon", epsilon)
    if losses.dtype != torch.bool and not bool((losses <= 1).all()):
        raise UserError("losses must be numbers of at most 1: divide them by the largest possible")


def _check_share(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise UserError(f"`{name}` must lie between 0 and 1; got {value}")
