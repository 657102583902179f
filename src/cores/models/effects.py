"""The effect of every node or edge: what a prediction loses without it."""

from typing import Any

from jaxtyping import Float
from torch import Tensor

from cores.models.elements import ElementNetwork

UNIT = 0.1
"""Of the last layer: a tenth of the probability is much for one node. Chosen with the number of
steps and the cost in probability on selection and calibration parts of Benzene and BA-2Motifs."""


class EffectNetwork(ElementNetwork):
    """The effect of removing every element, learnt once for all graphs (:mod:`training.effects`).

    Effects add up: their sum over what is removed from a graph estimates how much probability the
    predicted class loses; in a regression, how much the predicted number falls, in deviations of
    the training targets. A negative one speaks against the prediction.
    """

    def forward(
        self,
        x: Any,
        edge_index: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Float[Tensor, " elements"]:
        """The effect of every element, for PyG graphs or plain tensors."""
        return UNIT * super().forward(x, edge_index, edge_attr, batch)
