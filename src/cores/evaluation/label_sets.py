"""Prediction sets of several labels: of each its own, from the graphs of which it is known."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from cores.config import SetsConfig
from cores.conformal import value_probs
from cores.evaluation.sets import Calibration, coverage_and_size


@dataclass(frozen=True)
class LabelCalibration:
    """What a model predicts for graphs that it was neither trained nor selected on.

    Every label has a quantile of its own: what is promised holds for each of them, whatever share
    of the values is missing, if it is missing for no reason that the graph tells.
    """

    probs: Float[Tensor, "calibration labels"]
    """That each label is 1."""
    labels: Float[Tensor, "calibration labels"]
    """0 or 1, NaN where it is not known."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def class_counts(self) -> list[int]:
        """Number of graphs of which each label is known."""
        counts: list[int] = (~self.labels.isnan()).sum(dim=0).tolist()
        return counts

    @cached_property
    def of_label(self) -> list[Calibration]:
        """What calibrates the sets of each label."""
        known = ~self.labels.isnan()
        pairs = value_probs(self.probs)  # [n, L, 2]
        return [
            Calibration(pairs[there, at], self.labels[there, at].long())
            for at, there in enumerate(known.T)
        ]

    def q_hat(self, alpha: float, config: SetsConfig) -> Float[Tensor, "labels *values"]:
        """The quantile of each label, or one for each of its values."""
        return torch.stack([each.q_hat(alpha, config) for each in self.of_label])

    def sets(
        self, probs: Float[Tensor, "graphs labels"], alpha: float, config: SetsConfig
    ) -> Bool[Tensor, "graphs labels 2"]:
        """Sets of the values 0 and 1 that miss the true one at most a share ``alpha`` of the time.

        On average, for every label.
        """
        pairs = value_probs(probs)  # [B, L, 2]
        of_label = enumerate(self.of_label)
        return torch.stack([each.sets(pairs[:, at], alpha, config) for at, each in of_label], dim=1)


def label_coverage_and_size(
    sets: Bool[Tensor, "graphs labels 2"], labels: Float[Tensor, "graphs labels"]
) -> tuple[list[float | None], float]:
    """How often the sets of each label hold the true value, and the mean number of values in a set.

    None for a label that is not known of any graph.

    >>> sets = torch.tensor([[[True, False], [True, True]], [[True, False], [False, True]]])
    >>> label_coverage_and_size(sets, torch.tensor([[0.0, torch.nan], [1.0, torch.nan]]))
    ([0.5, None], 1.25)
    """
    covered: list[float | None] = []
    for at, column in enumerate(labels.T):
        known = ~column.isnan()
        found = coverage_and_size(sets[known, at], column[known].long())[0]
        covered.append(found if bool(known.any()) else None)
    return covered, float(sets.sum(-1).double().mean())
