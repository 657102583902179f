"""Algorithm 1 of the paper (arXiv:2404.12356) and nothing else: to read beside it, and to run.

    python -m cores.algorithm1

A policy pi_phi removes nodes or edges of a graph G, and a classifier f_theta sees only the subgraph
G_s that is left. They are trained in alternation: the classifier to predict from what the policy
leaves, the policy by PPO with a reward that asks for sparsity where the classifier is sure and
right. All is as in the paper; docs/deviations.md says what `cores train` does otherwise, and why.

Shapes: B graphs in a batch with N nodes, E directed and P undirected edges; K classes; H units. The
policy decides on M elements: the N nodes in mode N, the P undirected edges in mode E.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.distributions import Bernoulli
from torch.nn import functional as F
from torch.optim import Adam, Optimizer
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import MLP, BatchNorm, GINConv, global_add_pool, global_mean_pool
from torch_geometric.utils import scatter

from cores.conformal import aps_scores, conformal_quantile, prediction_sets
from cores.data.dataset import Dataset
from cores.data.datasets import load_dataset
from cores.graphs import remove_edges, remove_nodes
from cores.ppo import clipped_objective
from cores.reward import conformal_reward, performance_reward, sparsity_reward


@dataclass(frozen=True)
class Config:
    """Hyperparameters; by default those published for MUTAG with GIN and removal of nodes."""

    removal: Literal["node", "edge"] = "node"  # mode N or mode E
    lam: float = 0.1  # lambda of Eq. (7): 1 rewards performance only, 0 sparsity only
    desired_ratio: float = 0.7  # d: the kept ratio at which the sparsity reward is 0.95
    alpha: float = 0.2  # error rate of the prediction sets
    penalty_size: float = 0.5  # subtracted from the reward if everything was removed
    ppo_epochs: int = 15  # K: PPO updates per epoch
    clip: float = 0.2  # epsilon of Eq. (1)
    value_coef: float = 1.0  # weight of the critic's squared error beside Eq. (1)
    entropy_coef: float = 1e-3  # weight of the policy's entropy beside Eq. (1)
    classifier_lr: float = 1e-3  # alpha of Algorithm 1
    policy_lr: float = 1e-3 / 3  # beta of Algorithm 1
    critic_lr: float = 1e-3 / 9
    batch_size: int = 16  # graphs per update of the classifier
    ppo_batch_size: int = 128  # graphs per update of the policy
    hidden_dim: int = 16  # H
    num_layers: int = 3  # L
    epochs: int = 1000
    patience: int = 500  # epochs without a better validation accuracy that mean convergence


def train(
    train_graphs: list[Data],
    val_graphs: list[Data],
    classifier: nn.Module,
    policy: "Policy",
    critic: nn.Module,
    config: Config,
) -> None:
    """Algorithm 1. The numbers at the end of the lines are those of its listing."""
    theta = Adam(classifier.parameters(), config.classifier_lr)
    phi = Adam(policy.parameters(), config.policy_lr)
    phi.add_param_group({"params": critic.parameters(), "lr": config.critic_lr})
    best, waited = 0.0, 0
    for epoch in range(1, config.epochs + 1):  # 2
        losses = []
        classifier.train()
        for graphs in batches(train_graphs, config.batch_size):  # 3
            subgraphs = sparsify(policy, graphs).subgraphs  # 4
            loss = F.cross_entropy(classifier(subgraphs), graphs.y)  # 5
            losses.append(descend(theta, loss))  # 6, Eq. (6)

        buffer = []  # empty again in every epoch: PPO learns from what its last policy did
        classifier.eval()
        for graphs in batches(val_graphs, config.ppo_batch_size):  # 8
            action = sparsify(policy, graphs)  # 9
            probs = classifier(action.subgraphs).detach().softmax(dim=-1)  # 10
            buffer.append((action, probs))  # 11
        q_hat = calibrate(classifier, policy, train_graphs, config)  # 13
        tuples = [(action, reward(action, probs, q_hat, config)) for action, probs in buffer]  # 14
        for _ in range(config.ppo_epochs):  # 15
            action, rewards = tuples[torch.randint(len(tuples), ())]  # 16
            loss = ppo_loss(policy, critic, action, rewards, config)  # 17
            descend(phi, loss)  # 18, Eq. (5)

        accuracy, _ = evaluate(classifier, policy, val_graphs)
        mean_reward = torch.cat([rewards for _, rewards in tuples]).mean()
        kept = torch.cat([action.kept_ratio for action, _ in tuples]).mean()
        print(
            f"epoch {epoch}: loss {sum(losses) / len(losses):.3f}, reward {mean_reward:.3f}, "
            f"kept {kept:.3f}, q_hat {q_hat:.3f}, validation accuracy {accuracy:.3f}"
        )
        best, waited = (accuracy, 0) if accuracy > best else (best, waited + 1)
        if waited == config.patience:  # 20
            break


@dataclass(frozen=True)
class Action:
    """What a policy does to a batch of graphs, and the subgraphs that it leaves."""

    graphs: Batch  # G and y
    owner: Int[Tensor, " elements"]  # the graph of every element
    removed: Bool[Tensor, " elements"]  # a: 1 removes
    log_prob: Float[Tensor, " graphs"]  # log pi(a | G)
    subgraphs: Batch  # G_s
    kept_ratio: Float[Tensor, " graphs"]  # |V_s| / |V| in mode N, |E_s| / |E| in mode E
    restored: Bool[Tensor, " graphs"]  # where everything was removed


@torch.no_grad()
def sparsify(policy: "Policy", graphs: Batch, sample: bool = True) -> Action:
    """pi_phi: G -> G_s, lines 4 and 9, Sec. 4.2.1, by a sample of the policy, or by its mode.

    A graph of which everything was removed is restored.
    """
    pi, size, by_node = policy(graphs), graphs.num_graphs, policy.removal == "node"
    removed = pi.sample().bool() if sample else pi.probs > 0.5  # [M]
    owner = graphs.batch if by_node else graphs.batch[graphs.pair_index[0]]  # [M]
    restored = scatter(removed.float(), owner, dim_size=size, reduce="mean") == 1  # [B]
    gone = removed & ~restored[owner]  # [M]
    if by_node:
        subgraphs = remove_nodes(graphs, gone)
    else:
        subgraphs = remove_edges(graphs, gone[graphs.edge_pair])
    kept_ratio = 1 - scatter(gone.float(), owner, dim_size=size, reduce="mean")  # [B]
    log_prob = scatter(pi.log_prob(removed.float()), owner, dim_size=size)  # [B] a sum
    return Action(graphs, owner, removed, log_prob, subgraphs, kept_ratio, restored)


@torch.no_grad()
def calibrate(
    classifier: nn.Module, policy: "Policy", graphs: list[Data], config: Config
) -> Float[Tensor, ""]:
    """q-hat, line 13: the quantile of the true labels' scores, Eq. (4)."""
    scores = []
    for batch in batches(graphs, config.ppo_batch_size):
        probs = classifier(sparsify(policy, batch).subgraphs).softmax(dim=-1)  # [B, K]
        scores.append(aps_scores(probs).gather(-1, batch.y[:, None]).squeeze(-1))  # [B]
    return conformal_quantile(torch.cat(scores), config.alpha)


