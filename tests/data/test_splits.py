"""Who may look at which graphs."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cores.config import PartsConfig
from cores.data.splits import split_graphs
from cores.errors import UserError

ROLES = ("train", "policy", "selection", "calibration", "test")
PAPER = PartsConfig(policy=0.5, selection=0.0, calibration=0.0)

labels_of_classes = st.lists(st.integers(5, 60), min_size=2, max_size=5).map(
    lambda counts: torch.cat([torch.full((n,), label) for label, n in enumerate(counts)])
)


@given(labels_of_classes, st.integers(1, 1000))
@settings(max_examples=50, deadline=None)
def test_no_graph_has_two_roles_and_none_is_left_out(labels: torch.Tensor, number: int) -> None:
    split = split_graphs(labels, number, PartsConfig())
    drawn = torch.cat([getattr(split, role) for role in ROLES])
    assert drawn.sort().values.tolist() == list(range(len(labels)))


@given(labels_of_classes, st.integers(1, 1000))
@settings(max_examples=50, deadline=None)
def test_every_role_sees_every_class(labels: torch.Tensor, number: int) -> None:
    split = split_graphs(labels, number, PartsConfig())
    for role in ROLES:
        assert set(labels[getattr(split, role)].tolist()) == set(labels.tolist()), role


@given(labels_of_classes, st.integers(1, 1000))
@settings(max_examples=50, deadline=None)
def test_the_test_graphs_are_the_same_under_every_preset(labels: torch.Tensor, number: int) -> None:
    default, paper = (split_graphs(labels, number, parts) for parts in (PartsConfig(), PAPER))
    assert torch.equal(default.test, paper.test)


def test_the_paper_selects_on_the_policy_part_and_calibrates_nothing() -> None:
    split = split_graphs(torch.arange(100) % 2, 1, PAPER)
    assert torch.equal(split.selection, split.policy)
    assert len(split.calibration) == 0
    assert [len(split.train), len(split.policy), len(split.test)] == [40, 50, 10]


@pytest.mark.parametrize(("graphs", "test"), [(135, 14), (349, 35), (405, 41), (467, 47)])
def test_the_test_part_rounds_up(graphs: int, test: int) -> None:
    labels = (torch.arange(graphs) % 4 == 0).long()
    assert len(split_graphs(labels, 1, PartsConfig()).test) == test


def test_splits_are_seeded_by_their_number() -> None:
    labels = torch.arange(200) % 2
    first, again, second = (split_graphs(labels, n, PartsConfig()).test for n in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, second)


def test_parts_keep_the_classes_proportions() -> None:
    labels = (torch.arange(1000) % 5 == 0).long()
    split = split_graphs(labels, 1, PartsConfig())
    for role in ROLES:
        assert labels[getattr(split, role)].float().mean() == pytest.approx(0.2, abs=0.01)


def test_a_class_too_small_for_the_parts_is_named() -> None:
    labels = torch.tensor([0] * 50 + [1] * 4)
    with pytest.raises(UserError, match="class 1 has 4 graphs, but each of the 5 parts"):
        split_graphs(labels, 1, PartsConfig())
