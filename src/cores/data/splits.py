"""Seeded splits into five parts with a role each: stratified, by scaffold, or as the file says.

Deviation D3: the test graphs of a dataset and split number are drawn first and are the same for
every model, conv and preset; :class:`~cores.config.PartsConfig` divides the rest.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from cores.config import TEST_SHARE, PartsConfig
from cores.data.dataset import Dataset
from cores.errors import UserError

DRAWN = ("calibration", "selection", "policy")
"""Parts that are drawn after the test part; train gets what is left."""
GIVEN = {
    "train": "train",
    "val": "selection",
    "valid": "selection",
    "validation": "selection",
    "selection": "selection",
    "cal": "calibration",
    "calibration": "calibration",
    "test": "test",
}
"""Values of a split column, and the parts that they mean."""
ATTEMPTS = 20
"""Orders of the scaffolds that are tried until every part has every class."""

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """Graph numbers by role; no graph has two roles (but see ``selection``)."""

    train: Int[Tensor, " train"]
    """Read by the classifier's gradient, scalers and, in the paper's way, the reward's quantile."""
    policy: Int[Tensor, " policy"]
    """Read by the policy's rollouts; for several members, pooled with train, dealt into folds."""
    selection: Int[Tensor, " selection"]
    """Read by early stopping and the temperature; without a share it *is* the policy part."""
    calibration: Int[Tensor, " calibration"]
    """Read by the quantile of the sets shown to users; may be empty."""
    test: Int[Tensor, " test"]
    """Read once, for the reported numbers."""


def split_dataset(
    dataset: Dataset,
    split: int,
    parts: PartsConfig,
    selection: Int[Tensor, " selection"] | None = None,
) -> Split:
    """Divide the graphs of a dataset by role, as its file says, by scaffold, or stratified.

    Where the graphs of the selection part are given, the others are divided.
    """
    kind = _kind(dataset, parts)
    classes = dataset.strata.cpu().numpy()
    free = np.ones(len(classes), dtype=bool)
    drawn: dict[str, Indices] = {}
    if selection is not None:
        drawn["selection"] = selection.numpy()
        free[drawn["selection"]] = False
    random = np.random.default_rng(split)
    if kind == "random" and not parts.folds:
        # The test graphs are drawn first, before any choice of the preset matters.
        shares = {"test": TEST_SHARE} | _wanted(parts, drawn)
        return _split(drawn | _stratified(classes, free, shares, random, dataset.stratum_names))
    groups = scaffold_groups(dataset.smiles) if kind == "scaffold" else None
    if kind == "column":
        drawn = _given(dataset, free) | drawn
    elif groups is None:
        drawn["test"] = _fold(classes, free, split, parts.folds, dataset.stratum_names)
    else:
        drawn["test"] = _scaffold_test(classes, groups, free, split, parts.folds)
    for graphs in drawn.values():
        free[graphs] = False
    # Shares of the graphs left: as large to each other as usual.
    wanted = _wanted(parts, drawn)
    train = 1 - TEST_SHARE - sum(getattr(parts, name) for name in DRAWN)
    total = train + sum(wanted.values())
    shares = {name: share / total for name, share in wanted.items()}
    if groups is None:
        drawn |= _stratified(classes, free, shares, random, dataset.stratum_names)
    else:
        drawn |= _grouped(classes, groups, free, shares, random)
        _check_scaffolds(classes, drawn, dataset)
    return _split(drawn)


def _wanted(parts: PartsConfig, drawn: Mapping[str, Indices]) -> dict[str, float]:
    """Shares of all graphs for the parts that are yet to be drawn."""
    shares = {name: getattr(parts, name) for name in DRAWN if name not in drawn}
    return {name: share for name, share in shares.items() if share > 0}


def _kind(dataset: Dataset, parts: PartsConfig) -> str:
    """Choose how to divide a dataset; refuse a kind that its file does not allow."""
    if parts.kind == "scaffold" and not dataset.smiles:
        raise UserError(
            f'{dataset.name} has no SMILES to find scaffolds in; divide it with parts.kind "random"'
        )
    if parts.kind == "column" and not dataset.given_parts:
        raise UserError(f'{dataset.name} has no split column, which parts.kind "column" needs')
    if not dataset.given_parts:
        return parts.kind
    if parts.kind == "scaffold" or parts.folds:
        asked = "scaffold splits" if parts.kind == "scaffold" else "folds"
        raise UserError(f"the parts come from a split column or from {asked}, not from both")
    return "column"


