"""Do settings that were chosen with a promise keep it?

    python benchmarks/promise_simulation.py --draws 2000

Held-out graphs are drawn many times from worlds in which the risk of every setting is known. In
each draw a setting is chosen by `cores.risk`, and its true risk is looked up. Prints three tables:
what was promised and what came of it, the power of tests for losses that are not 0 or 1, and the
coverage of prediction sets by which graphs calibrate them. Takes about a minute.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from scipy.stats import beta, binom
from torch import Generator, Tensor

from cores.conformal import conformal_quantile
from cores.risk import (
    betting_p_value,
    halves,
    in_every_class,
    learn_then_test,
    risk_controlled,
)
from inputs import parser

KEPT = torch.linspace(1, 0.1, 10)
"""The share that each setting keeps, the densest first."""
RISE = 0.3 * ((1 - KEPT) / 0.9) ** 2
"""The risk of each setting, in most of the worlds."""
AT_ONCE = 5_000_000
"""Losses that are held in memory."""
SIZES = (20, 100, 1000)


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
        return torch.rand(draws, n, len(KEPT), generator=draw)

    if name == "rising":
        return World(RISE, lambda *draw: once(*draw) < RISE)
    if name == "rising and falling":
        wave = RISE * torch.tensor([1.0, 1.6, 0.6]).repeat(4)[: len(RISE)]
        return World(wave, lambda *draw: anew(*draw) < wave)
    if name == "just above ε":
        step = torch.where(KEPT > 0.5, 0.1, 1.001) * epsilon
        return World(step, lambda *draw: once(*draw) < step)
    if name == "of all sizes":
        return World(RISE, lambda *draw: (once(*draw) < 2 * RISE) * once(*draw))
    if name == "all sizes, just above ε":
        step = torch.where(KEPT > 0.5, 0.1, 1.001) * epsilon
        return World(step, lambda *draw: (once(*draw) < 2 * step) * once(*draw))
    if name == "accuracy":  # three answers turn wrong for each that turns right
        return World(RISE, lambda *draw: signed(anew(*draw), 1.5 * RISE, 0.5 * RISE))
    assert name == "a rare class", name
    rates = torch.stack([RISE, (3 * RISE).clamp(max=1)])

    def labels(n: int) -> Tensor:
        return (torch.arange(n) % 10 == 0).long()

    return World(rates, lambda *draw: once(*draw) < rates[labels(draw[1])], labels)


WORLDS = (
    *("rising", "rising and falling", "just above ε"),
    *("of all sizes", "all sizes, just above ε", "accuracy", "a rare class"),
)


def signed(uniform: Tensor, wrong: Tensor, right: Tensor) -> Tensor:
    """1 with probability ``wrong``, -1 with probability ``right``."""
    return (uniform < wrong).float() - (uniform > 1 - right).float()


@dataclass(frozen=True)
class Outcome:
    """What came of a promise over many draws."""

    risk: float
    """Mean true risk of what was chosen, the worst class's where there are classes."""
    risk_error: float
    exceeded: float
    """Share of draws in which it is above epsilon."""
    exceeded_error: float
    kept: float
    """Mean share that the chosen setting keeps."""


