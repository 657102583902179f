"""Speed as ratios, measured in one process with one thread on graphs of NCI1's sizes.

Seconds belong to a machine; a ratio of two medians taken in turns travels better.
"""

import math
import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import clip_grad_norm_
from torch.optim import Adam
from torch_geometric.data import Batch
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINConv, global_add_pool, global_mean_pool

from cores import GraphStore, UserError, ppo
from cores.config import ExplanationConfig, NetworkConfig, PPOConfig, Removal
from cores.config.policy import CommitteeConfig
from cores.data.dataset import Dims
from cores.files import read_json
from cores.graphs.segments import owners, place_within, pointers
from cores.models.classifier import Classifier
from cores.models.committee import Committee
from cores.models.policy import Critic, Policy
from cores.models.sparse import SparseClassifier
from cores.ppo import RewardedRollout
from cores.runs.device import tuned_cpu
from cores.training.step import Step
from cores.training.supervised import fit_epoch

NUM_GRAPHS = 1024
NUM_FEATURES = 7
DIMS = Dims(NUM_FEATURES, 2)
BATCH_SIZE = 32
NETWORK = NetworkConfig(hidden_dim=64, num_layers=3, batch_norm=False)
REMOVALS: tuple[Removal, ...] = ("node", "edge")
LARGE_BATCH = 256
"""Graphs of an update, and of the larger predictions."""
SEARCHES: tuple[Literal["cut", "minimal"], ...] = ("cut", "minimal")
"""The parts that are searched for."""


@tuned_cpu()
def benchmark(repeats: int = 15) -> dict[str, float]:
    """Seconds of ours and of the plain way, and their ratios; lower is better."""
    if repeats < 1:
        raise UserError(f"`repeats` must be positive, got {repeats}")
    torch.manual_seed(0)
    graphs = nci1_like_graphs(NUM_GRAPHS, seed=0)
    batch = graphs.batch(torch.arange(LARGE_BATCH))
    seconds = {
        **_loader_seconds(graphs, repeats),
        **_classifier_seconds(batch, repeats),
        **_ppo_seconds(batch, repeats),
        **_inference_seconds(graphs, repeats),
        **_search_seconds(graphs, repeats),
    }

    def worst(action: str, yardstick: str) -> float:
        """Of node and edge mode, the slower one's ratio."""
        slower = max(seconds[f"{action}_{removal}_seconds"] for removal in REMOVALS)
        return slower / seconds[f"{yardstick}_seconds"]

    return {
        "ppo_update_ratio": worst("ppo_update", "supervised_update"),
        "inference_ratio_1": worst("inference_1", "classifier_inference_1"),
        "inference_ratio_256": worst("inference_256", "classifier_inference_256"),
        "loader_ratio": seconds["loader_seconds"] / seconds["pyg_loader_seconds"],
        "classifier_ratio": seconds["classifier_seconds"] / seconds["plain_classifier_seconds"],
        **{f"{parts}_ratio": worst(parts, "one_classifier") for parts in SEARCHES},
        **seconds,
    }


def read_ratios(path: Path) -> dict[str, float]:
    """The ratios of an earlier measurement, as ``cores benchmark --json`` printed it."""
    found = read_json(path)
    ratios = _ratios(found) if isinstance(found, Mapping) else {}
    if not ratios:
        raise UserError(f"{path} holds no ratios of `cores benchmark --json`")
    return ratios


def slower(
    now: Mapping[str, float], before: Mapping[str, float], share: float = 0.1
) -> dict[str, float]:
    """The ratios that have grown by more than a share, and how often they are what they were.

    >>> slower({"loader_ratio": 0.3, "classifier_ratio": 0.9}, {"loader_ratio": 0.2})
    {'loader_ratio': 1.5}
    """
    known = {name: value / before[name] for name, value in _ratios(now).items() if name in before}
    return {name: round(growth, 3) for name, growth in known.items() if growth > 1 + share}


def _ratios(measured: Mapping[str, Any]) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in measured.items()
        if "_ratio" in name and isinstance(value, int | float) and 0 < value < math.inf
    }


