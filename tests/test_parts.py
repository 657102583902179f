"""Parts of small graphs against all of their subsets, and of larger ones with known answers."""

import math

import pytest
import torch
from torch import Tensor

from cores import parts
from cores.graphs.segments import pointers
from cores.parts import (
    TIE,
    Ask,
    Parts,
    Units,
    class_support,
    cut_parts,
    minimal_parts,
    prefix_parts,
    proposed_order,
)

TAU = 0.7
SEEDS = pytest.mark.parametrize("seed", range(6))


class World:
    """Graphs whose parts have probabilities from a table: one row for every subset of units."""

    def __init__(self, seed: int, graphs: int = 12, most: int = 7) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.count = torch.randint(1, most + 1, (graphs,), generator=generator)
        self.tables = [
            (3 * torch.randn(2 ** int(units), 2, generator=generator)).softmax(-1)
            for units in self.count
        ]
        orders = [torch.randperm(int(units), generator=generator) for units in self.count]
        self.units = Units(pointers(self.count), torch.cat(orders), torch.ones_like(self.count))
        self.classes = torch.tensor([int(table[-1].argmax()) for table in self.tables])
        self.asked: list[tuple[int, tuple[bool, ...]]] = []

    def support(self, graph: int, kept: Tensor) -> float:
        place = int((kept.long() * 2 ** torch.arange(len(kept))).sum())
        probs = self.tables[graph][place][None]
        return float(class_support(probs, self.classes[graph : graph + 1]))

    def ask(self, graphs: Tensor, kept: Tensor) -> Tensor:
        pieces = kept.split(self.count[graphs].tolist())
        numbers = graphs.tolist()
        self.asked += [
            (graph, tuple(piece.tolist())) for graph, piece in zip(numbers, pieces, strict=True)
        ]
        found = [self.support(graph, piece) for graph, piece in zip(numbers, pieces, strict=True)]
        return torch.tensor(found)

    def alone(self, graph: int) -> tuple[Units, Ask]:
        first, last = self.units.ptr[graph : graph + 2].tolist()
        units = Units(
            torch.tensor([0, last - first]), self.units.order[first:last], torch.ones(1).long()
        )
        return units, lambda graphs, kept: self.ask(graphs + graph, kept)

    def of(self, values: Tensor) -> list[Tensor]:
        return list(values.split(self.count.tolist()))


def searched(units: Units, ask: Ask, wanted: float = TAU) -> Parts:
    return minimal_parts(units, ask, cut_parts(units, ask, prefix_parts(units, ask, wanted)))


@SEEDS
def test_parts_are_sufficient_and_no_single_unit_can_go(seed: int) -> None:
    world = World(seed)
    found = searched(world.units, world.ask)
    assert len(world.asked) == int(found.questions.sum())
    assert found.minimal.all()
    assert found.found.all()
    for graph, kept in enumerate(world.of(found.kept)):
        whole = world.support(graph, torch.ones_like(kept))
        assert math.isclose(float(found.threshold[graph]), min(TAU, whole), abs_tol=1e-6)
        assert bool(found.weak[graph]) == (whole < TAU - TIE)
        assert math.isclose(float(found.support[graph]), world.support(graph, kept), abs_tol=1e-6)
        assert found.support[graph] >= found.threshold[graph] - TIE
        order = world.of(world.units.order)[graph]
        for unit in (kept & (order > 0)).nonzero().flatten().tolist():
            without = kept.clone()
            without[unit] = False
            assert world.support(graph, without) < found.threshold[graph] - TIE


@SEEDS
def test_a_cut_is_sufficient_and_the_prefix_that_is_one_shorter_is_not(seed: int) -> None:
    world = World(seed)
    found = cut_parts(world.units, world.ask, prefix_parts(world.units, world.ask, TAU))
    orders = world.of(world.units.order)
    for graph, (kept, order) in enumerate(zip(world.of(found.kept), orders, strict=True)):
        length = int(kept.sum())
        assert torch.equal(kept, order < length)
        assert world.support(graph, kept) >= found.threshold[graph] - TIE
        assert length == 1 or world.support(graph, order < length - 1) < found.threshold[graph]


@SEEDS
def test_a_graph_has_the_same_part_alone_and_in_any_batch(seed: int) -> None:
    world = World(seed)
    together = searched(world.units, world.ask)
    for graph, (kept, left) in enumerate(
        zip(world.of(together.kept), world.of(together.left), strict=True)
    ):
        found = searched(*world.alone(graph))
        assert torch.equal(found.kept, kept)
        assert torch.equal(found.left, left)
        assert found.questions[0] == together.questions[graph]


@SEEDS
def test_units_leave_in_an_order_that_ends_with_the_part(seed: int) -> None:
    world = World(seed)
    found = searched(world.units, world.ask)
    for kept, left in zip(world.of(found.kept), world.of(found.left), strict=True):
        assert sorted(left.tolist()) == list(range(len(left)))
        assert bool((left[kept] >= int((~kept).sum())).all())


