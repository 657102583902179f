"""The policy pi_phi: a removal probability for every node, undirected edge, or both; the critic."""

import math
from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.data import Batch
from torch_geometric.nn import global_add_pool, global_mean_pool

from cores.config import NetworkConfig, Removal
from cores.models.encoder import Encoder, Layer


class Policy(nn.Module):
    """Logits of removal, an element each: nodes, undirected edges, or nodes then edges.

    Deviation D8: a node's logit reads its embedding and its own features beside it. With GIN's
    epsilon near 0 an embedding tells what is around a node, itself included, but not which of it
    the node is. An edge's logit comes from the sum of its ends, so that it has no direction. The
    network has neither dropout nor batch norm (Deviation D13): an action's probability must not
    depend on chance or on the other graphs in the batch, else the first ratio of PPO is not 1.

    Args:
        num_features: Columns of the node features.
        config: Shape of the network.
        layer: Message-passing layer.
        removal: What is removed.
        start: Probability of removal before training.
        floor: No probability is closer to 0 or 1 than this, so that exploring never ends.
        num_edge_features: Columns of the edge features.
    """

    def __init__(
        self,
        num_features: int,
        config: NetworkConfig,
        layer: Layer,
        removal: Removal,
        start: float,
        floor: float,
        num_edge_features: int = 0,
    ) -> None:
        super().__init__()
        self.removal = removal
        self.floor = floor
        calm = replace(config, dropout=0.0, batch_norm=False)
        self.encoder = Encoder(num_features, calm, layer, num_edge_features)
        width = config.hidden_dim
        if removal != "edge":
            self.node_head = _head(width + num_features, start)
        if removal != "node":
            self.edge_mixer = nn.Linear(width + num_features, width)
            self.edge_head = _head(width, start)

    def forward(self, batch: Batch) -> Float[Tensor, " elements"]:
        """Logit of every element's removal."""
        h = self.encoder(batch.x, batch.edge_index, batch.get("edge_attr"))  # [N, H]
        h = torch.cat([h, batch.x], dim=-1)  # [N, H + F]
        logits = []
        if self.removal != "edge":
            logits.append(self.node_head(h).squeeze(-1))  # [N]
        if self.removal != "node":
            mixed = self.edge_mixer(h)  # [N, H], before the gather: there are fewer nodes
            ends = torch.relu(mixed[batch.pair_index[0]] + mixed[batch.pair_index[1]])  # [P, H]
            logits.append(self.edge_head(ends).squeeze(-1))  # [P]
        return torch.cat(logits) if len(logits) > 1 else logits[0]

    def probabilities(self, logits: Float[Tensor, " elements"]) -> Float[Tensor, " elements"]:
        """Probability of removal."""
        return self.floor + (1 - 2 * self.floor) * logits.sigmoid()

    def log_prob(
        self, logits: Float[Tensor, " elements"], removed: Bool[Tensor, "*samples elements"]
    ) -> Float[Tensor, "*samples elements"]:
        """Log-probability of what was decided on every element."""
        if self.floor:
            p = self.probabilities(logits)
            log_removed, log_kept = p.log(), torch.log1p(-p)
        else:
            log_removed, log_kept = F.logsigmoid(logits), F.logsigmoid(-logits)
        return torch.where(removed, log_removed, log_kept)

    def entropy(self, logits: Float[Tensor, " elements"]) -> Float[Tensor, " elements"]:
        """Entropy of every element's decision, in nats."""
        if not self.floor:  # from the logits: the gradient of p log p is not finite at p = 0
            return F.softplus(logits) - logits * logits.sigmoid()
        p = self.probabilities(logits)
        return -(p * p.log() + (1 - p) * torch.log1p(-p))


class Critic(nn.Module):
    """Expected reward of every graph: its own network, mean and sum over nodes, one linear unit."""

    def __init__(
        self, num_features: int, config: NetworkConfig, layer: Layer, num_edge_features: int = 0
    ) -> None:
        super().__init__()
        calm = replace(config, dropout=0.0, batch_norm=False)
        self.encoder = Encoder(num_features, calm, layer, num_edge_features)
        self.head = nn.Linear(2 * config.hidden_dim, 1)

    def forward(self, batch: Batch) -> Float[Tensor, " graphs"]:
        """Value of every graph."""
        h = self.encoder(batch.x, batch.edge_index, batch.get("edge_attr"))
        size = batch.num_graphs
        pooled = [
            global_mean_pool(h, batch.batch, size=size),
            global_add_pool(h, batch.batch, size=size),
        ]
        value: Tensor = self.head(torch.cat(pooled, dim=-1)).squeeze(-1)
        return value


def _head(width: int, start: float) -> nn.Linear:
    """One unit that starts at the given probability, whatever the graph.

    Its weights start at zero: embeddings are sums over neighbours, and random weights on large sums
    would start some graphs with probabilities that no gradient moves.
    """
    head = nn.Linear(width, 1)
    nn.init.zeros_(head.weight)
    nn.init.constant_(head.bias, math.log(start / (1 - start)))
    return head
