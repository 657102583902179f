"""Search for a part of a graph that is enough: the policy proposes, questions decide.

A graph is a number of *units* that stay or go: nodes, undirected edges, or groups of them. A
*question* is a part of a graph, and its answer is *support*: how strongly a committee predicts from
that part alone what it is asked about. The functions here know no model, graph or task. Their
caller turns parts into subgraphs, and predictions into support; for classes it is
:func:`class_support`.

A part is *sufficient* if its support is at least a threshold. It is *1-minimal* if it is sufficient
and no single unit can go without losing that. It need not be the smallest: finding that is NP-hard.

The questions about many graphs are one flat batch, yet a graph's part does not depend on the other
graphs: supports that differ by at most :data:`TIE` are equal, and between equals the proposed order
decides.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cores.graphs.segments import gathered, owners, place_within, pointers

TIE = 1e-5
"""Supports that differ by no more are equal: the other graphs of a batch change one by less."""
ROUNDS = 12
"""A round of elimination removes at most the twelfth part of the units it began with."""
CANDIDATES = 64
"""Most groups of units that a round tries to remove from a graph."""
MOST_WORK = 4_000_000
"""Units in all the parts that are asked of one graph; what was found by then is returned."""
UNITS_AT_ONCE, UNITS_ON_GPU = 16_384, 4_000_000
"""Units in the parts that are asked together: as many as the cache of a CPU holds, or the memory of
a GPU."""
CUT_POINTS = 7, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4
"""Prefixes that each round of a cut asks of a graph; enough rounds for 78 million units."""

Ask = Callable[[Int[Tensor, " questions"], Bool[Tensor, " units"]], Float[Tensor, " questions"]]
"""Takes the graph of every question and the units it keeps, the questions end to end; returns the
support of each, and minus infinity for a part that must not be shown."""


@dataclass(frozen=True)
class Units:
    """The units of some graphs, end to end."""

    ptr: Int[Tensor, " graphs_plus_1"]
    """Graph i owns the units ``ptr[i]:ptr[i + 1]``; on the CPU."""
    order: Int[Tensor, " units"]
    """Place of every unit in the order that is proposed for its graph, from 0, the last to go."""
    fixed: Int[Tensor, " graphs"]
    """So many, the first of the order, never go."""
    fewest: int = 0
    """Least units of a part: 1 where a graph must not lose everything."""

    @property
    def owner(self) -> Int[Tensor, " units"]:
        """The graph of every unit."""
        return owners(self.count, len(self.order))

    @property
    def count(self) -> Int[Tensor, " graphs"]:
        """Units of each graph."""
        return self.ptr.diff().to(self.order.device)

    @property
    def least(self) -> Int[Tensor, " graphs"]:
        """Units that a part of each graph has at least."""
        return self.fixed.clamp(min=self.fewest).minimum(self.count)

    def sum(self, values: Bool[Tensor, " units"]) -> Int[Tensor, " graphs"]:
        """Count the units of each graph that are marked."""
        return torch.zeros_like(self.count).index_add(0, self.owner, values.long())


@dataclass(frozen=True)
class Parts:
    """A part of every graph."""

    kept: Bool[Tensor, " units"]
    support: Float[Tensor, " graphs"]
    wanted: Float[Tensor, " graphs"]
    threshold: Float[Tensor, " graphs"]
    """Least support of a sufficient part: what is wanted, or less where the search began with less;
    infinite while nothing was found."""
    weak: Bool[Tensor, " graphs"]
    """Whether the threshold is less than what was wanted."""
    minimal: Bool[Tensor, " graphs"]
    """Whether no single unit can go: each was tried."""
    questions: Int[Tensor, " graphs"]
    left: Int[Tensor, " units"]
    """Place of every unit in the order of leaving, from 0; those of the part come last, as was
    proposed."""

    @property
    def found(self) -> Bool[Tensor, " graphs"]:
        """Whether any part that was asked supports what it was asked about."""
        return self.threshold.isfinite()


def class_support(
    probs: Float[Tensor, "questions classes"], classes: Int[Tensor, " questions"]
) -> Float[Tensor, " questions"]:
    """Return a class's probability where no other has a larger one; else that less 1.

    >>> class_support(torch.tensor([[0.25, 0.75], [0.75, 0.25]]), torch.tensor([1, 1])).tolist()
    [0.75, -0.75]
    """
    own = probs.gather(-1, classes[:, None]).squeeze(-1)
    return torch.where(own >= probs.amax(-1) - TIE, own, own - 1)


def proposed_order(
    scores: Float[Tensor, " units"], rank: Int[Tensor, " units"], owner: Int[Tensor, " units"]
) -> Int[Tensor, " units"]:
    """Place of every unit by its score within its graph, the largest first; ties go by rank.

    >>> zeros = torch.zeros(3, dtype=torch.int64)
    >>> proposed_order(torch.tensor([0.1, 0.9, 0.1]), torch.tensor([2, 1, 0]), zeros).tolist()
    [2, 0, 1]
    """
    by_place = _descending(scores, rank, owner)
    graphs = int(owner[-1]) + 1 if len(owner) else 0
    return torch.empty_like(owner).index_copy(0, by_place, place_within(owner, graphs))


@torch.no_grad()
def prefix_parts(
    units: Units,
    ask: Ask,
    wanted: float | Float[Tensor, " graphs"],
    start: Int[Tensor, " graphs"] | None = None,
    least: float = 0.0,
) -> Parts:
    """Ask for a prefix of the proposed order, the whole graph by default, and search no further.

    Args:
        units: What may go.
        ask: Answers questions.
        wanted: Least support of a sufficient part; where the prefix has less, what that has.
        start: Length of the prefix.
        least: Least support that is any: of a class, 0.
    """
    graphs, count = torch.arange(len(units.count), device=units.order.device), units.count
    start = count if start is None else torch.minimum(start, count)
    asked = _Questions(units, ask)
    kept = units.order < start[units.owner]
    support = asked.answers(graphs, kept, units.order, torch.lt, start)
    goal = torch.as_tensor(wanted, dtype=support.dtype, device=support.device).expand_as(support)
    return Parts(
        kept=kept,
        support=support,
        wanted=goal,
        threshold=support.minimum(goal).where(support >= least, torch.inf),
        weak=support < goal - TIE,
        minimal=start <= units.least,
        questions=asked.number,
        left=count[units.owner] - 1 - units.order,
    )


@torch.no_grad()
def cut_parts(units: Units, ask: Ask, begun: Parts) -> Parts:
    """Cut the prefixes that :func:`prefix_parts` began with to shorter ones that are sufficient.

    Several lengths are asked in every round, between the longest known one that is not sufficient
    and the shortest that is, until the two are neighbours. Support need not grow with the length,
    so a shorter sufficient prefix may be missed.
    """
    asked = _Questions(units, ask, begun.questions)
    support, high = begun.support, units.sum(begun.kept)
    low = torch.minimum(units.least, high) - 1
    for points in CUT_POINTS:
        chosen = ((high - low > 1) & begun.found).nonzero().squeeze(1)  # [G]
        if not len(chosen):
            break
        first, last = low[chosen, None], high[chosen, None]
        steps = torch.arange(1, points + 1, device=high.device)
        lengths = first + ((last - first) * steps).div(points + 1, rounding_mode="floor")  # [G, P]
        new = torch.cat([first, lengths], dim=1).diff() > 0
        new &= lengths < last
        row = new.nonzero()[:, 0]
        everything = torch.ones_like(begun.kept)
        found = asked.answers(chosen[row], everything, units.order, torch.lt, lengths[new])
        answers = support.new_full(lengths.shape, -torch.inf).masked_scatter(new, found)
        enough = answers >= begun.threshold[chosen, None] - TIE
        shortest = torch.where(enough, lengths, last).amin(1)  # [G]
        too_short = torch.where(lengths < shortest[:, None], lengths, first).amax(1)
        at = (lengths == shortest[:, None]) & enough
        value = torch.where(at, answers, -torch.inf).amax(1)
        support = support.index_copy(0, chosen, value.where(at.any(1), support[chosen]))
        high, low = high.index_copy(0, chosen, shortest), low.index_copy(0, chosen, too_short)
    return replace(
        begun,
        kept=units.order < high[units.owner],
        support=support,
        minimal=high <= units.least,
        questions=asked.number,
    )


@torch.no_grad()
def minimal_parts(units: Units, ask: Ask, begun: Parts) -> Parts:
    """Eliminate units inside sufficient parts until no single one can go.

    Every round asks a graph's part without each of its units, or without each of
    :data:`CANDIDATES` groups of neighbours in the proposed order where there are more, and removes
    as many as it may of those without which support stays highest. Where a part does not support
    what is asked yet, the round removes them all the same, until one does; where none does, the
    part is what the search began with.
    """
    search = _Elimination(units, ask, begun)
    while search.round():  # until no graph has a unit to spare
        continue
    return search.parts()


class _Questions:
    """Asks in pieces that memory holds, and counts."""

    def __init__(self, units: Units, ask: Ask, number: Tensor | None = None) -> None:
        self.units, self.ask = units, ask
        self.number = torch.zeros_like(units.count) if number is None else number

    def answers(
        self,
        graphs: Int[Tensor, " questions"],
        kept: Bool[Tensor, " units"],
        values: Int[Tensor, " units"],
        holds: Callable[[Tensor, Tensor], Tensor],
        limits: Int[Tensor, " questions"],
    ) -> Float[Tensor, " questions"]:
        """Support of the kept units whose values hold against the question's limit."""
        self.number = self.number.index_add(0, graphs, torch.ones_like(graphs))
        last = self.units.count[graphs].cumsum(0)
        most = UNITS_ON_GPU if graphs.is_cuda else UNITS_AT_ONCE
        sizes = torch.bincount((last - 1).clamp(min=0) // most).tolist()
        found = []
        for chosen, limit in zip(graphs.split(sizes), limits.split(sizes), strict=True):
            if not len(chosen):
                continue
            rows, question, _ = gathered(self.units.ptr, chosen.cpu(), graphs.device)
            part = kept[rows] & holds(values[rows], limit[question])
            found.append(self.ask(chosen, part))
        return torch.cat(found) if found else torch.zeros(0, device=graphs.device)


class _Elimination:
    """The state of an elimination in many graphs."""

    def __init__(self, units: Units, ask: Ask, begun: Parts) -> None:
        self.units, self.owner, self.begun, self.found = units, units.owner, begun, begun
        self.asked = _Questions(units, ask, begun.questions)
        count, kept = units.count, units.sum(begun.kept)
        self.most = -(-kept // ROUNDS)  # [B] units that may go in one round
        self.width = self._widest(kept - units.fixed)  # [B] units in a group
        self.gone, self.work = count - kept, torch.zeros_like(count)  # [B]
        self.active = torch.ones_like(count, dtype=torch.bool)  # [B]
        # The last units of the proposed order come first: they go first.
        self.backwards = _descending(units.order.double(), units.order, self.owner)

    def round(self) -> bool:
        """Remove some units of every graph that has any to spare; return False where none has."""
        found, units = self.found, self.units
        free = found.kept & (units.order >= units.fixed[self.owner])  # [U]
        number = units.sum(free)
        self._finish(units.sum(found.kept) <= units.least)
        groups = -(-number // self.width) * self.active  # [B]
        self.active &= self.work + groups * units.count <= MOST_WORK
        groups = groups * self.active
        if not bool(self.active.any()):
            return False
        group = self._groups(free & self.active[self.owner])  # [U]
        graphs = owners(groups)  # [Q]
        answers = self._ask(graphs, group, torch.ne, place_within(graphs, len(groups)))
        ranked = _descending(answers, place_within(graphs, len(groups)), graphs)  # [Q]
        place = torch.empty_like(ranked).index_copy(0, ranked, place_within(graphs, len(groups)))
        first = pointers(groups)[:-1]
        # [U] the place of every unit's group, the best to remove first; -1 for units of no group
        place = torch.where(
            group < 0, -1, place[(first[self.owner] + group).clamp(0, len(place) - 1)]
        )
        best = torch.full_like(found.support, -torch.inf)
        best[self.active] = answers[ranked[first[self.active]]]
        useful = self.active & (best > -torch.inf)
        useful &= (best >= found.threshold - TIE) | ~found.found
        removed, support = self._try_more(place, groups, best, useful)
        gone = (place >= 0) & (place < removed[self.owner]) & useful[self.owner]
        self._remove(gone, place, support, useful)
        stuck = self.active & ~useful
        self._finish(stuck & (self.width == 1))
        narrower = torch.where(stuck, self.width // 2, self.width)
        self.width = narrower.minimum(self._widest(number - units.sum(gone))).clamp(min=1)
        return True

    def _groups(self, free: Bool[Tensor, " units"]) -> Int[Tensor, " units"]:
        """Number each graph's groups of free units, those to go first first; -1 for other units."""
        rows = self.backwards[free[self.backwards]]
        place = place_within(self.owner[rows], len(self.width))
        group = place // self.width[self.owner[rows]]
        return torch.full_like(self.owner, -1).index_copy(0, rows, group)

    def _try_more(
        self, place: Tensor, groups: Tensor, best: Tensor, useful: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return how many of the best groups may go at once, and the support without them."""
        removed, support, number = torch.ones_like(groups), best, 1
        stays = place.masked_fill(place < 0, torch.iinfo(place.dtype).max)
        while True:
            number *= 2
            fits = useful & (number * self.width <= self.most) & (number < groups)
            graphs = fits.nonzero().squeeze(1)
            if not len(graphs):
                return removed, support
            answers = self._ask(graphs, stays, torch.ge, torch.full_like(graphs, number))
            threshold = self.found.threshold[graphs]
            better = answers >= torch.where(threshold.isinf(), support[graphs], threshold) - TIE
            removed = removed.index_put((graphs[better],), removed.new_tensor(number))
            support = support.index_put((graphs[better],), answers[better])

    def _ask(
        self, graphs: Tensor, values: Tensor, holds: Callable[..., Tensor], limits: Tensor
    ) -> Tensor:
        self.work = self.work.index_add(0, graphs, self.units.count[graphs])
        return self.asked.answers(graphs, self.found.kept, values, holds, limits)

    def _remove(self, gone: Tensor, place: Tensor, support: Tensor, useful: Tensor) -> None:
        rows = self.backwards[gone[self.backwards]]  # [G] by graph, the last of the order first
        rows = rows[place[rows].argsort(stable=True)]
        rows = rows[self.owner[rows].argsort(stable=True)]  # within a graph, the best group first
        owner, found = self.owner[rows], self.found
        left = self.gone[owner] + place_within(owner, len(self.gone))
        self.gone = self.gone + self.units.sum(gone)
        support = torch.where(useful, support, found.support)
        reached = ~found.found & (support >= 0)
        self.found = replace(
            found,
            kept=found.kept & ~gone,
            support=support,
            threshold=torch.where(reached, support.minimum(found.wanted), found.threshold),
            weak=torch.where(reached, support < found.wanted - TIE, found.weak),
            left=found.left.index_copy(0, rows, left),
        )

    def _finish(self, graphs: Bool[Tensor, " graphs"]) -> None:
        """Stop in graphs where no single unit can go."""
        minimal = self.found.minimal | (graphs & self.active & self.found.found)
        self.found = replace(self.found, minimal=minimal)
        self.active = self.active & ~graphs

    def _widest(self, number: Int[Tensor, " graphs"]) -> Int[Tensor, " graphs"]:
        """Units in each of so many groups that a round can try them all."""
        return (-(-number // CANDIDATES)).clamp(min=1)

    def parts(self) -> Parts:
        """Return the parts; those of graphs that had to stop early are not minimal."""
        rows = self.backwards[self.found.kept[self.backwards]]
        left = self.gone[self.owner[rows]] + place_within(self.owner[rows], len(self.gone))
        left = self.found.left.index_copy(0, rows, left)
        found, begun, any_found = self.found, self.begun, self.found.found
        units = any_found[self.owner]
        return replace(
            found,
            kept=found.kept.where(units, begun.kept),
            support=found.support.where(any_found, begun.support),
            left=left.where(units, begun.left),
            questions=self.asked.number,
        )


def _descending(
    values: Tensor, ties: Int[Tensor, " items"], owner: Int[Tensor, " items"]
) -> Int[Tensor, " items"]:
    """Sort items by graph, in a graph by value, the largest first, and equal ones by ``ties``.

    Values are equal where no gap of more than :data:`TIE` is between them, so that what another
    batch changes in the last digits changes no order.
    """
    rows = values.argsort(descending=True, stable=True)
    rows = rows[owner[rows].argsort(stable=True)]
    sorted_, graphs = values[rows], owner[rows]
    apart = (sorted_[:-1] - sorted_[1:] > TIE) | (graphs[:-1] != graphs[1:])
    level = torch.cat([apart.new_zeros(min(len(rows), 1)), apart]).cumsum(0)  # [I] of equals
    by_tie = ties[rows].argsort(stable=True)
    return rows[by_tie[level[by_tie].argsort(stable=True)]]
