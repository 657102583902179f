"""Learning rates over a training: a plateau schedule as published, or a cosine."""

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from torch.optim import Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau

from cores.training.optimizer import rates, set_rate


@runtime_checkable
class Schedule(Protocol):
    """Sets an optimiser's learning rates after every epoch."""

    def step(self, metrics: float) -> None:
        """Take in the epoch's score, higher is better."""

    def state_dict(self) -> dict[str, Any]:
        """What resuming needs."""

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """Go on where the state was taken."""


@dataclass(frozen=True)
class Restart:
    """A second descent of the rates."""

    after: int
    """Epochs before it begins."""
    epochs: int
    share: float
    """Of the given rates, with which it begins."""


class Cosine:
    """From the given rates down to a share of them, along half a cosine; scores do not matter.

    Args:
        optimizer: Whose rates these are.
        epochs: Until the final rates are reached; they stay then.
        final_share: Of the given rates.
        again: A second descent, if any.
    """

    def __init__(
        self, optimizer: Optimizer, epochs: int, final_share: float, again: "Restart | None" = None
    ) -> None:
        self.optimizer = optimizer
        self.epochs = epochs
        self.final_share = final_share
        self.again = again
        self.rates = rates(optimizer)
        self.epoch = 0

    def step(self, metrics: float) -> None:
        """One epoch on."""
        self.epoch += 1
        share = self._height(self.epoch, self.epochs)
        if self.again is not None and self.epoch >= self.again.after:
            since = self.epoch - self.again.after
            share = self.again.share * self._height(since, self.again.epochs)
        for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
            set_rate(group, share * rate)

    def _height(self, epoch: int, epochs: int) -> float:
        """Of a descent from 1 after so many epochs."""
        height = (1 + math.cos(math.pi * min(epoch / epochs, 1))) / 2
        return self.final_share + (1 - self.final_share) * height

    def state_dict(self) -> dict[str, Any]:
        """How far it has come; the rates themselves are the optimiser's."""
        return {"epoch": self.epoch}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where the state was taken."""
        self.epoch = state["epoch"]


def plateau(optimizer: Optimizer, factor: float, patience: int, min_rate: float) -> Schedule:
    """Lower the rates when the score has stalled for more than ``patience`` epochs."""
    return ReduceLROnPlateau(
        optimizer,
        mode="max",
        factor=factor,
        patience=patience,
        min_lr=[min(min_rate, rate) for rate in rates(optimizer)],
    )
