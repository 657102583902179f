"""Algorithm 1 on a world with a known answer, and the pieces it is made of."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
import torch

from cores.config import PPOConfig, RunConfig, merged
from cores.conformal import conformal_quantile, lac_scores
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.errors import UserError
from cores.graphs.store import GraphStore
from cores.models.classifier import Classifier
from cores.models.committee import Committee
from cores.models.policy import Policy
from cores.models.sparse import Choice, SparseClassifier
from cores.ppo import Updates, collect
from cores.training import bilevel
from cores.training.bilevel import BilevelState
from cores.training.journal import Journal
from cores.training.learner import Learner, masked_batches
from cores.training.rollouts import reward_quantile, roll_out, selection_reward
from cores.training.state import RandomState
from cores.training.supervised import Report, no_report

CPU = torch.device("cpu")
DIMS = Dims(num_features=10, num_classes=2)


SHORT = {
    "committee": {"members": 2, "warm_up": 0.5},
    "reward": {"desired_ratio": 0.3},
    "ppo": {"effect_steps": 0},
}


def config(**changes: Any) -> RunConfig:
    settings = {
        "model": "cores-node",
        "network": {"hidden_dim": 16, "num_layers": 2},
        "training": {"epochs": 8, "batch_size": 16, "learning_rate": 0.01},
        "ppo": {"batch_size": 16, "samples": 4},
    } | changes
    return RunConfig.from_settings(merged(SHORT, settings))


def model_of(settings: RunConfig) -> SparseClassifier:
    least = settings.ppo.min_probability
    policy = Policy(DIMS, settings.network, "gin", settings.removal, 0.27, least)
    members = [Classifier(DIMS, settings.network, "gin") for _ in range(settings.committee.members)]
    return SparseClassifier(policy, Committee(members)).eval()


def members_of(model: SparseClassifier, settings: RunConfig, count: int = 24) -> list[Learner]:
    graphs = ba_motifs(num_graphs=count, seed=0)
    others = ba_motifs(num_graphs=count, seed=1)
    return [
        Learner(member, graphs.view(), others.view(), settings)
        for member in model.classifier.members
    ]


def train(
    model: SparseClassifier,
    settings: RunConfig,
    *,
    members: list[Learner] | None = None,
    selection: GraphStore | None = None,
    report: Report = no_report,
) -> BilevelState:
    """Algorithm 1 without a folder; twelve graphs select, unless others are given."""
    members = members or members_of(model, settings)
    graphs = ba_motifs(num_graphs=12, seed=2) if selection is None else selection
    state = BilevelState(model, members, graphs, settings, RandomState(0, CPU))
    bilevel.train(state, Journal(None, state.parts), report)
    return state


def test_the_selection_part_may_be_measured_by_a_sample() -> None:
    settings = config()
    torch.manual_seed(0)
    model = model_of(settings)
    batches = list(ba_motifs(num_graphs=40, seed=2).batches(16))
    by_mode, by_sample = (
        bilevel.selection_metrics(model, bilevel.chosen(model, batches, sample), settings.reward)
        for sample in (False, True)
    )
    assert by_mode["selection_ratio"] == 1, "a policy that has not learnt anything"
    assert by_sample["selection_ratio"] == pytest.approx(0.73, abs=0.05)


def test_the_quantile_comes_from_the_graphs_that_members_reward() -> None:
    settings = config()
    torch.manual_seed(0)
    model = model_of(settings)
    outcomes = roll_out(model, members_of(model, settings), settings.ppo, RandomState(0, CPU))
    q_hat = reward_quantile(outcomes, settings.reward.alpha)
    scores = torch.cat(
        [
            lac_scores(probs).gather(-1, each.labels[:, None])[:, 0]
            for each in outcomes
            for probs in each.probs
        ]
    )
    assert len(scores) == 2 * 24 * settings.ppo.samples
    assert torch.equal(q_hat, conformal_quantile(scores, settings.reward.alpha))


def test_an_epoch_of_a_classifier_has_every_graph_once() -> None:
    settings = config()
    learner, _ = members_of(model_of(settings), settings)
    batches = list(masked_batches(learner, 16, "node", RandomState(0, CPU)))
    assert [batch.num_graphs for batch in batches] == [16, 8]
    labels = torch.cat([batch.y for batch in batches])
    assert torch.equal(torch.bincount(labels), torch.bincount(learner.train_graphs.y))


def test_all_members_learn_in_the_warm_up_and_rest_after_it() -> None:
    settings = config()
    torch.manual_seed(0)
    model = model_of(settings)
    weights: list[torch.Tensor] = []

    def remember(epoch: int, metrics: dict[str, float]) -> None:
        heads = [member.head.weight.detach().clone() for member in model.classifier.members]
        weights.append(torch.stack(heads))

    train(model, settings, report=remember)
    assert bool((weights[2] != weights[3]).flatten(1).any(dim=1).all())
    assert all(torch.equal(weights[3], later) for later in weights[4:])


@pytest.mark.parametrize("removal", ["node", "edge", "both"])
def test_every_kind_of_removal_trains(removal: str) -> None:
    ppo = {"batch_size": 16, "samples": 4}
    settings = config(model=f"cores-{removal}", ppo=ppo, training={"epochs": 2})
    torch.manual_seed(0)
    model = model_of(settings)
    before = [each.clone() for each in model.policy.parameters()]
    train(model, settings)
    after = list(model.policy.parameters())
    assert any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("ema_decay", [0.0, 0.8])
def test_the_returned_policy_is_a_running_mean_of_the_one_that_acts(ema_decay: float) -> None:
    """In the epoch that was selected; afterwards it is the model's."""
    settings = config(ppo={"batch_size": 16, "samples": 4, "ema_decay": ema_decay})
    torch.manual_seed(0)
    model = model_of(settings)
    acting: list[torch.Tensor] = []

    def remember(epoch: int, metrics: dict[str, float]) -> None:
        acting.append(model.policy.node_head.weight.detach().clone())

    state = train(model, settings, report=remember)
    mean, *later = acting[settings.warm_up_epochs : state.stopping.best_epoch]
    for each in later:
        mean = ema_decay * mean + (1 - ema_decay) * each
    assert not torch.equal(acting[-2], acting[-1])
    assert torch.allclose(model.policy.node_head.weight, mean, atol=1e-7)


