"""What the metrics of a run say where graphs have several labels, in sentences. Needs no torch."""

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from cores.config import RunConfig
from cores.runs.value_verdict import DENSE, SMALL_TEST, density, kept_share

NO_SKILL = 0.55
"""A mean ROC-AUC below this shows no skill: guessing has 0.5."""
JUDGE_GAP = 0.05
"""A judge whose mean ROC-AUC is farther below the model's does not read what the model reads."""
CHOSEN = 0.02
"""Subgraphs that are worth less than this to a judge, against random ones, were not chosen."""
SPARSITY_COST = 0.02
"""Loss of mean ROC-AUC by sparsity that is worth a sentence."""


def label_sentences(
    metrics: Mapping[str, Any], config: RunConfig, calibration: Sequence[int]
) -> list[str]:
    """What the metrics say: the headline first, then what to be careful with.

    Names of labels are not told: they come from data.

    Args:
        metrics: As :func:`cores.runs.fit.measure` gives them.
        config: The run's settings.
        calibration: Number of calibration graphs of which each label is known.
    """
    return [
        _headline(metrics, config),
        *_undefined(metrics),
        *_skill(metrics),
        *_honesty(metrics, config),
        *density(metrics, config, "lower `lam`, or train longer (`epochs`)"),
        *_cost(metrics, config),
        *_sets(metrics, calibration),
        *_small_test(metrics),
    ]


def _headline(metrics: Mapping[str, Any], config: RunConfig) -> str:
    labels = len(metrics["label_roc_auc"])
    ranked = "undefined" if metrics["roc_auc"] is None else f"{metrics['roc_auc']:.3f}"
    told = f"Mean ROC-AUC of {labels} label{'s' * (labels != 1)} {ranked}"
    known = (
        f"{100 * metrics['accuracy']:.0f} % of the known values are right, "
        f"{100 * metrics['majority_rate']:.0f} % if the more frequent value of each label is "
        "guessed"
    )
    if config.spec.removes is None:
        return f"{told}; {known}."
    kept, what = kept_share(metrics, config)
    told = f"{told} from {100 * kept:.0f} % of the {what}"
    if metrics["judge_roc_auc"] is None:
        return f"{told}; {known}; no judge has checked the subgraphs."
    judged, random = metrics["judge_roc_auc"], metrics["judge_random_roc_auc"]
    return (
        f"{told}; {known}; an independent network has {judged:.3f} on the same subgraphs, "
        f"{random:.3f} on random ones."
    )


def _undefined(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Whether labels do not count in the means."""
    missing = sum(value is None for value in metrics["label_roc_auc"].values())
    if missing:
        yield (
            f"{missing} of {len(metrics['label_roc_auc'])} labels have one value alone among these "
            "graphs: their ROC-AUC is not defined, and no part of the mean."
        )


def _skill(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Whether the model has learnt anything."""
    if metrics["roc_auc"] is not None and metrics["roc_auc"] < NO_SKILL:
        yield "The model is hardly better than guessing: train longer (`epochs`)."


def _honesty(metrics: Mapping[str, Any], config: RunConfig) -> Iterator[str]:
    """Whether others can read what is kept, and whether it was chosen."""
    judged, random = metrics["judge_roc_auc"], metrics["judge_random_roc_auc"]
    if judged is None or metrics["roc_auc"] is None:
        return
    if min(metrics["roc_auc"], metrics["judge_full_roc_auc"]) - judged > JUDGE_GAP:
        yield (
            f"The subgraph may be a code, not a reason: an independent network has a mean ROC-AUC "
            f"of {judged:.3f} on it, the model {metrics['roc_auc']:.3f}."
        )
    elif judged - random < CHOSEN and kept_share(metrics, config)[0] <= DENSE:
        yield (
            f"A random part of the same size is about as good (mean ROC-AUC {random:.3f}, the "
            f"chosen one {judged:.3f}): do not read the subgraph as a reason."
        )


def _cost(metrics: Mapping[str, Any], config: RunConfig) -> Iterator[str]:
    """What the removed part costs."""
    ranked, full = metrics["roc_auc"], metrics["full_roc_auc"]
    if ranked is not None and full - ranked > SPARSITY_COST:
        yield (
            f"Sparsity costs {full - ranked:.3f} of the mean ROC-AUC ({full:.3f} on full graphs): "
            f"{'lower reward.max_loss' if config.reward.dial else 'raise `lam`'} to keep more."
        )


def _sets(metrics: Mapping[str, Any], calibration: Sequence[int]) -> Iterator[str]:
    """Whether there were enough calibration graphs for sets of one value."""
    if metrics["coverage"] is None:
        return
    needed = math.ceil(1 / Fraction(str(metrics["alpha"]))) - 1
    few = sum(count < needed for count in calibration)
    if few:
        yield (
            f"The sets of {few} of {len(calibration)} labels hold both values: fewer than {needed} "
            f"calibration graphs have a value of them, too few for alpha = {metrics['alpha']:g}."
        )


def _small_test(metrics: Mapping[str, Any]) -> Iterator[str]:
    """How far the numbers can be trusted."""
    if metrics["test_graphs"] < SMALL_TEST:
        yield f"Measured on {metrics['test_graphs']} test graphs: a few of them decide the metrics."
