"""A gradient step of Eq. (6)."""

from jaxtyping import Float
from torch import Tensor
from torch.optim import Optimizer
from torch_geometric.data import Batch

from cores import ranks
from cores.graphs.shares import own_share
from cores.models.network import GraphModel
from cores.ranks import Ranks


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
        """Take a gradient step; returns the loss before it."""
        self.optimizer.zero_grad()
        group = ranks.current()
        if group is None:
            loss = self.model.loss(batch, self.class_weights)
            loss.backward()
        else:
            loss = self._backward_of_share(batch, group)
        self.optimizer.step()
        return loss.detach()

    def _backward_of_share(self, batch: Batch, group: Ranks) -> Float[Tensor, ""]:
        """The gradients of the loss of a batch, of which every process has a share."""
        with own_share(batch, group) as own:
            if own.num_graphs:
                weight = self.model.loss_weight(own.y, self.class_weights)
                loss = self.model.loss(own, self.class_weights) * weight
            else:  # the others wait for this process in every batch norm, in both directions
                weight, loss = 0.0, self.model.logits(own).sum()
            loss.backward()
        (mean,) = group.mean_gradients(self.model.parameters(), weight, loss.detach())
        return mean
