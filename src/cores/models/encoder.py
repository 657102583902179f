"""Node encoders, Eq. (2): GIN, GCN and GAT on PyG's convolutions, and one blind to edges."""

from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import GATConv, GCNConv, GINConv, GINEConv

from cores import ranks
from cores.config import NetworkConfig
from cores.config.models import NO_MESSAGES, conv_spec
from cores.data.dataset import Dims
from cores.graphs.sums import EdgeSums, edge_sums
from cores.models.whole_batch import dropped, normalised


class SumOfMessages(GINConv):
    """PyG's GIN, half as long under way: rows are gathered and added with no copies between.

    Where one of PyG's explainers masks the messages, they go PyG's way.
    """

    def forward(
        self, h: Tensor, edge_index: Tensor, size: Any = None, sums: EdgeSums | None = None
    ) -> Tensor:
        """One round of messages."""
        if self.explain:
            return cast(Tensor, super().forward(h, edge_index, size))
        if sums is not None:
            total = sums.of_neighbours(h)  # the node itself is among them
            total = total if _without_epsilon(self) else total + self.eps * h
        else:
            source, target = edge_index
            total = _weighted(self, h).index_add(0, target, h.index_select(0, source))
        return cast(Tensor, self.nn(total))


class SumOfEdgeMessages(GINEConv):
    """PyG's GINE, likewise."""

    def forward(
        self,
        h: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        size: Any = None,
        sums: EdgeSums | None = None,
    ) -> Tensor:
        """One round of messages."""
        if self.explain or self.lin is None or edge_attr is None:
            return cast(Tensor, super().forward(h, edge_index, edge_attr, size))
        if sums is not None:
            total = sums.of_messages(h, self.lin(edge_attr))
            total = total if _without_epsilon(self) else total + self.eps * h
        else:
            source, target = edge_index
            messages = torch.relu_(h.index_select(0, source).add_(self.lin(edge_attr)))
            total = _weighted(self, h).index_add(0, target, messages)
        return cast(Tensor, self.nn(total))


def _weighted(conv: GINConv | GINEConv, h: Tensor) -> Tensor:
    """(1 + epsilon) h; where epsilon is 0 and stays so, without a copy."""
    return h if _without_epsilon(conv) else (1 + conv.eps) * h


def _without_epsilon(conv: GINConv | GINEConv) -> bool:
    return not isinstance(conv.eps, nn.Parameter) and conv.initial_eps == 0


class GINLayer(nn.Module):
    """Sum over neighbours, then an MLP of two layers; bond types enter the messages (GINE)."""

    def __init__(self, config: NetworkConfig, edge_dim: int) -> None:
        super().__init__()
        width = config.hidden_dim
        mlp = nn.Sequential(nn.Linear(width, width), nn.ReLU(inplace=True), nn.Linear(width, width))
        if edge_dim:
            self.conv: nn.Module = SumOfEdgeMessages(
                mlp, config.gin_eps, config.gin_train_eps, edge_dim
            )
        else:
            self.conv = SumOfMessages(mlp, config.gin_eps, config.gin_train_eps)
        self.with_edges = edge_dim > 0

    def forward(
        self,
        h: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None,
        sums: EdgeSums | None = None,
    ) -> Tensor:
        """One round of messages."""
        edges = (edge_index, edge_attr) if self.with_edges else (edge_index,)
        return self.conv(h, *edges, sums=sums)


class GCNLayer(nn.Module):
    """Normalised mean over neighbours; bond types become a positive weight per edge."""

    def __init__(self, config: NetworkConfig, edge_dim: int) -> None:
        super().__init__()
        self.conv = GCNConv(config.hidden_dim, config.hidden_dim)
        self.weigh = nn.Linear(edge_dim, 1) if edge_dim else None

    def forward(self, h: Tensor, edge_index: Tensor, edge_attr: Tensor | None) -> Tensor:
        """One round of messages."""
        weight = None
        if self.weigh is not None and edge_attr is not None:
            weight = F.softplus(self.weigh(edge_attr)).squeeze(-1)  # [E]
        return self.conv(h, edge_index, weight)


