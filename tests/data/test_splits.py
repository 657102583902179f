"""Who may look at which graphs."""

import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cores.config import PartsConfig
from cores.data import splits
from cores.data.dataset import Dataset
from cores.data.splits import Split, scaffold, split_dataset
from cores.errors import UserError
from cores.graphs.store import GraphStore

ROLES = ("train", "policy", "selection", "calibration", "test")
PAPER = PartsConfig(policy=0.5, selection=0.0, calibration=0.0)

labels_of_classes = st.lists(st.integers(5, 60), min_size=2, max_size=5).map(
    lambda counts: torch.cat([torch.full((n,), label) for label, n in enumerate(counts)])
)


@given(labels_of_classes, st.integers(1, 1000))
@settings(max_examples=50, deadline=None)
def test_no_graph_has_two_roles_and_none_is_left_out(labels: torch.Tensor, number: int) -> None:
    split = split_dataset(dataset_of(labels), number, PartsConfig())
    drawn = torch.cat([getattr(split, role) for role in ROLES])
    assert drawn.sort().values.tolist() == list(range(len(labels)))


@given(labels_of_classes, st.integers(1, 1000))
@settings(max_examples=50, deadline=None)
def test_every_role_sees_every_class(labels: torch.Tensor, number: int) -> None:
    split = split_dataset(dataset_of(labels), number, PartsConfig())
    for role in ROLES:
        assert set(labels[getattr(split, role)].tolist()) == set(labels.tolist()), role


@given(labels_of_classes, st.integers(1, 1000))
@settings(max_examples=50, deadline=None)
def test_the_test_graphs_are_the_same_under_every_preset(labels: torch.Tensor, number: int) -> None:
    default, paper = (
        split_dataset(dataset_of(labels), number, parts) for parts in (PartsConfig(), PAPER)
    )
    assert torch.equal(default.test, paper.test)


def test_the_paper_selects_on_the_policy_part_and_calibrates_nothing() -> None:
    split = split_dataset(dataset_of(torch.arange(100) % 2), 1, PAPER)
    assert torch.equal(split.selection, split.policy)
    assert len(split.calibration) == 0
    assert [len(split.train), len(split.policy), len(split.test)] == [40, 50, 10]


@pytest.mark.parametrize(("graphs", "test"), [(135, 14), (349, 35), (405, 41), (467, 47)])
def test_the_test_part_rounds_up(graphs: int, test: int) -> None:
    labels = (torch.arange(graphs) % 4 == 0).long()
    assert len(split_dataset(dataset_of(labels), 1, PartsConfig()).test) == test


def test_splits_are_seeded_by_their_number() -> None:
    labels = torch.arange(200) % 2
    first, again, second = (
        split_dataset(dataset_of(labels), n, PartsConfig()).test for n in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, second)


def test_parts_keep_the_classes_proportions() -> None:
    labels = (torch.arange(1000) % 5 == 0).long()
    split = split_dataset(dataset_of(labels), 1, PartsConfig())
    for role in ROLES:
        assert labels[getattr(split, role)].float().mean() == pytest.approx(0.2, abs=0.01)


def test_a_class_too_small_for_the_parts_is_named() -> None:
    labels = torch.tensor([0] * 50 + [1] * 4)
    with pytest.raises(UserError, match="class b has 4 graphs, but each of the 5 parts"):
        split_dataset(dataset_of(labels), 1, PartsConfig())


def test_the_smallest_classes_reach_every_part() -> None:
    """Half of what the test part leaves is 1.6 of the two graphs of a class: train needs one."""
    labels = torch.arange(15) % 5
    split = split_dataset(dataset_of(labels), 1, PAPER)
    for role in ("train", "policy", "test"):
        assert set(labels[getattr(split, role)].tolist()) == set(range(5)), role


@pytest.mark.parametrize(("folds", "pieces"), [(0, "4 parts"), (3, "3 folds")])
def test_a_class_that_is_given_away_for_selection_is_named(folds: int, pieces: str) -> None:
    labels = torch.tensor([0] * 50 + [1] * 9)
    with pytest.raises(UserError, match=f"class b has 0 graphs, but each of the {pieces}"):
        split_dataset(dataset_of(labels), 1, PartsConfig(folds=folds), torch.arange(50, 59))


def dataset_of(labels: torch.Tensor, **known: tuple[str, ...]) -> Dataset:
    """Graphs of one node each."""
    count = len(labels)
    ends = torch.arange(count + 1)
    graphs = GraphStore(
        torch.ones(count, 1), torch.zeros(2, 0).long(), labels.long(), ends, torch.zeros_like(ends)
    )
    names = tuple("abcdef"[: int(labels.max()) + 1])
    return Dataset("some", graphs, names, ("one",), **known)


