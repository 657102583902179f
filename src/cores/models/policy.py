"""The policy pi_phi: a removal probability for every node, undirected edge, or both; the critic."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.data import Batch

from cores.config import NetworkConfig, Removal
from cores.data.dataset import Dims
from cores.graphs.components import best_pieces
from cores.graphs.subgraphs import Elements
from cores.models.elements import ElementNetwork, deterministic
from cores.models.encoder import Encoder
from cores.models.network import Network, pooled


class Policy(ElementNetwork):
    """Logits of removal, an element each.

    Args:
        dims: Features of the graphs.
        config: Shape of the network.
        conv: Message-passing layer.
        removal: What is removed.
        initial_removal: Probability of removal before training; where nodes and edges are removed,
            that an edge is gone, itself or with either of its ends.
        min_probability: Lower bound on the probabilities of removing and of keeping.
        max_pieces: Connected pieces that may be left of a graph; 0: any number.
    """

    def __init__(
        self,
        dims: Dims,
        config: NetworkConfig,
        conv: str,
        removal: Removal,
        initial_removal: float,
        min_probability: float,
        max_pieces: int = 0,
    ) -> None:
        if removal == "both":  # else hardly a motif would survive, and nothing could be learnt
            initial_removal = 1 - (1 - initial_removal) ** (1 / 3)
        start = math.log(initial_removal / (1 - initial_removal))
        super().__init__(dims, config, conv, removal, start)
        self.min_probability = min_probability
        self.max_pieces = max_pieces

    @torch.no_grad()
    def stretch(self, logits: Float[Tensor, " elements"], spread: float) -> None:
        """Scale the logits so that these spread so far around the start, as standard deviation."""
        if logits.numel() < 2:
            return
        factor, mean = spread / logits.std().clamp(min=1e-3), logits.mean()
        heads = [head for name, head in self.named_children() if name.endswith("_head")]
        for head in heads:
            assert isinstance(head, nn.Linear)
            head.weight.mul_(factor)
            head.bias.sub_(mean).mul_(factor).add_(self.start)

    def probabilities(self, logits: Float[Tensor, " elements"]) -> Float[Tensor, " elements"]:
        """Probability of removal."""
        return self.min_probability + (1 - 2 * self.min_probability) * logits.sigmoid()

    def log_probs(self, logits: Float[Tensor, " elements"]) -> Float[Tensor, "2 elements"]:
        """Log-probabilities of keeping and of removing every element."""
        if self.min_probability:
            p = self.probabilities(logits)
            return torch.stack([torch.log1p(-p), p.log()])
        return torch.stack([F.logsigmoid(-logits), F.logsigmoid(logits)])

    def mode(
        self, elements: Elements, logits: Float[Tensor, " elements"]
    ) -> Bool[Tensor, " elements"]:
        """Return the mode: every element with a removal probability above one half."""
        removed = elements.mode(logits)
        if not self.max_pieces:  # no probabilities that nobody asks for
            return removed
        return self.connected(elements, removed, 1 - self.probabilities(logits))

    def connected(
        self,
        elements: Elements,
        removed: Bool[Tensor, "*samples elements"],
        keep_probability: Float[Tensor, " elements"],
    ) -> Bool[Tensor, "*samples elements"]:
        """Remove all but the best connected pieces, where their number has a limit (Deviation D21).

        The pieces that are left are those with the largest sums of the probabilities of keeping.
        """
        if not self.max_pieces:
            return removed
        return best_pieces(elements, removed, keep_probability, self.max_pieces)

    def entropy(self, logits: Float[Tensor, " elements"]) -> Float[Tensor, " elements"]:
        """Entropy of every element's decision, in nats."""
        if (
            not self.min_probability
        ):  # from the logits: the gradient of p log p is not finite at p = 0
            return F.softplus(logits) - logits * logits.sigmoid()
        p = self.probabilities(logits)
        return -(p * p.log() + (1 - p) * torch.log1p(-p))


class Critic(Network):
    """Expected reward of every graph: its own network, mean and sum over nodes, one linear unit."""

    def __init__(self, dims: Dims, config: NetworkConfig, conv: str) -> None:
        super().__init__(dims.num_features)
        self.encoder = Encoder(dims, deterministic(config), conv)
        self.head = nn.Linear(2 * config.hidden_dim, 1)
        # Sums over the nodes are large: with random weights the first values, and so the first
        # advantages, would be far from any reward.
        nn.init.zeros_(self.head.weight)
        self.register_buffer("begun", torch.tensor(False))
        self.begun: Tensor

    @torch.no_grad()
    def begin_at(self, reward: Float[Tensor, ""]) -> None:
        """Begin with this value for every graph; later calls change nothing."""
        bias = self.head.bias
        bias.copy_(torch.where(self.begun, bias, reward))
        self.begun.fill_(True)

    def forward(self, batch: Batch) -> Float[Tensor, " graphs"]:
        """Value of every graph."""
        h = self.embed(self.encoder, batch)
        value: Tensor = self.head(pooled(h, batch.batch, batch.num_graphs, ("mean", "add")))
        return value.squeeze(-1)
