"""The state of a training as one safetensors file, without pickles."""

import hashlib
import json
import math
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor
from torch.optim import Adam

from cores.errors import UserError
from cores.files import parsed_json, write_atomically

CHECKSUM = "sha256"
"""In a file's structure: beside its content, so that programs before version 0.3 read it, too."""


def save_state(path: Path, state: Mapping[str, Any]) -> None:
    """Save nested dicts and lists of tensors, numbers and strings as one safetensors file.

    Tensors are stored as such; the structure around them is JSON in the file's header, with a
    checksum of it all.
    """
    tensors: dict[str, Tensor] = {}
    structure = _taken_apart(state, tensors)
    # One entry: safetensors writes several in no fixed order, and equal states are equal files.
    structure[CHECKSUM] = _checksum(structure, tensors)
    write_atomically(path, save(tensors, metadata={"structure": json.dumps(structure)}))


def load_state(path: Path) -> dict[str, Any]:
    """Load what :func:`save_state` saved; reading runs no code from the file."""
    try:
        with safe_open(path, framework="pt") as file:
            structure = parsed_json((file.metadata() or {})["structure"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no dict
        known = structure.pop(CHECKSUM, None)
        intact = known in (None, _checksum(structure, tensors))  # version 0.2 wrote none
        state = _put_together(structure, tensors)
        if not isinstance(state, dict):
            raise TypeError("a state has names")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    except (SafetensorError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is damaged or not ours ({type(error).__name__})") from None
    if not intact:
        raise UserError(f"{path} is damaged: its content is not what its checksum says")
    return state


def _checksum(structure: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """Hash the header and every tensor of a file."""
    found = hashlib.sha256(json.dumps(structure).encode())
    for name, tensor in sorted(tensors.items()):
        found.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        found.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def fingerprint(state: Mapping[str, Any]) -> str:
    """Hash a state: equal for equal states only."""
    tensors: dict[str, Tensor] = {}
    return _checksum(_taken_apart(state, tensors), tensors)


def _taken_apart(value: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(value, Tensor):
        name = str(len(tensors))
        # A clone: safetensors refuses tensors that share memory.
        tensors[name] = value.detach().to("cpu", copy=True).contiguous()
        return {"tensor": name}
    if isinstance(value, Mapping):
        pairs = [[key, _taken_apart(item, tensors)] for key, item in value.items()]
        return {"dict": pairs}  # as pairs: JSON would turn an optimiser's integer keys to strings
    if isinstance(value, list | tuple):
        return [_taken_apart(item, tensors) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"cannot save a {type(value).__name__}")


def _put_together(value: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(value, dict):
        if "tensor" in value:
            return tensors[value["tensor"]]
        return {key: _put_together(item, tensors) for key, item in value["dict"]}
    if isinstance(value, list):
        return [_put_together(item, tensors) for item in value]
    return value


def check_fits(saved: Any, fresh: Any) -> None:
    """Raise a ``ValueError`` unless a saved state has the names, types and shapes of a fresh one.

    Where the fresh one has nothing yet, anything fits.
    """
    if fresh is None or (isinstance(fresh, Mapping | list | tuple) and not fresh):
        return
    if isinstance(fresh, Tensor):
        fits = isinstance(saved, Tensor) and _kind(saved) == _kind(fresh)
    elif isinstance(fresh, Mapping):
        fits = isinstance(saved, Mapping) and saved.keys() == fresh.keys()
    elif isinstance(fresh, list | tuple):
        fits = isinstance(saved, list | tuple) and len(saved) == len(fresh)
    else:
        fits = type(saved) is type(fresh) or (type(saved), type(fresh)) == (int, float)
    if not fits:
        raise ValueError("a state of something else")
    if isinstance(fresh, Mapping):
        for name in fresh:
            check_fits(saved[name], fresh[name])
    elif isinstance(fresh, list | tuple):
        for item, like in zip(saved, fresh, strict=True):
            check_fits(item, like)


def _kind(tensor: Tensor) -> tuple[torch.Size, torch.dtype]:
    return tensor.shape, tensor.dtype


def restore_adam(optimizer: Adam, state: Mapping[str, Any]) -> None:
    """Put an optimiser's state back; raises a ``ValueError`` where it is that of other weights.

    torch itself compares the number of weights alone, and fails in the next step.
    """
    fresh = optimizer.state_dict()["param_groups"]
    check_fits(state["param_groups"], fresh)
    for group, like in zip(state["param_groups"], fresh, strict=True):
        settings = group | {"lr": like["lr"], "betas": tuple(group["betas"])}
        if settings != like or not 0 <= group["lr"] < math.inf:
            raise ValueError("an optimiser with other settings")
    weights = [each for group in optimizer.param_groups for each in group["params"]]
    by_number = dict(enumerate(weights))
    for number, moments in state["state"].items():
        like = by_number[number]
        check_fits(moments, {"step": torch.zeros(()), "exp_avg": like, "exp_avg_sq": like})
    optimizer.load_state_dict(dict(state))


def forked_rng(device: torch.device) -> AbstractContextManager[None]:
    """Fork the random state: draws inside leave it unchanged outside."""
    return torch.random.fork_rng(devices=[device] if device.type == "cuda" else [])


class RandomState:
    """All random numbers of a run as one state: batch order, and torch's own for dropout."""

    def __init__(self, seed: int, device: torch.device) -> None:
        torch.manual_seed(seed)
        self.batches = torch.Generator().manual_seed(seed)
        self.device = device

    def state_dict(self) -> dict[str, Any]:
        """Return the state of every generator."""
        on_device = torch.cuda.get_rng_state(self.device) if self.device.type == "cuda" else None
        return {
            "batches": self.batches.get_state(),
            "cpu": torch.get_rng_state(),
            "cuda": on_device,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Put every generator back."""
        self.batches.set_state(state["batches"])
        torch.set_rng_state(state["cpu"])
        if state["cuda"] is not None and self.device.type == "cuda":
            torch.cuda.set_rng_state(state["cuda"], self.device)
