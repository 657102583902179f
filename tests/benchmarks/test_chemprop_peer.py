"""Both programs get the same parts."""

from collections import Counter

import pytest

pytest.importorskip("rdkit")

from chemprop_peer import part_names


def test_parts_are_stratified_and_seeded() -> None:
    labels = [0] * 300 + [1] * 100
    names = part_names(labels, seed=1)
    assert names == part_names(labels, seed=1)
    assert names != part_names(labels, seed=2)
    assert Counter(names[:300]) == {"train": 240, "val": 30, "test": 30}
    assert Counter(names[300:]) == {"train": 80, "val": 10, "test": 10}


def test_every_part_has_a_molecule_of_every_class() -> None:
    assert set(part_names([0] * 50 + [1] * 3, seed=1)[50:]) == {"train", "val", "test"}
