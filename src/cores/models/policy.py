"""The policy pi_phi: a removal probability for every node, undirected edge, or both; the critic."""

import math
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.data import Batch

from cores.config import NetworkConfig, Removal
from cores.data.dataset import Dims
from cores.graphs.batches import as_batch, with_pairs
from cores.graphs.components import best_pieces
from cores.graphs.subgraphs import Elements
from cores.graphs.sums import EdgeSums, edge_sums
from cores.models.encoder import Encoder
from cores.models.network import Network, pooled


class Policy(Network):
    """Logits of removal, an element each: nodes, undirected edges, or nodes then edges.

    Deviation D8: a node's logit reads its embedding and its own features beside it. With GIN's
    epsilon near 0 an embedding tells what is around a node, itself included, but not which of it
    the node is. An edge's logit comes from the sum of its ends, so that it has no direction. The
    network has neither dropout nor batch norm (Deviation D13): an action's probability must not
    depend on chance or on the other graphs in the batch, else the first ratio of PPO is not 1.

    Args:
        dims: Features of the graphs.
        config: Shape of the network.
        conv: Message-passing layer.
        removal: What is removed.
        initial_removal: Probability of removal before training; where nodes and edges are removed,
            that an edge is gone, itself or with either of its ends.
        min_probability: Lower bound on the probabilities of removing and of keeping.
        lam: Where the dial stands for graphs that do not say; None: the policy does not see lambda.
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
        lam: float | None = None,
        max_pieces: int = 0,
    ) -> None:
        super().__init__(dims.num_features)
        self.removal = removal
        if removal == "both":  # else hardly a motif would survive, and nothing could be learnt
            initial_removal = 1 - (1 - initial_removal) ** (1 / 3)
        self.start = math.log(initial_removal / (1 - initial_removal))
        """Every logit before training."""
        self.min_probability = min_probability
        self.max_pieces = max_pieces
        self.register_buffer("lam", None if lam is None else torch.tensor(lam))
        self.lam: Tensor | None
        if lam is not None:  # Deviation D16: one more column of features
            dims = replace(dims, num_features=dims.num_features + 1)
        self.encoder = Encoder(dims, _deterministic(config), conv)
        width = config.hidden_dim
        if removal != "edge":
            self.node_head = _head(width + dims.num_features, self.start)
        if removal != "node":
            self.edge_mixer = nn.Linear(width + dims.num_features, width)
            self.edge_head = _head(width, self.start)

    def forward(
        self,
        x: Any,
        edge_index: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Float[Tensor, " elements"]:
        """Logit of every element's removal, for PyG graphs or plain tensors."""
        graphs = as_batch(x, edge_index, edge_attr, batch)
        features = self.features(graphs)
        if self.lam is not None:
            lam = graphs.get("lam", self.lam.expand(graphs.num_graphs))  # [B]
            features = torch.cat([features, lam[graphs.batch][:, None]], dim=-1)
        sums = graphs.get("edge_sums")
        h = self.encoder(features, graphs.edge_index, graphs.get("edge_attr"), sums=sums)  # [N, H]
        h = torch.cat([h, features], dim=-1)  # [N, H + F]
        logits = []
        if self.removal != "edge":
            logits.append(self.node_head(h).squeeze(-1))  # [N]
        if self.removal != "node":
            graphs = with_pairs(graphs)
            mixed = self.edge_mixer(h)  # [N, H], before the gather: there are fewer nodes
            ends = torch.relu_(_sum_of_ends(mixed, graphs))  # [P, H]
            logits.append(self.edge_head(ends).squeeze(-1))  # [P]
        return torch.cat(logits) if len(logits) > 1 else logits[0]

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
        """What the policy removes by its mode."""
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
        """What is removed in the end where the number of pieces has a limit (Deviation D21).

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
        self.encoder = Encoder(dims, _deterministic(config), conv)
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


def _sum_of_ends(
    rows: Float[Tensor, "nodes hidden"], graphs: Batch
) -> Float[Tensor, "pairs hidden"]:
    """Of both ends of every undirected edge."""
    sums: EdgeSums | None = graphs.get("pair_sums", edge_sums(graphs.pair_index, rows))
    if sums is not None:
        return sums.of_ends(rows)
    first, second = graphs.pair_index
    return rows.index_select(0, first).add_(rows.index_select(0, second))


def _deterministic(config: NetworkConfig) -> NetworkConfig:
    """The shape without dropout and batch norm (Deviation D13)."""
    return replace(config, dropout=0.0, batch_norm=False)


def _head(width: int, logit: float) -> nn.Linear:
    """One unit that starts at the given logit, whatever the graph.

    Its weights start at zero: embeddings are sums over neighbours, and random weights on large sums
    would start some graphs with probabilities that no gradient moves.
    """
    head = nn.Linear(width, 1)
    nn.init.zeros_(head.weight)
    nn.init.constant_(head.bias, logit)
    return head