def test_a_policy_that_is_no_longer_a_number_is_told() -> None:
    settings = config()
    model = model_of(settings)
    torch.nn.init.constant_(model.policy.encoder.input.bias, float("nan"))
    message = r"the size of the policy's weights is nan in epoch \d; lower ppo\.learning_rate"
    with pytest.raises(UserError, match=message):
        train(model, settings)


def test_a_reward_that_is_no_number_is_blamed_on_the_classifiers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before the policy is updated by it."""
    settings = config(training={"epochs": 2, "batch_size": 16})
    model = model_of(settings)
    before = model.policy.node_head.weight.detach().clone()
    monkeypatch.setattr(bilevel, "rollout_metrics", lambda *_: {"reward": float("nan")})
    message = r"^the reward is nan in epoch 2; lower training\.learning_rate$"
    with pytest.raises(UserError, match=message):
        train(model, settings)
    assert torch.equal(model.policy.node_head.weight, before)


def test_a_classifier_that_goes_astray_is_not_blamed_on_the_policy() -> None:
    """After the warm-up's one step, the loss is that of before it."""
    settings = config(training={"epochs": 2, "batch_size": 64, "learning_rate": 2e9})
    model = model_of(settings)
    with pytest.raises(UserError, match=r"lower training\.learning_rate"):
        train(model, settings)


@pytest.mark.parametrize(
    ("where", "said"),
    [("train", "the loss is"), ("policy", "the reward is"), ("selection", "")],
)
def test_features_that_are_too_large_are_not_blamed_on_a_rate(where: str, said: str) -> None:
    settings = config()
    model = model_of(settings)
    large = ba_motifs(num_graphs=24, seed=1)
    large = replace(large, x=large.x.clone())
    large.x[: large.node_ptr[4]] = 3e38
    members = members_of(model, settings)
    if where == "train":
        members[0].train_graphs = large.view()
    elif where == "policy":
        members[1].policy_graphs = large.view()
    selection = large if where == "selection" else None
    with pytest.raises(UserError, match="features") as told:
        train(model, settings, members=members, selection=selection)
    assert "learning_rate" not in str(told.value)
    assert str(told.value).startswith(said)


