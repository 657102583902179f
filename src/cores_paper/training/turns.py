"""Whose turn an epoch is where classifier and policy are trained in long phases, one at a time."""

from collections.abc import Mapping
from typing import Any

from cores.config import TrainingConfig
from cores_paper.presets import PaperConfig


class Turns:
    """The schedule of the authors' program, as far as it is known (Deviation D9).

    The classifier begins, on full graphs. When it has stalled for ``training.patience`` epochs, the
    policy goes on, until it has stalled for ``paper.policy_patience``; then the classifier, on
    what the policy samples, and so on. The last epochs are the policy's.

    Args:
        training: Settings of the training.
        own: Settings of the preset.
    """

    def __init__(self, training: TrainingConfig, own: PaperConfig) -> None:
        self.settings = own
        self.classifier_patience = training.patience
        last = min(own.last_policy_epochs, max(training.epochs - 1, 1))
        self.last_free_epoch = training.epochs - last
        """The epochs after it are the policy's."""
        self.ended = 0
        """Turns that have ended: after an even number of them it is the classifier's."""
        self.best: float | None = None
        """Of this turn."""
        self.waited = 0

    def is_policy_turn(self, epoch: int) -> bool:
        """Return whether the policy is trained in this epoch; otherwise it is the classifier's."""
        return self.ended % 2 == 1 or epoch > self.last_free_epoch

    @property
    def on_full_graphs(self) -> bool:
        """Return whether the classifier is still trained on full graphs."""
        return self.ended == 0

    def step(self, epoch: int, metrics: Mapping[str, float]) -> None:
        """Take in the metrics of an epoch, after which the turn may be over."""
        if epoch > self.last_free_epoch:
            return
        policy = self.is_policy_turn(epoch)
        score = self._policy_score(metrics) if policy else metrics["selection_accuracy"]
        if self.best is None or score > self.best:
            self.best, self.waited = score, 0
        else:
            self.waited += 1
        if self.waited >= (self.settings.policy_patience if policy else self.classifier_patience):
            self.ended, self.best, self.waited = self.ended + 1, None, 0

    def _policy_score(self, metrics: Mapping[str, float]) -> float:
        if self.settings.stop_metric == "reward":
            return metrics["reward"]
        return -metrics["ppo_loss"]

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs."""
        return {"ended": self.ended, "best": self.best, "waited": self.waited}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the state was taken."""
        self.ended, self.waited = int(state["ended"]), int(state["waited"])
        self.best = None if state["best"] is None else float(state["best"])
