"""DiffPool (Ying et al. 2018): nodes are assigned to clusters, and the clusters are a graph."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.data import Batch
from torch_geometric.nn import DenseGCNConv, DenseGINConv

from cores.config import Conv, DiffPoolConfig, NetworkConfig
from cores.graphs import Elements
from cores.models.classifier import GraphModel
from cores.models.encoder import Encoder

SMALLEST = 1e-12


class DiffPool(GraphModel):
    """Embeddings Z and soft assignments S of the nodes; then a GNN on S'Z and S'AS.

    The first level works on the flat batch and never makes a dense adjacency: S'AS, S'S and the
    link-prediction loss are sums over nodes and edges. Memory grows with the number of nodes, not
    with its square, so DD, whose largest graph has 5,748 nodes, fits.

    Args:
        num_features: Columns of the node features.
        num_classes: Number of labels.
        network: Shape of the network.
        diffpool: Clusters, and the weights of the two auxiliary losses.
        conv: Message-passing layer.
        num_edge_features: Columns of the edge features.
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        network: NetworkConfig,
        diffpool: DiffPoolConfig,
        conv: Conv,
        num_edge_features: int = 0,
    ) -> None:
        super().__init__()
        width, clusters = network.hidden_dim, diffpool.clusters
        self.num_classes = num_classes
        self.config = diffpool
        self.encoder = Encoder(num_features, network, conv, num_edge_features)
        self.assigner = Encoder(num_features, network, conv, num_edge_features)
        self.assignment = nn.Linear(width, clusters)
        self.coarse = CoarseLayer(network, conv)
        self.norm = nn.BatchNorm1d(width) if network.batch_norm else nn.Identity()
        self.pooling = network.pooling
        self.head = nn.Linear(len(network.pooling) * width, num_classes)

    def assignments(self, batch: Batch) -> Float[Tensor, "nodes clusters"]:
        """S: a distribution over the clusters for every node."""
        h = self.assigner(batch.x, batch.edge_index, batch.get("edge_attr"))  # [N, H]
        s: Tensor = self.assignment(h).softmax(dim=-1)
        return s

    def forward(self, batch: Batch) -> Float[Tensor, "graphs classes"]:
        """Logits from the graph of clusters."""
        return self._classify(batch, self.assignments(batch))

    def loss(self, batch: Batch, class_weights: Tensor | None = None) -> Float[Tensor, ""]:
        """Cross-entropy, with the link-prediction and entropy losses of the assignments."""
        s = self.assignments(batch)
        loss = F.cross_entropy(self._classify(batch, s), batch.y, weight=class_weights)
        loss = loss + self.config.link_weight * link_loss(batch, s)
        return loss + self.config.entropy_weight * entropy_loss(s)

    def _classify(self, batch: Batch, s: Tensor) -> Tensor:
        z = self.encoder(batch.x, batch.edge_index, batch.get("edge_attr"))  # [N, H]
        nodes = pooled(batch, s, z)  # [B, C, H], S'Z
        links = pooled(batch, s, neighbour_sum(batch, s))  # [B, C, C], S'AS
        h = self.coarse(nodes, links)  # [B, C, H]
        h = torch.relu(self.norm(h.flatten(0, 1)).view_as(h))
        read = [h.mean(dim=1) if each == "mean" else h.sum(dim=1) for each in self.pooling]
        logits: Tensor = self.head(torch.cat(read, dim=-1))
        return logits


class CoarseLayer(nn.Module):
    """A round of messages between clusters, along the weights S'AS.

    GIN takes the mean over neighbouring clusters: sums over a whole graph's edges would outgrow the
    features. GCN and GAT share GCN's round: all clusters are joined, by weights that attention over
    a mask of neighbours would not see.
    """

    def __init__(self, network: NetworkConfig, conv: Conv) -> None:
        super().__init__()
        width = network.hidden_dim
        self.means = conv == "gin"
        if self.means:
            mlp = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
            self.conv: nn.Module = DenseGINConv(mlp, network.gin_eps, network.gin_train_eps)
        else:
            self.conv = DenseGCNConv(width, width)

    def forward(self, nodes: Tensor, links: Tensor) -> Tensor:
        """One round of messages; nodes [B, C, H], links [B, C, C]."""
        if self.means:
            links = links / links.sum(dim=-1, keepdim=True).clamp(min=SMALLEST)
            out: Tensor = self.conv(nodes, links)
        else:
            out = self.conv(nodes, links, add_loop=False)  # S'AS has its own diagonal
        return out


def neighbour_sum(
    batch: Batch, values: Float[Tensor, "nodes units"]
) -> Float[Tensor, "nodes units"]:
    """A times the values: the sum over each node's neighbours."""
    source, target = batch.edge_index
    return torch.zeros_like(values).index_add(0, target, values[source])


def link_loss(batch: Batch, s: Float[Tensor, "nodes clusters"]) -> Float[Tensor, ""]:
    """|A - SS'| of every graph (Frobenius, per node), averaged over the graphs.

    |A - SS'|^2 = |A|^2 - 2 <A, SS'> + |S'S|^2, where <A, SS'> is a sum over edges.
    """
    source, target = batch.edge_index
    owner = batch.batch[source]
    agreement = (s[source] * s[target]).sum(dim=-1)  # [E]
    zeros = s.new_zeros(batch.num_graphs)
    on_edges = zeros.index_add(0, owner, 1 - 2 * agreement)  # [B]
    square = on_edges + pooled(batch, s, s).square().sum(dim=(-2, -1))  # [B]
    nodes = Elements.of(batch, "node").count.clamp(min=1)
    return (square.clamp(min=SMALLEST).sqrt() / nodes).mean()


def entropy_loss(s: Float[Tensor, "nodes clusters"]) -> Float[Tensor, ""]:
    """Mean entropy of the nodes' assignments: each node should belong to few clusters."""
    return -(s * s.clamp(min=SMALLEST).log()).sum(dim=-1).mean()


def pooled(
    batch: Batch, s: Float[Tensor, "nodes clusters"], values: Float[Tensor, "nodes units"]
) -> Float[Tensor, "graphs clusters units"]:
    """S' times the values, for every graph."""
    parts = s[:, :, None] * values[:, None, :]  # [N, C, units]
    total = parts.new_zeros(batch.num_graphs, *parts.shape[1:])
    return total.index_add(0, batch.batch, parts)