def _given(dataset: Dataset, free: NDArray[np.bool_]) -> dict[str, Indices]:
    """The parts that a split column gives; the graphs of train are yet to be divided."""
    roles = []
    for number, text in enumerate(dataset.given_parts):
        role = GIVEN.get(text.strip().lower())
        if role is None:
            raise UserError(
                f"the split column may say train, val, calibration or test, got {text!r} "
                f"for graph {number}"
            )
        roles.append(role)
    marked = np.array(roles)
    for role in ("train", "test"):
        if not (free & (marked == role)).any():
            raise UserError(f"the split column of {dataset.name} puts no graph into {role}")
    parts = {role: np.flatnonzero(free & (marked == role)) for role in set(GIVEN.values())}
    learnt = set(dataset.graphs.y[parts["train"]].tolist())
    for label, name in enumerate(dataset.class_names):
        if label not in learnt:
            raise UserError(
                f"the split column of {dataset.name} puts no graph of class {name} into train"
            )
    return {role: graphs for role, graphs in parts.items() if role != "train" and len(graphs)}


def _fold(
    classes: Indices,
    free: NDArray[np.bool_],
    number: int,
    folds: int,
    class_names: Sequence[str],
) -> Indices:
    """The graphs of one fold, each class in proportion; the folds together are all graphs."""
    random = np.random.default_rng(folds)  # the same for every fold
    counts = np.bincount(classes[free], minlength=len(class_names))
    if (fewest := counts.min()) < folds:
        name = class_names[int(counts.argmin())]
        raise UserError(
            f"class {name} has {fewest} graphs, but each of the {folds} folds needs one; "
            "ask for fewer folds"
        )
    order = _shuffled(classes, free, len(counts), random)
    return np.sort(np.concatenate(order)[number - 1 :: folds])


def _shuffled(
    classes: Indices, free: NDArray[np.bool_], number: int, random: np.random.Generator
) -> list[Indices]:
    """The free graphs of each class in random order."""
    return [
        random.permutation(np.flatnonzero(free & (classes == label))) for label in range(number)
    ]


def _scaffold_test(
    classes: Indices, groups: Indices, free: NDArray[np.bool_], split: int, folds: int
) -> Indices:
    """The test part by scaffold: a tenth, or one of the folds."""
    if not folds:
        random = np.random.default_rng(split)
        return _grouped(classes, groups, free, {"test": TEST_SHARE}, random)["test"]
    shares = {str(fold): 1 / folds for fold in range(2, folds + 1)}  # the first gets what is left
    found = _grouped(classes, groups, free, shares, np.random.default_rng(folds))
    return found["train" if split == 1 else str(split)]


def _stratified(
    classes: Indices,
    free: NDArray[np.bool_],
    shares: Mapping[str, float],
    random: np.random.Generator,
    class_names: Sequence[str],
) -> dict[str, Indices]:
    """Divide the free graphs, each class in proportion; train gets what the shares leave."""
    total = int(free.sum())
    counts = np.bincount(classes[free], minlength=len(np.unique(classes)))
    if (fewest := counts.min()) < len(shares) + 1:
        name = class_names[int(counts.argmin())]
        raise UserError(
            f"class {name} has {fewest} graphs, but each of the {len(shares) + 1} parts "
            f"(train, {', '.join(reversed(list(shares)))}) needs one of every class; "
            "add graphs of that class or leave it out"
        )
    left = _shuffled(classes, free, len(counts), random)
    drawn: dict[str, Indices] = {}
    for waiting, (name, share) in enumerate(shares.items()):
        parts_left = len(shares) - waiting  # parts after this one, train included
        available = np.array([len(graphs) for graphs in left])
        taken = _apportion(math.ceil(round(share * total, 9)), available, available - parts_left)
        drawn[name] = np.concatenate([graphs[:n] for graphs, n in zip(left, taken, strict=True)])
        left = [graphs[n:] for graphs, n in zip(left, taken, strict=True)]
    return drawn | {"train": np.concatenate(left)}


