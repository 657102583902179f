"""CORES: graph classification from a small subgraph that the model chose itself."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cores.config.registration import (
        register_command,
        register_conv,
        register_model,
        register_preset,
    )
    from cores.data.catalogue import register_dataset
    from cores.data.dataset import Dataset
    from cores.data.datasets import load_dataset
    from cores.errors import UserError
    from cores.estimator import Cores
    from cores.explain.explanation import CoresExplainer, Explanation
    from cores.graphs.store import GraphStore
    from cores.models.network import GraphModel

__version__ = "0.3.0"
__all__ = [
    "Cores",
    "CoresExplainer",
    "Dataset",
    "Explanation",
    "GraphModel",
    "GraphStore",
    "UserError",
    "load_dataset",
    "register_command",
    "register_conv",
    "register_dataset",
    "register_model",
    "register_preset",
]

_HOME = {
    "Cores": "cores.estimator",
    "CoresExplainer": "cores.explain.explanation",
    "Dataset": "cores.data.dataset",
    "Explanation": "cores.explain.explanation",
    "GraphModel": "cores.models.network",
    "GraphStore": "cores.graphs.store",
    "UserError": "cores.errors",
    "load_dataset": "cores.data.datasets",
    "register_command": "cores.config.registration",
    "register_conv": "cores.config.registration",
    "register_dataset": "cores.data.catalogue",
    "register_model": "cores.config.registration",
    "register_preset": "cores.config.registration",
}


def __getattr__(name: str) -> Any:
    """Import public names when they are asked for: ``import cores`` need not wait for torch."""
    if name not in _HOME:
        raise AttributeError(f"module 'cores' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
