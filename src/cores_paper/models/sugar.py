"""SUGAR (Sun et al. 2021): subgraphs around the best-connected nodes, chosen by a learnt share."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.data import Batch

from cores import GraphModel
from cores.config import NetworkConfig
from cores.data.dataset import Dims
from cores.graphs.masks import largest, rounded_up, scattered
from cores.graphs.segments import owners, place_within, pointers
from cores.graphs.subgraphs import Subgraph
from cores.models.encoder import Encoder
from cores.models.network import Prediction
from cores_paper.models.settings import SugarConfig

SETTLED_AFTER = 10
"""Epochs over which the share must stay within one step for the Q-learning to end."""
NOWHERE = -torch.inf


class SUGAR(GraphModel):
    """Encodes small subgraphs, keeps a share k of them, and classifies the sketch they form.

    The share k is not a parameter: Q-learning moves it up or down after every epoch, rewarded when
    the training accuracy rises. Two subgraphs of the sketch are joined where they share nodes. A
    discriminator that tells a graph's own subgraphs from those of another graph adds the
    self-supervised loss.

    Args:
        dims: Features and classes of the graphs.
        config: Shape of the network.
        conv: Message-passing layer.
        sugar: Number and size of the subgraphs, and how k is learnt.
    """

    _right: Tensor

    def __init__(self, dims: Dims, config: NetworkConfig, conv: str, sugar: SugarConfig) -> None:
        super().__init__(dims)
        width = config.hidden_dim
        self.sugar = sugar
        self.encoder = Encoder(dims, config, conv)
        self.intra = nn.Linear(width, 1)
        self.projection = nn.Parameter(torch.empty(width))
        nn.init.uniform_(self.projection, -1, 1)
        self.inter = nn.Linear(width, width)
        self.attending = nn.Linear(width, 1, bias=False)  # the softmax would ignore a bias
        self.attended = nn.Linear(width, 1, bias=False)
        self.head = nn.Linear(width, dims.num_classes)
        self.discriminator = nn.Linear(width, width, bias=False)
        self.share = AdaptiveShare(sugar)
        self.register_buffer("_right", torch.zeros(2))  # graphs of this epoch: right, all

    def begin_epoch(self, progress: float) -> None:
        """Pay the last move of k by what became of the training accuracy, and move again."""
        right, graphs = self._right.tolist()
        if graphs:
            self.share.step(right / graphs)
        self._right.zero_()

    def logits(self, batch: Batch) -> Float[Tensor, "graphs classes"]:
        """Class logits of the sketched graphs."""
        return self._classified(*self._sketched(batch))[0]

    def full_logits(self, batch: Batch) -> Float[Tensor, "graphs classes"]:
        """Class logits when every sampled subgraph is kept; nodes in none of them stay unseen."""
        sampled, z, _ = self._sketched(batch)
        return self._classified(sampled, z, sampled.exists)[0]

    def loss(self, batch: Batch, class_weights: Tensor | None = None) -> Float[Tensor, ""]:
        """Cross-entropy, with the mutual-information loss between subgraphs and their graph."""
        sampled, z, chosen = self._sketched(batch)
        logits, states = self._classified(sampled, z, chosen)
        self._right += torch.stack(
            [(logits.argmax(-1) == batch.y).sum(), batch.y.new_tensor(len(batch.y))]
        )
        loss = F.cross_entropy(logits, batch.y, weight=class_weights)
        return loss + self.sugar.information_weight * self._information_loss(states, chosen)

    def prediction(self, batch: Batch) -> Prediction:
        """Class probabilities; what was seen is the union of the chosen subgraphs."""
        sampled, z, chosen = self._sketched(batch)
        probs = self._classified(sampled, z, chosen)[0].softmax(dim=-1)
        source, target = batch.edge_index
        seen = sampled.members & chosen[batch.batch]  # [N, n]
        kept_edges = (seen[source] & seen[target]).any(dim=-1)  # [E]
        subgraph = Subgraph.without(batch, ~seen.any(dim=-1), ~kept_edges)
        worth = F.softsign(self._worth(z))  # [B, n], in (-1, 1)
        scores = worth[batch.batch].where(sampled.members, -1).amax(dim=-1)  # [N]
        return Prediction(probs, subgraph, scores, scores[batch.edge_index].amin(dim=0))

    def _sketched(self, batch: Batch) -> tuple["Subgraphs", Tensor, Tensor]:
        """Subgraphs, their embeddings [B, n, H], and which of them are chosen."""
        sampled = sample_subgraphs(batch, self.sugar.subgraphs, self.sugar.size)
        z = self._encoded(batch, sampled)
        return sampled, z, self._chosen(sampled, z)

    def _encoded(self, batch: Batch, sampled: "Subgraphs") -> Tensor:
        """[B, n, H]: each subgraph by itself, its nodes weighed by attention within it."""
        attributes = batch.get("edge_attr")
        if attributes is not None:
            attributes = attributes[sampled.edges]
        h = self.encoder(
            self.features(batch)[sampled.nodes], sampled.edge_index, attributes
        )  # [M, H]
        weighed = self.intra(h).sigmoid() * h
        slots = sampled.exists.numel()
        z = h.new_zeros(slots, h.size(-1)).index_add(0, sampled.slot, weighed)
        return torch.unflatten(z, 0, sampled.exists.shape)

    def _worth(self, z: Tensor) -> Tensor:
        """[B, n]: projection of every subgraph, whose size would drive the gate to its ends."""
        level = F.layer_norm(z, z.shape[-1:])
        return torch.matmul(level, self.projection / self.projection.norm())

    def _chosen(self, sampled: "Subgraphs", z: Tensor) -> Tensor:
        """[B, n]: the share k of the subgraphs that is worth most, at least one."""
        worth = self._worth(z).where(sampled.exists, NOWHERE)
        wanted = rounded_up(self.share.ratio * sampled.exists.sum(dim=-1))  # [B]
        rank = worth.argsort(dim=-1, descending=True, stable=True).argsort(dim=-1)
        return (rank < wanted[:, None]) & sampled.exists

    def _classified(self, sampled: "Subgraphs", z: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
        """[B, K] logits and [B, n, H] states after attention between the chosen subgraphs."""
        gated = self.inter(z * self._worth(z).sigmoid()[..., None])  # [B, n, H]
        energy = self.attending(gated) + self.attended(gated).transpose(1, 2)  # [B, n, n]
        energy = F.leaky_relu(energy, 0.2)
        itself = torch.eye(gated.size(1), dtype=torch.bool, device=z.device)
        joined = (sampled.overlap > self.sugar.overlap) | itself
        joined = joined & chosen[:, None, :] & chosen[:, :, None]
        weights = energy.where(joined, -1e9).softmax(dim=-1) * joined
        states = F.elu(weights @ gated)  # [B, n, H]
        logits = self.head(states) * chosen[..., None]  # every subgraph votes
        return logits.sum(dim=1) / chosen.sum(dim=-1, keepdim=True).clamp(min=1), states

    def _information_loss(self, states: Tensor, chosen: Tensor) -> Tensor:
        """Jensen-Shannon estimate: a graph's subgraphs against those of the one before it."""
        if len(states) < 2:  # nobody to compare with
            return states.new_zeros(())
        count = chosen.sum(dim=-1, keepdim=True).clamp(min=1)
        summary = ((states * chosen[..., None]).sum(dim=1) / count).sigmoid()  # [B, H]
        asked = self.discriminator(summary)[..., None]  # [B, H, 1]: the bilinear form, half done
        own = (states @ asked).squeeze(-1)  # [B, n]
        other = (states.roll(1, dims=0) @ asked).squeeze(-1)
        loss = F.softplus(-own[chosen]).mean()
        return loss + F.softplus(other[chosen.roll(1, dims=0)]).mean()


