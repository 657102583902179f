"""CORES: graph classification from a small subgraph that the model chose itself."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cores.data.dataset import Dataset
    from cores.data.datasets import load_dataset
    from cores.errors import UserError

__version__ = "0.1.0"
__all__ = ["Dataset", "UserError", "load_dataset"]

_HOME = {
    "Dataset": "cores.data.dataset",
    "UserError": "cores.errors",
    "load_dataset": "cores.data.datasets",
}


def __getattr__(name: str) -> Any:
    """Import public names when they are asked for: `cores --help` need not wait for torch."""
    if name not in _HOME:
        raise AttributeError(f"module 'cores' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
