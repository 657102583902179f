"""The authors' schedule: whose turn it is, what a turn is trained on, and what ends it."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from cores.config import RunConfig, TrainingConfig
from cores.data.dataset import Dataset
from cores.errors import UserError
from cores.runs.fit import PreparedData, fit_model
from cores_paper.presets import PaperConfig
from cores_paper.training import algorithm
from cores_paper.training.algorithm import State
from cores_paper.training.turns import Turns

Settings = Callable[..., RunConfig]


def turns_of(epochs: int = 20, patience: int = 2, **own: Any) -> Turns:
    published = {"order": "in-turns", "policy_patience": 3, "last_policy_epochs": 4}
    training = TrainingConfig(epochs=epochs, patience=patience)
    return Turns(training, PaperConfig(**published | own))


def schedule(turns: Turns, told: Sequence[dict[str, float]]) -> str:
    """Who is trained in each epoch: F the classifier on full graphs, C on samples, P the policy."""
    said = ""
    for epoch, metrics in enumerate(told, start=1):
        said += "P" if turns.is_policy_turn(epoch) else "F" if turns.on_full_graphs else "C"
        turns.step(epoch, metrics)
    return said


def test_classifier_and_policy_take_turns_and_the_last_epochs_are_the_policys() -> None:
    """Nothing improves after the first epoch of a turn: turns last one epoch and the patience."""
    still = {"selection_accuracy": 0.5, "reward": 0.1, "ppo_loss": 0.2}
    assert schedule(turns_of(), [still] * 20) == "FFFPPPPCCCPPPPCCPPPP"


def test_a_turn_goes_on_as_long_as_what_it_is_judged_by_improves() -> None:
    accuracies = [0.1, 0.2, 0.2, 0.3, 0.3, 0.2]  # stalls for two epochs at the end alone
    told = [{"selection_accuracy": each} for each in accuracies]
    rewards, losses = [0.1, 0.2, 0.2, 0.2, 0.2, 0.2], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4]
    told += [
        {"reward": reward, "ppo_loss": loss} for reward, loss in zip(rewards, losses, strict=True)
    ]
    told += [{"selection_accuracy": 0.1, "reward": 0.0, "ppo_loss": 1.0}] * 4
    by_loss = schedule(turns_of(stop_metric="loss"), told)
    assert by_loss == "FFFFFFPPPPPPPPPC"
    by_reward = schedule(turns_of(stop_metric="reward"), told[:11])
    assert by_reward == "FFFFFFPPPPP"
    assert schedule(turns_of(stop_metric="reward"), told[:11] + told[-1:])[-1] == "C"


@pytest.mark.parametrize(("epochs", "policys"), [(1, "P"), (2, "FP"), (3, "FPP")])
def test_a_short_training_leaves_an_epoch_to_the_classifier(epochs: int, policys: str) -> None:
    turns = turns_of(epochs=epochs, patience=500)
    told = [{"selection_accuracy": 0.5, "ppo_loss": 0.0}] * epochs
    assert schedule(turns, told) == policys


def test_a_schedule_goes_on_where_another_one_was() -> None:
    still = {"selection_accuracy": 0.5, "ppo_loss": 0.2}
    for stop in range(16):
        one, other = turns_of(), turns_of()
        schedule(one, [still] * stop)
        other.load_state_dict(one.state_dict())
        assert (other.ended, other.best, other.waited) == (one.ended, one.best, one.waited)


def test_only_one_of_the_two_changes_in_an_epoch(
    in_turns: Settings, toy: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[set[str], list[float]]] = []
    states: list[State] = []
    finish = State.finish_epoch

    def weights(state: State) -> list[float]:
        parts = state.model.classifier, state.model.policy
        return [
            float(sum(each.detach().double().abs().sum() for each in part.parameters()))
            for part in parts
        ]

    def noted(state: State, epoch: int) -> dict[str, float]:
        states.append(state)
        return finish(state, epoch)

    monkeypatch.setattr(State, "finish_epoch", noted)
    own = {"policy_patience": 1, "stop_metric": "reward"}
    config = in_turns(training={"epochs": 12, "patience": 1}, paper=own)
    data = PreparedData.of(toy, config, torch.device("cpu"))

    def report(epoch: int, metrics: dict[str, float]) -> None:
        seen.append((set(metrics), weights(states[-1])))

    fitted = fit_model(config, data, report=report)
    assert fitted.facts["epochs"] == len(seen) == 12, "patience ends turns, and not the training"
    turns = ""
    for (names, now), (_, before) in zip(seen[1:], seen, strict=False):
        changed = [new != old for new, old in zip(now, before, strict=True)]
        assert changed == ["loss" in names, "ppo_loss" in names]
        assert ("selection_reward" in names) == ("ppo_loss" in names)
        turns += "P" if changed[1] else "C"
    assert turns[0] == "C"
    assert turns[-4:] == "PPPP"
    assert "turns" in states[0].parts


def test_the_classifier_sees_full_graphs_in_its_first_turn_and_samples_later(
    in_turns: Settings, state_of: Callable[[RunConfig], State], monkeypatch: pytest.MonkeyPatch
) -> None:
    state = state_of(in_turns())
    sizes: list[int] = []

    def note(_: object, batches: Any) -> float:
        sizes.append(sum(batch.num_nodes for batch in batches))
        return 0.0

    monkeypatch.setattr(algorithm, "fit_epoch", note)
    total = sum(batch.num_nodes for batch in state.train_graphs.batches(8))
    state.fit_classifier(1)
    assert state.turns is not None
    state.turns.ended = 2
    state.fit_classifier(9)
    assert sizes[0] == total
    assert sizes[1] < 0.85 * total


def test_rates_fall_in_the_own_turns_alone(
    in_turns: Settings, state_of: Callable[[RunConfig], State], monkeypatch: pytest.MonkeyPatch
) -> None:
    state = state_of(in_turns())
    heard: list[str] = []
    monkeypatch.setattr(state.classifier_schedule, "step", lambda _: heard.append("C"))
    monkeypatch.setattr(state.schedule, "step", lambda _: heard.append("P"))
    state.finish_epoch(1)
    state.finish_epoch(17)
    assert heard == ["C", "P"]


@pytest.mark.parametrize("name", ["policy_patience", "last_policy_epochs"])
def test_patience_and_last_epochs_are_positive(name: str) -> None:
    with pytest.raises(UserError, match=rf"paper\.{name} must be at least 1, got 0"):
        PaperConfig(**{name: 0})
