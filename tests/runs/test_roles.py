"""Who may look at which graphs: what a role may not see does not change a bit of what it does.

Graphs that a role must not see are changed, all of them at once, features and labels: its outcome
stays the same to the last bit, so a leak of a single graph would show. Where one graph that it must
see is changed, its outcome is another.
"""

from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from cores import Cores
from cores.config import PartsConfig, RunConfig
from cores.data.dataset import Dataset, numbered
from cores.data.splits import Split, split_dataset
from cores.graphs.segments import owners, pointers
from cores.graphs.store import GraphStore
from cores.runs.fit import PreparedData, fit_model, measure
from cores.runs.run import train_run
from cores.tasks.calibration import ClassCalibration
from cores.training import bilevel
from cores.training.judge import Judge, judge_of, train_judge
from cores_paper.search import selection_score
from cores_paper.training.algorithm import State

pytestmark = pytest.mark.usefixtures("unchecked")
CPU = torch.device("cpu")
PARTS = ("train", "policy", "selection", "calibration", "test")
PAPER_PARTS = {"policy": 0.4, "selection": 0.0, "calibration": 0.0}


def settings(model: str = "cores-node", **changes: Any) -> RunConfig:
    """One epoch, and one of the policy: there is nothing to select from."""
    epochs = 1 if model == "gnn" else 2
    small: dict[str, Any] = {
        "model": model,
        "network": {"hidden_dim": 8, "num_layers": 1},
        "training": {"epochs": epochs, "batch_size": 64, "class_weights": True},
        "ppo": {"samples": 2, "ppo_epochs": 1, "batch_size": 64},
    }
    if model != "gnn" and "preset" not in changes:
        small["committee"] = {"members": 3}
    return RunConfig.from_settings({**small, **changes})


DEFAULT, PLAIN = settings(), settings("gnn")
PAPER = settings(
    preset="paper",
    training={"epochs": 2, "batch_size": 64},
    parts={"policy": 0.4},
    reward={"alpha": 0.7},  # else the quantile of APS scores is 1, whatever the graphs
    paper={"weights": "last"},
)
PLAIN_PAPER = settings("gnn", parts=PAPER_PARTS)
BOTH = pytest.mark.parametrize("config", [DEFAULT, PLAIN], ids=["cores", "plain"])


def toy(count: int = 40, scaled: bool = True) -> Dataset:
    """Rings of four to six nodes with random features; every fourth one is of class b.

    If the graphs outside of training were all of class a, that one would have more than four fifths
    and classes would be balanced: who counts labels that are not his gives himself away.
    """
    random = torch.Generator().manual_seed(0)
    sizes = 4 + torch.arange(count) % 3
    paths = [torch.arange(int(size)) for size in sizes]
    rings = [torch.stack([path, path.roll(-1)]) for path in paths]
    graphs = GraphStore(
        x=torch.rand(int(sizes.sum()), 3, generator=random),
        edge_index=torch.cat([torch.cat([ring, ring.flip(0)], dim=1) for ring in rings], dim=1),
        y=(torch.arange(count) % 4 == 0).long(),
        node_ptr=pointers(sizes),
        edge_ptr=pointers(2 * sizes),
    )
    columns = (0,) if scaled else ()
    return Dataset("toy", graphs, ("a", "b"), numbered(3), continuous=columns, clipped=columns)


def changed(dataset: Dataset, index: Tensor, labels: bool = False) -> Dataset:
    """The dataset with other features of some graphs and, if asked for, with class a for them."""
    graphs = dataset.graphs
    mine = torch.isin(owners(graphs.num_nodes), index)
    x = torch.where(mine[:, None], 1.5 - 2 * graphs.x, graphs.x)
    y = graphs.y.index_fill(0, index, 0) if labels else graphs.y
    return replace(dataset, graphs=replace(graphs, x=x, y=y))


def parts_of(config: RunConfig, dataset: Dataset) -> Split:
    return split_dataset(dataset, config.split, config.parts)


@dataclass(frozen=True)
class Run:
    """All that a run leaves behind."""

    weights: dict[str, Tensor]
    calibration: ClassCalibration
    history: list[dict[str, float]]
    best_epoch: int
    metrics: dict[str, Any]

    def told(self, name: str) -> list[float | None]:
        return [epoch.get(name) for epoch in self.history]

    def weights_of(self, part: str) -> dict[str, Tensor]:
        return {name: value for name, value in self.weights.items() if part in name}


