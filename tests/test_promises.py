"""Promises about losses hold in worlds in which the true risk of every setting is known.

Held-out graphs are drawn many times; in each draw `cores.risk` chooses a setting, whose true risk
is looked up.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest
import torch
from torch import Generator, Tensor

from cores.risk import in_every_class, learn_then_test, risk_controlled

STEPS = torch.linspace(0, 1, 10)
"""How far each setting goes, the safest first."""
RISE = 0.3 * STEPS**2
"""The risk of each setting, in most of the worlds."""
AT_ONCE = 5_000_000
"""Losses that are held in memory."""
DRAWS = 1000


@dataclass(frozen=True)
class World:
    """Losses of graphs at every setting, and what they are on average."""

    risks: Tensor
    """[settings], or [classes, settings]."""
    losses: Callable[[int, int, Generator], Tensor]
    """Of draws, graphs and a generator: [draws, graphs, settings]."""
    labels: Callable[[int], Tensor] | None = None
    """Classes of n graphs, where the promise is for every class."""


def world(name: str, epsilon: float) -> World:
    """One of WORLDS; in some of them it matters which risk is promised."""

    def once(draws: int, n: int, draw: Generator) -> Tensor:
        return torch.rand(draws, n, 1, generator=draw)

    def anew(draws: int, n: int, draw: Generator) -> Tensor:
        return torch.rand(draws, n, len(STEPS), generator=draw)

    def labels(n: int) -> Tensor:
        return (torch.arange(n) % 10 == 0).long()

    wave = RISE * torch.tensor([1.0, 1.6, 0.6]).repeat(4)[: len(RISE)]
    step = torch.where(STEPS < 0.5, 0.1, 1.001) * epsilon
    rates = torch.stack([RISE, (3 * RISE).clamp(max=1)])
    return {
        "rising": World(RISE, lambda *draw: once(*draw) < RISE),
        "rising and falling": World(wave, lambda *draw: anew(*draw) < wave),
        "just above ε": World(step, lambda *draw: once(*draw) < step),
        "a rare class": World(rates, lambda *draw: once(*draw) < rates[labels(draw[1])], labels),
    }[name]


WORLDS = "rising", "rising and falling", "just above ε", "a rare class"


@dataclass(frozen=True)
class Outcome:
    """What came of a promise over many draws."""

    risk: float
    """Mean true risk of what was chosen, the worst class's where there are classes."""
    risk_error: float
    exceeded: float
    """Share of draws in which it is above epsilon."""
    step: float
    """How far the chosen setting goes, on average."""


def outcome(controlled: Tensor, risks: Tensor, epsilon: float) -> Outcome:
    """Of the controlled settings of many draws [draws, settings]; without any, the first."""
    risks = risks.double().reshape(-1, len(STEPS))
    chosen = controlled.sum(dim=-1)  # one more than the index of the sparsest
    true = torch.cat([torch.zeros(len(risks), 1), risks], dim=-1)[:, chosen]  # [classes, draws]
    means = true.mean(dim=-1)
    return Outcome(
        risk=float(means.max()),
        risk_error=float(true[means.argmax()].std()) / math.sqrt(len(chosen)),
        exceeded=float((true.amax(dim=0) > epsilon).double().mean()),
        step=float(torch.cat([STEPS[:1], STEPS])[chosen].mean()),
    )


def simulated(
    name: str, n: int, epsilon: float, delta: float, draws: int, seed: int = 0
) -> tuple[Outcome, Outcome]:
    """Outcomes of the promise in expectation and of the one with confidence."""
    kind = world(name, epsilon)
    draw = Generator().manual_seed(seed)
    promises: list[Callable[[Tensor], Tensor]] = [
        partial(risk_controlled, epsilon=epsilon),
        partial(learn_then_test, epsilon=epsilon, delta=delta),
    ]
    if kind.labels:
        labels = kind.labels(n)
        promises = [
            partial(in_every_class, promise, labels=labels, num_classes=2) for promise in promises
        ]
    found: list[list[Tensor]] = [[], []]
    for some in torch.arange(draws).split(max(1, AT_ONCE // (n * len(STEPS)))):
        losses = kind.losses(len(some), n, draw)
        for promise, masks in zip(promises, found, strict=True):
            masks.append(promise(losses))
    first, second = (outcome(torch.cat(masks), kind.risks, epsilon) for masks in found)
    return first, second


def best_step(name: str, epsilon: float) -> float:
    """The last setting before the first whose true risk is above epsilon."""
    allowed = (world(name, epsilon).risks <= epsilon).reshape(-1, len(STEPS)).all(dim=0)
    return float(STEPS[allowed.cummin(dim=0).values].max())


@pytest.mark.parametrize("n", [20, 100, 1000])
@pytest.mark.parametrize("name", WORLDS)
def test_promises_are_kept(name: str, n: int) -> None:
    for epsilon, delta in ((0.1, 0.1), (0.05, 0.2)) if n < 1000 else ((0.1, 0.1),):
        mean, sure = simulated(name, n, epsilon, delta, DRAWS, seed=n)
        assert mean.risk <= epsilon + 3 * mean.risk_error
        assert sure.exceeded <= delta + 3 * math.sqrt(delta * (1 - delta) / DRAWS)


@pytest.mark.parametrize("name", WORLDS)
def test_promises_are_not_empty(name: str) -> None:
    """With 1,000 graphs a setting is chosen that is close to the best."""
    mean, sure = simulated(name, 1000, epsilon=0.1, delta=0.1, draws=200)
    best = best_step(name, 0.1)
    assert sure.step >= 0.6 * best
    # The envelope costs where losses come and go.
    assert mean.step >= (0.5 if name == "rising and falling" else 0.8) * best


def test_the_worlds_have_the_risks_they_say() -> None:
    for name in WORLDS:
        kind = world(name, 0.1)
        losses = kind.losses(200, 1000, torch.Generator().manual_seed(0)).double()
        if kind.labels:
            labels = kind.labels(1000)
            means = torch.stack([losses[:, labels == label].mean(dim=(0, 1)) for label in (0, 1)])
        else:
            means = losses.mean(dim=(0, 1))
        assert torch.allclose(means, kind.risks.double(), atol=0.01)
