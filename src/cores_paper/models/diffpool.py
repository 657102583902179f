"""DiffPool (Ying et al. 2018): nodes are assigned to clusters, and the clusters are a graph."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.data import Batch
from torch_geometric.nn import DenseGCNConv, DenseGINConv

from cores import GraphModel
from cores.config import NetworkConfig
from cores.data.dataset import Dims
from cores.graphs.subgraphs import Elements
from cores.models.encoder import Encoder
from cores_paper.models.settings import DiffPoolConfig

SMALLEST = 1e-12


class DiffPool(GraphModel):
    """Embeddings Z and soft assignments S of the nodes; then a GNN on S'Z and S'AS.

    The first level works on the flat batch and never makes a dense adjacency: S'AS, S'S and the
    link-prediction loss are sums over nodes and edges. Memory grows with the number of nodes, not
    with its square, so DD, whose largest graph has 5,748 nodes, fits.

    Args:
        dims: Features and classes of the graphs.
        config: Shape of the network.
        conv: Message-passing layer.
        diffpool: Clusters, and the weights of the two auxiliary losses.
    """

    def __init__(
        self, dims: Dims, config: NetworkConfig, conv: str, diffpool: DiffPoolConfig
    ) -> None:
        super().__init__(dims)
        width = config.hidden_dim
        self.diffpool = diffpool
        self.encoder = Encoder(dims, config, conv)
        self.assigner = Encoder(dims, config, conv)
        self.assignment = nn.Linear(width, diffpool.clusters)
        self.coarse = CoarseLayer(config, conv)
        self.norm = nn.BatchNorm1d(width) if config.batch_norm else nn.Identity()
        self.pooling = config.pooling
        self.head = nn.Linear(len(config.pooling) * width, dims.num_classes)

    def assignments(self, batch: Batch) -> Float[Tensor, "nodes clusters"]:
        """S: a distribution over the clusters for every node."""
        scores: Tensor = self.assignment(self.embed(self.assigner, batch))  # [N, C]
        return scores.softmax(dim=-1)

    def logits(self, batch: Batch) -> Float[Tensor, "graphs classes"]:
        """Class logits from the graph of clusters."""
        return self._classify(batch, self.assignments(batch))

    def loss(self, batch: Batch, class_weights: Tensor | None = None) -> Float[Tensor, ""]:
        """Cross-entropy, with the link-prediction and entropy losses of the assignments."""
        s = self.assignments(batch)
        loss = F.cross_entropy(self._classify(batch, s), batch.y, weight=class_weights)
        loss = loss + self.diffpool.link_weight * link_loss(batch, s)
        return loss + self.diffpool.entropy_weight * entropy_loss(s)

    def _classify(self, batch: Batch, s: Tensor) -> Tensor:
        z = self.embed(self.encoder, batch)  # [N, H]
        nodes = assigned(batch, s, z)  # [B, C, H], S'Z
        links = assigned(batch, s, neighbour_sum(batch, s))  # [B, C, C], S'AS
        h = self.coarse(nodes, links)  # [B, C, H]
        h = torch.relu(self.norm(h.flatten(0, 1)).view_as(h))
        read = [h.mean(dim=1) if name == "mean" else h.sum(dim=1) for name in self.pooling]
        return self.head(torch.cat(read, dim=-1))


class CoarseLayer(nn.Module):
    """A round of messages between clusters, along the weights S'AS.

    GIN takes the mean over neighbouring clusters: sums over a whole graph's edges would outgrow the
    features. GCN and GAT share GCN's round: all clusters are joined, by weights that attention over
    a mask of neighbours would not see.
    """

    def __init__(self, config: NetworkConfig, conv: str) -> None:
        super().__init__()
        width = config.hidden_dim
        self.means = conv == "gin"
        if self.means:
            mlp = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
            self.conv: nn.Module = DenseGINConv(mlp, config.gin_eps, config.gin_train_eps)
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
    square = on_edges + assigned(batch, s, s).square().sum(dim=(-2, -1))  # [B]
    nodes = Elements.of(batch, "node").count.clamp(min=1)
    return (square.clamp(min=SMALLEST).sqrt() / nodes).mean()


def entropy_loss(s: Float[Tensor, "nodes clusters"]) -> Float[Tensor, ""]:
    """Mean entropy of the nodes' assignments: each node should belong to few clusters."""
    return -(s * s.clamp(min=SMALLEST).log()).sum(dim=-1).mean()


def assigned(
    batch: Batch, s: Float[Tensor, "nodes clusters"], values: Float[Tensor, "nodes units"]
) -> Float[Tensor, "graphs clusters units"]:
    """S' times the values, for every graph."""
    parts = s[:, :, None] * values[:, None, :]  # [N, C, units]
    total = parts.new_zeros(batch.num_graphs, *parts.shape[1:])
    return total.index_add(0, batch.batch, parts)
