"""Segments: pointers, owners and places say the same of the same items."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from cores.graphs.segments import gathered, owners, place_within, pointers

CPU = torch.device("cpu")

counts_of_segments = st.lists(st.integers(0, 5), max_size=8).map(
    lambda counts: torch.tensor(counts, dtype=torch.int64)
)


@given(counts_of_segments)
@settings(deadline=None)
def test_pointers_begin_at_nothing_and_rise_by_the_counts(counts: Tensor) -> None:
    ptr = pointers(counts)
    assert ptr[0] == 0
    assert torch.equal(ptr.diff(), counts)


@given(counts_of_segments)
@settings(deadline=None)
def test_owners_name_every_segment_as_often_as_it_has_items(counts: Tensor) -> None:
    owner = owners(counts)
    assert torch.equal(torch.bincount(owner, minlength=len(counts)), counts)
    assert (owner.diff() >= 0).all()
    assert torch.equal(owners(counts, total=int(counts.sum())), owner)


@given(counts_of_segments)
@settings(deadline=None)
def test_an_item_lies_at_its_place_behind_where_its_segment_begins(counts: Tensor) -> None:
    owner = owners(counts)
    place = place_within(owner, len(counts))
    assert torch.equal(pointers(counts)[owner] + place, torch.arange(len(owner)))
    assert (place < counts[owner]).all()


@given(counts_of_segments, st.data())
@settings(deadline=None)
def test_gathered_items_are_those_of_the_chosen_segments_in_that_order(
    counts: Tensor, data: st.DataObject
) -> None:
    """Any choice: none, some of them, one several times, in any order."""
    numbers = st.integers(0, max(len(counts) - 1, 0))
    chosen = data.draw(st.lists(numbers, max_size=10 if len(counts) else 0))
    ptr = pointers(counts)
    rows, owner, new = gathered(ptr, torch.tensor(chosen, dtype=torch.int64), CPU)
    expected = [list(range(int(ptr[each]), int(ptr[each + 1]))) for each in chosen]
    assert rows.tolist() == [row for segment in expected for row in segment]
    assert owner.tolist() == [at for at, segment in enumerate(expected) for _ in segment]
    assert new.diff().tolist() == [len(segment) for segment in expected]


@given(counts_of_segments)
@settings(deadline=None)
def test_all_segments_gathered_in_order_are_the_items_as_they_were(counts: Tensor) -> None:
    ptr = pointers(counts)
    rows, owner, new = gathered(ptr, torch.arange(len(counts)), CPU)
    assert torch.equal(rows, torch.arange(int(ptr[-1])))
    assert torch.equal(owner, owners(counts))
    assert torch.equal(new, ptr)
