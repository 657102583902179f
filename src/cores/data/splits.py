"""Seeded stratified splits into five parts with a role each.

Deviation D3: the test graphs of a dataset and split number are drawn first and are the same for
every model, conv and preset; :class:`~cores.config.PartsConfig` divides the rest.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from cores.config import TEST_SHARE, PartsConfig
from cores.errors import UserError


@dataclass(frozen=True)
class Split:
    """Graph numbers by role; no graph has two roles (but see ``selection``)."""

    train: Int[Tensor, " train"]
    """Read by the classifier's gradient, scalers and, in the paper's way, the reward's quantile."""
    policy: Int[Tensor, " policy"]
    """Read by the policy's rollouts; with referees, pooled with train and dealt into folds."""
    selection: Int[Tensor, " selection"]
    """Read by early stopping; where its share is 0 it *is* the policy part, as in the paper."""
    calibration: Int[Tensor, " calibration"]
    """Read by the quantile of the sets shown to users; may be empty."""
    test: Int[Tensor, " test"]
    """Read once, for the reported numbers."""


def split_graphs(
    labels: Int[Tensor, " graphs"],
    split: int,
    parts: PartsConfig,
    class_names: Sequence[str] | None = None,
    selection: Int[Tensor, " selection"] | None = None,
) -> Split:
    """Divide the graphs by role, each class in proportion, every role seeing every class.

    Where the graphs of the selection part are given, the others are divided.
    """
    random = np.random.default_rng(split)
    classes = labels.cpu().numpy()
    free = np.ones(len(classes), dtype=bool)
    if selection is not None:
        free[selection.numpy()] = False
        parts = replace(parts, selection=0.0)
    total = int(free.sum())
    shares = {"test": TEST_SHARE}  # drawn first, before any choice of the preset matters
    shares |= {
        name: share
        for name in ("calibration", "selection", "policy")
        if (share := getattr(parts, name)) > 0
    }
    counts = np.bincount(classes[free], minlength=len(np.unique(classes)))
    if (fewest := counts.min()) < len(shares) + 1:
        rare = int(counts.argmin())
        name = class_names[rare] if class_names else rare
        raise UserError(
            f"class {name} has {fewest} graphs, but each of the {len(shares) + 1} parts "
            f"(train, {', '.join(reversed(shares))}) needs one of every class; "
            "add graphs of that class or leave it out"
        )
    left = [
        random.permutation(np.flatnonzero(free & (classes == label)))
        for label in range(len(counts))
    ]
    drawn: dict[str, Tensor] = {}
    for waiting, (name, share) in enumerate(shares.items()):
        parts_left = len(shares) - waiting  # parts after this one, train included
        available = np.array([len(graphs) for graphs in left])
        taken = _apportion(math.ceil(round(share * total, 9)), available, available - parts_left)
        drawn[name] = _sorted([graphs[:n] for graphs, n in zip(left, taken, strict=True)])
        left = [graphs[n:] for graphs, n in zip(left, taken, strict=True)]
    empty = torch.empty(0, dtype=torch.int64)
    return Split(
        train=_sorted(left),
        policy=drawn["policy"],
        selection=drawn.get("selection", drawn["policy"]) if selection is None else selection,
        calibration=drawn.get("calibration", empty),
        test=drawn["test"],
    )


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


def _sorted(pieces: list[NDArray[np.int64]]) -> Tensor:
    return torch.from_numpy(np.sort(np.concatenate(pieces)).astype(np.int64))