def test_a_classifier_that_is_no_longer_a_number_is_told() -> None:
    settings = config()
    model = model_of(settings)
    torch.nn.init.constant_(model.classifier.members[1].head.bias, float("nan"))
    with pytest.raises(UserError, match=r"the loss is nan in epoch 1; lower training.learning_r"):
        train(model, settings)


def test_all_rates_fall_along_their_cosines() -> None:
    """The classifier's over the warm-up, the policy's over what follows."""
    settings = config(
        training={"epochs": 2, "batch_size": 16, "learning_rate": 0.01},
        ppo={"learning_rate": 0.02, "batch_size": 16, "samples": 2},
    )
    model = model_of(settings)
    members = members_of(model, settings)
    for member in members:
        assert [group["lr"] for group in member.optimizer.param_groups] == [0.01]
        assert member.optimizer.param_groups[0]["weight_decay"] == settings.training.weight_decay
    state = train(model, settings, members=members)
    for member in members:
        assert [group["lr"] for group in member.optimizer.param_groups] == pytest.approx([0.0005])
    assert [group["lr"] for group in state.optimizer.param_groups] == pytest.approx([0.002])


def test_all_members_are_stacked_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = config()
    model = model_of(settings)
    members = members_of(model, settings)
    monkeypatch.setattr(bilevel, "stacked_fit", list)
    assert state_of(settings, members).stacked == [member.step for member in members]


def test_the_entropy_bonus_of_an_update_follows_the_policys_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = config(
        committee={"warm_up": 0.2},
        training={"epochs": 5, "batch_size": 32},
        ppo={"entropy_coef": 0.16, "final_entropy_coef": 0.01, "batch_size": 32, "samples": 2},
    )
    used: list[float] = []

    def note(updates: Updates, rollouts: Any, ppo: PPOConfig) -> None:
        used.append(ppo.entropy_coef)

    monkeypatch.setattr(Updates, "run", note)
    model = model_of(settings)
    train(model, settings)
    assert used == pytest.approx([0.08, 0.04, 0.02, 0.01])  # halved in each of four epochs


def test_the_history_tells_of_a_policy_once_there_is_one() -> None:
    settings = config(training={"epochs": 2, "batch_size": 16})
    model = model_of(settings)
    told: list[set[str]] = []
    train(model, settings, report=lambda _, metrics: told.append(set(metrics)))
    selection = {"selection_accuracy", "selection_ratio"}
    of_policy = {"reward", "sampled_ratio", "selection_reward"}
    assert told[0] == {"loss"} | selection
    assert told[1] - {"q_hat"} == of_policy | selection


def test_the_selection_part_is_measured_by_the_mode_without_dropout() -> None:
    rough = config(network={"hidden_dim": 16, "num_layers": 2, "dropout": 0.5})
    torch.manual_seed(0)
    model = model_of(rough).train()
    torch.nn.init.normal_(model.policy.node_head.weight)
    batches = list(ba_motifs(num_graphs=12, seed=2).batches(5))
    with torch.no_grad():  # a policy that removes about half of the nodes
        model.policy.node_head.bias -= model.policy(batches[0]).median()
    metrics = bilevel.selection_metrics(model, bilevel.chosen(model, batches), rough.reward)
    model.eval()
    choices = [model.choose(batch) for batch in batches]
    logits = torch.cat([model.classifier(each.subgraph.batch) for each in choices])
    probs = model.outputs(logits)
    kept = torch.cat([each.elements.kept_ratio(each.removed) for each in choices])
    labels = torch.cat([batch.y for batch in batches])
    rewards = selection_reward(probs, labels, kept, rough.reward)
    assert kept.mean() < 1
    assert metrics == {
        "selection_accuracy": pytest.approx((probs.argmax(-1) == labels).double().mean().item()),
        "selection_ratio": pytest.approx(kept.mean().item()),
        "selection_reward": pytest.approx(rewards.mean().item()),
    }


@pytest.mark.parametrize(
    ("first", "last", "middle"), [(0.01, 1e-4, 1e-3), (0.01, 0.0, 0.005), (0.0, 0.01, 0.005)]
)
def test_the_entropy_bonus_fades_to_its_last_value(
    first: float, last: float, middle: float
) -> None:
    settings = PPOConfig(entropy_coef=first, final_entropy_coef=last)
    faded = [bilevel.annealed_entropy(settings, each) for each in (0.0, 0.5, 1.0)]
    assert faded == pytest.approx([first, middle, last])


