"""``Cores``: fit graphs, predict from the part that the model keeps, and show that part."""

from cores.estimator.cores import Cores

__all__ = ["Cores"]
