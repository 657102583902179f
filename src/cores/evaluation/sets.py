"""Prediction sets from a calibration part: any score, one quantile or one per class."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cores.config import SetsConfig
from cores.conformal import (
    aps_scores,
    class_conditional_quantiles,
    conformal_quantile,
    lac_scores,
    p_values,
    prediction_sets,
    randomised_aps_scores,
    raps_scores,
)
from cores.evaluation.predictions import true_scores
from cores.graphs.masks import hashed

Scores = Callable[[Tensor], Tensor]


def _randomised(probs: Float[Tensor, "graphs classes"]) -> Float[Tensor, "graphs classes"]:
    """Randomised APS whose draw is a hash of the probabilities, to four decimals.

    A graph then has the same set each time, alone or among others.
    """
    digits = (probs.double() * 10_000).round().long()  # [B, K]
    weights = hashed(torch.arange(1, probs.size(-1) + 1, device=probs.device))
    draw = hashed((digits * weights).sum(dim=-1)) % 2**24 / 2**24
    return randomised_aps_scores(probs, draw.to(probs.dtype))


SCORES: dict[str, Scores] = {
    "lac": lac_scores,
    "aps": aps_scores,
    "raps": partial(raps_scores, penalty=0.1, free_rank=1),
    "randomised-aps": _randomised,
}
"""Conformal scores of all classes, by name."""


@dataclass(frozen=True)
class Calibration:
    """What a model predicts for graphs that it was neither trained nor selected on.

    Deviation D4: LAC scores by default rather than Eq. (4): with two classes, deterministic APS
    gives both labels to all graphs, or no label to the surest (docs/deviations.md).
    """

    probs: Float[Tensor, "calibration classes"]
    labels: Int[Tensor, " calibration"]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def class_counts(self) -> list[int]:
        """Number of graphs of every class."""
        counts: list[int] = self.labels.bincount(minlength=self.probs.size(-1)).tolist()
        return counts

    def sets(
        self, probs: Float[Tensor, "graphs classes"], alpha: float, config: SetsConfig
    ) -> Bool[Tensor, "graphs classes"]:
        """Sets that miss the true label at most a share ``alpha`` of the time, on average."""
        q_hat = self.q_hat(alpha, config).to(probs.device)
        return prediction_sets(SCORES[config.score](probs), q_hat)

    def q_hat(self, alpha: float, config: SetsConfig) -> Float[Tensor, "*classes"]:
        """The quantile of the sets, or one per class."""
        scores = self._true_scores(config.score)
        if config.per_class:
            num_classes = self.probs.size(-1)
            return class_conditional_quantiles(scores, self.labels, num_classes, alpha)
        return conformal_quantile(scores, alpha)

    def p_values(
        self, probs: Float[Tensor, "graphs classes"], config: SetsConfig
    ) -> Float[Tensor, "graphs classes"]:
        """How unusual each label would be; a set at level alpha holds those above alpha."""
        scores = self._true_scores(config.score).to(probs.device)
        new = SCORES[config.score](probs)  # [B, K]
        if not config.per_class:
            return p_values(scores, new)
        labels = self.labels.to(probs.device)
        columns = [
            p_values(scores[labels == label], new[:, label : label + 1])
            for label in range(new.size(-1))
        ]
        return torch.cat(columns, dim=-1)

    def _true_scores(self, score: str) -> Float[Tensor, " calibration"]:
        return true_scores(SCORES[score](self.probs), self.labels)


def coverage_and_size(
    sets: Bool[Tensor, "graphs classes"], labels: Int[Tensor, " graphs"]
) -> tuple[float, float]:
    """How often the set holds the true label, and how many labels it holds on average."""
    covered = sets.gather(-1, labels[:, None]).squeeze(-1)
    return float(covered.double().mean()), float(sets.sum(-1).double().mean())
