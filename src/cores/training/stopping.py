"""Early stopping on the selection part, with the best weights kept."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn


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
        """Whether patience has run out."""
        return self.waited >= self.patience

    def restore_best(self) -> None:
        """Put the best weights back into the model."""
        self.model.load_state_dict(self.best_weights)

    def state_dict(self) -> dict[str, Any]:
        """What resuming needs."""
        return {
            "best_score": self.best_score,
            "best_epoch": self.best_epoch,
            "best_weights": self.best_weights,
            "waited": self.waited,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where the state was taken; weights of another model are refused at once."""
        weights = state["best_weights"]
        if weights and _shapes(weights) != _shapes(self.model.state_dict()):
            raise ValueError("the best weights are those of another model")
        self.best_score = tuple(map(float, state["best_score"]))
        self.best_epoch = int(state["best_epoch"])
        self.best_weights = weights
        self.waited = int(state["waited"])


def _shapes(weights: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in weights.items()}
