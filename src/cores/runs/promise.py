"""The sparsest setting of a dial whose loss is controlled, chosen on a calibration part."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from cores import risk
from cores.config.policy import SETTINGS
from cores.errors import UserError
from cores.runs.trained import DialCalibration, TrainedModel, setting

LOSSES: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "excess": risk.excess_errors,
    "disagreement": lambda full, parts, labels: risk.disagreements(full, parts),
    "accuracy": risk.accuracy_losses,
}
"""Right on the full graph and wrong on the kept part; another class than on the full graph; the
accuracy that is lost, where answers that turn right make up for others."""


@dataclass(frozen=True)
class Promise:
    """What is promised of a model at a setting of its dial."""

    max_loss: float
    loss: str
    """One of :data:`LOSSES`."""
    confidence: float | None
    """Probability that it holds for this model; None: on average over calibration parts."""
    per_class: bool
    """Whether it holds for every class."""


class NoSettingError(UserError):
    """No setting keeps a promise that there are graphs enough for: these have been looked at."""

    def __init__(self, message: str, choosing: Int[Tensor, " choosing"]) -> None:
        super().__init__(message)
        self.choosing = choosing


def tuned_model(trained: TrainedModel, promise: Promise) -> tuple[TrainedModel, dict[str, Any]]:
    """A model whose dial is set where a promise holds and least is kept.

    Half of the calibration part decides, the other half calibrates the prediction sets from then
    on: graphs that chose a setting lose less there than new ones do. A later call decides anew.

    Returns:
        The model; and what is promised, with what the graphs that decided say of the setting.
    """
    trained.need_classes("`cores tune`")
    dial = trained.dial
    if trained.lam is None or dial is None:
        raise UserError("this model was trained for one lambda; train with reward.dial")
    _check(promise)
    choosing = _choosing(dial.labels, trained.model.num_classes, promise)
    labels = dial.labels[choosing]
    full = dial.full_probs[choosing].argmax(dim=-1)
    parts = dial.probs[:, choosing].argmax(dim=-1).T.flip(-1)  # [graphs, settings], densest first
    losses = LOSSES[promise.loss](full, parts, labels)
    kept = dial.kept_ratio[:, choosing].mean(dim=1).flip(0)  # [settings]
    if promise.confidence is None:
        controlled = partial(risk.risk_controlled, epsilon=promise.max_loss)
    else:
        delta = 1 - promise.confidence
        controlled = partial(risk.learn_then_test, epsilon=promise.max_loss, delta=delta)
    if promise.per_class:
        mask = risk.in_every_class(controlled, losses, labels, trained.model.num_classes)
    else:
        mask = controlled(losses)
    place = risk.sparsest(mask, kept)
    if place is None:
        least = float(losses.double().mean(dim=0).min())
        raise NoSettingError(
            f"no setting keeps this promise: the least that {len(choosing)} graphs lose is "
            f"{least:.3f} on average, and chance needs room; allow more than {promise.max_loss:g}",
            choosing,
        )
    lam = SETTINGS[-1 - place]
    tuned = _set(trained, dial, lam, choosing)
    return tuned, {
        "lam": lam,
        "max_loss": promise.max_loss,
        "loss": promise.loss,
        "confidence": promise.confidence,
        "per_class": promise.per_class,
        "observed_loss": float(losses.double().mean(dim=0)[place]),
        "kept_ratio": float(kept[place]),
        "graphs": len(choosing),
        "calibration_graphs": len(tuned.calibration),
    }


def promised_model(trained: TrainedModel) -> tuple[TrainedModel, dict[str, Any]]:
    """The model of a training that was asked for a promise, and what its metrics say of that.

    Where the promise cannot be given, the dial stays where the training has set it, and the metrics
    say why. Graphs that were too few all calibrate; graphs that were looked at, and allow no
    setting, have had their say all the same, and calibrate nothing.
    """
    reward = trained.config.reward
    if not reward.promised:
        return trained, {}
    if trained.lam is None:
        return trained, {"promise": None, "no_promise": f"{trained.config.model} has no dial"}
    promise = Promise(reward.max_loss, "excess", None, per_class=True)
    try:
        tuned, found = tuned_model(trained, promise)
    except NoSettingError as error:
        assert trained.dial is not None
        tuned = _set(trained, trained.dial, trained.lam, error.choosing)
        return tuned, {"promise": None, "no_promise": str(error)}
    except UserError as error:
        return trained, {"promise": None, "no_promise": str(error)}
    return tuned, {"promise": found}


def _set(
    trained: TrainedModel, dial: DialCalibration, lam: float, choosing: Int[Tensor, " choosing"]
) -> TrainedModel:
    """A model at a setting that some calibration graphs chose, calibrated by the others."""
    dial = replace(dial, chosen_by=choosing)
    return replace(trained.at(lam), calibration=dial.calibration(setting(lam)), dial=dial)


def _choosing(
    labels: Int[Tensor, " graphs"], num_classes: int, promise: Promise
) -> Int[Tensor, " choosing"]:
    """The graphs that decide; where they are too few to promise so little, it is told."""
    delta = None if promise.confidence is None else 1 - promise.confidence
    groups = [torch.arange(len(labels))]
    if promise.per_class:
        groups = [(labels == label).nonzero().squeeze(1) for label in range(num_classes)]
    chosen = []
    for group in groups:
        half, _ = risk.halves(len(group), promise.max_loss, delta)
        if not len(half):
            _refuse(len(group), promise, delta)
        chosen.append(group[half])
    return torch.cat(chosen).sort().values


def _refuse(graphs: int, promise: Promise, delta: float | None) -> None:
    needed = 2 * risk.graphs_needed(promise.max_loss, delta)
    whose = "of a class" if promise.per_class else "in all"
    smallest = risk.smallest_risk((graphs + 1) // 2, delta)
    raise UserError(
        f"a loss of at most {promise.max_loss:g} takes {needed} calibration graphs {whose}, and "
        f"there are {graphs}; the least that these can promise is {smallest:.3f}"
    )


def _check(promise: Promise) -> None:
    if promise.loss not in LOSSES:
        raise UserError(f"`loss` is one of {', '.join(LOSSES)}, got {promise.loss!r}")
    for name, share in (("max_loss", promise.max_loss), ("confidence", promise.confidence)):
        if share is None and name == "confidence":
            continue
        if not (isinstance(share, float) and 0 < share < 1):
            raise UserError(f"`{name}` must lie between 0 and 1, got {share}")
