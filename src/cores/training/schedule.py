"""Learning rates over a training: a plateau schedule as published, or a cosine."""

import math
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
        """Return what a resumed run needs."""

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """Go on where the state was taken."""


class Cosine:
    """From the given rates down to a share of them, along half a cosine; scores do not matter."""

    def __init__(self, optimizer: Optimizer, epochs: int, final_share: float) -> None:
        self.optimizer = optimizer
        self.epochs = epochs
        self.final_share = final_share
        self.rates = rates(optimizer)
        self.epoch = 0

    def step(self, metrics: float) -> None:
        """One epoch on."""
        self.epoch += 1
        height = (1 + math.cos(math.pi * min(self.epoch / self.epochs, 1))) / 2
        share = self.final_share + (1 - self.final_share) * height
        for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
            set_rate(group, share * rate)

    def state_dict(self) -> dict[str, Any]:
        """How far it has come; the rates themselves are the optimiser's."""
        return {"epoch": self.epoch}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where the state was taken."""
        self.epoch = state["epoch"]


class Plateau(ReduceLROnPlateau):
    """Lower the rates when the score has stalled for more than ``patience`` epochs.

    Its state has the rates as numbers, wherever the optimiser keeps them: a run that was begun on a
    GPU can go on elsewhere.
    """

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs."""
        state = super().state_dict()
        return {**state, "_last_lr": [float(rate) for rate in state["_last_lr"]]}


def plateau(optimizer: Optimizer, factor: float, patience: int, min_rate: float) -> Plateau:
    """A plateau schedule for higher scores, which takes no rate below the lowest."""
    return Plateau(
        optimizer,
        mode="max",
        factor=factor,
        patience=patience,
        min_lr=[min(min_rate, rate) for rate in rates(optimizer)],
    )