def run_of(config: RunConfig, dataset: Dataset, split: Split) -> Run:
    """A run on a dataset that is divided as before its labels were changed."""
    data = PreparedData(dataset, dataset.graphs, split)
    history: list[dict[str, float]] = []
    fitted = fit_model(config, data, report=lambda epoch, metrics: history.append(metrics))
    trained = fitted.trained
    metrics = measure(trained, data.part("test"), config.alpha)
    weights = trained.model.state_dict()
    return Run(weights, trained.calibration, history, fitted.facts["best_epoch"], metrics)


@cache
def run(
    config: RunConfig,
    *parts: str,
    place: int | None = None,
    labels: bool = False,
    scaled: bool = True,
) -> Run:
    """A run on the toy with some of its parts changed, or one graph of them."""
    dataset = toy(scaled=scaled)
    split = parts_of(config, dataset)
    index = torch.cat([torch.empty(0).long(), *(getattr(split, part) for part in parts)])
    others = index if place is None else index[[place]]
    return run_of(config, changed(dataset, others, labels), split)


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    """Whether all tensors are equal, to the last bit."""
    assert one
    assert one.keys() == other.keys()
    return all(torch.equal(value, other[name]) for name, value in one.items())


@BOTH
def test_nobody_learns_from_selection_calibration_or_test_graphs(config: RunConfig) -> None:
    """Neither classifier, policy, scaler nor the weights of classes; labels count as much."""
    one = run(config)
    other = run(config, "selection", "calibration", "test", labels=True)
    assert same(one.weights, other.weights)
    for name in ("loss", "reward", "sampled_ratio", "q_hat"):
        assert one.told(name) == other.told(name)


@BOTH
@pytest.mark.parametrize("part", ["train", "policy"])
@pytest.mark.parametrize("place", [0, -1])
def test_every_graph_of_the_pool_teaches_classifier_and_policy(
    config: RunConfig, part: str, place: int
) -> None:
    one = run(config, scaled=False)  # a scaler would pass the change on
    other = run(config, part, place=place, scaled=False)
    assert one.history[0]["loss"] != other.history[0]["loss"]
    assert not same(one.weights_of("head"), other.weights_of("head"))
    if config.removal:
        assert not same(one.weights_of("policy"), other.weights_of("policy"))


@pytest.mark.parametrize(
    ("config", "parts"),
    [
        *((DEFAULT, ("train", "policy")), (PLAIN, ("train", "policy"))),
        *((PAPER, ("train",)), (PLAIN_PAPER, ("train",))),
    ],
    ids=["cores", "plain", "cores as in the paper", "plain as in the paper"],
)
def test_scalers_are_fitted_to_the_graphs_that_the_classifier_learns_from(
    config: RunConfig, parts: tuple[str, ...]
) -> None:
    original = run(config).weights_of("scaler")
    outside = [part for part in PARTS if part not in parts]
    assert same(run(config, *outside, labels=True).weights_of("scaler"), original)
    for part in parts:
        assert not same(run(config, part, place=0).weights_of("scaler"), original), part


SELECTING = {"epochs": 4, "batch_size": 64, "learning_rate": 0.05}


@pytest.mark.parametrize("model", ["cores-node", "gnn"])
def test_weights_are_selected_by_the_selection_part_alone(model: str) -> None:
    """It has a say on what is selected and none on what is trained."""
    config = settings(model, training=SELECTING)
    one = run(config)
    other = run(config, "calibration", "test", labels=True)
    assert other.history == one.history
    assert other.best_epoch == one.best_epoch
    assert same(one.weights, other.weights)
    score = "selection_reward" if config.removal else "selection_loss"
    heard = run(config, "selection", labels=True)
    assert one.told(score) != heard.told(score)
    assert one.told("loss") == heard.told("loss")
    assert one.told("reward") == heard.told("reward")


