"""Rare classes count as often as frequent ones, where that is asked for or needed."""

from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

from cores.config import RunConfig, TrainingConfig, merged
from cores.config.presets import preset_config
from cores.data.dataset import Dataset
from cores.data.datasets import load_dataset
from cores.data.lists import from_graphs
from cores.evaluation.predictions import predict
from cores.models.build import build_model
from cores.runs.fit import (
    PreparedData,
    _members,
    bilevel_state,
    fit_model,
    training_settings,
)
from cores.tasks.metrics import balanced_accuracy, class_mean
from cores.training import bilevel
from cores.training.balance import adjust_logits, balanced_order, settled, shuffled_batches
from cores.training.bilevel import chosen, selection_metrics
from cores.training.journal import Journal
from cores.training.learner import masked_batches
from cores.training.rollouts import roll_out
from cores.training.state import RandomState

CPU = torch.device("cpu")


def thinned(rare: int, frequent: int) -> Dataset:
    """Motifs with few houses."""
    dataset = load_dataset("motifs")
    labels = dataset.graphs.y
    index = [(labels == label).nonzero()[:count, 0] for label, count in ((0, frequent), (1, rare))]
    return dataset[torch.cat(index).sort().values]


@pytest.mark.parametrize(
    ("share", "balance", "balanced"),
    [
        *((79, "auto", False), (80, "auto", False), (81, "auto", True)),
        *((99, "never", False), (50, "always", True)),
    ],
)
def test_auto_balances_where_one_class_has_over_four_fifths(
    share: int, balance: str, balanced: bool
) -> None:
    labels = (torch.arange(100) >= share).long()
    assert settled(TrainingConfig(balance=balance), labels, "classification").balanced is balanced


def test_the_training_part_decides() -> None:
    config = RunConfig(model="gnn")
    data = PreparedData.of(thinned(20, 180), config, CPU)
    assert training_settings(config, data).balanced
    data = PreparedData.of(thinned(50, 150), config, CPU)
    assert not training_settings(config, data).balanced


@pytest.mark.parametrize("size", [1, 2, 7, 30, 160])
def test_every_class_is_drawn_as_often_and_its_graphs_evenly(size: int) -> None:
    labels = torch.tensor([0] * 40 + [1] * 3 + [2] * 10)
    order = balanced_order(labels, size, torch.Generator().manual_seed(size))
    drawn = torch.bincount(labels[order], minlength=3)
    assert len(order) == size
    assert drawn.max() - drawn.min() <= 1
    of_the_rare = torch.bincount(order, minlength=53)[40:43]
    assert of_the_rare.max() - of_the_rare.min() <= 1


def test_no_graph_is_drawn_twice_before_all_of_its_class_and_none_is_preferred() -> None:
    labels = torch.tensor([0] * 40 + [1] * 8)
    counts = torch.zeros(48)
    for seed in range(200):
        order = balanced_order(labels, 16, torch.Generator().manual_seed(seed))
        assert len(order.unique()) == 16
        counts[order] += 1
    assert torch.equal(counts[40:], torch.full((8,), 200.0))
    assert counts[:40].min() > 20  # 40 is expected
    assert counts[:40].max() < 60


def test_a_class_is_shuffled_as_often_as_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """More often would change no order, and take for ever with many graphs."""
    shuffled: list[int] = []
    shuffle = torch.randperm

    def note(count: int, generator: torch.Generator) -> torch.Tensor:
        shuffled.append(count)
        return shuffle(count, generator=generator)

    monkeypatch.setattr(torch, "randperm", note)
    balanced_order(torch.tensor([0] * 40 + [1] * 3), 16, torch.Generator().manual_seed(0))
    assert sorted(shuffled) == [2, 3, 3, 3, 16, 40]  # the classes, 3 graphs for 8, 40 for 8, all


def test_the_generator_alone_decides_the_order() -> None:
    labels = torch.tensor([0] * 40 + [1] * 3 + [2] * 10)
    orders = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        orders.append(balanced_order(labels, 31, torch.Generator().manual_seed(5)))
    assert torch.equal(orders[0], orders[1])


@pytest.mark.parametrize(("balanced", "rare"), [(False, 4), (True, 20)])
def test_an_epoch_has_as_many_graphs_either_way(balanced: bool, rare: int) -> None:
    graphs = thinned(4, 36).graphs
    random = torch.Generator().manual_seed(0)
    batches = list(shuffled_batches(graphs, 16, random, balanced))
    assert [batch.num_graphs for batch in batches] == [16, 16, 8]
    assert int(torch.cat([batch.y for batch in batches]).sum()) == rare


@pytest.mark.parametrize("balanced", [False, True])
def test_the_order_of_an_epoch_is_the_generators(balanced: bool) -> None:
    graphs = thinned(4, 36).graphs
    epochs = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        random = torch.Generator().manual_seed(5)
        epochs.append(torch.cat([b.y for b in shuffled_batches(graphs, 16, random, balanced)]))
    assert torch.equal(*epochs)


def test_a_mean_over_classes_weighs_no_class_by_its_size() -> None:
    values, labels = torch.tensor([1.0, 1.0, 1.0, 0.0]), torch.tensor([0, 0, 0, 2])
    assert class_mean(values, labels) == 0.5


