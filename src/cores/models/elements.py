"""A number for every node, undirected edge, or both: what policies and effects are made of."""

from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch_geometric.data import Batch

from cores.config import NetworkConfig, Removal
from cores.data.dataset import Dims
from cores.graphs.batches import as_batch, with_pairs
from cores.graphs.sums import EdgeSums, edge_sums
from cores.models.encoder import Encoder
from cores.models.network import Network


class ElementNetwork(Network):
    """A number per element: nodes, undirected edges, or nodes then edges.

    Deviation D8: a node's number reads its embedding and its own features beside it. With GIN's
    epsilon near 0 an embedding tells what is around a node, itself included, but not which of it
    the node is. An edge's number comes from the sum of its ends, so that it has no direction. The
    network has neither dropout nor batch norm (Deviation D13): what it says of a graph must not
    depend on chance or on the other graphs in the batch, else the first ratio of PPO is not 1.

    Args:
        dims: Features of the graphs.
        config: Shape of the network.
        conv: Message-passing layer.
        removal: What is removed.
        start: Every number before training.
    """

    def __init__(
        self,
        dims: Dims,
        config: NetworkConfig,
        conv: str,
        removal: Removal,
        start: float = 0.0,
    ) -> None:
        super().__init__(dims.num_features)
        self.removal = removal
        self.start = start
        columns = dims.num_features
        self.encoder = Encoder(dims, deterministic(config), conv)
        width = config.hidden_dim
        if removal != "edge":
            self.node_head = _head(width + columns, start)
        if removal != "node":
            self.edge_mixer = nn.Linear(width + columns, width)
            self.edge_head = _head(width, start)

    def forward(
        self,
        x: Any,
        edge_index: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Float[Tensor, " elements"]:
        """The number of every element, for PyG graphs or plain tensors."""
        graphs = as_batch(x, edge_index, edge_attr, batch)
        features = self.features(graphs)
        sums = graphs.get("edge_sums")
        h = self.encoder(features, graphs.edge_index, graphs.get("edge_attr"), sums=sums)  # [N, H]
        h = torch.cat([h, features], dim=-1)  # [N, H + F]
        found = []
        if self.removal != "edge":
            found.append(self.node_head(h).squeeze(-1))  # [N]
        if self.removal != "node":
            graphs = with_pairs(graphs)
            mixed = self.edge_mixer(h)  # [N, H], before the gather: there are fewer nodes
            ends = torch.relu_(_sum_of_ends(mixed, graphs))  # [P, H]
            found.append(self.edge_head(ends).squeeze(-1))  # [P]
        return torch.cat(found) if len(found) > 1 else found[0]


def _sum_of_ends(
    rows: Float[Tensor, "nodes hidden"], graphs: Batch
) -> Float[Tensor, "pairs hidden"]:
    """Concatenate the embeddings of both ends of every undirected edge."""
    sums: EdgeSums | None = graphs.get("pair_sums", edge_sums(graphs.pair_index, rows))
    if sums is not None:
        return sums.of_ends(rows)
    first, second = graphs.pair_index
    return rows.index_select(0, first).add_(rows.index_select(0, second))


def deterministic(config: NetworkConfig) -> NetworkConfig:
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