def test_sets_are_calibrated_by_the_calibration_part_alone() -> None:
    """A graph of it gives its own score and no other; a test graph gives none."""
    one = run(DEFAULT)
    index = parts_of(DEFAULT, toy()).calibration
    assert torch.equal(one.calibration.labels, toy().graphs.y[index])
    tested = run(DEFAULT, "test", labels=True).calibration
    assert torch.equal(one.calibration.probs, tested.probs)
    assert torch.equal(one.calibration.labels, tested.labels)
    for place in range(len(index)):
        other = run(DEFAULT, "calibration", place=place)
        differs = (one.calibration.probs != other.calibration.probs).any(dim=1)
        assert differs.nonzero().flatten().tolist() == [place]
        assert same(one.weights, other.weights)


def test_the_numbers_reported_are_those_of_the_test_part() -> None:
    """The calibration part decides about prediction sets, and about nothing else."""
    one = run(DEFAULT).metrics
    assert one["test_graphs"] == 4
    assert one["majority_rate"] == 0.75
    calibrated = run(DEFAULT, "calibration", labels=True).metrics
    assert {name for name in one if one[name] != calibrated[name]} <= {"coverage", "set_size"}
    assert run(DEFAULT, "test", labels=True).metrics["majority_rate"] == 1


class Rewards:
    """What the members say of every graph in the first epoch of the policy."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.said: dict[int, Tensor] = {}
        for place in (bilevel, State):
            self._listen(monkeypatch, place)

    def _listen(self, monkeypatch: pytest.MonkeyPatch, place: Any) -> None:
        roll_out = place.roll_out

        def listen(*arguments: Any) -> Any:
            outcomes = roll_out(*arguments)
            for outcome in outcomes:
                batch = outcome.rollout.elements.batch
                for place, number in enumerate(batch.x[batch.ptr[:-1], -1]):
                    graph = round(float(number) * 100)
                    assert graph not in self.said, "two members reward on one graph"
                    self.said[graph] = outcome.probs[:, place]
            return outcomes

        monkeypatch.setattr(place, "roll_out", listen)

    def of(self, config: RunConfig, dataset: Dataset, split: Split) -> dict[int, Tensor]:
        self.said = {}
        run_of(config, dataset, split)
        return self.said


def numbered_graphs(count: int) -> Dataset:
    """A toy whose last column is the number of the graph, in hundredths."""
    dataset = toy(count, scaled=False)
    numbers = owners(dataset.graphs.num_nodes) / 100
    x = torch.cat([dataset.graphs.x, numbers[:, None]], dim=1)
    return replace(dataset, graphs=replace(dataset.graphs, x=x), feature_names=numbered(4))


def retouched(dataset: Dataset, graph: int) -> Dataset:
    """One graph with other features, but for its number."""
    other = changed(dataset, torch.tensor([graph]))
    x = torch.cat([other.graphs.x[:, :-1], dataset.graphs.x[:, -1:]], dim=1)
    return replace(other, graphs=replace(other.graphs, x=x))


def test_no_member_rewards_on_a_graph_that_it_has_learnt_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is said of a graph depends on all graphs of the other folds, and on none of its own.

    So for every graph of the pool: those that do not notice when it changes are its fold.
    """
    dataset = numbered_graphs(18)
    split = Split(*(torch.arange(first, last) for first, last in pairwise((0, 6, 9, 12, 15, 18))))
    pool = set(range(9))
    listening = Rewards(monkeypatch)
    # All folds would decide where the policy starts, and so what it shows to a member.
    config = replace(DEFAULT, ppo=replace(DEFAULT.ppo, effect_steps=0))
    before = listening.of(config, dataset, split)
    assert set(before) == pool
    folds = set()
    for graph in pool:
        after = listening.of(config, retouched(dataset, graph), split)
        unmoved = {each for each in pool - {graph} if torch.equal(before[each], after[each])}
        folds.add(frozenset(unmoved | {graph}))
    assert sorted(graph for fold in folds for graph in fold) == sorted(pool)
    labels = [sorted(dataset.graphs.y[list(fold)].tolist()) for fold in folds]
    assert labels == [[0, 0, 1]] * 3, "each fold has its share of every class"