def reward(
    action: Action, probs: Float[Tensor, "graphs classes"], q_hat: Float[Tensor, ""], config: Config
) -> Float[Tensor, " graphs"]:
    """R, line 14: Eq. (7), less the penalty where everything was removed."""
    y = action.graphs.y
    sets = prediction_sets(aps_scores(probs), q_hat)  # [B, K] C(G_s), Eq. (3)
    performance = performance_reward(probs, y)  # [B] R_p
    sparsity = sparsity_reward(action.kept_ratio, config.desired_ratio)  # [B] R_s
    rewards = conformal_reward(performance, sparsity, sets, y, config.lam)  # [B] Eq. (7)
    return rewards - config.penalty_size * action.restored


def ppo_loss(
    policy: "Policy", critic: nn.Module, action: Action, rewards: Tensor, config: Config
) -> Float[Tensor, ""]:
    """L_s, lines 17 and 18: Eq. (1), the critic's error and the policy's entropy, to be minimised.

    An episode is one action, so its advantage is the reward less the critic's value of the graph.
    """
    pi, size = policy(action.graphs), action.graphs.num_graphs
    value = critic(action.graphs).squeeze(-1)  # [B]
    advantage = rewards - value.detach()  # [B] A-hat
    log_prob = scatter(pi.log_prob(action.removed.float()), action.owner, dim_size=size)  # [B]
    objective = clipped_objective(log_prob, action.log_prob, advantage, config.clip)  # [B] Eq. (1)
    entropy = scatter(pi.entropy(), action.owner, dim_size=size, reduce="mean")  # [B]
    error = F.mse_loss(value, rewards)
    return -objective.mean() + config.value_coef * error - config.entropy_coef * entropy.mean()


def descend(optimizer: Optimizer, loss: Tensor) -> float:
    """Take a gradient step."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def evaluate(classifier: nn.Module, policy: "Policy", graphs: list[Data]) -> tuple[float, float]:
    """Accuracy and mean kept ratio by the policy's mode."""
    action = sparsify(policy, next(batches(graphs, len(graphs))), sample=False)
    right = classifier(action.subgraphs).argmax(dim=-1) == action.graphs.y  # [B]
    return right.float().mean().item(), action.kept_ratio.mean().item()


