"""The paper's Algorithm 1 by itself: beside the `paper` preset, a second program; and learning."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Bernoulli
from torch.nn import functional as F
from torch_geometric.data import Batch, Data
from torch_geometric.utils import scatter

from cores import algorithm1
from cores.algorithm1 import Config, GraphNetwork, Policy, sparsify
from cores.config import RunConfig
from cores.config.presets import preset_config
from cores.conformal import aps_scores, prediction_sets
from cores.data.dataset import Dataset, numbered
from cores.data.datasets import load_dataset
from cores.data.splits import Split
from cores.data.synthetic import ba_motifs
from cores.graphs.store import GraphStore
from cores.models.build import build_model
from cores.models.sparse import SparseClassifier
from cores.runs.fit import PreparedData
from cores.training.state import RandomState
from cores.training.step import Step
from cores_paper.training import algorithm as preset_program
from cores_paper.training.reward import ppo_loss as preset_ppo_loss
from cores_paper.training.reward import reward_sets

CPU = torch.device("cpu")
SMALL = Config(hidden_dim=8, num_layers=2, lam=0.4, alpha=0.5, entropy_coef=0.1, value_coef=0.7)


@dataclass(frozen=True)
class Programs:
    """Algorithm 1 and the preset's program, with the same settings, weights and graphs."""

    config: Config
    classifier: GraphNetwork
    policy: Policy
    critic: GraphNetwork
    preset: RunConfig
    state: preset_program.State

    @property
    def pairs(self) -> list[tuple[nn.Module, nn.Module]]:
        """Each of our networks beside the preset's."""
        return [
            (self.classifier, self.state.model.classifier),
            (self.policy, self.state.model.policy),
            (self.critic, self.state.critic),
        ]


@pytest.fixture(params=["node", "edge"])
def programs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Programs:
    """Both programs; they remove elements by the same uniform numbers, and shuffle no graphs."""
    config = replace(SMALL, removal=request.param)
    torch.manual_seed(5)
    classifier, policy = GraphNetwork(4, 3, config, batch_norm=True), Policy(4, config)
    critic = GraphNetwork(4, 1, config, batch_norm=False)
    for network in (classifier, policy, critic):
        nn.init.normal_(network.head.weight, std=0.3)
    nn.init.normal_(classifier.head.weight, std=2.0)  # sets of several sizes
    classifier.eval()
    nn.init.constant_(policy.head.bias, 1.0)  # some graphs lose everything
    preset = preset_of(config)
    dataset = Dataset("toy", graphs_of(0), ("a", "b", "c"), numbered(4))
    model = build_model(preset, dataset.dims)
    assert isinstance(model, SparseClassifier)
    first, last = torch.arange(60).split(30)
    split = Split(train=first, policy=last, selection=last, calibration=last[:0], test=last[:0])
    data = PreparedData(dataset, dataset.graphs, split)
    state = preset_program.State(model, preset, data, RandomState(3, CPU))
    state.critic.begun.fill_(True)  # else it would begin with the mean of the first rewards
    found = Programs(config, classifier, policy, critic, preset, state)
    for ours, theirs in found.pairs:
        copy_weights(ours, theirs)
    uniform = lambda pi: (torch.rand_like(pi.probs) < pi.probs).float()  # noqa: E731
    monkeypatch.setattr(Bernoulli, "sample", uniform)
    in_order = lambda graphs, size, shuffle: [Batch.from_data_list(graphs)]  # noqa: E731
    monkeypatch.setattr(algorithm1, "DataLoader", in_order)
    return found


def preset_of(config: Config) -> RunConfig:
    """The `paper` preset with the same settings; the published ones have a factor on Eq. (7)."""
    network = {"batch_norm": True, "gin_eps": 0.0, "gin_train_eps": True}
    changes = {
        "network": network | same(config, "hidden_dim", "num_layers"),
        "training": {"batch_size": 99},
        "reward": same(config, "lam", "desired_ratio", "alpha", "penalty_size"),
        "ppo": same(config, "clip", "entropy_coef"),
        "paper": same(config, "value_coef") | {"scale": 1.0},
    }
    return preset_config("MUTAG", f"cores-{config.removal}", "gin", "paper", changes)


def same(config: Config, *names: str) -> dict[str, float]:
    return {name: getattr(config, name) for name in names}


def graphs_of(seed: int) -> GraphStore:
    """Sixty graphs of a few nodes with random features."""
    graphs = ba_motifs(num_graphs=60, base_size=2, motifs=("star", "clique", "cycle"), seed=seed)
    generator = torch.Generator().manual_seed(seed)
    return replace(graphs, x=torch.randn(len(graphs.x), 4, generator=generator))


