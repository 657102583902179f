"""Early stopping on the selection part, with the best weights kept."""

from typing import Any

from torch import Tensor, nn

from cores.errors import UserError
from cores.training.state import check_fits


class EarlyStopping:
    """Remember the weights of the best epoch and count the epochs since.

    An epoch is better when its score is higher; a tuple breaks ties by its later entries.

    Args:
        model: Whose weights are remembered.
        patience: Epochs without improvement before training is exhausted.
    """

    def __init__(self, model: nn.Module, patience: int) -> None:
        self.model = model
        self.patience = patience
        self.best_score: tuple[float, ...] = ()
        self.best_epoch = 0
        self.best_weights: dict[str, Tensor] = {}
        self.waited = 0

    def step(self, score: tuple[float, ...], epoch: int) -> None:
        """Take in the score of an epoch."""
        if not self.best_score or score > self.best_score:
            self.best_score = score
            self.best_epoch = epoch
            self.best_weights = {
                name: value.detach().clone() for name, value in self.model.state_dict().items()
            }
            self.waited = 0
        else:
            self.waited += 1

    @property
    def exhausted(self) -> bool:
        """Return whether patience has run out."""
        return self.waited >= self.patience

    def restore_best(self) -> None:
        """Put the best weights back into the model."""
        if not self.best_weights:
            raise UserError(
                "the checkpoint is of the last epoch, and of none that was selected; delete "
                "checkpoint.safetensors to start over"
            )
        self.model.load_state_dict(self.best_weights)

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs."""
        return {
            "best_score": self.best_score,
            "best_epoch": self.best_epoch,
            "best_weights": self.best_weights,
            "waited": self.waited,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where the state was taken; weights of another model are refused at once."""
        weights, score = state["best_weights"], tuple(map(float, state["best_score"]))
        if bool(weights) != bool(score) or (state["waited"] and not weights):
            raise ValueError("an epoch without weights, or weights of no epoch")
        if weights:
            check_fits(weights, self.model.state_dict())
        self.best_score = score
        self.best_epoch = int(state["best_epoch"])
        self.best_weights = weights
        self.waited = int(state["waited"])
