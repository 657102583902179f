"""Prediction sets and intervals from a calibration part, and what they promise; a class per task.

Their tensors are saved with a run: what a model predicts for graphs that it was neither trained nor
selected on, and what is true of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor

from cores.config import SetsConfig
from cores.conformal import (
    aps_scores,
    class_conditional_quantiles,
    conformal_quantile,
    cqr_intervals,
    cqr_scores,
    lac_scores,
    p_values,
    prediction_intervals,
    prediction_sets,
    randomised_aps_scores,
    raps_scores,
    residual_scores,
    true_scores,
    value_probs,
)
from cores.graphs.masks import hashed


def _randomised(probs: Float[Tensor, "graphs classes"]) -> Float[Tensor, "graphs classes"]:
    """Randomised APS whose draw is a hash of the probabilities, to four decimals.

    A graph then has the same set each time, alone or among others.
    """
    digits = (probs.double() * 10_000).round().long()  # [B, K]
    weights = hashed(torch.arange(1, probs.size(-1) + 1, device=probs.device))
    draw = hashed((digits * weights).sum(dim=-1)) % 2**24 / 2**24
    return randomised_aps_scores(probs, draw.to(probs.dtype))


SCORES: dict[str, Callable[[Tensor], Tensor]] = {
    "lac": lac_scores,
    "aps": aps_scores,
    "raps": partial(raps_scores, penalty=0.1, free_rank=1),
    "randomised-aps": _randomised,
}
"""Conformal scores of all classes, by name."""


@dataclass(frozen=True)
class Calibration(ABC):
    """The calibration part of a model; without graphs where there was none."""

    probs: Float[Tensor, "calibration outputs"]
    """What the model predicts, as its head gives it."""
    labels: Num[Tensor, "calibration *labels"]

    def __len__(self) -> int:
        return len(self.labels)

    @classmethod
    def empty(cls, num_outputs: int) -> "Calibration":
        """A calibration part without graphs, of a model with so many outputs."""
        return cls(torch.empty(0, num_outputs), cls._no_labels(num_outputs))

    @classmethod
    def checked(cls, probs: Any, labels: Any, num_outputs: int) -> "Calibration":
        """The calibration part of a file; a ``TypeError`` or ``ValueError`` where it is none."""
        if not (isinstance(probs, Tensor) and isinstance(labels, Tensor)):
            raise TypeError("the calibration part is not made of tensors")
        shape = cls._no_labels(num_outputs).shape[1:]
        if tuple(probs.shape) != (len(labels), num_outputs) or labels.shape[1:] != shape:
            raise ValueError("the calibration part has another shape")
        if not (probs.is_floating_point() and probs.isfinite().all()):
            raise ValueError("the calibration part holds no probabilities")
        if labels.dtype.is_floating_point != cls._no_labels(num_outputs).dtype.is_floating_point:
            raise ValueError("the calibration part holds labels of another task")
        found = cls(probs, labels)
        found._check()
        return found

    @staticmethod
    @abstractmethod
    def _no_labels(num_outputs: int) -> Tensor: ...

    @abstractmethod
    def _check(self) -> None:
        """Raise a ``ValueError`` for labels that no graph has."""

    @property
    @abstractmethod
    def class_counts(self) -> list[int]:
        """Number of graphs of every class, or of which each label is known."""

    @abstractmethod
    def q_hat(self, alpha: float, config: SetsConfig) -> Tensor:
        """The quantile behind the sets."""

    @abstractmethod
    def sets(self, probs: Tensor, alpha: float, config: SetsConfig) -> Tensor:
        """Sets or intervals that miss the truth at most a share ``alpha`` of the time, on average.

        Sets are bool, [graphs, classes] or [graphs, labels, 2]; intervals [graphs, 2].
        """

    def p_values(self, probs: Tensor, config: SetsConfig) -> Tensor | None:
        """Conformal p-value of each label; None without one class per graph."""
        return None

    def metrics(
        self, probs: Tensor, labels: Tensor, alpha: float, config: SetsConfig
    ) -> dict[str, Any]:
        """Measure the sets of labelled graphs; None each without calibration graphs."""
        found = self.set_metrics(self.sets(probs, alpha, config), labels)
        return found if len(self) else dict.fromkeys(found)

    @staticmethod
    @abstractmethod
    def set_metrics(sets: Tensor, labels: Tensor) -> dict[str, Any]:
        """Coverage and size of sets."""

    def promise(self, alpha: float, per_class: bool) -> str:
        """Describe the guarantee of the sets at an error rate."""
        words, counts = self._words(per_class), self._counts(per_class)
        if not any(counts):
            return f"The run has no calibration part, so there are no prediction {words.sets}."
        fewest, most = min(counts), max(counts)
        if Fraction(str(alpha)) * (fewest + 1) < 1:  # nothing can be ruled out
            return (
                f"{fewest} calibration graphs {words.of}are too few for error rate {alpha:g}: "
                f"{words.held}. From {least_rate(fewest):g} on, {words.can}."
            )
        like = f"the {len(self)} calibration graphs"
        if words.some:
            number = f"{fewest}" if fewest == most else f"{fewest} to {most}"
            like = f"the calibration graphs, of which {number} have one"
        return (
            f"At error rate {alpha:g} {words.misses} at most {100 * alpha:g} % of the time, on "
            f"average{words.where}, if the graphs are like {like}."
        )

    @abstractmethod
    def _words(self, per_class: bool) -> "_Words": ...

    def _counts(self, per_class: bool) -> list[int]:
        """Graphs behind each quantile."""
        return [len(self)]


@dataclass(frozen=True)
class _Words:
    """Words of a guarantee."""

    sets: str
    misses: str
    """The rare event."""
    held: str
    """Content of sets with too few calibration graphs."""
    can: str
    """Use of sets with enough of them."""
    of: str = ""
    """Restriction to the graphs of a class."""
    where: str = ""
    some: bool = False
    """Some calibration graphs lack a label."""


@dataclass(frozen=True)
class ClassCalibration(Calibration):
    """Sets of classes: any score, one quantile or one per class.

    Deviation D4: LAC scores by default rather than Eq. (4): with two classes, deterministic APS
    gives both labels to all graphs, or no label to the surest (docs/deviations.md).
    """

    probs: Float[Tensor, "calibration classes"]
    labels: Int[Tensor, " calibration"]

    @staticmethod
    def _no_labels(num_outputs: int) -> Tensor:
        return torch.empty(0, dtype=torch.int64)

    def _check(self) -> None:
        labels = self.labels
        if labels.dtype != torch.int64 or not ((labels >= 0) & (labels < self.probs.size(1))).all():
            raise ValueError("the calibration part holds no numbers of classes")

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
        """Conformal p-value of each label; a set at level alpha holds those above alpha."""
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

    @staticmethod
    def set_metrics(
        sets: Bool[Tensor, "graphs classes"], labels: Int[Tensor, " graphs"]
    ) -> dict[str, Any]:
        """Coverage, and mean number of labels in a set."""
        covered = sets.gather(-1, labels[:, None]).squeeze(-1)
        return {
            "coverage": float(covered.double().mean()),
            "set_size": float(sets.sum(-1).double().mean()),
        }

    def _words(self, per_class: bool) -> _Words:
        return _Words(
            "sets",
            "a set misses the true label",
            f"every set holds {'that' if per_class else 'every'} label",
            "sets can leave one out",
            of="of a class " if per_class else "",
            where=", of every class" if per_class else "",
        )

    def _counts(self, per_class: bool) -> list[int]:
        return self.class_counts if per_class else [len(self)]


@dataclass(frozen=True)
class ValueCalibration(Calibration):
    """Intervals around predicted numbers; as wide as the model predicts if it has quantiles."""

    probs: Float[Tensor, "calibration outputs"]
    """Predicted numbers; beside each its lower and its upper quantile, if the model has them."""
    labels: Float[Tensor, " calibration"]

    @staticmethod
    def _no_labels(num_outputs: int) -> Tensor:
        return torch.empty(0)

    def _check(self) -> None:
        if not self.labels.isfinite().all():
            raise ValueError("the calibration part holds no targets")

    @property
    def class_counts(self) -> list[int]:
        """Number of graphs, which are all of one kind."""
        return [len(self)]

    @property
    def has_quantiles(self) -> bool:
        """Return whether the model predicts the widths; otherwise all are the same."""
        return self.probs.size(1) > 1

    def sets(
        self, probs: Float[Tensor, "graphs outputs"], alpha: float, config: SetsConfig
    ) -> Float[Tensor, "graphs 2"]:
        """Intervals that miss the true number at most a share ``alpha`` of the time, on average."""
        q_hat = self.q_hat(alpha, config).to(probs.device)
        if self.has_quantiles:
            return cqr_intervals(probs[:, 0], probs[:, 1:], q_hat)
        return prediction_intervals(probs[:, 0], q_hat)

    def q_hat(self, alpha: float, config: SetsConfig) -> Float[Tensor, ""]:
        """Half the width of the intervals; with quantiles, how far each of these is moved out."""
        if self.has_quantiles:
            return conformal_quantile(cqr_scores(self.probs[:, 1:], self.labels), alpha)
        return conformal_quantile(residual_scores(self.probs[:, 0], self.labels), alpha)

    @staticmethod
    def set_metrics(
        sets: Float[Tensor, "graphs 2"], labels: Float[Tensor, " graphs"]
    ) -> dict[str, Any]:
        """Coverage and mean width of intervals; None: infinite.

        >>> ends = torch.tensor([[0.0, 1.0], [1.0, 2.0]])
        >>> ValueCalibration.set_metrics(ends, torch.tensor([0.5, 3.0]))
        {'coverage': 0.5, 'interval_width': 1.0}
        """
        lower, upper = sets.unbind(-1)
        width = float((upper - lower).double().mean())
        covered = (lower <= labels) & (labels <= upper)
        return {
            "coverage": float(covered.double().mean()),
            "interval_width": width if torch.isfinite(sets).all() else None,
        }

    def _words(self, per_class: bool) -> _Words:
        misses = "an interval misses the true number"
        return _Words("intervals", misses, "no interval has an end", "they have")


@dataclass(frozen=True)
class LabelCalibration(Calibration):
    """Sets of the values of several labels: of each its own, from the graphs that have a value.

    Every label has a quantile of its own: what is promised holds for each of them, whatever share
    of the values is missing, if it is missing for no reason that the graph tells.
    """

    probs: Float[Tensor, "calibration labels"]
    """Probability that each label is 1."""
    labels: Float[Tensor, "calibration labels"]
    """0 or 1, NaN where it is not known."""

    @staticmethod
    def _no_labels(num_outputs: int) -> Tensor:
        return torch.empty(0, num_outputs)

    def _check(self) -> None:
        if not (self.labels.isnan() | (self.labels == 0) | (self.labels == 1)).all():
            raise ValueError("the calibration part holds no labels of two values")

    @property
    def class_counts(self) -> list[int]:
        """Number of graphs of which each label is known."""
        counts: list[int] = (~self.labels.isnan()).sum(dim=0).tolist()
        return counts

    @cached_property
    def of_label(self) -> list[ClassCalibration]:
        """One calibration per label."""
        known = ~self.labels.isnan()
        pairs = value_probs(self.probs)  # [n, L, 2]
        return [
            ClassCalibration(pairs[there, at], self.labels[there, at].long())
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

    @staticmethod
    def set_metrics(
        sets: Bool[Tensor, "graphs labels 2"], labels: Float[Tensor, "graphs labels"]
    ) -> dict[str, Any]:
        """Coverage over all labels and of each one, and mean size of sets.

        None for a label that is not known of any graph.

        >>> sets = torch.tensor([[[True, False], [True, True]], [[True, False], [False, True]]])
        >>> found = LabelCalibration.set_metrics(sets, torch.tensor([[0, torch.nan]] * 2))
        >>> found["label_coverage"], found["set_size"]
        ([1.0, None], 1.25)
        """
        covered: list[float | None] = []
        for at, column in enumerate(labels.T):
            known = ~column.isnan()
            found = ClassCalibration.set_metrics(sets[known, at], column[known].long())
            covered.append(found["coverage"] if bool(known.any()) else None)
        shares = [share for share in covered if share is not None]
        return {
            "coverage": sum(shares) / len(shares) if shares else None,
            "set_size": float(sets.sum(-1).double().mean()),
            "label_coverage": covered,
        }

    def _words(self, per_class: bool) -> _Words:
        return _Words(
            "sets",
            "the sets of each label miss its true value",
            "sets of such labels hold both values",
            "all can leave one out",
            some=True,
        )

    def _counts(self, per_class: bool) -> list[int]:
        if per_class:
            return [number for each in self.of_label for number in each.class_counts]
        return self.class_counts


def least_rate(graphs: int) -> float:
    """The smallest error rate at which so many graphs can rule something out, in four digits.

    >>> least_rate(50)
    0.0197
    """
    return -(-10_000 // (graphs + 1)) / 10_000
