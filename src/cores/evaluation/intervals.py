"""Prediction intervals from a calibration part, where numbers are predicted."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from cores.config import SetsConfig
from cores.conformal import (
    conformal_quantile,
    cqr_intervals,
    cqr_scores,
    prediction_intervals,
    residual_scores,
)


@dataclass(frozen=True)
class ValueCalibration:
    """What a model predicts for graphs that it was neither trained nor selected on."""

    probs: Float[Tensor, "calibration outputs"]
    """Predicted numbers; beside each its lower and its upper quantile, if the model has them."""
    labels: Float[Tensor, " calibration"]
    """The true ones."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def class_counts(self) -> list[int]:
        """Number of graphs, which are all of one kind."""
        return [len(self)]

    @property
    def has_quantiles(self) -> bool:
        """Whether intervals are as wide as the model predicts; else they are all of one width."""
        return self.probs.size(1) > 1

    def sets(
        self, values: Float[Tensor, "graphs outputs"], alpha: float, config: SetsConfig
    ) -> Float[Tensor, "graphs 2"]:
        """Intervals that miss the true number at most a share ``alpha`` of the time, on average."""
        q_hat = self.q_hat(alpha, config).to(values.device)
        if self.has_quantiles:
            return cqr_intervals(values[:, 0], values[:, 1:], q_hat)
        return prediction_intervals(values[:, 0], q_hat)

    def q_hat(self, alpha: float, config: SetsConfig) -> Float[Tensor, ""]:
        """Half the width of the intervals; with quantiles, how far each of these is moved out."""
        if self.has_quantiles:
            return conformal_quantile(cqr_scores(self.probs[:, 1:], self.labels), alpha)
        return conformal_quantile(residual_scores(self.probs[:, 0], self.labels), alpha)


def coverage_and_width(
    intervals: Float[Tensor, "graphs 2"], targets: Float[Tensor, " graphs"]
) -> tuple[float, float | None]:
    """How often intervals hold the true number, and how wide they are; None: without end.

    >>> coverage_and_width(torch.tensor([[0.0, 1.0], [1.0, 2.0]]), torch.tensor([0.5, 3.0]))
    (0.5, 1.0)
    """
    lower, upper = intervals.unbind(-1)
    width = float((upper - lower).double().mean())
    covered = (lower <= targets) & (targets <= upper)
    return float(covered.double().mean()), width if torch.isfinite(intervals).all() else None