@dataclass(frozen=True)
class Subgraphs:
    """Up to n subgraphs of every graph in a batch, each a copy of its nodes and edges."""

    exists: Bool[Tensor, "graphs subgraphs"]
    """A graph with fewer nodes has fewer subgraphs."""
    nodes: Int[Tensor, " copies"]
    """The node of the batch that each copied node is."""
    slot: Int[Tensor, " copies"]
    """The subgraph it is copied into, counted over the whole batch."""
    edges: Int[Tensor, " copied_edges"]
    """The edge of the batch that each copied edge is."""
    edge_index: Int[Tensor, "2 copied_edges"]
    members: Bool[Tensor, "nodes subgraphs"]
    overlap: Float[Tensor, "graphs subgraphs subgraphs"]
    """Nodes that two subgraphs of a graph share."""


@torch.no_grad()
def sample_subgraphs(batch: Batch, count: int, size: int) -> Subgraphs:
    """Around each graph's best-connected nodes, the nodes that a breadth-first search meets first.

    All searches of a batch run at once, each on a copy of its graph.
    """
    total = batch.x.size(0)
    source, target = batch.edge_index
    degree = torch.bincount(target, minlength=total)
    wanted = torch.full((batch.num_graphs,), count, device=source.device)
    ties = scattered(place_within(batch.batch, batch.num_graphs))  # [N]
    roots = largest(degree, batch.batch, wanted, ties).nonzero().squeeze(-1)  # [R] by graph
    owner = batch.batch[roots]
    place = place_within(owner, batch.num_graphs)  # [R] 0 .. count - 1
    exists = torch.zeros(batch.num_graphs, count, dtype=torch.bool, device=source.device)
    exists[owner, place] = True

    node_ptr = batch.ptr
    graph_of_edge = batch.batch[source]
    by_graph = graph_of_edge.argsort(stable=True)  # a batch of PyG's may have them in any order
    edge_ptr = pointers(torch.bincount(graph_of_edge, minlength=batch.num_graphs))
    nodes, search = _copied(node_ptr, owner)  # [M] node of the batch, and the search it is in
    edges, edge_search = _copied(edge_ptr, owner)
    edges = by_graph[edges]
    first = pointers(node_ptr.diff()[owner])
    shift = first[edge_search] - node_ptr[owner[edge_search]]
    copied_edges = batch.edge_index[:, edges] + shift  # [2, F]

    distance = torch.full_like(nodes, total)
    distance[first[:-1] + roots - node_ptr[owner]] = 0
    for _ in range(size - 1):  # a node further away is never among the first
        reached = distance[copied_edges[0]] + 1
        nearer = distance.scatter_reduce(0, copied_edges[1], reached, "amin")
        if torch.equal(nearer, distance):  # all have been reached
            break
        distance = nearer
    found = distance < total
    # Of the last nodes at one distance, the best connected: a draw would tell graphs apart that
    # differ only in the order of their nodes.
    order = degree[nodes] - distance.where(found, 2 * total) * (degree.max() + 1)  # [M]
    taken = largest(order, search, torch.full_like(owner, size), ties[nodes]) & found  # [M]
    number = taken.cumsum(0) - 1
    inside = taken[copied_edges].all(dim=0)
    slots = owner * count + place
    members = torch.zeros(total, count, dtype=torch.bool, device=source.device)
    members[nodes[taken], place[search[taken]]] = True
    shared = (members[:, :, None] & members[:, None]).float()  # [N, n, n]
    overlap = shared.new_zeros(batch.num_graphs, count, count).index_add(0, batch.batch, shared)
    return Subgraphs(
        exists,
        nodes[taken],
        slots[search[taken]],
        edges[inside],
        number[copied_edges[:, inside]],
        members,
        overlap,
    )