def nci1_like_graphs(num_graphs: int, seed: int) -> GraphStore:
    """Random sparse graphs with NCI1's mean and deviation of nodes, and its edges per node.

    A tree whose nodes hang on one of the three before them, with an edge more for every eight
    nodes: 32.3 undirected edges per 29.9 nodes, like molecules with a few rings.
    """
    random = np.random.default_rng(seed)
    sizes = np.clip(random.normal(29.87, 13.56, num_graphs).round(), 4, 111).astype(np.int64)
    num_nodes = torch.from_numpy(sizes)
    owner = owners(num_nodes).numpy()
    local = place_within(owners(num_nodes), num_graphs).numpy()
    parent = local - random.integers(1, np.clip(local, 1, 3) + 1)
    tree = local > 0
    closing = random.random(len(owner)) < 1 / 8
    far = random.integers(0, sizes[owner])
    closing &= far != local
    source = np.concatenate([local[tree], local[closing]])
    target = np.concatenate([parent[tree], far[closing]])
    edge_owner = np.concatenate([owner[tree], owner[closing]])
    ends = np.concatenate([[source, target], [target, source]], axis=1)
    edge_owner = np.concatenate([edge_owner, edge_owner])
    order = np.lexsort((ends[1], ends[0], edge_owner))
    features = np.eye(NUM_FEATURES, dtype=np.float32)[random.integers(0, NUM_FEATURES, len(owner))]
    return GraphStore(
        x=torch.from_numpy(features),
        edge_index=torch.from_numpy(ends[:, order]),
        y=torch.from_numpy(random.integers(0, 2, num_graphs)),
        node_ptr=pointers(num_nodes),
        edge_ptr=pointers(torch.from_numpy(np.bincount(edge_owner, minlength=num_graphs))),
    )


