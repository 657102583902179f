"""Adam as every network here is trained, in a form that a GPU can replay."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adam, Optimizer


def adam(weights: Iterable[Any], learning_rate: float, weight_decay: float = 0.0) -> Adam:
    """An optimiser of weights, or of groups of them; on a GPU, one whose steps can be recorded."""
    weights = list(weights)
    first = weights[0]["params"][0] if isinstance(weights[0], dict) else weights[0]
    kind = DeviceAdam if first.is_cuda else Adam
    return kind(weights, lr=learning_rate, weight_decay=weight_decay, fused=True)


class DeviceAdam(Adam):
    """Adam with its learning rates on the device, where a recorded step reads them.

    Its state is that of a plain one, so that a run can go on elsewhere.
    """

    def __init__(self, weights: Iterable[Any], **settings: Any) -> None:
        super().__init__(weights, **settings)
        for group in self.param_groups:
            device = group["params"][0].device
            group["lr"] = torch.tensor(float(group["lr"]), device=device)
            group["capturable"] = True

    def state_dict(self) -> dict[str, Any]:
        """Return the state as that of a plain Adam."""
        state = super().state_dict()
        for group in state["param_groups"]:
            group["lr"], group["capturable"] = float(group["lr"]), False
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where the state was taken; the rates stay where they are."""
        rates = [group["lr"] for group in self.param_groups]
        super().load_state_dict(state_dict)
        for group, rate in zip(self.param_groups, rates, strict=True):
            rate.fill_(group["lr"])
            group["lr"], group["capturable"] = rate, True


def skip_steps(optimizer: Adam, where: Tensor) -> None:
    """Make no step where a number on the device is 1, without asking for it.

    A fused Adam reads it by this name, by which torch's ``GradScaler`` tells of gradients that are
    not finite.
    """
    optimizer.found_inf = where  # type: ignore[attr-defined]


def set_rate(group: dict[str, Any], rate: float) -> None:
    """Give a group of weights another learning rate."""
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(rate)
    else:
        group["lr"] = rate


def rates(optimizer: Optimizer) -> list[float]:
    """The learning rates as they are now."""
    return [float(group["lr"]) for group in optimizer.param_groups]