def _apportion(
    size: int, available: NDArray[np.int64], most: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Seats by class in proportion to what is available (largest remainders), from 1 to ``most``.

    >>> _apportion(14, np.array([42, 93]), np.array([40, 90])).tolist()
    [4, 10]
    """
    quotas = size * available / available.sum()
    seats: NDArray[np.int64] = np.clip(np.floor(quotas).astype(np.int64), 1, most)
    for label in np.argsort(seats - quotas, kind="stable"):
        if seats.sum() >= size:
            break
        seats[label] = min(seats[label] + 1, most[label])
    return seats


def _grouped(
    classes: Indices,
    groups: Indices,
    free: NDArray[np.bool_],
    shares: Mapping[str, float],
    random: np.random.Generator,
) -> dict[str, Indices]:
    """Divide the free graphs so that no group is in two parts, about by shares and classes.

    Of several random orders, the first in which every part sees every class, else the one in which
    the fewest classes are missing from parts.
    """
    graphs = np.flatnonzero(free)
    _, group = np.unique(groups[graphs], return_inverse=True)
    counts = np.zeros((group.max(initial=-1) + 1, classes.max() + 1))  # [groups, classes]
    np.add.at(counts, (group, classes[graphs]), 1)
    names = [*shares, "train"]
    wanted = np.array([*shares.values(), 1 - sum(shares.values())])
    best, fewest = np.zeros(len(counts), dtype=np.int64), math.inf
    for _ in range(ATTEMPTS):
        place = _dealt(counts, wanted, random)
        held = np.zeros((len(names), counts.shape[1]))
        np.add.at(held, place, counts)
        if (missing := int((held == 0).sum())) < fewest:
            best, fewest = place, missing
        if not missing:
            break
    return {name: graphs[best[group] == number] for number, name in enumerate(names)}


def _dealt(
    counts: NDArray[np.float64], shares: NDArray[np.float64], random: np.random.Generator
) -> Indices:
    """The part of every group: each goes where it brings the parts nearest to their shares.

    Groups come in random order, but those that would fill more than half of the smallest part come
    first, the largest first: the largest part takes them.
    """
    targets = np.maximum(np.outer(shares, counts.sum(axis=0)), 1e-9)  # [parts, classes]
    sizes = counts.sum(axis=1)
    order = random.permutation(len(counts))
    large = sizes[order] > targets.sum(axis=1).min() / 2
    order = np.concatenate(
        [order[large][np.argsort(-sizes[order[large]], kind="stable")], order[~large]]
    )
    held = np.zeros_like(targets)
    place = np.zeros(len(counts), dtype=np.int64)
    for number in order:
        new = counts[number]
        # How the chi-square distance of every part from its target would change.
        change = (new * (2 * (held - targets) + new) / targets).sum(axis=1)
        place[number] = change.argmin()
        held[place[number]] += new
    return place


def _check_scaffolds(classes: Indices, drawn: Mapping[str, Indices], dataset: Dataset) -> None:
    """Refuse scaffold splits that leave a part empty, or a class without training graphs."""
    for name, graphs in drawn.items():
        if not len(graphs):
            raise UserError(
                f"{dataset.name} has too few scaffolds to fill the {name} part; divide it with "
                'parts.kind "random"'
            )
    missing = set(range(dataset.num_classes)) - set(classes[drawn["train"]].tolist())
    if missing:
        raise UserError(
            f"all scaffolds of class {dataset.class_names[min(missing)]} are outside of the "
            'training part; take another `split`, or divide with parts.kind "random"'
        )


def _split(drawn: Mapping[str, Indices]) -> Split:
    parts = {
        name: torch.from_numpy(np.sort(graphs).astype(np.int64)) for name, graphs in drawn.items()
    }
    return Split(
        train=parts["train"],
        policy=parts["policy"],
        selection=parts.get("selection", parts["policy"]),
        calibration=parts.get("calibration", torch.empty(0, dtype=torch.int64)),
        test=parts["test"],
    )


def scaffold_groups(smiles: Sequence[str]) -> Indices:
    """The number of every molecule's Bemis-Murcko scaffold: its rings and what links them.

    Molecules without rings share one. Numbers follow the first molecule of each scaffold.
    """
    try:
        import rdkit  # noqa: F401 - only whether it is there
    except ImportError:
        raise UserError("scaffold splits need rdkit: pip install 'cores-gnn[chem]'") from None
    numbers: dict[str, int] = {}
    found = [numbers.setdefault(scaffold(molecule), len(numbers)) for molecule in smiles]
    return np.array(found, dtype=np.int64)


@lru_cache(maxsize=200_000)  # a run divides its molecules several times
def scaffold(smiles: str) -> str:
    """SMILES of the scaffold; empty for a molecule without rings."""
    from rdkit import Chem
    from rdkit.Chem.Scaffolds import MurckoScaffold

    molecule = Chem.MolFromSmiles(smiles)
    if molecule is None:
        raise UserError(f"scaffold splits need SMILES that rdkit can read, got {smiles!r}")
    return str(MurckoScaffold.MurckoScaffoldSmiles(mol=molecule))
