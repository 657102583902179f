"""Seeded stratified splits into five parts with a role each, and the scaler of features.

Deviation D3: the test graphs of a dataset and split number are drawn first and are the same for
every model, conv and preset; :class:`~cores.config.PartsConfig` divides the rest.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

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
) -> Split:
    """Divide the graphs by role, each class in proportion, every role seeing every class."""
    random = np.random.default_rng(split)
    classes = labels.cpu().numpy()
    total = len(classes)
    shares = {"test": TEST_SHARE}  # drawn first, before any choice of the preset matters
    shares |= {
        name: share
        for name in ("calibration", "selection", "policy")
        if (share := getattr(parts, name)) > 0
    }
    counts = np.bincount(classes)
    if (fewest := counts.min()) < len(shares) + 1:
        rare = int(counts.argmin())
        name = class_names[rare] if class_names else rare
        raise UserError(
            f"class {name} has {fewest} graphs, but each of the {len(shares) + 1} parts "
            f"(train, {', '.join(reversed(shares))}) needs one of every class; "
            "add graphs of that class or leave it out"
        )
    left = [random.permutation(np.flatnonzero(classes == each)) for each in range(len(counts))]
    drawn: dict[str, Tensor] = {}
    for waiting, (name, share) in enumerate(shares.items()):
        parts_left = len(shares) - waiting  # parts after this one, train included
        available = np.array([len(each) for each in left])
        taken = _apportion(math.ceil(round(share * total, 9)), available, available - parts_left)
        drawn[name] = _sorted([each[:n] for each, n in zip(left, taken, strict=True)])
        left = [each[n:] for each, n in zip(left, taken, strict=True)]
    empty = torch.empty(0, dtype=torch.int64)
    return Split(
        train=_sorted(left),
        policy=drawn["policy"],
        selection=drawn.get("selection", drawn["policy"]),
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
    for each in np.argsort(seats - quotas, kind="stable"):
        if seats.sum() >= size:
            break
        seats[each] = min(seats[each] + 1, most[each])
    return seats


def _sorted(pieces: list[NDArray[np.int64]]) -> Tensor:
    return torch.from_numpy(np.sort(np.concatenate(pieces)).astype(np.int64))


class FeatureScaler(nn.Module):
    """Clip and standardise node features as the graphs learnt from tell; saved with the weights."""

    low: Float[Tensor, " features"]
    high: Float[Tensor, " features"]
    mean: Float[Tensor, " features"]
    std: Float[Tensor, " features"]

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.register_buffer("low", torch.full((num_features,), -torch.inf))
        self.register_buffer("high", torch.full((num_features,), torch.inf))
        self.register_buffer("mean", torch.zeros(num_features))
        self.register_buffer("std", torch.ones(num_features))

    def fit(
        self,
        x: Float[Tensor, "nodes features"],
        continuous: tuple[int, ...],
        clipped: tuple[int, ...],
    ) -> "FeatureScaler":
        """Learn bounds of the clipped columns, then mean and deviation of the continuous ones."""
        for column in clipped:
            bounds = torch.quantile(x[:, column].double(), torch.tensor([0.001, 0.999]).double())
            self.low[column], self.high[column] = bounds
        inside = x.clamp(self.low, self.high)
        for column in continuous:
            deviation, mean = torch.std_mean(inside[:, column].double(), correction=0)
            self.mean[column] = mean
            self.std[column] = deviation if deviation > 0 else 1.0
        return self

    def forward(self, x: Float[Tensor, "nodes features"]) -> Float[Tensor, "nodes features"]:
        """Scaled features."""
        scaled: Tensor = (x.clamp(self.low, self.high) - self.mean) / self.std
        return scaled
