"""Algorithm 1 as published: the classifier is its own referee, and a critic is the baseline."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from cores.config import RunConfig
from cores.conformal import aps_scores, conformal_quantile
from cores.data.dataset import Dataset
from cores.errors import UserError
from cores.runs.fit import PreparedData, fit_model
from cores.runs.run import train_run
from cores_paper.training import algorithm
from cores_paper.training.algorithm import State

Settings = Callable[..., RunConfig]
Begin = Callable[[RunConfig], State]
CPU = torch.device("cpu")


def sampling(state: State, bias: float) -> None:
    """Let the policy remove every node with the same probability."""
    torch.nn.init.zeros_(state.model.policy.node_head.weight)
    torch.nn.init.constant_(state.model.policy.node_head.bias, bias)


def fitted(
    config: RunConfig, toy: Dataset, report: Callable[[int, dict[str, float]], None] | None = None
) -> Any:
    """A run without a folder."""
    data = PreparedData.of(toy, config, CPU)
    return fit_model(config, data, report=report or (lambda epoch, metrics: None))


def told(monkeypatch: pytest.MonkeyPatch, *epochs: tuple[float, float]) -> None:
    """Say what rewards and accuracies the selection split has, epoch by epoch."""
    waiting = iter(epochs)

    def say(*_: object) -> dict[str, float]:
        reward, accuracy = next(waiting)
        found = {"selection_accuracy": accuracy, "selection_ratio": 1.0}
        return found | {"selection_reward": reward}

    monkeypatch.setattr(State, "_selection_metrics", say)


def test_the_critic_begins_with_the_mean_of_the_first_rewards_whatever_the_graph(
    together: Settings, state_of: Begin
) -> None:
    state = state_of(together())
    rollouts = state.rewarded(state.roll_out(), torch.tensor(0.9))
    rewards = torch.cat([each.rewards.flatten() for each in rollouts])
    assert len(rewards) == 12
    for each in rollouts:
        assert torch.allclose(state.critic(each.elements.batch), rewards.mean(), atol=1e-6)
        assert torch.allclose(each.advantage, each.rewards - rewards.mean(), atol=1e-6)
    state.critic.begin_at(torch.tensor(7.0))
    assert state.critic.head.bias.item() == pytest.approx(float(rewards.mean()), abs=1e-6), "once"


def test_the_quantile_is_of_the_training_split_as_the_policy_samples_it(
    together: Settings, state_of: Begin
) -> None:
    state = state_of(together(reward={"alpha": 0.7}))
    graphs = state.train_graphs
    (batch,) = graphs.batches(len(graphs))
    with torch.no_grad():
        scores = aps_scores(state.model.classifier(batch).softmax(-1))
    full = conformal_quantile(scores.gather(-1, batch.y[:, None])[:, 0], state.config.reward.alpha)
    sampling(state, -50.0)  # removes nothing
    assert torch.allclose(state.quantile(), full)
    sampling(state, -0.01)  # its mode keeps everything
    assert not torch.allclose(state.quantile(), full)


def test_the_classifier_sees_every_graph_once_as_the_policy_samples_it(
    together: Settings, state_of: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = state_of(together())
    seen: list[Any] = []
    monkeypatch.setattr(
        algorithm, "fit_epoch", lambda step, batches: float(bool(seen.extend(batches)))
    )
    total = sum(batch.num_nodes for batch in state.train_graphs.batches(16))
    for bias, least, most in ((-50.0, 1.0, 1.0), (0.0, 0.4, 0.6)):
        sampling(state, bias)
        seen.clear()
        state.fit_classifier(1)
        labels = torch.cat([batch.y for batch in seen])
        assert torch.equal(torch.bincount(labels), torch.bincount(state.train_graphs.y))
        assert least <= sum(batch.num_nodes for batch in seen) / total <= most


@pytest.mark.parametrize("removal", ["node", "edge", "both"])
def test_every_kind_of_removal_trains(removal: str, together: Settings, state_of: Begin) -> None:
    state = state_of(together(model=f"cores-{removal}"))
    parts = (state.model.policy, state.model.classifier, state.critic)
    before = [deepcopy(part.state_dict()) for part in parts]
    state.fit_classifier(1)
    state.update_policy(state.rewarded(state.roll_out(), state.quantile()), 1)
    for part, then in zip(parts, before, strict=True):
        assert any(not torch.equal(now, then[name]) for name, now in part.state_dict().items())


def test_the_history_tells_what_was_trained(together: Settings, toy: Dataset) -> None:
    history: list[dict[str, float]] = []
    config = together(training={"epochs": 2})
    fitted(config, toy, report=lambda epoch, metrics: history.append(metrics))
    selection = {"selection_accuracy", "selection_ratio", "selection_reward"}
    for metrics in history:
        assert metrics.keys() - {"q_hat"} == selection | {
            *("loss", "reward", "sampled_ratio", "ppo_loss")
        }


def test_where_rewards_tie_the_more_accurate_epoch_is_selected(
    together: Settings, toy: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the second half of the epochs."""
    told(monkeypatch, *((0.0, each) for each in (0.9, 0.9, 0.9, 0.9, 0.5, 0.6, 0.7, 0.7)))
    assert fitted(together(), toy).facts["best_epoch"] == 7


