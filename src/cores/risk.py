"""Which settings err no more often than promised: risk control on held-out graphs.

A setting, such as a sufficiency, goes wrong on some graphs and not on others. Two promises can be
made of settings that are chosen by held-out graphs:

* in expectation, :func:`risk_controlled` (conformal risk control, Angelopoulos et al. 2024):
  the probability that a new graph is lost is at most epsilon, on average over held-out and new
  graphs;
* with confidence, :func:`learn_then_test` (Angelopoulos et al. 2021): with probability 1 - delta
  over the held-out graphs, the risk of this very model at the chosen setting is at most epsilon.

Columns of losses are settings, fixed beforehand, the safest first. Both functions tell which
settings are controlled, always the first few; any of them may be used. Where none is, nothing can
be promised.

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

Losses = Bool[Tensor, "*draws graphs settings"]
"""Whether a graph is lost at a setting."""
Controlled = Bool[Tensor, "*draws settings"]


def risk_controlled(losses: Losses, epsilon: float) -> Controlled:
    """Conformal risk control: settings with (n R + 1) / (n + 1) <= epsilon.

    Theorem 1 of Angelopoulos, Bates, Fisch, Lei and Schuster (2024): if losses never fall from a
    setting to the next, then at the last of these settings, and so at all of them, the expected
    loss of a new graph is at most epsilon.

    Losses that do fall are replaced by their envelope, per graph the largest loss at this or any
    earlier setting. It bounds the loss from above and never falls, so the promise holds for the
    envelope and all the more for the loss. The largest of the *mean* losses would cost less, but is
    valid only as n grows.

    >>> losses = torch.zeros(19, 3, dtype=torch.bool)
    >>> losses[:4, 2] = True
    >>> risk_controlled(losses, epsilon=0.1)
    tensor([ True,  True, False])
    """
    _check_share("epsilon", epsilon)
    # Exact, so that equality is not decided by rounding.
    total = losses.cummax(dim=-1).values.sum(dim=-2)
    return total <= float((losses.size(-2) + 1) * Fraction(str(epsilon)) - 1)


def learn_then_test(losses: Losses, epsilon: float, delta: float) -> Controlled:
    """Learn then test: with probability 1 - delta the risks of all these settings are <= epsilon.

    Fixed-sequence testing (Angelopoulos, Bates, Candès, Jordan and Lei 2021): from the first
    setting on, each is tested at level delta, until the first whose risk may exceed epsilon. A
    wrong setting passes only if the first wrong one in this order did, so that no correction for
    many settings is due. Losses may rise and fall as they like.

    Args:
        losses: Of independent graphs.
        epsilon: The largest risk that is allowed.
        delta: Probability, over held-out graphs, that some setting is wrong.

    >>> losses = torch.zeros(40, 3, dtype=torch.bool)
    >>> losses[:4, 2] = True
    >>> learn_then_test(losses, epsilon=0.1, delta=0.1)
    tensor([ True,  True, False])
    """
    _check_share("epsilon", epsilon)
    _check_share("delta", delta)
    return (binomial_p_value(losses, epsilon) <= delta).cummin(dim=-1).values


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
    setting is at least as safe as the one that the new graph's class alone would allow. The price
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


def binomial_p_value(losses: Losses, epsilon: float) -> Float[Tensor, "*draws settings"]:
    """P(Bin(n, epsilon) <= graphs lost).

    >>> binomial_p_value(torch.zeros(22, 1, dtype=torch.bool), epsilon=0.1)
    tensor([0.0985], dtype=torch.float64)
    """
    tail = _binomial_tail(losses.size(-2), epsilon).to(losses.device)
    return tail[losses.sum(dim=-2)]


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

    >>> graphs_needed(0.05), graphs_needed(0.05, delta=0.1)
    (19, 45)
    """
    _check_share("epsilon", epsilon)
    if delta is None:
        return math.ceil(1 / Fraction(str(epsilon)) - 1)
    _check_share("delta", delta)
    return math.ceil(math.log(delta) / math.log1p(-epsilon))


def _binomial_tail(n: int, epsilon: float) -> Float[Tensor, " counts"]:
    """P(Bin(n, epsilon) <= k) for k = 0 ... n, summed in logarithms."""
    k = torch.arange(n + 1, dtype=torch.float64)
    choices = math.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)
    log_mass = choices + k * math.log(epsilon) + (n - k) * math.log1p(-epsilon)
    return log_mass.logcumsumexp(dim=0).exp().clamp(max=1)


def _check_share(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise UserError(f"`{name}` must lie between 0 and 1; got {value}")
