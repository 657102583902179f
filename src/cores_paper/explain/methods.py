"""The table of methods that explain a classifier. Needs no torch."""

from dataclasses import dataclass

from cores import UserError
from cores.errors import nearest


@dataclass(frozen=True)
class Method:
    """A way to explain; how it is made ready is in :mod:`cores_paper.explain.peers`."""

    title: str
    """What tables call it."""
    model: str
    """The model that it explains."""


METHODS = {
    "random": Method("random", "gnn"),
    "saliency": Method("saliency", "gnn"),
    "gradient": Method("grad × input", "gnn"),
    "shapley": Method("Shapley", "gnn"),
    "gnnexplainer": Method("GNNExplainer", "gnn"),
    "pgexplainer": Method("PGExplainer", "gnn"),
    "gsat": Method("GSAT", "gsat"),
    "gmt": Method("GMT", "gmt"),
    "cores-node": Method("CORES nodes", "cores-node"),
    "cores-edge": Method("CORES edges", "cores-edge"),
    "effects-node": Method("effects, nodes", "cores-node"),
    "effects-edge": Method("effects, edges", "cores-edge"),
}
"""Every method by name, in the order of the tables.

Methods that come after training explain our plain classifier; the others explain themselves. CORES
does so twice: by what its policy wants to keep, and by the effects of removing nodes or edges.
"""


def method_of(name: str) -> Method:
    """The row of a method."""
    if name not in METHODS:
        raise UserError(f"unknown method {name!r}; {nearest(name, METHODS)}")
    return METHODS[name]