@pytest.mark.parametrize(("weights", "returned"), [("best", 6), ("last", 8)])
def test_the_weights_of_the_selected_epoch_are_returned_or_the_last_ones(
    weights: str,
    returned: int,
    together: Settings,
    state_of: Begin,
    toy: Dataset,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told(monkeypatch, *((each, 1.0) for each in (0.9, 0.0, 0.0, 0.0, 0.1, 0.3, 0.2, 0.1)))
    seen: list[torch.Tensor] = []
    update = State.update_policy

    def noted(state: State, *arguments: Any) -> dict[str, float]:
        found = update(state, *arguments)
        seen.append(state.model.policy.node_head.weight.detach().clone())
        return found

    monkeypatch.setattr(State, "update_policy", noted)
    kept = fitted(together(paper={"weights": weights}), toy).trained.model.policy.node_head.weight
    same = [epoch for epoch, then in enumerate(seen, start=1) if torch.equal(kept, then)]
    assert same == [returned]


def test_training_ends_when_patience_runs_out(
    together: Settings, toy: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Line 20; patience counts from the first epoch whose weights may be returned."""
    told(monkeypatch, *([(0.5, 0.5)] * 16))
    found = fitted(together(training={"epochs": 16, "patience": 2}), toy)
    assert (found.facts["best_epoch"], found.facts["epochs"]) == (9, 11)


def test_rates_fall_where_accuracy_and_reward_stall(
    together: Settings, state_of: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The classifier's by its own factor; policy and critic by theirs."""
    told(monkeypatch, *([(0.5, 0.5)] * 4))
    training = {"schedule_patience": 1, "min_learning_rate": 0.0, "schedule_factor": 0.5}
    own = {"schedule_factor": 0.1, "critic_learning_rate": 0.04}
    state = state_of(together(training=training, ppo={"learning_rate": 0.02}, paper=own))
    for epoch in range(1, 4):
        state.finish_epoch(epoch)
    assert [each["lr"] for each in state.classifier_optimizer.param_groups] == [0.005]
    rates = [each["lr"] for each in state.optimizer.param_groups]
    assert rates == pytest.approx([0.002, 0.004])


def test_what_is_no_number_is_blamed_on_who_made_it(together: Settings, state_of: Begin) -> None:
    state = state_of(together())
    outcomes = state.roll_out()
    rollouts = [
        replace(each, rewards=each.rewards * float("nan"))
        for each in state.rewarded(outcomes, torch.tensor(0.5))
    ]
    with pytest.raises(UserError, match=r"^the reward is nan in epoch 2; lower training\.learning"):
        state.rollout_metrics(rollouts, outcomes, torch.tensor(0.5), 2)
    torch.nn.init.constant_(state.model.classifier.head.bias, float("nan"))
    with pytest.raises(UserError, match=r"^the loss is nan in epoch 1; lower training\.learning"):
        state.fit_classifier(1)
    state = state_of(together())
    rollouts = state.rewarded(state.roll_out(), torch.tensor(0.5))
    torch.nn.init.constant_(state.model.policy.encoder.input.bias, float("nan"))
    with pytest.raises(UserError, match=r"weights is nan in epoch 1; lower ppo\.learning_rate"):
        state.update_policy(rollouts, 1)


def test_numbers_are_not_for_the_published_presets(together: Settings, toy: Dataset) -> None:
    graphs = replace(toy.graphs, y=torch.rand(len(toy)))
    numbers = replace(toy, graphs=graphs, class_names=(), task="regression")
    with pytest.raises(UserError, match="the preset paper is for classes, and toy has numbers"):
        fitted(together(), numbers)


def files(run: Path) -> dict[str, bytes]:
    """All that a run leaves behind but times and the checkpoint."""
    names = ("model.safetensors", "history.jsonl")
    return {name: (run / name).read_bytes() for name in names}


@pytest.mark.usefixtures("few_motifs", "short_judge")
@pytest.mark.parametrize("preset", ["paper", "authors"])
def test_an_interrupted_run_goes_on_to_the_same_bytes(
    preset: str, together: Settings, in_turns: Settings, tmp_path: Path
) -> None:
    turns = {"policy_patience": 1, "last_policy_epochs": 2}
    training = {"epochs": 6, "batch_size": 64, "patience": 1}
    config = together(training=training)
    if preset == "authors":
        config = in_turns(training=training, paper=turns)
    train_run(config, tmp_path / "whole", device="cpu")

    def go_on(stop: int) -> None:
        def interrupt(epoch: int, metrics: dict[str, float]) -> None:
            if epoch == stop:
                raise KeyboardInterrupt

        train_run(config, tmp_path / "cut", device="cpu", resume=True, report=interrupt)

    for stop in (2, 3, 5):
        with pytest.raises(KeyboardInterrupt):
            go_on(stop)
    go_on(-1)
    assert files(tmp_path / "cut") == files(tmp_path / "whole")
