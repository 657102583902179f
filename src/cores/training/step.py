"""A gradient step of Eq. (6)."""

from jaxtyping import Float
from torch import Tensor
from torch.optim import Optimizer
from torch_geometric.data import Batch

from cores.models.network import GraphModel


class Step:
    """A gradient step of a model on a batch.

    Args:
        model: The model.
        optimizer: Of its weights.
        class_weights: In the loss.
    """

    def __init__(
        self, model: GraphModel, optimizer: Optimizer, class_weights: Tensor | None = None
    ) -> None:
        self.model, self.optimizer, self.class_weights = model, optimizer, class_weights

    def __call__(self, batch: Batch) -> Float[Tensor, ""]:
        """Take it; returns the loss before."""
        self.optimizer.zero_grad()
        loss = self.model.loss(batch, self.class_weights)
        loss.backward()
        self.optimizer.step()
        return loss.detach()