@SEEDS
def test_a_class_that_is_first_nowhere_on_the_path_has_no_part(seed: int) -> None:
    world = World(seed)
    world.classes = 1 - world.classes
    begun = prefix_parts(world.units, world.ask, TAU)
    assert not begun.found.any()
    found = minimal_parts(world.units, world.ask, cut_parts(world.units, world.ask, begun))
    for graph, kept in enumerate(world.of(found.kept)):
        assert bool(found.found[graph]) == (world.support(graph, kept) >= 0)
        of_graph = {kept for number, kept in world.asked if number == graph}
        if not found.found[graph]:
            assert all(world.support(graph, torch.tensor(kept)) < 0 for kept in of_graph)
            assert kept.all(), "the part is what the search began with"
            assert not found.minimal[graph] or len(kept) == 1


def sum_world(weights: Tensor, graphs: int = 1) -> tuple[Units, Ask]:
    """Parts are supported by the sum of their units' weights."""
    units = Units(
        pointers(torch.tensor([len(weights)] * graphs)),
        torch.arange(len(weights)).repeat(graphs),
        torch.ones(graphs).long(),
    )

    def ask(graphs: Tensor, kept: Tensor) -> Tensor:
        return (kept.view(len(graphs), -1) * weights).sum(1)

    return units, ask


def test_elimination_finds_the_few_units_that_matter_among_many() -> None:
    weights = torch.full((500,), 1e-6)
    weights[[3, 77, 401]] = 0.3
    units, ask = sum_world(weights)
    found = searched(units, ask, 0.85)
    assert found.kept.nonzero().flatten().tolist() == [0, 3, 77, 401]  # the first never goes
    assert bool(found.minimal)
    assert int(found.questions) < 1000


def test_equal_units_leave_from_the_end_of_the_proposed_order() -> None:
    weights = torch.full((6,), 0.25)
    noisy = weights + torch.tensor([3.0, -2.0, 1.0, -3.0, 2.0, 0.0]) * 1e-7
    for each in (weights, noisy):
        units, ask = sum_world(each)
        found = minimal_parts(units, ask, prefix_parts(units, ask, 0.5))
        assert found.kept.tolist() == [True, True, False, False, False, False]


def test_a_search_that_may_ask_no_more_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MOST_WORK", 50)
    weights = torch.full((40,), 1.0)
    units, ask = sum_world(weights)
    found = minimal_parts(units, ask, prefix_parts(units, ask, 0.5))
    assert found.kept.all()
    assert not found.minimal
    assert int(found.questions) == 1


def test_memory_is_bounded_by_asking_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(7)
    expected = searched(world.units, world.ask)
    monkeypatch.setattr(parts, "UNITS_AT_ONCE", 20)
    sizes = []

    def ask(graphs: Tensor, kept: Tensor) -> Tensor:
        sizes.append(len(kept))
        return world.ask(graphs, kept)

    found = searched(world.units, ask)
    assert torch.equal(found.kept, expected.kept)
    assert max(sizes) <= 20 + 7


def test_a_part_that_must_not_be_shown_is_never_kept() -> None:
    weights = torch.tensor([0.4, 0.4, 0.4, 0.4])
    units, free = sum_world(weights)

    def ask(graphs: Tensor, kept: Tensor) -> Tensor:
        shown = kept.view(len(graphs), -1)
        apart = shown[:, 0] & shown[:, 2] & ~shown[:, 1]  # 0 and 2 only with 1 between them
        return free(graphs, kept).where(~apart, -torch.inf)

    found = minimal_parts(units, ask, prefix_parts(units, ask, 1.1))
    assert found.kept.tolist() == [True, True, True, False]


def test_nothing_may_stay_where_no_unit_is_fixed() -> None:
    units = Units(torch.tensor([0, 3]), torch.arange(3), torch.zeros(1).long())
    found = searched(units, lambda graphs, kept: torch.full((len(graphs),), 0.9))
    assert not found.kept.any()
    assert bool(found.minimal)


@SEEDS
def test_one_unit_stays_at_least_and_it_may_be_any(seed: int) -> None:
    world = World(seed)
    free = Units(world.units.ptr, world.units.order, torch.zeros_like(world.count), fewest=1)
    found = searched(free, world.ask)
    assert all(any(kept) for _, kept in world.asked)
    assert found.minimal.all()
    first = 0
    for graph, kept in enumerate(world.of(found.kept)):
        first += int(not kept[world.of(free.order)[graph] == 0])
        for unit in kept.nonzero().flatten().tolist():
            without = kept.clone()
            without[unit] = False
            assert not without.any() or (
                world.support(graph, without) < found.threshold[graph] - TIE
            )
    assert first, "the first of the order goes where another unit is enough"


def test_a_graph_without_units_keeps_what_it_has() -> None:
    units = Units(torch.tensor([0, 0, 1]), torch.zeros(1).long(), torch.tensor([0, 1]))
    found = searched(units, lambda graphs, kept: torch.full((len(graphs),), 0.9))
    assert found.kept.tolist() == [True]
    assert found.minimal.tolist() == [True, True]


def test_the_order_is_by_score_and_ties_go_by_rank() -> None:
    scores = torch.tensor([0.2, 0.9, 0.9 + 1e-7, 0.1, 0.5])
    rank = torch.tensor([0, 1, 2, 0, 1])
    owner = torch.tensor([0, 0, 0, 1, 1])
    assert proposed_order(scores, rank, owner).tolist() == [2, 0, 1, 1, 0]