def test_the_papers_classifier_learns_from_the_training_part_and_rewards_on_the_policy_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = run(PAPER, scaled=False)
    other = run(PAPER, "policy", labels=True, scaled=False)
    assert one.told("loss")[0] == other.told("loss")[0]
    assert one.told("q_hat") == other.told("q_hat")
    assert one.told("reward") != other.told("reward")
    for place in (0, -1):
        taught = run(PAPER, "train", place=place, scaled=False)
        assert one.told("loss")[0] != taught.told("loss")[0]
    assert one.told("q_hat") != run(PAPER, "train", scaled=False).told("q_hat")
    dataset = numbered_graphs(40)
    split = parts_of(PAPER, dataset)
    once = replace(PAPER, training=replace(PAPER.training, epochs=1))
    assert set(Rewards(monkeypatch).of(once, dataset, split)) == set(split.policy.tolist())


@pytest.mark.usefixtures("short_judge")
def test_a_judge_learns_from_the_training_and_policy_parts_alone() -> None:
    dataset = toy()
    split = parts_of(DEFAULT, dataset)

    def weights(given: Dataset) -> dict[str, Tensor]:
        return train_judge(given, split, DEFAULT, CPU).classifier.state_dict()

    original = weights(dataset)
    outside = torch.cat([split.selection, split.calibration, split.test])
    assert same(weights(changed(dataset, outside, labels=True)), original)
    for role in ("train", "policy"):
        assert not same(weights(changed(dataset, getattr(split, role)[:1])), original), role


@pytest.mark.usefixtures("short_judge")
@pytest.mark.parametrize(
    "parts",
    [{}, PAPER_PARTS, {"folds": 3}, {"kind": "column"}],
    ids=["default", "paper", "folds", "column"],
)
def test_no_judge_of_a_run_learns_from_the_graphs_that_it_judges(parts: dict[str, Any]) -> None:
    dataset = toy()
    if parts.get("kind") == "column":
        given = ("train",) * 28 + ("val",) * 4 + ("test",) * 8
        dataset = replace(dataset, given_parts=given)
    config = settings(parts=parts, split=2)
    test = parts_of(config, dataset).test
    original, other = (
        judge_of(each, config, CPU).classifier.state_dict()
        for each in (dataset, changed(dataset, test))
    )
    assert same(original, other)


@pytest.mark.usefixtures("short_judge")
@pytest.mark.parametrize("model", ["cores-node", "gnn"])
def test_a_search_scores_its_trials_on_the_selection_part(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = toy()
    config = settings(model, dataset="toy")
    train_run(config, tmp_path / "run", dataset=dataset, device="cpu")
    split = parts_of(config, dataset)

    def score(given: Dataset) -> float:
        monkeypatch.setattr("cores.runs.opened.Run.dataset", lambda *_: given)
        return selection_score(tmp_path / "run", config.reward)

    original = score(dataset)
    outside = torch.cat([split.train, split.policy, split.calibration, split.test])
    assert score(changed(dataset, outside)) == original
    if model == "cores-node":  # whose score is finer than an accuracy
        assert score(changed(dataset, split.selection)) != original


@pytest.mark.usefixtures("short_judge")
def test_an_estimator_shows_its_test_and_validation_graphs_to_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Given graphs for validation, these select and fit the temperature.

    The others are divided without them.
    """
    kept: list[Judge] = []

    def remember(*arguments: Any) -> Judge:
        kept.append(train_judge(*arguments))
        return kept[-1]

    monkeypatch.setattr("cores.estimator.cores.train_judge", remember)
    dataset, unseen = toy(44), toy(8)
    small = DEFAULT.settings
    changes = {group: small[group] for group in ("network", "training", "ppo")}
    first, last = torch.arange(36), torch.arange(36, 44)
    test = split_dataset(dataset, 1, PartsConfig(), selection=last).test

    def fitted(given: Dataset) -> Cores:
        model = Cores(epochs=2, device="cpu", progress=False, settings=changes)
        return model.fit(given[first], validation=given[last])

    one, other = fitted(dataset), fitted(changed(dataset, torch.cat([test, last])))
    for model in (one, other):
        model.classifier_.temperature.fill_(1)
    found = [model.predict_proba(unseen) for model in (one, other)]
    assert (found[0] == found[1]).all()
    assert same(*(judge.classifier.state_dict() for judge in kept))
    assert one.metrics_["test_graphs"] == len(test)