PINNED = [5, 6, 20, 30, 37, 41, 42, 60]


def drawn_once(split: Split, count: int) -> None:
    drawn = torch.cat([getattr(split, role) for role in ROLES])
    assert drawn.sort().values.tolist() == list(range(count))


@pytest.mark.parametrize("folds", [2, 5, 10])
def test_every_graph_is_tested_in_exactly_one_fold(folds: int) -> None:
    labels = torch.tensor([1, 0, 2, 0]).repeat(51)[:203]
    splits = [
        split_dataset(dataset_of(labels), number, PartsConfig(folds=folds))
        for number in range(1, folds + 1)
    ]
    tested = torch.cat([split.test for split in splits])
    assert tested.sort().values.tolist() == list(range(203))
    for split in splits:
        drawn_once(split, 203)
        shares = torch.bincount(labels[split.test]) / len(split.test)
        assert shares.tolist() == pytest.approx([0.5, 0.25, 0.25], abs=0.06)
        assert len(split.policy) == pytest.approx(2 / 9 * (203 - len(split.test)), abs=2)


def test_folds_are_the_same_under_every_preset() -> None:
    labels = torch.arange(100) % 2
    paper = replace(PAPER, folds=5)
    default = PartsConfig(folds=5)
    one, other = (split_dataset(dataset_of(labels), 3, parts) for parts in (default, paper))
    assert torch.equal(one.test, other.test)
    assert torch.equal(other.selection, other.policy)


def test_a_class_with_fewer_graphs_than_folds_is_named() -> None:
    labels = torch.tensor([0] * 50 + [1] * 7)
    with pytest.raises(UserError, match="class b has 7 graphs, but each of the 10 folds"):
        split_dataset(dataset_of(labels), 1, PartsConfig(folds=10))


def test_a_class_with_as_many_graphs_as_folds_is_tested_once_in_each() -> None:
    labels = torch.tensor([0] * 50 + [1] * 10)
    for number in range(1, 11):
        split = split_dataset(dataset_of(labels), number, PartsConfig(folds=10))
        assert int(labels[split.test].sum()) == 1


RINGS = ("c1ccccc1", "C1CCCCC1", "c1ccncc1", "C1CCNCC1", "c1ccsc1", "C1CCOC1", "c1ccc2ccccc2c1")


def molecules(count: int = 420) -> Dataset:
    """Chains on 70 scaffolds of unlike sizes, and some without a ring."""
    cores = [f"{first}CC{'C' * link}{second}" for first in RINGS for link, second in PAIRS]
    smiles = ["C" * (1 + n % 9) + cores[(n * n) % len(cores)] for n in range(count)]
    smiles[::10] = ["C" * (2 + n) for n in range(len(smiles[::10]))]
    return dataset_of((torch.arange(count) % 3 == 0).long(), smiles=tuple(smiles))


PAIRS = [(link, ring.replace("1", "3").replace("2", "4")) for link in (0, 1) for ring in RINGS[:5]]


@pytest.mark.parametrize("folds", [0, 3])
@pytest.mark.parametrize("number", [1, 2])
def test_no_scaffold_is_in_two_parts(folds: int, number: int) -> None:
    pytest.importorskip("rdkit")
    dataset = molecules()
    parts = PartsConfig(kind="scaffold", folds=folds)
    split = split_dataset(dataset, number, parts)
    drawn_once(split, len(dataset))
    scaffolds = [
        {scaffold(dataset.smiles[graph]) for graph in getattr(split, role).tolist()}
        for role in ROLES
    ]
    assert sum(map(len, scaffolds)) == len(set.union(*scaffolds))
    for role in ROLES:
        assert set(dataset.graphs.y[getattr(split, role)].tolist()) == {0, 1}, role
    again = split_dataset(dataset, number, parts)
    assert all(torch.equal(getattr(split, role), getattr(again, role)) for role in ROLES)


def test_scaffold_test_parts_are_the_same_under_every_preset() -> None:
    pytest.importorskip("rdkit")
    dataset, paper = molecules(), replace(PAPER, kind="scaffold")
    found = split_dataset(dataset, 1, PartsConfig(kind="scaffold"))
    assert torch.equal(split_dataset(dataset, 1, paper).test, found.test)