class GNN(nn.Module):
    """Node embeddings after L rounds of messages, Eq. (2), by GIN.

    Only the classifier has batch norm: with it the probability of an action would depend on the
    other graphs in the batch, and PPO's first ratio would not be 1.
    """

    def __init__(self, num_features: int, config: Config, batch_norm: bool) -> None:
        super().__init__()
        width = config.hidden_dim
        self.input = nn.Linear(num_features, width)
        self.layers, self.norms = nn.ModuleList(), nn.ModuleList()
        for _ in range(config.num_layers):
            norm = BatchNorm(width, allow_single_element=True) if batch_norm else nn.Identity()
            self.layers.append(GINConv(MLP([width, width, width], norm=None), train_eps=True))
            self.norms.append(norm)
        self.output = nn.Linear(width, width)

    def forward(self, graphs: Batch) -> Float[Tensor, "nodes hidden"]:
        """Embed every node."""
        h = self.input(graphs.x).relu()  # [N, H]
        for layer, norm in zip(self.layers, self.norms, strict=True):
            h = norm(layer(h, graphs.edge_index)).relu()
        return self.output(h).relu()


class GraphNetwork(nn.Module):
    """Outputs per graph: the class logits of f_theta, or the one value of PPO's critic."""

    def __init__(self, num_features: int, outputs: int, config: Config, batch_norm: bool) -> None:
        super().__init__()
        self.gnn = GNN(num_features, config, batch_norm)
        self.head = nn.Linear(2 * config.hidden_dim, outputs)
        nn.init.zeros_(self.head.weight)  # random weights on sums over many nodes say too much

    def forward(self, graphs: Batch) -> Float[Tensor, "graphs outputs"]:
        """Mean and sum over each graph's nodes, then a linear layer."""
        h, batch, size = self.gnn(graphs), graphs.batch, graphs.num_graphs
        pooled = [global_mean_pool(h, batch, size), global_add_pool(h, batch, size)]
        return self.head(torch.cat(pooled, dim=-1))


class Policy(nn.Module):
    """pi_phi(a | G), Sec. 4.2.1: the elements of a are removed independently of each other."""

    def __init__(self, num_features: int, config: Config) -> None:
        super().__init__()
        self.removal = config.removal
        self.gnn = GNN(num_features, config, batch_norm=False)
        self.ends = nn.Linear(config.hidden_dim, config.hidden_dim)
        self.head = nn.Linear(config.hidden_dim, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.constant_(self.head.bias, -1.0)  # at first 27 % of the elements are removed

    def forward(self, graphs: Batch) -> Bernoulli:
        """The distribution of a, from a node's embedding or from those of both ends of an edge."""
        h = self.gnn(graphs)  # [N, H]
        if self.removal == "edge":
            h = self.ends(h)[graphs.pair_index].sum(dim=0).relu()  # [P, H]
        return Bernoulli(logits=self.head(h).squeeze(-1))  # [M]


def batches(graphs: list[Data], size: int) -> Iterator[Batch]:
    """Shuffled mini-batches with their undirected edges: both directions are one decision.

    ``pair_index`` [2, P] holds the ends of each; ``edge_pair`` [E] says which a directed edge is.
    """
    for batch in DataLoader(graphs, size, shuffle=True):
        ends = batch.edge_index.sort(dim=0).values  # [2, E]
        batch.pair_index, batch.edge_pair = ends.unique(dim=1, return_inverse=True)
        yield batch


def main(dataset: Dataset, config: Config, seed: int = 0) -> None:
    """Lines 1 and 22: D_tr is half of the graphs, D_val 40 %; the others test the last epoch."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    graphs = len(dataset)
    parts = torch.randperm(graphs).tensor_split([graphs // 2, graphs * 9 // 10])
    train_graphs, val_graphs, test_graphs = [list(dataset[part]) for part in parts]

    classifier = GraphNetwork(dataset.num_features, dataset.num_classes, config, batch_norm=True)
    policy = Policy(dataset.num_features, config)
    critic = GraphNetwork(dataset.num_features, 1, config, batch_norm=False)
    train(train_graphs, val_graphs, classifier, policy, critic, config)

    accuracy, kept = evaluate(classifier, policy, test_graphs)
    largest = torch.cat([graph.y for graph in test_graphs]).bincount().max() / len(test_graphs)
    print(
        f"{dataset.name}, {len(test_graphs)} test graphs: accuracy {accuracy:.3f} of the mode, "
        f"{config.removal}s kept {kept:.3f}, share of the largest class {largest:.3f}"
    )


if __name__ == "__main__":
    if os.environ.get("CORES_DATA"):
        main(load_dataset("MUTAG"), Config())
    else:
        config = Config(lam=0.5, desired_ratio=0.5, alpha=0.1, hidden_dim=32, epochs=60)
        config = replace(config, classifier_lr=3e-3, policy_lr=1e-3, critic_lr=1e-3)
        main(load_dataset("motifs"), config)
