"""The authors' schedule: whose turn it is, what a turn is trained on, and what ends it."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from cores.training.phases import Turns

from cores.config import RunConfig
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.errors import UserError
from cores.models.classifier import Classifier
from cores.models.policy import Critic, Policy
from cores.models.sparse import SparseClassifier
from cores.training import bilevel
from cores.training.bilevel import BilevelState
from cores.training.journal import Journal
from cores.training.learner import Learner
from cores.training.state import RandomState

DIMS = Dims(num_features=10, num_classes=2)


def config(epochs: int = 20, patience: int = 2, **phases: Any) -> RunConfig:
    settings = {
        "model": "cores-node",
        "network": {"hidden_dim": 8, "num_layers": 1},
        "training": {"epochs": epochs, "patience": patience, "batch_size": 8, "weights": "last"},
        "classifier_data": {"mix": 0.0, "warm_up": 0.0},
        "reward": {"referees": 0, "dial": False},
        "ppo": {
            "samples": 1,
            "baseline": "critic",
            "env_steps": 8,
            "ppo_epochs": 2,
            "effect_steps": 0,
        }
        | {"predict_from": "sample", "min_probability": 0.0},
        "phases": {"order": "in-turns", "policy_patience": 3, "last_policy_epochs": 4, **phases},
    }
    return RunConfig.from_settings(settings)


def schedule(turns: Turns, told: Sequence[dict[str, float]]) -> str:
    """Who is trained in each epoch: F the classifier on full graphs, C on samples, P the policy."""
    said = ""
    for epoch, metrics in enumerate(told, start=1):
        policys = turns.is_policys(epoch)
        said += "P" if policys else "F" if turns.on_full_graphs else "C"
        turns.step(epoch, metrics)
    return said


def test_classifier_and_policy_take_turns_and_the_last_epochs_are_the_policys() -> None:
    """Nothing improves after the first epoch of a turn: turns last one epoch and the patience."""
    still = {"selection_accuracy": 0.5, "reward": 0.1, "ppo_loss": 0.2}
    assert schedule(Turns(config()), [still] * 20) == "FFFPPPPCCCPPPPCCPPPP"


def test_a_turn_goes_on_as_long_as_what_it_is_judged_by_improves() -> None:
    accuracies = [0.1, 0.2, 0.2, 0.3, 0.3, 0.2]  # stalls for two epochs at the end alone
    told = [{"selection_accuracy": each} for each in accuracies]
    rewards, losses = [0.1, 0.2, 0.2, 0.2, 0.2, 0.2], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4]
    told += [
        {"reward": reward, "ppo_loss": loss} for reward, loss in zip(rewards, losses, strict=True)
    ]
    told += [{"selection_accuracy": 0.1, "reward": 0.0, "ppo_loss": 1.0}] * 4
    by_loss = schedule(Turns(config(epochs=20, stop_metric="loss")), told)
    assert by_loss == "FFFFFFPPPPPPPPPC"
    by_reward = schedule(Turns(config(epochs=20, stop_metric="reward")), told[:11])
    assert by_reward == "FFFFFFPPPPP"
    assert schedule(Turns(config(stop_metric="reward")), told[:11] + told[-1:])[-1] == "C"


def test_a_class_counts_as_much_as_another_where_that_is_measured() -> None:
    turns = Turns(config(patience=1))
    for balanced in (0.5, 0.5):
        turns.step(
            1, {"selection_accuracy": turns.waited + 0.1, "selection_balanced_accuracy": balanced}
        )
    assert turns.is_policys(2)


@pytest.mark.parametrize(("epochs", "policys"), [(1, "P"), (2, "FP"), (3, "FPP")])
def test_a_short_training_leaves_an_epoch_to_the_classifier(epochs: int, policys: str) -> None:
    turns = Turns(config(epochs=epochs, patience=500))
    told = [{"selection_accuracy": 0.5, "ppo_loss": 0.0}] * epochs
    assert schedule(turns, told) == policys


def test_a_schedule_goes_on_where_another_one_was() -> None:
    still = {"selection_accuracy": 0.5, "ppo_loss": 0.2}
    for stop in range(16):
        one, other = Turns(config()), Turns(config())
        schedule(one, [still] * stop)
        other.load_state_dict(one.state_dict())
        assert (other.ended, other.best, other.waited) == (one.ended, one.best, one.waited)


def in_turns(settings: RunConfig) -> tuple[SparseClassifier, BilevelState]:
    torch.manual_seed(0)
    policy = Policy(DIMS, settings.network, "gin", "node", 0.27, 0.0)
    model = SparseClassifier(policy, Classifier(DIMS, settings.network, "gin")).eval()
    graphs = ba_motifs(num_graphs=16, seed=0)
    student = Learner(model.classifier, graphs.view(), graphs.view(), settings)
    critic = Critic(DIMS, settings.network, "gin")
    random = RandomState(0, torch.device("cpu"))
    return model, BilevelState(model, critic, student, [student], graphs, settings, random)


def test_in_turns_only_one_of_the_two_changes_in_an_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(*_: object) -> dict[str, float]:
        return {"selection_accuracy": 0.5, "selection_reward": 0.5, "selection_ratio": 1.0}

    monkeypatch.setattr(bilevel, "selection_metrics", told)
    settings = config(epochs=12, patience=1, policy_patience=1, stop_metric="reward")
    model, state = in_turns(settings)
    changed: list[str] = []

    def weights() -> list[torch.Tensor]:
        sums = [
            sum(each.detach().double().abs().sum() for each in part.parameters())
            for part in (model.classifier, model.policy)
        ]
        return [torch.as_tensor(each) for each in sums]

    seen = [weights()]

    def note(epoch: int, metrics: dict[str, float]) -> None:
        now = weights()
        changed.append(
            "".join(name for name, new, old in zip("CP", now, seen[-1], strict=True) if new != old)
        )
        assert ("loss" in metrics, "ppo_loss" in metrics) == (
            "C" in changed[-1],
            "P" in changed[-1],
        )
        seen.append(now)

    bilevel.train(state, Journal(None, state.parts), note)
    assert len(changed) == 12, "patience ends turns, and not the training"
    assert changed[:2] == ["C", "C"]
    assert changed[-4:] == ["P"] * 4
    assert set(changed) == {"C", "P"}
    assert "turns" in state.parts


def test_the_classifier_sees_full_graphs_in_its_first_turn_and_samples_later() -> None:
    settings = config()
    _, state = in_turns(settings)
    sizes: list[int] = []
    fit = state.student.fit

    def note(batches: Any) -> float:
        shown = list(batches)
        sizes.append(sum(batch.num_nodes for batch in shown))
        return fit(shown)

    state.student.fit = note  # type: ignore[method-assign]
    total = sum(batch.num_nodes for batch in state.student.train_graphs.batches(8))
    bilevel.fit_classifiers(state, 1)
    assert state.turns is not None
    state.turns.ended = 2
    bilevel.fit_classifiers(state, 9)
    assert sizes[0] == total
    assert sizes[1] < 0.85 * total


def test_rates_fall_in_the_own_turns_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    _, state = in_turns(config())
    heard: list[str] = []
    monkeypatch.setattr(state.student.schedule, "step", lambda _: heard.append("C"))
    monkeypatch.setattr(state.schedule, "step", lambda _: heard.append("P"))
    state.finish_epoch(1)
    state.finish_epoch(17)
    assert heard == ["C", "P"]


@pytest.mark.parametrize(
    "changes",
    [
        {"reward": {"referees": 3}},
        {"classifier_data": {"mix": 0.5, "warm_up": 0.0}},
        {"classifier_data": {"mix": 0.0, "warm_up": 0.2}},
        {"ppo": {"baseline": "samples"}},
    ],
    ids=str,
)
def test_a_schedule_in_turns_refuses_what_it_has_no_place_for(changes: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"phases\.order in-turns needs a critic"):
        RunConfig.from_settings(config().settings | changes)


@pytest.mark.parametrize("name", ["policy_patience", "last_policy_epochs"])
def test_patience_and_last_epochs_are_positive(name: str) -> None:
    with pytest.raises(UserError, match=rf"phases\.{name} must be at least 1, got 0"):
        config(**{name: 0})