def median_seconds(actions: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median time of each action, taken in turns so that a busy machine slows all alike."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    for action in actions.values():
        action()  # the first call pays for caches
    for _ in range(repeats):
        for name, action in actions.items():
            begun = time.perf_counter()
            action()
            times[name].append(time.perf_counter() - begun)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def _loader_seconds(graphs: GraphStore, repeats: int) -> dict[str, float]:
    """An epoch of mini-batches, ours and PyG's."""
    generator = torch.Generator().manual_seed(0)
    loader = DataLoader(
        graphs.to_graphs(), batch_size=BATCH_SIZE, shuffle=True, generator=generator
    )
    return median_seconds(
        {
            "loader_seconds": lambda: list(graphs.batches(BATCH_SIZE, generator)),
            "pyg_loader_seconds": lambda: list(loader),
        },
        repeats,
    )


def _classifier_seconds(batch: Batch, repeats: int) -> dict[str, float]:
    """A supervised update, by our classifier and by the same GIN written plainly."""
    ours = Classifier(DIMS, NETWORK, "gin")
    plain = _PlainGIN()
    our_optimizer = Adam(ours.parameters(), fused=True)
    plain_optimizer = Adam(plain.parameters(), fused=True)

    def plain_step() -> None:
        logits = plain(batch.x, batch.edge_index, batch.batch, batch.num_graphs)
        loss = F.cross_entropy(logits, batch.y)
        plain_optimizer.zero_grad()
        loss.backward()
        plain_optimizer.step()

    return median_seconds(
        {
            "classifier_seconds": partial(fit_epoch, Step(ours, our_optimizer), [batch]),
            "plain_classifier_seconds": plain_step,
        },
        repeats,
    )


def _ppo_seconds(batch: Batch, repeats: int) -> dict[str, float]:
    """An update of actor and critic over a batch, and a supervised one of the classifier."""
    config = PPOConfig(samples=1, ppo_epochs=1, batch_size=batch.num_graphs)
    classifier = Classifier(DIMS, NETWORK, "gin")
    step = Step(classifier, Adam(classifier.parameters(), fused=True))
    actions: dict[str, Callable[[], object]] = {
        "supervised_update_seconds": partial(fit_epoch, step, [batch])
    }
    for removal in REMOVALS:
        policy = Policy(
            DIMS, NETWORK, "gin", removal, config.initial_removal, config.min_probability
        )
        critic = Critic(DIMS, NETWORK, "gin")
        optimizer = Adam([*policy.parameters(), *critic.parameters()], lr=1e-5, fused=True)
        rollout = ppo.collect(policy, batch, config.samples)
        rewards = rollout.elements.kept_ratio(rollout.removed)
        with torch.no_grad():
            rewarded = rollout.rewarded(rewards, critic(rollout.elements.batch))
        update = partial(_ppo_update, policy, critic, optimizer, rewarded, config)
        actions[f"ppo_update_{removal}_seconds"] = update
    return median_seconds(actions, repeats)


def _ppo_update(
    policy: Policy,
    critic: Critic,
    optimizer: Adam,
    rollout: RewardedRollout,
    config: PPOConfig,
) -> None:
    """Take a gradient step of the policy by Eq. (1), and of the critic."""
    loss, _ = ppo.ppo_loss(policy, rollout, config)
    value = critic(rollout.elements.batch)
    loss = loss + 0.5 * F.mse_loss(value, rollout.rewards.mean(dim=0))
    optimizer.zero_grad()
    loss.backward()
    clip_grad_norm_([*policy.parameters(), *critic.parameters()], config.max_grad_norm)
    optimizer.step()


@torch.no_grad()
def _inference_seconds(graphs: GraphStore, repeats: int) -> dict[str, float]:
    """Policy, subgraph and classifier, and the classifier alone; one graph, and many at once."""
    classifier = Classifier(DIMS, NETWORK, "gin").eval()
    actions: dict[str, Callable[[], object]] = {}
    for size in (1, 256):
        yardstick = partial(classifier, graphs.batch(torch.arange(size)))
        actions[f"classifier_inference_{size}_seconds"] = yardstick
        for removal in REMOVALS:
            model = _sparse(removal, classifier)
            action = partial(model, _first(graphs, removal, size))
            actions[f"inference_{size}_{removal}_seconds"] = action
    return median_seconds(actions, repeats)


@torch.no_grad()
def _search_seconds(graphs: GraphStore, repeats: int) -> dict[str, float]:
    """Searches for parts by the default committee, and one classifier; questions per graph.

    The networks are fresh. A trained committee is asked less: on NCI1 about 75 questions a graph.
    The questions that are returned are those of the mode that asks more.
    """
    members = [Classifier(DIMS, NETWORK, "gin") for _ in range(CommitteeConfig().members)]
    one = partial(members[0].eval(), graphs.batch(torch.arange(LARGE_BATCH)))
    actions: dict[str, Callable[[], object]] = {"one_classifier_seconds": one}
    asked: dict[str, float] = dict.fromkeys(SEARCHES, 0.0)

    def search(model: SparseClassifier, batch: Batch) -> None:
        facts = model.prediction(batch).part
        assert facts is not None
        parts, questions = model.shown.parts, float(facts.questions.double().mean())
        asked[parts] = max(asked[parts], questions)

    for removal, parts in product(REMOVALS, SEARCHES):
        model = _sparse(removal, Committee(members)).showing(ExplanationConfig(parts=parts))
        batch = _first(graphs, removal, LARGE_BATCH)
        actions[f"{parts}_{removal}_seconds"] = partial(search, model, batch)
    seconds = median_seconds(actions, max(1, repeats // 5))  # a search takes long
    return {"questions": asked["minimal"], "cut_questions": asked["cut"], **seconds}


def _sparse(removal: Removal, classifier: Classifier | Committee) -> SparseClassifier:
    """Put a fresh policy in front of a classifier or a committee."""
    return SparseClassifier(Policy(DIMS, NETWORK, "gin", removal, 0.27, 0.02), classifier).eval()


def _first(graphs: GraphStore, removal: Removal, size: int) -> Batch:
    """Batch the first graphs; as in a run, where edges go the store knows its undirected ones."""
    store = graphs if removal == "node" else graphs.with_pairs()
    return store.batch(torch.arange(size))


class _PlainGIN(nn.Module):
    """The yardstick: the classifier's computation with PyG's layers and nothing of ours."""

    def __init__(self) -> None:
        super().__init__()
        width = NETWORK.hidden_dim
        self.input = nn.Linear(NUM_FEATURES, width)
        self.convs = nn.ModuleList(
            GINConv(nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)))
            for _ in range(NETWORK.num_layers)
        )
        self.output = nn.Linear(width, width)
        self.head = nn.Linear(2 * width, 2)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, size: int) -> Tensor:
        h = self.input(x).relu()
        for conv in self.convs:
            h = conv(h, edge_index).relu()
        h = self.output(h).relu()
        pooled = [global_mean_pool(h, batch, size), global_add_pool(h, batch, size)]
        return self.head(torch.cat(pooled, dim=-1))