def outcome(controlled: Tensor, risks: Tensor, epsilon: float) -> Outcome:
    """Of the controlled settings of many draws [draws, settings]; without any, all is kept."""
    risks = risks.double().reshape(-1, len(KEPT))
    chosen = controlled.sum(dim=-1)  # one more than the index of the sparsest
    true = torch.cat([torch.zeros(len(risks), 1), risks], dim=-1)[:, chosen]  # [classes, draws]
    means = true.mean(dim=-1)
    exceeded = (true.amax(dim=0) > epsilon).double()
    root = math.sqrt(len(chosen))
    return Outcome(
        risk=float(means.max()),
        risk_error=float(true[means.argmax()].std()) / root,
        exceeded=float(exceeded.mean()),
        exceeded_error=float(exceeded.std()) / root,
        kept=float(torch.cat([KEPT[:1], KEPT])[chosen].mean()),
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
    for some in pieces(draws, n):
        losses = kind.losses(some, n, draw)
        for promise, masks in zip(promises, found, strict=True):
            masks.append(promise(losses))
    first, second = (outcome(torch.cat(masks), kind.risks, epsilon) for masks in found)
    return first, second


def pieces(draws: int, n: int) -> Iterator[int]:
    """Numbers of draws whose losses fit in memory."""
    most = max(1, AT_ONCE // (n * len(KEPT)))
    while draws > 0:
        yield min(most, draws)
        draws -= most


def best_kept(name: str, epsilon: float) -> float:
    """What the sparsest setting keeps before the first whose true risk is above epsilon."""
    allowed = (world(name, epsilon).risks <= epsilon).reshape(-1, len(KEPT)).all(dim=0)
    return float(KEPT[allowed.cummin(dim=0).values].min())


def bernstein(losses: Tensor, epsilon: float, delta: float, least: float) -> Tensor:
    """Whether the empirical Bernstein bound is below epsilon (Maurer and Pontil 2009)."""
    n, log = losses.size(-2), math.log(2 / delta)
    spread = (2 * losses.var(dim=-2) * log / n).sqrt()
    return losses.mean(dim=-2) + spread + 7 * (1 - least) * log / (3 * (n - 1)) <= epsilon


def hoeffding_bentkus(losses: Tensor, epsilon: float) -> Tensor:
    """P-value of the mean of losses in [0, 1] (Bates et al. 2021, Angelopoulos et al. 2021).

    min(exp(-n h(min(R, epsilon), epsilon)), e P(Bin(n, epsilon) <= ceil(n R))), where h(a, b) is
    the divergence of two coins.
    """
    n = losses.size(-2)
    total = losses.double().sum(dim=-2)
    mean = (total / n).clamp(max=epsilon)
    divergence = torch.xlogy(mean, mean / epsilon)
    divergence += torch.xlogy(1 - mean, (1 - mean) / (1 - epsilon))
    bentkus = math.e * torch.from_numpy(binom.cdf(total.ceil(), n, epsilon))
    return torch.minimum((-n * divergence).exp(), bentkus)


def conditional(losses: Tensor, epsilon: float, delta: float) -> Tensor:
    """Exact, of 1, 0 and -1: answers that turn wrong, given how many turned right.

    A tenth of delta bounds the rate of answers that turn right (Clopper and Pearson).
    """
    n = losses.size(-2)
    wrong, right = ((losses == sign).sum(dim=-2).double() for sign in (1, -1))
    least = torch.from_numpy(beta.ppf(0.1 * delta, right, n - right + 1)).nan_to_num(0)
    rate = ((epsilon + least) / (1 - least)).clamp(max=1)
    return torch.from_numpy(binom.cdf(wrong, n - right, rate)) <= 0.9 * delta


def power(losses: Tensor, epsilon: float, delta: float, least: float) -> dict[str, float]:
    """How often each test finds that the risk of losses [draws, graphs, 1] is below epsilon."""
    scaled, bound = (losses - least) / (1 - least), (epsilon - least) / (1 - least)
    passed = {
        "Hoeffding–Bentkus": hoeffding_bentkus(scaled, bound) <= delta,
        "empirical Bernstein": bernstein(losses, epsilon, delta, least),
        "conditional": conditional(losses, epsilon, delta) if least else torch.tensor(torch.nan),
        "betting": betting_p_value(losses, epsilon, delta) <= delta,
    }
    return {name: float(found.double().mean()) for name, found in passed.items()}


def powers(draws: int, delta: float) -> Iterator[tuple[int, float, str, dict[str, float]]]:
    """Power by number of graphs and kind of losses, at risks which that many can just support."""
    draw = Generator().manual_seed(0)
    for n, epsilon in zip(SIZES, (0.2, 0.1, 0.05), strict=True):
        for wrong, right in ((0.01, 0.0), (0.02, 0.02), (0.05, 0.04), (0.1, 0.08)):
            rates = torch.tensor(wrong), torch.tensor(right)
            losses = signed(torch.rand(draws, n, 1, generator=draw), *rates)
            name = f"{wrong:.0%} turn wrong, {right:.0%} right"
            yield n, epsilon, name, power(losses, epsilon, delta, least=-1)
        uniform = torch.rand(2, draws, n, 1, generator=draw)
        for name, losses in (
            ("a tenth lose, up to 1", (uniform[0] < 0.1) * uniform[1]),
            ("all lose, up to 1.6 ε", 1.6 * epsilon * uniform[0]),
        ):
            yield n, epsilon, name, power(losses, epsilon, delta, least=0)


@dataclass(frozen=True)
class Sets:
    """Prediction sets at the chosen setting, over many draws."""

    coverage: float
    coverage_error: float
    size: float
    kept: float


def sets(n: int, draws: int, alpha: float = 0.1, epsilon: float = 0.1) -> dict[str, Sets]:
    """Prediction sets of two classes, by which of ``n`` graphs chose and calibrated.

    A graph's margin, the logit of its true class, has a part of its own and another at every
    setting; the sparser, the smaller the margin is on average.
    """
    everybody = torch.arange(n)
    ways = {
        "two halves": (*halves(n, epsilon), alpha, False),
        "all for both": (everybody, everybody, alpha, False),
        "all, α / settings": (everybody, everybody, alpha / len(KEPT), False),
        "all, largest score": (everybody, everybody, alpha, True),
    }
    draw = Generator().manual_seed(n)
    found: dict[str, list[Tensor]] = {name: [] for name in ways}
    for some in pieces(draws, n + 100):
        common = torch.randn(some, n + 100, 1, generator=draw)
        own = torch.randn(some, n + 100, len(KEPT), generator=draw)
        margins = 2.2 - 1.5 * (1 - KEPT) + common + 1.2 * own * (1 - KEPT)
        for name, way in ways.items():
            found[name].append(covered(margins[:, :n], margins[:, n:], *way, epsilon=epsilon))
    summary = {}
    for name, values in found.items():
        table = torch.cat(values)
        coverage, size, kept = table.mean(dim=0).tolist()
        error = float(table[:, 0].std()) / math.sqrt(draws)
        summary[name] = Sets(coverage, error, size, kept)
    return summary


def covered(
    seen: Tensor,
    new: Tensor,
    choosing: Tensor,
    calibrating: Tensor,
    alpha: float,
    largest: bool,
    epsilon: float,
) -> Tensor:
    """Coverage, size of sets and kept share [draws, 3] from margins [draws, graphs, settings].

    With ``largest``, a graph's score is the largest of those at all settings, so that sets hold the
    true label at all settings at once.
    """
    lost = (seen[:, choosing, :1] > 0) & (seen[:, choosing] <= 0)
    setting = (risk_controlled(lost, epsilon).sum(dim=-1) - 1).clamp(min=0)  # [draws]

    def at_setting(margins: Tensor) -> Tensor:
        return margins.gather(-1, setting[:, None, None].expand(*margins.shape[:2], 1)).squeeze(-1)

    calibration = seen[:, calibrating]
    true = calibration.amin(dim=-1) if largest else at_setting(calibration)
    scores = (-true).sigmoid()  # 1 - p of the true class
    q_hat = torch.stack([conformal_quantile(each, alpha) for each in scores])[:, None]
    chance = at_setting(new).sigmoid()
    coverage = (1 - chance <= q_hat).double().mean(dim=-1)
    other = (chance <= q_hat).double().mean(dim=-1)
    return torch.stack([coverage, coverage + other, KEPT.double()[setting]], dim=-1)


def main() -> None:
    """Print the tables."""
    options = parser(__doc__)
    options.add_argument("--draws", type=int, default=2000)
    options.add_argument("--epsilon", type=float, default=0.1)
    options.add_argument("--delta", type=float, default=0.1)
    given = options.parse_args()
    epsilon, delta, draws = given.epsilon, given.delta, given.draws
    torch.set_num_threads(1)
    print(f"ε = {epsilon}, δ = {delta}, {draws} draws\n")
    print("| losses | graphs | mean risk (a) | kept (a) | above ε (b) | kept (b) | best |")
    print("|---|---|---|---|---|---|---|")
    for name in WORLDS:
        for n in SIZES:
            mean, sure = simulated(name, n, epsilon, delta, draws)
            cells = f"{mean.risk:.4f} ± {mean.risk_error:.4f} | {mean.kept:.2f}"
            cells += f" | {sure.exceeded:.3f} ± {sure.exceeded_error:.3f} | {sure.kept:.2f}"
            print(f"| {name} | {n} | {cells} | {best_kept(name, epsilon):.2f} |", flush=True)
    names: list[str] = []
    for n, level, kind, found in powers(draws, delta):
        if not names:
            names = list(found)
            print(f"\n| graphs | ε | losses | {' | '.join(names)} |")
            print(f"|---|---|---|{'---|' * len(names)}")
        shown = ["–" if math.isnan(found[each]) else f"{found[each]:.2f}" for each in names]
        print(f"| {n} | {level} | {kind} | {' | '.join(shown)} |", flush=True)
    print(
        "\n| graphs | set at the chosen setting | coverage | labels | kept |\n|---|---|---|---|---|"
    )
    for n in SIZES:
        for name, each in sets(n, draws).items():
            cells = f"{each.coverage:.4f} ± {each.coverage_error:.4f} | {each.size:.2f}"
            print(f"| {n} | {name} | {cells} | {each.kept:.2f} |", flush=True)


if __name__ == "__main__":
    main()