def listed(graphs: GraphStore, order: Tensor) -> list[Data]:
    return [graphs.graph(index) for index in order.tolist()]


def shared(ours: nn.Module, theirs: nn.Module) -> list[tuple[nn.Parameter, nn.Parameter]]:
    """The weights of our network beside the preset's; its policy also reads own features (D8)."""
    removal = ours.removal if isinstance(ours, Policy) else None
    names = {"gnn": "encoder", ".nn.lins.0": ".conv.nn.0", ".nn.lins.1": ".conv.nn.2"}
    names |= {".eps": ".conv.eps", ".module": "", "ends": "edge_mixer"}
    names |= {"head": f"{removal}_head"} if removal else {}
    known, found = dict(theirs.named_parameters()), []
    for name, weight in ours.named_parameters():
        if removal == "node" and name.startswith("ends"):
            continue
        for mine, other in names.items():
            name = name.replace(mine, other)
        found.append((weight, known.pop(name)))
    assert not known, "every weight has its like"
    return found


@torch.no_grad()
def copy_weights(ours: nn.Module, theirs: nn.Module) -> None:
    for one, two in shared(ours, theirs):
        two.zero_()[..., : one.size(-1)] = one


def assert_same_gradients(ours: nn.Module, theirs: nn.Module) -> None:
    for one, two in shared(ours, theirs):
        assert one.grad is not None
        assert two.grad is not None
        assert torch.allclose(one.grad, two.grad[..., : one.size(-1)], rtol=1e-4, atol=2e-5)
    assert max(one.grad.abs().max() for one, _ in shared(ours, theirs)) > 0.01