class AdaptiveShare(nn.Module):
    """k, the share of the subgraphs that is kept, moved by Q-learning.

    A state is a value of k, an action one step down or up. When k has stayed within a step for ten
    epochs it is settled.
    """

    values: Tensor
    """Expected reward of every state's two actions."""
    state: Tensor
    came_from: Tensor
    action: Tensor
    """The last move; -1 before the first."""
    accuracy: Tensor
    recent: Tensor
    """The last ten states; -1 for those before the first."""

    def __init__(self, config: SugarConfig) -> None:
        super().__init__()
        self.config = config
        states = round(1 / config.step)
        self.register_buffer("values", torch.zeros(states, 2))
        self.register_buffer("state", torch.tensor(round(config.first_ratio * states) - 1))
        self.register_buffer("action", torch.tensor(-1))
        self.register_buffer("came_from", torch.tensor(0))
        self.register_buffer("accuracy", torch.tensor(0.0, dtype=torch.float64))
        self.register_buffer("recent", torch.full((SETTLED_AFTER,), -1))

    @property
    def ratio(self) -> Float[Tensor, ""]:
        """The current k."""
        return (self.state + 1) * self.config.step

    @property
    def settled(self) -> bool:
        """Return whether k has stopped moving."""
        known = bool((self.recent >= 0).all())
        return known and int(self.recent.max() - self.recent.min()) <= 1

    def step(self, accuracy: float) -> None:
        """Pay the last move by the change in accuracy, and make the next."""
        if self.settled:
            return
        settings = self.config
        if int(self.action) >= 0:
            change = accuracy - float(self.accuracy)
            reward = float(change > 0) - float(change < 0)
            best = self.values[self.state].max()
            paid = self.values[self.came_from, self.action]
            target = reward + settings.discount * best
            self.values[self.came_from, self.action] = paid + settings.rate * (target - paid)
        self.accuracy.fill_(accuracy)
        options = self.values[self.state]
        undecided = bool(options[0] == options[1]) or float(torch.rand(())) < settings.explore
        action = int(torch.randint(2, ())) if undecided else int(options.argmax())
        self.came_from.copy_(self.state)
        self.action.fill_(action)
        self.state.copy_((self.state + 2 * action - 1).clamp(0, len(self.values) - 1))
        self.recent.copy_(self.recent.roll(-1))
        self.recent[-1] = self.state


def _copied(ptr: Tensor, owner: Tensor) -> tuple[Tensor, Tensor]:
    """The items of each given graph, one graph after the other, and which copy each is in."""
    copy = owners(ptr.diff()[owner])
    place = place_within(copy, len(owner))
    return ptr[owner][copy] + place, copy
