"""CORES: graph classification from a small subgraph that the model chose itself."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cores.config.registration import register_command as register_command
    from cores.config.registration import register_conv as register_conv
    from cores.config.registration import register_model as register_model
    from cores.config.registration import register_preset as register_preset
    from cores.data.catalogue import register_dataset as register_dataset
    from cores.data.dataset import Dataset as Dataset
    from cores.data.datasets import load_dataset as load_dataset
    from cores.errors import UserError as UserError
    from cores.estimator import Cores as Cores
    from cores.explain.explanation import CoresExplainer as CoresExplainer
    from cores.explain.explanation import Explanation as Explanation
    from cores.graphs.store import GraphStore as GraphStore
    from cores.models.network import GraphModel as GraphModel

__version__ = "0.3.0"
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
"""Public names, and the modules they are in."""
__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    """Import public names when they are asked for: ``import cores`` need not wait for torch."""
    if name not in _HOME:
        raise AttributeError(f"module 'cores' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