def test_rollouts_use_as_many_graphs_as_asked() -> None:
    settings = config(ppo={"env_steps": 10, "batch_size": 4})
    model = model_of(settings)
    outcomes = roll_out(model, members_of(model, settings), settings.ppo, RandomState(0, CPU))
    assert [each.kept_ratio.size(1) for each in outcomes] == [4, 4, 2] * 2
    first = collect(model.policy, outcomes[0].rollout.elements.batch, 3)
    assert first.removed.shape == (3, len(first.elements.owner))


@pytest.mark.parametrize("balanced", [False, True])
def test_the_runs_own_random_numbers_choose_the_graphs_of_a_rollout(balanced: bool) -> None:
    """So many of them, or all; whatever else was drawn."""
    for steps, expected in ((10, 10), (100, 24)):
        settings = config(ppo={"env_steps": steps, "batch_size": 100})
        model = model_of(settings)
        member, _ = members_of(model, settings)
        features = member.policy_graphs.store.x
        features[:] = torch.arange(len(features))[:, None]
        seen = []
        for seed in (0, 1):
            random = RandomState(5, CPU)
            torch.manual_seed(seed)
            (outcome,) = roll_out(model, [member], settings.ppo, random, balanced)
            seen.append(outcome.rollout.elements.batch)
        assert seen[0].num_graphs == expected
        assert torch.equal(seen[0].x, seen[1].x)


def test_classes_are_weighed_where_that_is_asked_for() -> None:
    plain, weighing = config(), config(training={"class_weights": True})
    model = model_of(plain)
    assert all(member.step.class_weights is None for member in members_of(model, plain))
    graphs = ba_motifs(num_graphs=8, seed=0).subset(torch.tensor([0, 2, 4, 1]))
    first = model.classifier.members[0]
    weights = Learner(first, graphs.view(), graphs.view(), weighing).step.class_weights
    assert weights.tolist() == pytest.approx([4 / 6, 2.0])


@pytest.mark.parametrize("removal", ["node", "edge", "both"])
def test_an_outcome_holds_what_the_member_makes_of_every_sample(removal: str) -> None:
    settings = config(model=f"cores-{removal}", ppo={"env_steps": 6, "batch_size": 6})
    model = model_of(settings)
    member, _ = members_of(model, settings)
    (outcome,) = roll_out(model, [member], settings.ppo, RandomState(0, CPU))
    elements = outcome.rollout.elements
    removed, _ = elements.restored(outcome.rollout.removed)
    for probs, each in zip(outcome.probs, removed, strict=True):
        alone = member.classifier(elements.subgraph(each).batch).softmax(dim=-1)
        assert torch.allclose(probs, alone, atol=1e-6)


def test_weights_from_the_first_half_of_the_policys_epochs_are_not_returned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = config(training={"epochs": 12, "batch_size": 16}, committee={"warm_up": 0.34})
    rewards = iter([0.0] * 4 + [0.9, 0.9, 0.9, 0.9, 0.1, 0.2, 0.1, 0.1])

    def told(*_: object) -> dict[str, float]:
        return {"selection_accuracy": 1.0, "selection_reward": next(rewards)}

    monkeypatch.setattr(bilevel, "selection_metrics", told)
    model = model_of(settings)
    state = train(model, settings)
    assert state.stopping.best_epoch == 10  # epochs 5 to 8 are the first half of the policy's eight


def test_the_weights_of_the_selected_epoch_are_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = config(
        training={"epochs": 8, "batch_size": 32},
        ppo={"batch_size": 32, "samples": 2, "ema_decay": 0.0},
        committee={"warm_up": 0.25},
    )
    rewards = iter([0.0, 0.0, 0.0, 0.0, 0.1, 0.3, 0.2, 0.1])

    def told(*_: object) -> dict[str, float]:
        return {"selection_accuracy": 1.0, "selection_reward": next(rewards)}

    monkeypatch.setattr(bilevel, "selection_metrics", told)
    torch.manual_seed(0)
    model = model_of(settings)
    seen: list[dict[str, torch.Tensor]] = []

    def remember(epoch: int, metrics: dict[str, float]) -> None:
        seen.append(deepcopy(model.state_dict()))

    train(model, settings, report=remember)
    same = [
        epoch
        for epoch, then in enumerate(seen, start=1)
        if all(torch.allclose(value, then[name]) for name, value in model.state_dict().items())
    ]
    assert same == [6]