class GATLayer(nn.Module):
    """Attention over neighbours; the heads share the hidden units."""

    def __init__(self, config: NetworkConfig, edge_dim: int) -> None:
        super().__init__()
        width, heads = config.hidden_dim, config.gat_heads
        self.conv = GATConv(width, width // heads, heads, edge_dim=edge_dim or None)

    def forward(self, h: Tensor, edge_index: Tensor, edge_attr: Tensor | None) -> Tensor:
        """One round of messages."""
        return self.conv(h, edge_index, edge_attr)


class BlindLayer(nn.Module):
    """A layer per node that never sees an edge: what is left of a GNN without the graph."""

    def __init__(self, config: NetworkConfig, edge_dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(config.hidden_dim, config.hidden_dim)

    def forward(self, h: Tensor, edge_index: Tensor, edge_attr: Tensor | None) -> Tensor:
        """No messages."""
        return self.linear(h)


class NodeNorm(nn.BatchNorm1d):
    """Batch norm over nodes; a batch of a single node is normalised by what was seen before."""

    def forward(self, h: Tensor) -> Tensor:
        """Normalise every unit; by the nodes of all processes that train together."""
        group = ranks.current()
        if self.training and group is not None:
            return normalised(self, h, group)
        if self.training and h.size(0) == 1:
            mean, var = self.running_mean, self.running_var
            return F.batch_norm(h, mean, var, self.weight, self.bias, eps=self.eps)
        return super().forward(h)


def build_layer(conv: str, config: NetworkConfig, num_edge_features: int) -> nn.Module:
    """One message-passing layer with fresh weights; it reads edge features where settings allow."""
    layer = BlindLayer if conv == NO_MESSAGES else conv_spec(conv).layer_class()
    return layer(config, num_edge_features if config.edge_features else 0)


class Encoder(nn.Module):
    r"""Node embeddings after L rounds of messages, Eq. (2).

    .. math:: h_i^{(l)} = f_{\theta_u} \big( \bigoplus_{j \in N_i} m_{\theta_m}(h_i^{(l-1)},
              h_j^{(l-1)}) \big)

    A linear layer per node comes before and after the rounds.

    Deviation D2: batch norm follows each round, never the input layer: on constant features its
    output would be zero.

    Args:
        dims: Features of the graphs.
        config: Shape of the network.
        conv: Message-passing layer.
    """

    def __init__(self, dims: Dims, config: NetworkConfig, conv: str) -> None:
        super().__init__()
        width = config.hidden_dim
        self.input = nn.Linear(dims.num_features, width)
        self.layers = nn.ModuleList(
            build_layer(conv, config, dims.num_edge_features) for _ in range(config.num_layers)
        )
        self.norms = nn.ModuleList(
            NodeNorm(width) if config.batch_norm else nn.Identity()
            for _ in range(config.num_layers)
        )
        self.output = nn.Linear(width, width)
        self.dropout = config.dropout
        self.apply(_xavier)

    def forward(
        self,
        x: Float[Tensor, "nodes features"],
        edge_index: Int[Tensor, "2 edges"],
        edge_attr: Float[Tensor, "edges edge_features"] | None = None,
        unpadded: Float[Tensor, "nodes 1"] | None = None,
        sums: EdgeSums | None = None,
    ) -> Float[Tensor, "nodes hidden"]:
        """Embed every node; ``unpadded`` is 0 for nodes that only pad the batch.

        ``sums`` are those along the edges, where they are known.
        """
        sums = edge_sums(edge_index, x) if sums is None else sums
        h = self._activated(self.input(x))  # [N, H]
        for layer, norm in zip(self.layers, self.norms, strict=True):
            with_sums = (sums,) if isinstance(layer, GINLayer) else ()
            h = layer(h, edge_index, edge_attr, *with_sums)
            blind = unpadded is None or isinstance(norm, nn.Identity)
            h = self._activated(norm(h) if blind else norm(h, unpadded))
        return self._activated(self.output(h))

    @property
    def fixed_shapes(self) -> bool:
        """Return whether its tensors are as large for every batch of as many nodes and edges."""
        return all(isinstance(layer, GINLayer | BlindLayer) for layer in self.layers)

    def _activated(self, h: Tensor) -> Tensor:
        # In place: what a layer has made is read by nobody else, nor by its own backward pass.
        h = torch.relu_(h)
        group = ranks.current()
        if group is not None and self.training and self.dropout:
            return dropped(h, self.dropout, group)
        return F.dropout(h, self.dropout, self.training)


def _xavier(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(module.bias)
