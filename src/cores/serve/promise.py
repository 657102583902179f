"""What prediction sets and intervals promise, in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cores.evaluation.intervals import ValueCalibration
from cores.evaluation.label_sets import LabelCalibration
from cores.runs.predictor import Predictor


def promise_of(predictor: Predictor) -> "Promise | IntervalPromise | LabelPromise":
    """Of a model at its error rate."""
    calibration, per_class = predictor.trained.calibration, predictor.sets.per_class
    if isinstance(calibration, ValueCalibration):
        return IntervalPromise(predictor.alpha, len(calibration))
    if isinstance(calibration, LabelCalibration):
        counts = calibration.class_counts
        if per_class:
            counts = [number for each in calibration.of_label for number in each.class_counts]
        return LabelPromise(predictor.alpha, counts)
    return Promise(predictor.alpha, calibration.class_counts, per_class)


def too_few(graphs: int, alpha: float) -> bool:
    """Whether so many calibration graphs can rule nothing out at an error rate."""
    return Fraction(str(alpha)) * (graphs + 1) < 1


def least_rate(graphs: int) -> float:
    """The smallest error rate at which they can, in four digits.

    >>> least_rate(50)
    0.0197
    """
    return -(-10_000 // (graphs + 1)) / 10_000


@dataclass(frozen=True)
class Promise:
    """Of the sets at an error rate."""

    alpha: float
    calibration: Sequence[int]
    """Calibration graphs of every class."""
    per_class: bool

    def __str__(self) -> str:
        """For all graphs.

        >>> print(Promise(0.1, [20, 30], per_class=False))
        At error rate 0.1 a set misses the true label at most 10 % of the time, on average, if the \
graphs are like the 50 calibration graphs.
        >>> print(Promise(0.01, [20, 30], per_class=False))
        50 calibration graphs are too few for error rate 0.01: every set holds every label. From \
0.0197 on, sets can leave one out.
        """
        graphs = sum(self.calibration)
        if not graphs:
            return "The run has no calibration part, so there are no prediction sets."
        fewest = min(self.calibration) if self.per_class else graphs
        if too_few(fewest, self.alpha):
            of = "of a class " if self.per_class else ""
            return (
                f"{fewest} calibration graphs {of}are too few for error rate {self.alpha:g}: every "
                f"set holds {'that' if self.per_class else 'every'} label. From "
                f"{least_rate(fewest):g} on, sets can leave one out."
            )
        where = ", of every class" if self.per_class else ""
        return (
            f"At error rate {self.alpha:g} a set misses the true label at most "
            f"{100 * self.alpha:g} % of the time, on average{where}, if the graphs are like the "
            f"{graphs} calibration graphs."
        )

    def of_set(self, labels: Sequence[Any] | None) -> str:
        """For a graph with these labels in its set.

        >>> Promise(0.1, [20, 30, 40], per_class=False).of_set(["a", "b"])
        '2 of 3 labels are left; the others are ruled out'
        """
        known = len(self.calibration)
        if labels is None:
            return "there are no prediction sets"
        if not labels:
            return "no label fits: the graph is unlike the calibration graphs"
        if len(labels) == known:
            return "no label is ruled out"
        if len(labels) == 1:
            return "every other label is ruled out"
        return f"{len(labels)} of {known} labels are left; the others are ruled out"


@dataclass(frozen=True)
class IntervalPromise:
    """Of the intervals at an error rate, where numbers are predicted."""

    alpha: float
    graphs: int
    """Of the calibration part."""

    def __str__(self) -> str:
        """For all graphs.

        >>> print(IntervalPromise(0.1, 50))
        At error rate 0.1 an interval misses the true number at most 10 % of the time, on average, \
if the graphs are like the 50 calibration graphs.
        >>> print(IntervalPromise(0.01, 50))
        50 calibration graphs are too few for error rate 0.01: no interval has an end. From 0.0197 \
on, they have.
        """
        if not self.graphs:
            return "The run has no calibration part, so there are no prediction intervals."
        if too_few(self.graphs, self.alpha):
            return (
                f"{self.graphs} calibration graphs are too few for error rate {self.alpha:g}: no "
                f"interval has an end. From {least_rate(self.graphs):g} on, they have."
            )
        return (
            f"At error rate {self.alpha:g} an interval misses the true number at most "
            f"{100 * self.alpha:g} % of the time, on average, if the graphs are like the "
            f"{self.graphs} calibration graphs."
        )


@dataclass(frozen=True)
class LabelPromise:
    """Of the sets of several labels at an error rate."""

    alpha: float
    known: Sequence[int]
    """Calibration graphs of which each label is known, or has each of its values."""

    def __str__(self) -> str:
        """For all graphs.

        >>> print(LabelPromise(0.1, [20, 30]))
        At error rate 0.1 the sets of each label miss its true value at most 10 % of the time, on \
average, if the graphs are like the calibration graphs, of which 20 to 30 have one.
        >>> print(LabelPromise(0.04, [20, 30]))
        20 calibration graphs are too few for error rate 0.04: sets of such labels hold both \
values. From 0.0477 on, all can leave one out.
        """
        if not any(self.known):
            return "The run has no calibration part, so there are no prediction sets."
        fewest, most = min(self.known), max(self.known)
        if too_few(fewest, self.alpha):
            return (
                f"{fewest} calibration graphs are too few for error rate {self.alpha:g}: sets of "
                f"such labels hold both values. From {least_rate(fewest):g} on, all can leave one "
                "out."
            )
        number = f"{fewest}" if fewest == most else f"{fewest} to {most}"
        return (
            f"At error rate {self.alpha:g} the sets of each label miss its true value at most "
            f"{100 * self.alpha:g} % of the time, on average, if the graphs are like the "
            f"calibration graphs, of which {number} have one."
        )