def state_of(settings: RunConfig, members: list[Learner] | None = None) -> BilevelState:
    model = model_of(settings)
    selection, random = ba_motifs(num_graphs=4, seed=2), RandomState(0, CPU)
    return BilevelState(model, members or members_of(model, settings), selection, settings, random)


def test_a_checkpoint_holds_all_that_training_changes() -> None:
    state = state_of(config())
    others = {"averaged", "optimizer", "schedule", "stopping", "random"}
    assert state.parts.keys() == {"policy", "member_0", "member_1"} | others


def test_a_learner_goes_on_where_another_one_was() -> None:
    settings = config()
    first, second = members_of(model_of(settings), settings)
    (batch,) = first.train_graphs.batches(24)
    first.fit([batch])
    first.schedule.step(0.5)
    second.load_state_dict(deepcopy(first.state_dict()))
    for learner in (first, second):
        torch.manual_seed(0)
        learner.fit([batch])
        learner.schedule.step(0.5)
    ours, theirs = (each.classifier.state_dict() for each in (first, second))
    assert all(torch.equal(value, theirs[name]) for name, value in ours.items())
    assert first.optimizer.param_groups[0]["lr"] == second.optimizer.param_groups[0]["lr"]


def test_a_member_predicts_without_dropout_before_and_after_it_is_trained() -> None:
    settings = config()
    model = model_of(settings).train()
    learner, _ = members_of(model, settings)
    assert not learner.classifier.training
    learner.fit(learner.train_graphs.batches(24))
    assert not learner.classifier.training


def test_the_loss_of_an_epoch_is_the_mean_over_the_members(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = config()
    first, second = members_of(model_of(settings), settings)
    losses = {first: 1.0, second: 2.0}
    monkeypatch.setattr(Learner, "fit", lambda learner, batches: losses[learner])
    assert bilevel.fit_classifiers(state_of(settings, [first, second]), 1) == {"loss": 1.5}


def test_training_ends_when_patience_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Line 20; patience counts from the first epoch whose weights may be returned."""

    def told(*_: object) -> dict[str, float]:
        return {"selection_accuracy": 0.5, "selection_reward": 0.5}

    monkeypatch.setattr(bilevel, "selection_metrics", told)
    settings = config(training={"epochs": 16, "batch_size": 32, "patience": 2})
    model = model_of(settings)
    epochs: list[int] = []
    state = train(model, settings, report=lambda epoch, _: epochs.append(epoch))
    assert state.stopping.exhausted
    assert epochs[-1] == state.stopping.best_epoch + 2 < 16


def test_classifiers_slow_down_by_the_balanced_accuracy_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = {"selection_accuracy": 0.9, "selection_reward": 0.2}
    monkeypatch.setattr(bilevel, "selection_metrics", lambda *_: dict(told))
    settings = config()
    state = state_of(settings)
    heard: list[float] = []
    for member in state.members:
        monkeypatch.setattr(member.schedule, "step", heard.append)
    state.finish_epoch(1)
    told["selection_balanced_accuracy"] = 0.6
    state.finish_epoch(2)
    assert heard == [0.9, 0.9, 0.6, 0.6]


def test_a_new_policy_chooses_once_for_all_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = config(committee={"warm_up": 0.5})
    state = state_of(settings)
    asked: list[SparseClassifier] = []
    choose = SparseClassifier.choose

    def noted(self: SparseClassifier, *arguments: Any) -> Choice:
        asked.append(self)
        return choose(self, *arguments)

    monkeypatch.setattr(SparseClassifier, "choose", noted)
    first, second = (state.finish_epoch(epoch) for epoch in (1, 2))
    assert len(asked) == len(state.selection_batches) == 1
    assert first == second
    state.averaged.update_parameters(state.model.policy)  # as PPO has changed it
    state.finish_epoch(2)
    assert len(asked) == 2
