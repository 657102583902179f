"""The least sufficiency at which few graphs are told a wrong class without being weak."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cores import risk
from cores.errors import UserError
from cores.parts import TIE
from cores.runs.trained import TrainedModel

SUFFICIENCIES = tuple(hundredths / 100 for hundredths in range(99, 49, -1))
"""Values that are tried, from the one at which most graphs are weak."""


@dataclass(frozen=True)
class Promise:
    """What is promised of a model at a sufficiency."""

    max_wrong: float
    """Largest share of graphs that are told a wrong class and are not weak."""
    confidence: float | None = None
    """Probability that it holds for this model; None: on average over calibration parts."""
    per_class: bool = False
    """Whether it holds for every class."""

    def __post_init__(self) -> None:
        for name, share in (("max_wrong", self.max_wrong), ("confidence", self.confidence)):
            if share is None and name == "confidence":
                continue
            if not (isinstance(share, float) and 0 < share < 1):
                raise UserError(f"`{name}` must lie between 0 and 1, got {share}")


def wrong_answers(
    probs: Float[Tensor, "graphs classes"],
    labels: Int[Tensor, " graphs"],
    sufficiencies: Float[Tensor, " values"],
) -> Bool[Tensor, "graphs values"]:
    """Tell which graphs get a wrong class without being weak, at every sufficiency.

    >>> probs = torch.tensor([[0.9, 0.1], [0.6, 0.4]])
    >>> wrong_answers(probs, torch.tensor([1, 1]), torch.tensor([0.8, 0.5])).tolist()
    [[True, True], [False, True]]
    """
    sure, predicted = probs.max(dim=-1)
    return (predicted != labels)[:, None] & (sure[:, None] >= sufficiencies - TIE)


def tuned_model(trained: TrainedModel, promise: Promise) -> tuple[TrainedModel, dict[str, Any]]:
    """Set the least sufficiency that keeps a promise, by the calibration part.

    Prediction sets do not depend on the sufficiency, and are calibrated by the same graphs.

    Returns:
        The model; and what is promised, with what the calibration part says of it.
    """
    trained.need_classes("`cores tune`")
    trained.need_committee("train cores-node with the default preset")
    _check_start(trained)
    probs, labels = trained.calibration.probs, trained.calibration.labels
    classes = trained.model.num_classes
    values = torch.tensor(SUFFICIENCIES, dtype=probs.dtype)
    delta = None if promise.confidence is None else 1 - promise.confidence
    counts = torch.bincount(labels, minlength=classes)
    _check_graphs(int(counts.min()) if promise.per_class else len(labels), promise, delta)
    losses = wrong_answers(probs, labels, values)
    if delta is None:
        controlled = partial(risk.risk_controlled, epsilon=promise.max_wrong)
    else:
        controlled = partial(risk.learn_then_test, epsilon=promise.max_wrong, delta=delta)
    if promise.per_class:
        mask = risk.in_every_class(controlled, losses, labels, classes)
    else:
        mask = controlled(losses)
    if not bool(mask.any()):
        wrong = float(losses.double().mean(dim=0).min())
        raise UserError(
            f"no sufficiency keeps this promise: even at {SUFFICIENCIES[0]:g}, {wrong:.3f} of "
            f"{len(labels)} calibration graphs get a wrong class; allow more than "
            f"{promise.max_wrong:g}"
        )
    place = int(mask.sum()) - 1
    weak = probs.amax(dim=-1) < values[place] - TIE
    return trained.showing(sufficiency=SUFFICIENCIES[place]), {
        "sufficiency": SUFFICIENCIES[place],
        "max_wrong": promise.max_wrong,
        "confidence": promise.confidence,
        "per_class": promise.per_class,
        "observed_wrong": float(losses.double().mean(dim=0)[place]),
        "answered": 1 - float(weak.double().mean()),
        "graphs": len(labels),
    }


def _check_start(trained: TrainedModel) -> None:
    """Refuse a model whose weak graphs do not follow from the probabilities that tell the class."""
    shown = trained.config.explanation
    if shown.class_from == "part":
        return
    if shown.parts == "policy":
        raise UserError(
            "this model tells the class from the whole graph and is weak where the policy's part "
            "is; `cores tune` needs other `parts`"
        )
    if trained.config.reward.max_pieces:
        raise UserError(
            "this model tells the class from the whole graph and is weak where its connected part "
            "is; `cores tune` needs a model that was trained with reward.max_pieces=0"
        )


def _check_graphs(graphs: int, promise: Promise, delta: float | None) -> None:
    """Refuse a promise that so few graphs cannot support."""
    needed = risk.graphs_needed(promise.max_wrong, delta)
    if graphs < needed:
        whose = "of a class" if promise.per_class else "in all"
        raise UserError(
            f"at most {promise.max_wrong:g} wrong takes {needed} calibration graphs {whose}, and "
            f"there are {graphs}; the least that these can promise is "
            f"{risk.smallest_risk(graphs, delta):.3f}"
        )
