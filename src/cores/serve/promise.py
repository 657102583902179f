"""Words for what prediction sets and intervals promise."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from cores.evaluation.intervals import ValueCalibration
from cores.evaluation.label_sets import LabelCalibration
from cores.runs.predictor import Predictor


def promise_text(predictor: Predictor) -> str:
    """Say what the sets or intervals of a model promise at its error rate."""
    calibration, per_class = predictor.trained.calibration, predictor.sets.per_class
    if isinstance(calibration, ValueCalibration):
        return interval_promise(predictor.alpha, len(calibration))
    if isinstance(calibration, LabelCalibration):
        counts = calibration.class_counts
        if per_class:
            counts = [number for each in calibration.of_label for number in each.class_counts]
        return label_promise(predictor.alpha, counts)
    return set_promise(predictor.alpha, calibration.class_counts, per_class)


def set_promise(alpha: float, counts: Sequence[int], per_class: bool) -> str:
    """Say it of sets; ``counts`` are the calibration graphs of every class.

    >>> print(set_promise(0.1, [20, 30], per_class=False))
    At error rate 0.1 a set misses the true label at most 10 % of the time, on average, if the \
graphs are like the 50 calibration graphs.
    >>> print(set_promise(0.01, [20, 30], per_class=False))
    50 calibration graphs are too few for error rate 0.01: every set holds every label. From \
0.0197 on, sets can leave one out.
    """
    graphs = sum(counts)
    if not graphs:
        return "The run has no calibration part, so there are no prediction sets."
    fewest = min(counts) if per_class else graphs
    if _too_few(fewest, alpha):
        of, held = ("of a class ", "that") if per_class else ("", "every")
        return (
            f"{fewest} calibration graphs {of}are too few for error rate {alpha:g}: every set "
            f"holds {held} label. From {_least_rate(fewest):g} on, sets can leave one out."
        )
    where = ", of every class" if per_class else ""
    return (
        f"At error rate {alpha:g} a set misses the true label at most {100 * alpha:g} % of the "
        f"time, on average{where}, if the graphs are like the {graphs} calibration graphs."
    )


def interval_promise(alpha: float, graphs: int) -> str:
    """Say it of the intervals of numbers.

    >>> print(interval_promise(0.1, 50))
    At error rate 0.1 an interval misses the true number at most 10 % of the time, on average, \
if the graphs are like the 50 calibration graphs.
    >>> print(interval_promise(0.01, 50))
    50 calibration graphs are too few for error rate 0.01: no interval has an end. From 0.0197 \
on, they have.
    """
    if not graphs:
        return "The run has no calibration part, so there are no prediction intervals."
    if _too_few(graphs, alpha):
        return (
            f"{graphs} calibration graphs are too few for error rate {alpha:g}: no interval has "
            f"an end. From {_least_rate(graphs):g} on, they have."
        )
    return (
        f"At error rate {alpha:g} an interval misses the true number at most {100 * alpha:g} % of "
        f"the time, on average, if the graphs are like the {graphs} calibration graphs."
    )


def label_promise(alpha: float, known: Sequence[int]) -> str:
    """Say it of the sets of several labels, each of which so many calibration graphs have.

    >>> print(label_promise(0.1, [20, 30]))
    At error rate 0.1 the sets of each label miss its true value at most 10 % of the time, on \
average, if the graphs are like the calibration graphs, of which 20 to 30 have one.
    >>> print(label_promise(0.04, [20, 30]))
    20 calibration graphs are too few for error rate 0.04: sets of such labels hold both \
values. From 0.0477 on, all can leave one out.
    """
    if not any(known):
        return "The run has no calibration part, so there are no prediction sets."
    fewest, most = min(known), max(known)
    if _too_few(fewest, alpha):
        return (
            f"{fewest} calibration graphs are too few for error rate {alpha:g}: sets of such "
            f"labels hold both values. From {_least_rate(fewest):g} on, all can leave one out."
        )
    number = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    return (
        f"At error rate {alpha:g} the sets of each label miss its true value at most "
        f"{100 * alpha:g} % of the time, on average, if the graphs are like the calibration "
        f"graphs, of which {number} have one."
    )


def set_text(labels: Sequence[Any] | None, classes: int) -> str:
    """Say what the prediction set of one graph tells.

    >>> set_text(["a", "b"], 3)
    '2 of 3 labels are left; the others are ruled out'
    """
    if labels is None:
        return "there are no prediction sets"
    if not labels:
        return "no label fits: the graph is unlike the calibration graphs"
    if len(labels) == classes:
        return "no label is ruled out"
    if len(labels) == 1:
        return "every other label is ruled out"
    return f"{len(labels)} of {classes} labels are left; the others are ruled out"


def _too_few(graphs: int, alpha: float) -> bool:
    """Tell whether so many calibration graphs can rule nothing out at an error rate."""
    return Fraction(str(alpha)) * (graphs + 1) < 1


def _least_rate(graphs: int) -> float:
    """The smallest error rate at which they can, in four digits.

    >>> _least_rate(50)
    0.0197
    """
    return -(-10_000 // (graphs + 1)) / 10_000