def rolled_out(balance: str) -> torch.Tensor:
    """The labels that a policy is rolled out on in an epoch."""
    config = RunConfig(training=TrainingConfig(epochs=2, balance=balance))
    data = PreparedData.of(thinned(20, 380), config, CPU)
    config = replace(config, training=training_settings(config, data))
    random = RandomState(0, CPU)
    model = build_model(config, data.dataset.dims)
    members = _members(model, config, data, random)
    seen = masked_batches(members[0], 32, "node", random)
    trained_on = torch.cat([batch.y for batch in seen]).double().mean()
    assert trained_on == pytest.approx(0.05, abs=0.01)  # as they come
    outcomes = roll_out(model, members, config.ppo, random, config.training.balanced)
    return torch.cat([outcome.rollout.elements.batch.y for outcome in outcomes])


def test_the_policy_meets_every_class_as_often() -> None:
    assert rolled_out("auto").double().mean() == pytest.approx(0.5, abs=0.01)
    assert rolled_out("never").double().mean() == pytest.approx(0.05, abs=0.02)


def test_selection_looks_at_the_classes_alike() -> None:
    config = RunConfig()
    dataset = thinned(4, 36)
    model = build_model(config, dataset.dims)
    choices = chosen(model, list(dataset.graphs.batches(40)))
    plain = selection_metrics(model, choices, config.reward)
    balanced = selection_metrics(model, choices, config.reward, balanced=True)
    assert "selection_balanced_accuracy" not in plain
    # An untrained model guesses one class: right on 0.9 or 0.1 of the graphs, on half the classes.
    assert plain["selection_accuracy"] == pytest.approx(0.5, abs=0.41)
    assert balanced["selection_balanced_accuracy"] == 0.5
    assert balanced["selection_reward"] != pytest.approx(plain["selection_reward"])


def overlapping(rare: int, frequent: int, seed: int) -> Dataset:
    """Single nodes, one number each; the classes are 1.5 deviations apart."""
    labels = torch.tensor([0] * frequent + [1] * rare)
    noise = torch.randn(len(labels), generator=torch.Generator().manual_seed(seed))
    values = noise + 1.5 * labels
    no_edges = torch.empty(2, 0, dtype=torch.long)
    return from_graphs([Data(x=v.view(1, 1), edge_index=no_edges) for v in values], labels)


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("seed", range(3))
def test_a_rare_class_is_found_that_a_mean_over_graphs_forgets(seed: int) -> None:
    """Where classes overlap, it pays to guess the frequent one: by theory 0.60 against 0.77."""
    dataset, other = overlapping(40, 600, seed), overlapping(300, 300, seed + 100)
    found = {}
    for balance in ("never", "auto"):
        training = TrainingConfig(epochs=20, balance=balance)
        config = RunConfig(model="gnn", seed=seed, training=training)
        model = fit_model(config, PreparedData.of(dataset, config, CPU)).trained.model
        found[balance] = balanced_accuracy(predict(model, other.graphs).probs, other.graphs.y)
    assert found["auto"] > found["never"] + 0.05


def adjusted(**changes: dict[str, object]) -> list[torch.Tensor]:
    """How far the biases of the members have moved when the policy's training begins."""
    settings = {"training": {"epochs": 2, "balance": "always"}}
    config = preset_config("motifs", "cores-node", "gin", "default", merged(settings, changes))
    data = PreparedData.of(thinned(20, 380), config, CPU)
    config = replace(config, training=training_settings(config, data))
    state = bilevel_state(build_model(config, data.dataset.dims), config, data, RandomState(0, CPU))
    before = [member.classifier.head.bias.clone() for member in state.members]
    state.balance_classes()
    after = [member.classifier.head.bias for member in state.members]
    return [(two - one).detach() for one, two in zip(before, after, strict=True)]


def test_classifiers_are_adjusted_so_that_all_classes_count_alike() -> None:
    found = adjusted(training={"logit_adjustment": 1.0})
    assert len(found) == 5
    for shift in found:
        assert torch.allclose(shift, -torch.tensor([0.95, 0.05]).log(), atol=0.1)
    half = adjusted(training={"logit_adjustment": 0.5})
    assert torch.allclose(torch.stack(half), torch.stack(found) / 2)


@pytest.mark.parametrize(
    "changes",
    [
        {"training": {"balance": "never"}},
        {"training": {"logit_adjustment": 0.0}},
    ],
)
def test_nothing_is_adjusted_where_classes_are_not_balanced(
    changes: dict[str, dict[str, object]],
) -> None:
    assert not torch.stack(adjusted(**changes)).any()


def test_a_class_without_graphs_has_a_finite_logit() -> None:
    head = torch.nn.Linear(1, 3)
    adjust_logits(head, torch.tensor([0, 0, 2]), 1.0)
    assert head.bias.isfinite().all()


def test_a_run_adjusts_its_classifiers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    adjusted_in: list[int] = []
    reported = 0

    def noted(*_: object) -> None:
        adjusted_in.append(reported)

    def report(epoch: int, _: object) -> None:
        nonlocal reported
        reported = epoch

    monkeypatch.setattr(bilevel, "adjust_logits", noted)
    config = preset_config(
        "motifs",
        "cores-node",
        "gin",
        "default",
        {
            "training": {"epochs": 4, "balance": "always"},
            "committee": {"members": 3, "warm_up": 0.5},
            "ppo": {"env_steps": 8, "samples": 2, "effect_steps": 1},
        },
    )
    data = PreparedData.of(thinned(20, 60), config, CPU)
    model = build_model(config, data.dataset.dims)
    state = bilevel_state(model, config, data, RandomState(0, CPU))
    bilevel.train(state, Journal(None, state.parts), report)
    assert adjusted_in == [2, 2, 2], "three members, after the second epoch"
