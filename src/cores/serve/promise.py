"""What prediction sets promise, in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cores.runs.predictor import Predictor


@dataclass(frozen=True)
class Promise:
    """Of the sets at an error rate."""

    alpha: float
    calibration: Sequence[int]
    """Calibration graphs of every class."""
    per_class: bool

    @classmethod
    def of(cls, predictor: Predictor) -> "Promise":
        """Of a model at its error rate."""
        counts = predictor.trained.calibration.class_counts
        return cls(predictor.alpha, counts, predictor.sets.per_class)

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
        if Fraction(str(self.alpha)) * (fewest + 1) < 1:
            of = "of a class " if self.per_class else ""
            return (
                f"{fewest} calibration graphs {of}are too few for error rate {self.alpha:g}: every "
                f"set holds {'that' if self.per_class else 'every'} label. From "
                f"{-(-10_000 // (fewest + 1)) / 10_000:g} on, sets can leave one out."
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
