"""A policy that sees lambda: drawn in training, chosen at its end, and any value afterwards."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from cores.config import PPOConfig, RewardConfig, RunConfig
from cores.config.presets import preset_config
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.errors import UserError
from cores.evaluation.dial import DialPredictions, at_settings
from cores.graphs.components import count_pieces
from cores.graphs.store import GraphView
from cores.models.build import build_classifier, build_model
from cores.models.sparse import SparseClassifier
from cores.reward import conformal_reward, performance_reward, sparsity_reward
from cores.runs.run import train_run
from cores.runs.trained import TrainedModel
from cores.tasks import metrics
from cores.tasks.classification import reward_sets
from cores.training import dial
from cores.training.bilevel import chosen, selection_metrics
from cores.training.dial import SELECTION_SETTINGS, sparsest_setting
from cores.training.learner import Learner
from cores.training.rollouts import roll_out, rollout_reward
from cores.training.state import RandomState

GRAPHS = ba_motifs(num_graphs=10, base_size=6, seed=0)


def run_config(model: str = "cores-node", **changes: dict[str, object]) -> RunConfig:
    """A small one with a dial."""
    small = {"network": {"hidden_dim": 8, "num_layers": 2}, "reward": {"dial": True}}
    return preset_config("motifs", model, "gin", "default", {**small, **changes})


def dialled_model(config: RunConfig) -> SparseClassifier:
    """With fresh weights."""
    torch.manual_seed(0)
    model = build_model(config, Dims(GRAPHS.num_features, 2))
    assert isinstance(model, SparseClassifier)
    return model


def more_at_0(model: SparseClassifier) -> None:
    """Let the policy remove by a random score of a node, and less of them at a larger lambda."""
    with torch.no_grad():
        model.policy.node_head.weight.normal_(std=0.3)
        model.policy.node_head.weight[0, -1] = -8.0
        model.policy.node_head.bias.fill_(4.0)


def learner_of(model: SparseClassifier, config: RunConfig) -> Learner:
    classifier = build_classifier(config, Dims(GRAPHS.num_features, 2), model.scaler)
    return Learner(classifier, GRAPHS.view(), GRAPHS.view(), config)


def test_graphs_say_where_their_dial_stands_or_the_policy_does() -> None:
    model = dialled_model(run_config())
    more_at_0(model)
    batch = GRAPHS.batch(torch.arange(10))
    lam = model.policy.lam
    assert lam is not None
    lam.fill_(0.7)
    by_default = model.policy(batch)
    batch.lam = torch.full((10,), 0.7)
    assert torch.equal(model.policy(batch), by_default)
    batch.lam[3] = 0.2
    moved = model.policy(batch) != by_default
    assert torch.equal(moved, batch.batch == 3), "each graph has a setting of its own"


@pytest.mark.parametrize("name", ["cores-node", "cores-edge", "cores-both"])
def test_every_policy_may_have_a_dial(name: str) -> None:
    model = dialled_model(run_config(name))
    batch = GRAPHS.batch(torch.arange(10))
    assert "policy.lam" in model.state_dict()
    assert model(batch).shape == (10, 2)


def test_without_a_dial_nothing_is_added() -> None:
    model = dialled_model(run_config(reward={"dial": False}))
    assert model.policy.lam is None
    assert model.policy.encoder.input.in_features == GRAPHS.num_features
    assert "policy.lam" not in model.state_dict()


def test_rollouts_draw_a_setting_for_every_graph_and_reward_by_it() -> None:
    config = run_config()
    model = dialled_model(config)
    settings = PPOConfig(env_steps=10, samples=4, batch_size=32)
    (outcome,) = roll_out(
        model, [learner_of(model, config)], settings, RandomState(0, GRAPHS.device)
    )
    lam = outcome.rollout.elements.batch.lam
    assert len(lam.unique()) == 10
    assert ((lam >= 0) & (lam < 1)).all()
    q_hat = torch.tensor(0.6)
    found = rollout_reward(outcome, q_hat, config.reward)
    labels = outcome.labels
    for sample in range(4):
        probs = outcome.probs[sample]
        expected = conformal_reward(
            performance_reward(probs, labels),
            sparsity_reward(outcome.kept_ratio[sample], config.reward.desired_ratio),
            reward_sets(probs, q_hat),
            labels,
            lam,
        )
        penalty = config.reward.penalty_size * outcome.restored[sample]
        assert torch.allclose(found[sample], expected - penalty)


def test_an_epoch_is_measured_at_every_setting() -> None:
    config = run_config()
    model = dialled_model(config)
    more_at_0(model)
    batches = list(at_settings(GRAPHS.view(), SELECTION_SETTINGS, 7))
    lam = torch.cat([batch.lam for batch in batches])
    assert lam.unique().tolist() == list(SELECTION_SETTINGS)
    assert (torch.bincount((lam * 4).round().long()) == 10).all()
    assert torch.equal(torch.cat([batch.y for batch in batches]), GRAPHS.y.repeat(5))
    metrics = selection_metrics(model, chosen(model, batches), config.reward)
    ratios = []
    for value in SELECTION_SETTINGS:
        model.policy.lam.fill_(value)  # type: ignore[union-attr]
        (batch,) = GRAPHS.batches(10)
        choice = model.choose(batch)
        ratios.append(float(choice.elements.kept_ratio(choice.removed).mean()))
    assert metrics["selection_ratio"] == pytest.approx(sum(ratios) / 5, abs=1e-6)
    assert ratios == sorted(ratios)
    assert ratios[0] < ratios[-1]


def test_a_dial_with_one_piece_keeps_more_at_larger_settings() -> None:
    model = dialled_model(run_config(reward={"dial": True, "max_pieces": 1}))
    more_at_0(model)
    ratios, cut_back = [], False
    for batch in at_settings(GRAPHS.view(), SELECTION_SETTINGS, len(GRAPHS)):
        choice = model.choose(batch)
        assert (count_pieces(choice.elements, choice.removed) == 1).all()
        asked = choice.elements.mode(model.policy(batch))
        cut_back |= not torch.equal(asked, choice.removed)
        ratios.append(float(choice.elements.kept_ratio(choice.removed).mean()))
    assert cut_back
    assert ratios == sorted(ratios)
    assert ratios[0] < ratios[-1]


CURVE = {0.0: (0.6, 0.2), 0.25: (0.7, 0.3), 0.5: (0.79, 0.5), 0.75: (0.79, 0.45), 1.0: (0.8, 0.9)}
"""Accuracy and kept share by setting; full graphs: 0.8."""


@pytest.mark.parametrize(
    ("max_loss", "chosen"), [(0.0, 1.0), (0.02, 0.75), (0.11, 0.25), (0.5, 0.0)]
)
def test_the_sparsest_setting_that_loses_no_more_than_it_may(
    monkeypatch: pytest.MonkeyPatch, max_loss: float, chosen: float
) -> None:
    def right(share: float) -> Tensor:
        return torch.eye(2)[(torch.arange(100) >= round(100 * share)).long()]

    def predicted(model: object, parts: object) -> DialPredictions:
        probs = torch.stack([right(accuracy) for accuracy, _ in CURVE.values()])
        kept = torch.tensor([share for _, share in CURVE.values()])
        return DialPredictions(probs, kept[:, None].expand(-1, 100))

    monkeypatch.setattr(dial, "_at_every_setting", predicted)
    monkeypatch.setattr(dial, "_from_full_graphs", lambda parts: right(0.8))
    monkeypatch.setattr(dial, "SETTINGS", tuple(CURVE))
    config = run_config()
    model = dialled_model(config)
    of_one_class = replace(GRAPHS, y=torch.zeros(100, dtype=torch.long))
    referee = learner_of(model, config)
    referee.policy_graphs = of_one_class.view()
    assert sparsest_setting(model, [referee], of_one_class, max_loss, False) == chosen


def test_neither_referees_nor_the_selection_part_may_lose_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = run_config()
    model = dialled_model(config)

    def predicted(model: object, parts: list[tuple[object, GraphView]]) -> DialPredictions:
        labels = torch.cat([graphs.y for _, graphs in parts])
        lam = torch.tensor(dial.SETTINGS)
        wrong = lam < (0.5 if len(parts) == 1 else 0.25)  # the selection part is one
        probs = torch.eye(2)[(labels + wrong[:, None]) % 2]
        return DialPredictions(probs, (lam / 2)[:, None].expand(-1, len(labels)))

    def from_full_graphs(parts: list[tuple[object, GraphView]]) -> Tensor:
        return torch.eye(2)[torch.cat([graphs.y for _, graphs in parts])]

    monkeypatch.setattr(dial, "_at_every_setting", predicted)
    monkeypatch.setattr(dial, "_from_full_graphs", from_full_graphs)
    referees = [learner_of(model, config) for _ in range(2)]
    assert sparsest_setting(model, referees, GRAPHS, 0.02, False) == 0.5


def test_where_every_setting_loses_too_much_all_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = run_config()
    model = dialled_model(config)
    more_at_0(model)
    referees = [learner_of(model, config) for _ in range(2)]
    assert sparsest_setting(model, referees, GRAPHS, 1.0, True) == 0.0
    monkeypatch.setattr(metrics, "accuracy", lambda probs, labels: float(next(falling)))
    falling = iter([1.0, 1.0, *(0.5 for _ in 2 * dial.SETTINGS)])
    assert sparsest_setting(model, referees, GRAPHS, 0.1, False) == 1.0


def test_only_so_many_graphs_are_asked_of_all_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[int]] = []
    monkeypatch.setattr(dial, "MOST_GRAPHS", 8)

    def counted(probs: Tensor, labels: Tensor) -> float:
        seen.append(labels.tolist())
        return 1.0

    monkeypatch.setattr(metrics, "accuracy", counted)
    config = run_config()
    model = dialled_model(config)
    referees = [learner_of(model, config) for _ in range(2)]
    for referee in referees:  # as in a run: class by class
        referee.policy_graphs = GRAPHS.view(GRAPHS.y.argsort(stable=True))
    sparsest_setting(model, referees, GRAPHS, 0.1, False)
    assert seen[0] == [0, 0, 1, 1] * 2
    assert all(labels == seen[0] for labels in seen[::2])
    assert all(labels == GRAPHS.y.tolist() for labels in seen[1::2])  # of the selection part all


@pytest.mark.parametrize("name", ["cores-node", "cores-edge"])
@pytest.mark.usefixtures("short_judge", "few_motifs")
def test_a_run_keeps_its_setting(name: str, tmp_path: Path) -> None:
    config = run_config(
        name,
        training={"epochs": 6, "batch_size": 64},
        ppo={"env_steps": 16, "samples": 2, "ppo_epochs": 1},
        reward={"dial": True, "max_loss": 0.3},
    )
    metrics = train_run(config, tmp_path / "run", device="cpu")
    trained = TrainedModel.load(tmp_path / "run")
    assert trained.lam in dial.SETTINGS
    assert metrics["lam"] == trained.lam
    assert trained.dial is not None
    own = trained.dial.probs[dial.SETTINGS.index(trained.lam)]
    assert torch.equal(own, trained.calibration.probs)


def test_a_dial_needs_referees_and_a_loss_that_is_a_share() -> None:
    with pytest.raises(UserError, match="needs referees"):
        RewardConfig(dial=True, referees=0)
    with pytest.raises(UserError, match=r"`max_loss` must lie in \[0, 1\)"):
        RewardConfig(max_loss=1.0)