def test_scaffolds_that_cannot_be_divided_are_told_in_a_line() -> None:
    pytest.importorskip("rdkit")
    parts = PartsConfig(kind="scaffold")
    labels = torch.arange(60) % 2
    with pytest.raises(UserError, match="has no SMILES to find scaffolds in"):
        split_dataset(dataset_of(labels), 1, parts)


def test_without_rdkit_a_scaffold_split_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "rdkit", None)
    with pytest.raises(UserError, match=r"pip install 'cores-gnn\[chem\]'"):
        split_dataset(molecules(), 1, PartsConfig(kind="scaffold"))


@pytest.mark.parametrize("kind", ["random", "column"])
def test_a_split_column_decides_and_train_is_divided_further(kind: str) -> None:
    labels = torch.arange(100) % 2
    given = ("Train",) * 70 + ("VALID",) * 10 + (" test ",) * 20
    parts = PartsConfig(kind=kind)
    split = split_dataset(dataset_of(labels, given_parts=given), 1, parts)
    assert split.selection.tolist() == list(range(70, 80))
    assert split.test.tolist() == list(range(80, 100))
    drawn_once(split, 100)
    assert len(split.calibration) == pytest.approx(70 * 0.1 / 0.8, abs=1)
    assert len(split.policy) == pytest.approx(70 * 0.2 / 0.8, abs=1)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (("train",) * 50 + ("holdout",) * 10, "got 'holdout' for graph 50"),
        (("train",) * 60, "puts no graph into test"),
        (("test",) * 60, "puts no graph into train"),
    ],
)
def test_a_split_column_that_says_something_else_is_refused(
    given: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(UserError, match=complaint):
        split_dataset(dataset_of(torch.arange(60) % 2, given_parts=given), 1, PartsConfig())


def test_a_split_column_that_keeps_a_class_from_training_is_refused() -> None:
    given = tuple("test" if n % 2 or n < 20 else "train" for n in range(100))
    with pytest.raises(UserError, match="puts no graph of class b into train"):
        split_dataset(dataset_of(torch.arange(100) % 2, given_parts=given), 1, PartsConfig())
    given = tuple("train" if n % 2 or n < 50 else "test" for n in range(100))
    split = split_dataset(dataset_of(torch.arange(100) % 2, given_parts=given), 1, PartsConfig())
    assert len(split.test) == 25, "the test part may lack one"


def test_a_split_column_goes_with_no_other_way_of_dividing() -> None:
    given = dataset_of(torch.arange(60) % 2, given_parts=("train",) * 60)
    with pytest.raises(UserError, match="split column or from folds, not from both"):
        split_dataset(given, 1, PartsConfig(folds=3))
    molecules = replace(given, smiles=("C",) * 60)
    with pytest.raises(UserError, match="split column or from scaffold splits, not from both"):
        split_dataset(molecules, 1, PartsConfig(kind="scaffold"))
    with pytest.raises(UserError, match="split column or from folds, not from both"):
        PartsConfig(kind="column", folds=3)
    with pytest.raises(UserError, match="has no split column"):
        split_dataset(dataset_of(torch.arange(60) % 2), 1, PartsConfig(kind="column"))


def grouped(
    monkeypatch: pytest.MonkeyPatch, groups: list[int], labels: torch.Tensor | None = None
) -> Dataset:
    """Graphs with scaffolds that are known without rdkit."""
    monkeypatch.setattr(splits, "scaffold_groups", lambda smiles: np.array(list(map(int, smiles))))
    known = torch.arange(len(groups)) % 2 if labels is None else labels
    return dataset_of(known, smiles=tuple(map(str, groups)))


GROUPS = [n * n % 61 for n in range(300)]


@pytest.mark.parametrize("folds", [0, 4])
def test_no_group_is_in_two_parts_and_parts_have_their_shares(
    folds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = grouped(monkeypatch, GROUPS)
    parts = PartsConfig(kind="scaffold", folds=folds)
    tested = []
    for number in (1, 2, 3, 4):
        split = split_dataset(dataset, number, parts)
        drawn_once(split, 300)
        held = [{GROUPS[graph] for graph in getattr(split, role).tolist()} for role in ROLES]
        assert sum(map(len, held)) == len(set(GROUPS))
        rest = 300 - len(split.test)
        assert len(split.test) == pytest.approx(75 if folds else 30, abs=8)
        for role, share in (("policy", 2 / 9), ("selection", 1 / 9), ("calibration", 1 / 9)):
            assert len(getattr(split, role)) == pytest.approx(share * rest, abs=8), role
            assert dataset.graphs.y[getattr(split, role)].double().mean() == pytest.approx(
                0.5, abs=0.25
            )
        tested.append(split.test)
    joined = torch.cat(tested).tolist()
    assert (sorted(joined) == list(range(300))) == bool(folds)
    assert len({tuple(each.tolist()) for each in tested}) == 4


def test_a_large_group_goes_into_the_largest_part(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = [0] * 90 + [1 + n // 2 for n in range(210)]
    dataset = grouped(monkeypatch, groups)
    for number in range(1, 6):
        split = split_dataset(dataset, number, PartsConfig(kind="scaffold"))
        assert set(range(90)) <= set(split.train.tolist())
        assert len(split.test) == pytest.approx(30, abs=2)


def test_orders_are_tried_until_every_part_sees_every_class(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The rare class has seven groups for five parts."""
    labels = (torch.arange(100) < 7).long()
    dataset = grouped(monkeypatch, list(range(100)), labels)
    for number in range(1, 11):
        split = split_dataset(dataset, number, PartsConfig(kind="scaffold"))
        for role in ROLES:
            assert set(labels[getattr(split, role)].tolist()) == {0, 1}, (number, role)


def dealt(monkeypatch: pytest.MonkeyPatch, *orders: list[int]) -> tuple[dict[str, list[int]], int]:
    """Divide two groups of each of two classes, dealt in these ways; and how many were tried."""
    waiting = [np.array(order) for order in orders]
    monkeypatch.setattr(splits, "_dealt", lambda *_: waiting.pop(0))
    monkeypatch.setattr(splits, "ATTEMPTS", len(orders))
    classes, free = np.array([0, 1, 0, 1]), np.ones(4, dtype=bool)
    found = splits._grouped(classes, np.arange(4), free, {"test": 0.5}, np.random.default_rng(0))
    return {name: graphs.tolist() for name, graphs in found.items()}, len(orders) - len(waiting)


def test_of_several_orders_the_first_with_every_class_in_every_part_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lacking_all, lacking_two, lacking_one = [0, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0]
    whole = [0, 0, 1, 1]
    found, tried = dealt(monkeypatch, lacking_all, lacking_two, lacking_one, whole, [1, 1, 0, 0])
    assert (found, tried) == ({"test": [0, 1], "train": [2, 3]}, 4)
    found, tried = dealt(monkeypatch, lacking_two, lacking_one, [1, 1, 0, 1], lacking_two)
    assert (found, tried) == ({"test": [0, 1, 3], "train": [2]}, 4), "the first of the best"


@pytest.mark.parametrize(
    ("modulus", "known"),
    [  # of selection and test, in two splits
        (37, [[[4, 30], [25, 34]], [[27, 28], [34, 36]]]),  # most are half of a small part
        (
            97,
            [
                [[6, 44, 49, 54, 88], [0, 43, 50, 85, 96]],
                [[1, 4, 27, 31, 50], [11, 22, 24, 49, 88]],
            ],
        ),
    ],
    ids=["large groups", "small groups"],
)
def test_scaffold_splits_are_the_same_in_every_version(
    modulus: int, known: list[list[list[int]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pinned: numbers of splits are promises."""
    place = torch.arange(200)
    groups = (place**2 % modulus).tolist()
    dataset = grouped(monkeypatch, groups, (place % 7 > 3).long() + (place % 7 == 6).long())
    for number, expected in enumerate(known, start=1):
        split = split_dataset(dataset, number, PartsConfig(kind="scaffold"))
        held = [
            sorted({groups[n] for n in part.tolist()}) for part in (split.selection, split.test)
        ]
        assert held == expected, number


def test_groups_that_cannot_be_divided_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"too few scaffolds to fill the \w+ part"):
        split_dataset(grouped(monkeypatch, [0] * 50), 1, PartsConfig(kind="scaffold"))
    groups, labels = [0] * 15 + [1] * 6 + [2, 3, 4, 5] * 3, torch.zeros(33)
    labels[15:17] = 1  # all in one group, and training is full of the largest one
    with pytest.raises(UserError, match="all scaffolds of class b are outside of the training"):
        split_dataset(grouped(monkeypatch, groups, labels), 1, PartsConfig(kind="scaffold"))


@pytest.mark.parametrize("parts", [PartsConfig(), PartsConfig(folds=3), PAPER])
def test_given_graphs_select_and_the_others_are_divided_without_them(parts: PartsConfig) -> None:
    labels = (torch.arange(120) % 3 == 0).long()
    given = torch.arange(7, 27)
    split = split_dataset(dataset_of(labels), 2, parts, given)
    assert torch.equal(split.selection, given)
    drawn_once(split, 120)
    assert len(split.test) == (33 if parts.folds else 10)
