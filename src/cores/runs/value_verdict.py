"""What the metrics of a run say where numbers are predicted, in sentences. Needs no torch."""

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from cores.config import RunConfig

DENSE = 0.9
"""A policy that keeps more than this share has not chosen anything."""
NO_SKILL = 0.9
"""A mean error above this share of the best constant's shows no skill."""
LARGER = 1.25
"""Errors that differ by a larger factor than this are called different."""
SPARSITY_COST = 1.1
"""A mean error above this many times that on full graphs is worth a sentence."""
SMALL_TEST = 100
"""Below this, one graph is more than a point of coverage."""
STANDARD_ERRORS = 2.0
TOO_DENSE = "raise `tolerance` (it was {tolerance:.3g}), or train longer (`epochs`)"
"""What helps against a policy that keeps too much."""


def value_sentences(
    metrics: Mapping[str, Any], config: RunConfig, calibration_graphs: int
) -> list[str]:
    """What the metrics of a regression say: the headline first, then what to be careful with.

    Args:
        metrics: As :func:`cores.runs.fit.measure` gives them.
        config: The run's settings.
        calibration_graphs: How many there were.
    """
    careful = [
        *_skill(metrics),
        *_honesty(metrics),
        *density(metrics, config, TOO_DENSE),
        *_cost(metrics, config),
    ]
    intervals = [*_intervals(metrics, calibration_graphs), *_coverage(metrics, calibration_graphs)]
    return [_headline(metrics, config), *careful, *intervals, *_small_test(metrics)]


def _headline(metrics: Mapping[str, Any], config: RunConfig) -> str:
    error, constant = metrics["mae"], metrics["constant_mae"]
    told = f"Mean error {error:.3g}; the best constant has {constant:.3g}"
    if config.spec.removes is None:
        return f"{told}."
    kept, what = kept_share(metrics, config)
    told = f"Mean error {error:.3g} from {100 * kept:.0f} % of the {what}; the best constant has "
    told += f"{constant:.3g}"
    if metrics["judge_mae"] is None:
        return f"{told}; no judge has checked the subgraphs."
    judged, random = metrics["judge_mae"], metrics["judge_random_mae"]
    return (
        f"{told}; an independent network has {judged:.3g} on the same subgraphs, {random:.3g} "
        "on random ones."
    )


def _skill(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Whether the model has learnt anything."""
    if metrics["mae"] > NO_SKILL * metrics["constant_mae"]:
        yield "The model is hardly better than a constant: it has learnt next to nothing."


def _honesty(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Whether others can read what is kept, and whether it was chosen."""
    judged, random = metrics["judge_mae"], metrics["judge_random_mae"]
    if judged is None:
        return
    own = max(metrics["mae"], metrics["judge_full_mae"])
    if judged > LARGER * own and judged * LARGER > random:
        yield (
            f"The subgraph is a private code: an independent network errs by {judged:.3g} on it, "
            f"the model by {metrics['mae']:.3g}."
        )
    elif judged * LARGER > random:
        yield (
            f"A random part of the same size is about as good (mean error {random:.3g}, the chosen "
            f"one {judged:.3g}): do not read the subgraph as a reason."
        )


def density(metrics: Mapping[str, Any], config: RunConfig, remedy: str) -> Iterator[str]:
    """Whether the policy removes anything; the remedy without a dial may name metrics."""
    kept, what = kept_share(metrics, config)
    if not config.spec.has_policy or kept <= DENSE:
        return
    remedy = remedy.format(**metrics)
    if config.reward.dial:
        remedy = (
            "`cores curve` tells what sparser settings of the dial cost, and a reward.max_loss "
            f"above {config.reward.max_loss:g} allows more"
        )
    yield f"Keeps {100 * kept:.0f} % of the {what}: {remedy}."


def _cost(metrics: Mapping[str, Any], config: RunConfig) -> Iterator[str]:
    """What the removed part costs."""
    error, full = metrics["mae"], metrics["full_mae"]
    if error > SPARSITY_COST * full:
        lower = "reward.max_loss" if config.reward.dial else "`tolerance`"
        yield (
            f"Sparsity costs {100 * (error / full - 1):.0f} % of the mean error: {full:.3g} on "
            f"full graphs, {error:.3g} on what is kept; lower {lower} to keep more."
        )


def _intervals(metrics: Mapping[str, Any], calibration_graphs: int) -> Iterator[str]:
    """Whether there were enough calibration graphs for intervals with ends."""
    needed = math.ceil(1 / Fraction(str(metrics["alpha"]))) - 1
    if metrics["coverage"] is not None and metrics["interval_width"] is None:
        yield (
            f"Prediction intervals have no ends: {calibration_graphs} calibration graphs are too "
            f"few for alpha = {metrics['alpha']:g} (needs {needed})."
        )


def _coverage(metrics: Mapping[str, Any], calibration_graphs: int) -> Iterator[str]:
    """Whether the intervals keep their promise on these graphs."""
    coverage, promised = metrics["coverage"], 1 - metrics["alpha"]
    if coverage is None:
        return
    # Both parts are samples: chance moves the quantile as well as what is counted.
    counts = 1 / metrics["test_graphs"] + 1 / calibration_graphs
    noise = STANDARD_ERRORS * math.sqrt(promised * (1 - promised) * counts)
    if coverage < promised - noise:
        yield (
            f"Prediction intervals hold the true number of {100 * coverage:.0f} % of the graphs, "
            f"not of {100 * promised:.0f} %: these graphs are unlike the calibration part "
            f"({calibration_graphs} graphs)."
        )


def _small_test(metrics: Mapping[str, Any]) -> Iterator[str]:
    """How far the numbers can be trusted."""
    if metrics["test_graphs"] < SMALL_TEST:
        yield f"Measured on {metrics['test_graphs']} test graphs: a few of them decide the error."


def kept_share(metrics: Mapping[str, Any], config: RunConfig) -> tuple[float, str]:
    """The share of what the model removes that is kept; the smaller one where it removes both."""
    nodes, edges = (metrics["node_ratio"], "nodes"), (metrics["edge_ratio"], "edges")
    if config.spec.removes == "both":
        return min(nodes, edges)
    return edges if config.spec.removes == "edge" else nodes
