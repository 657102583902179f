"""The classifier f_theta: encoder, readout, and the last layer of its task."""

from jaxtyping import Float
from torch import Tensor, nn
from torch_geometric.data import Batch

from cores.config import NetworkConfig
from cores.config.models import NO_MESSAGES
from cores.data.dataset import Dims
from cores.models.encoder import Encoder
from cores.models.network import GraphModel, of_roots, pooled
from cores.tasks import TASKS, Head


class Classifier(GraphModel):
    """Class logits of every graph in a batch.

    Args:
        dims: Features and classes of the graphs.
        config: Shape of the network.
        conv: Message-passing layer.
    """

    def __init__(self, dims: Dims, config: NetworkConfig, conv: str) -> None:
        super().__init__(dims)
        self.encoder = Encoder(dims, config, conv)
        self.pooling = config.pooling
        self.rooted = dims.rooted
        """Whether graphs are neighbourhoods of nodes: the readout is the node's embedding then."""
        readouts = 1 if dims.rooted else len(config.pooling)
        width = readouts * config.hidden_dim
        self.head: Head = TASKS[dims.task].head(width, dims.num_classes, dims.quantile_alpha)

    def logits(self, batch: Batch) -> Float[Tensor, "graphs classes"]:
        """Class logits; a graph that lost all its nodes gets the bias alone."""
        h = self.embed(self.encoder, batch)  # [N, H]
        if self.rooted:
            return self.head(of_roots(h, batch))  # [B, K]
        return self.head(pooled(h, batch.batch, batch.num_graphs, self.pooling))  # [B, K]

    def outputs(self, logits: Float[Tensor, "graphs classes"]) -> Float[Tensor, "graphs classes"]:
        """Probabilities of classes, or numbers."""
        return self.head.outputs(logits)

    def loss(self, batch: Batch, class_weights: Tensor | None = None) -> Float[Tensor, ""]:
        """The loss of the task, Eq. (6)."""
        return self.head.loss(self.logits(batch), batch.y, class_weights)


class BlindClassifier(Classifier):
    """The same network without messages, a baseline that is blind to edges."""

    def __init__(self, dims: Dims, config: NetworkConfig, conv: str) -> None:
        super().__init__(dims, config, NO_MESSAGES)


def xavier_linear(inputs: int, outputs: int) -> nn.Linear:
    """A linear layer that starts as the paper's classifiers do."""
    layer = nn.Linear(inputs, outputs)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