def test_the_classifier_learns_as_in_the_paper_preset(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines 3 to 6."""
    p, state = programs, programs.state
    order = state.train_graphs.order(torch.Generator().manual_seed(3))
    taken: list[Batch] = []

    def epoch(step: Step, batches: Iterator[Batch]) -> float:
        taken.extend(batches)
        return float(step(taken[0]))

    monkeypatch.setattr(preset_program, "fit_epoch", epoch)
    classifier = state.model.classifier
    state.step = Step(classifier, torch.optim.SGD(classifier.parameters(), lr=0.0))
    p.classifier.train()
    classifier.train()
    torch.manual_seed(1)
    expected = torch.tensor(state.fit_classifier(1)["loss"])
    (theirs,) = taken
    torch.manual_seed(1)
    (graphs,) = algorithm1.batches(listed(state.train_graphs.store, order), 99)
    ours = sparsify(p.policy, graphs).subgraphs
    assert torch.equal(ours.x, theirs.x)
    assert torch.equal(ours.edge_index, theirs.edge_index)
    loss = F.cross_entropy(p.classifier(ours), graphs.y)
    loss.backward()
    assert torch.allclose(loss, expected)
    assert_same_gradients(p.classifier, classifier)


def test_the_policy_learns_as_in_the_paper_preset(programs: Programs) -> None:
    """Lines 8 to 18."""
    p, state, settings = programs, programs.state, programs.preset
    order = state.policy_graphs.order(torch.Generator().manual_seed(3))
    torch.manual_seed(1)
    outcomes = state.roll_out()
    (outcome,) = outcomes
    their_q_hat = state.quantile()
    (rollout,) = state.rewarded(outcomes, their_q_hat)

    torch.manual_seed(1)
    (graphs,) = algorithm1.batches(listed(state.policy_graphs.store, order), 99)
    action = sparsify(p.policy, graphs)
    probs = p.classifier(action.subgraphs).detach().softmax(dim=-1)
    train_graphs = listed(state.train_graphs.store, torch.arange(30))
    q_hat = algorithm1.calibrate(p.classifier, p.policy, train_graphs, p.config)
    rewards = algorithm1.reward(action, probs, q_hat, p.config)
    assert torch.equal(action.removed, outcome.rollout.removed[0])
    assert action.restored.any()
    assert torch.equal(action.restored, outcome.restored[0])
    assert torch.allclose(action.kept_ratio, outcome.kept_ratio[0])
    assert torch.allclose(probs, outcome.probs[0], atol=1e-6)
    assert torch.allclose(q_hat, their_q_hat)
    sets = prediction_sets(aps_scores(probs), q_hat)
    assert torch.equal(sets, reward_sets(outcome.probs[0], their_q_hat, state.own))
    assert set(sets.sum(dim=-1).tolist()) >= {1, 2}
    assert (rewards < 0).any()
    assert torch.allclose(rewards, rollout.rewards[0], atol=1e-5)

    for moved in (0.0, 0.05):  # the policy that acted, and one of which some ratios are clipped
        for ours, theirs in p.pairs:
            with torch.no_grad():
                for weight in ours.parameters():
                    weight += moved * torch.randn_like(weight)
            copy_weights(ours, theirs)
            ours.zero_grad()
            theirs.zero_grad()
        value = state.critic(rollout.elements.batch).detach()
        loss = algorithm1.ppo_loss(p.policy, p.critic, action, rewards, p.config)
        fresh = replace(rollout, advantage=rollout.rewards - value)  # line 17 is inside of the loop
        weights = settings.ppo.clip, settings.ppo.entropy_coef, state.own.value_coef
        expected, _ = preset_ppo_loss(state.model.policy, state.critic, fresh, *weights)
        assert torch.allclose(loss, expected, atol=1e-5)
        loss.backward()
        expected.backward()
        assert_same_gradients(p.policy, state.model.policy)
        assert_same_gradients(p.critic, state.critic)


def test_the_settings_are_those_published_for_mutag() -> None:
    ours, published = Config(), preset_config("MUTAG", "cores-node", "gin", "paper", {})
    names = {"lam": "reward", "desired_ratio": "reward", "alpha": "reward"}
    names |= {"penalty_size": "reward", "ppo_epochs": "ppo", "clip": "ppo"}
    names |= {"value_coef": "preset_settings"}
    names |= {"entropy_coef": "ppo", "hidden_dim": "network", "num_layers": "network"}
    for name, group in names.items():
        assert getattr(ours, name) == getattr(getattr(published, group), name), name
    rates = published.training.learning_rate, published.ppo.learning_rate
    assert (ours.classifier_lr, ours.policy_lr) == pytest.approx(rates, rel=1e-5)
    assert ours.critic_lr == pytest.approx(published.preset_settings.critic_learning_rate, rel=1e-5)
    assert ours.batch_size == published.training.batch_size


def test_the_first_ratio_is_one_and_both_directions_of_an_edge_are_one_decision() -> None:
    torch.manual_seed(0)
    config = replace(SMALL, removal="edge")
    policy, graphs = Policy(4, config), listed(graphs_of(0), torch.arange(30))
    nn.init.normal_(policy.head.weight)
    (batch,) = algorithm1.batches(graphs, 30)
    action = sparsify(policy, batch)
    again = policy(batch).log_prob(action.removed.float())
    assert torch.equal(scatter(again, action.owner), action.log_prob)
    ends = action.subgraphs.edge_index
    assert 0 < ends.size(1) < batch.edge_index.size(1)
    assert {*map(tuple, ends.T.tolist())} == {*map(tuple, ends.flip(0).T.tolist())}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("removal", ["node", "edge"])
def test_it_learns_to_remove_what_tells_nothing(
    removal: Literal["node", "edge"], capsys: pytest.CaptureFixture[str]
) -> None:
    """A motif's nodes tell the class by their features; others are all the same."""
    graphs = ba_motifs(num_graphs=96, base_size=10, motifs=("star", "clique"))
    assert graphs.node_truth is not None
    marked = graphs.node_truth * (1 + graphs.y.repeat_interleave(graphs.num_nodes))
    graphs = replace(graphs, x=F.one_hot(marked, 3).float())
    config = Config(removal, lam=0.2, desired_ratio=0.3, alpha=0.1, epochs=30)
    config = replace(config, classifier_lr=2e-3, policy_lr=0.01, critic_lr=0.01)
    torch.manual_seed(0)
    classifier, policy = GraphNetwork(3, 2, config, batch_norm=True), Policy(3, config)
    critic = GraphNetwork(3, 1, config, batch_norm=False)
    train_graphs, val_graphs = (listed(graphs, part) for part in torch.randperm(96).split(48))
    algorithm1.train(train_graphs, val_graphs, classifier, policy, critic, config)
    epochs = [
        map(float, re.findall(r" (-?\d\.\d+)", line))
        for line in capsys.readouterr().out.splitlines()
    ]
    losses, rewards, kept, _, accuracies = zip(*epochs, strict=True)
    assert losses[-1] < losses[0] / 2
    assert rewards[-1] > rewards[0] + 0.3
    assert kept[-1] < kept[0] - 0.1
    assert accuracies[-1] > 0.95


def test_it_runs_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    config = Config(epochs=9, patience=2, classifier_lr=0.0, ppo_epochs=2, hidden_dim=4)
    algorithm1.main(load_dataset("motifs")[:40], config)
    *epochs, last = capsys.readouterr().out.splitlines()
    assert len(epochs) == 3, "the accuracy of the first epoch stays the best"
    for number, line in enumerate(epochs, start=1):
        assert line.startswith(f"epoch {number}: loss ")
    assert last.startswith("motifs, 4 test graphs: accuracy ")


def test_it_is_a_page_of_300_lines() -> None:
    assert len(Path(algorithm1.__file__).read_text().splitlines()) <= 300
