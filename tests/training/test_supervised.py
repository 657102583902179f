"""Supervised training learns, and says so when it cannot."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cores.config import NetworkConfig, TrainingConfig
from cores.data.dataset import Dataset, Dims, numbered
from cores.data.synthetic import ba_motifs
from cores.errors import UserError
from cores.graphs.store import GraphStore
from cores.models.classifier import Classifier
from cores.training import supervised
from cores.training.journal import CHECKPOINT
from cores.training.state import RandomState, load_state
from cores.training.step import Step
from cores.training.supervised import Report, fit_epoch, fit_scaler, inverse_frequencies, train

GRAPHS = ba_motifs(num_graphs=60, base_size=5, motifs=("star", "clique"))
SMALL = NetworkConfig(hidden_dim=16, num_layers=2)


def fitted(
    config: TrainingConfig, folder: Path | None = None, graphs: GraphStore = GRAPHS
) -> tuple[Classifier, dict[str, float]]:
    random = RandomState(0, torch.device("cpu"))
    classifier = Classifier(Dims(graphs.num_features, 2), SMALL, "gin")
    last: dict[str, float] = {}
    train(
        classifier, graphs, graphs, config, random, folder, lambda _, metrics: last.update(metrics)
    )
    return classifier, last


def test_a_small_task_is_learnt() -> None:
    _, last = fitted(TrainingConfig(epochs=60, learning_rate=0.01))
    assert last["selection_accuracy"] == 1.0
    assert last["loss"] < 0.1


def test_an_epoch_is_a_gradient_step_per_batch_and_its_loss_a_mean_over_graphs() -> None:
    torch.manual_seed(0)
    one, other = (Classifier(Dims(10, 2), SMALL, "gin") for _ in range(2))
    other.load_state_dict(one.state_dict())
    batches = [GRAPHS.batch(torch.arange(4)), GRAPHS.batch(torch.arange(4, 14))]
    weights = torch.tensor([0.5, 1.5])
    step = Step(one.eval(), torch.optim.SGD(one.parameters(), lr=0.1), weights)
    loss = fit_epoch(step, batches)
    assert one.training
    losses = []
    for batch in batches:
        value = torch.nn.functional.cross_entropy(other.train()(batch), batch.y, weights)
        used = [each for each in other.parameters() if each.requires_grad]
        gradients = torch.autograd.grad(value, used, allow_unused=True)
        losses.append(float(value.detach()))
        with torch.no_grad():
            for weight, gradient in zip(used, gradients, strict=True):
                if gradient is not None:
                    weight -= 0.1 * gradient
    assert loss == pytest.approx((4 * losses[0] + 10 * losses[1]) / 14, rel=1e-5)
    for mine, theirs in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.allclose(mine, theirs, atol=1e-6)


def recorder(history: list[dict[str, float]]) -> Report:
    return lambda epoch, metrics: history.append(metrics)


def told(monkeypatch: pytest.MonkeyPatch, *probabilities: list[float]) -> None:
    """Let a model say of the first four graphs, of classes 0, 1, 0, 1, how likely class 0 is."""
    said = (torch.tensor([[p, 1 - p] for p in each]) for each in probabilities)
    monkeypatch.setattr(supervised, "predict_proba", lambda model, batches: next(said))


@pytest.mark.parametrize(
    ("balance", "graphs", "best"),
    [
        # All right; the second epoch is the surest.
        ("never", [0, 1, 2, 3], 2),
        # Three of one class and one of the other: the third is right on one class, and half of all
        # is right in every epoch.
        ("always", [0, 2, 4, 1], 1),
    ],
)
def test_the_epoch_with_the_best_accuracy_and_then_the_lowest_loss_is_selected(
    balance: str, graphs: list[int], best: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = GRAPHS.subset(torch.tensor(graphs))
    if balance == "never":
        told(monkeypatch, [0.7, 0.3] * 2, [0.9, 0.1] * 2, [0.8, 0.2] * 2, [0.9, 0.8, 0.9, 0.1])
    else:
        told(monkeypatch, *([[0.9, 0.9, 0.1, 0.1]] + [[0.9, 0.9, 0.9, 0.6]] * 2))
    config = TrainingConfig(epochs=4 if balance == "never" else 3, balance=balance)
    classifier = Classifier(Dims(10, 2), SMALL, "gin")
    random = RandomState(0, torch.device("cpu"))
    history: list[dict[str, float]] = []
    _, stopping = train(classifier, GRAPHS, chosen, config, random, None, recorder(history))
    assert stopping.best_epoch == best
    assert ("selection_balanced_accuracy" in history[0]) == (balance == "always")
    if balance == "always":
        found = [each["selection_balanced_accuracy"] for each in history]
        assert found == pytest.approx([5 / 6, 0.5, 0.5])


def test_at_the_same_accuracy_the_lowest_mean_loss_over_the_classes_is_selected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of three graphs of one class and one of the other; the mean over graphs selects the last."""
    told(monkeypatch, [0.9] * 3 + [0.45], [0.8] * 3 + [0.2], [0.95] * 3 + [0.4])
    chosen = GRAPHS.subset(torch.tensor([0, 2, 4, 1]))
    config = TrainingConfig(epochs=3, balance="always")
    classifier, random = Classifier(Dims(10, 2), SMALL, "gin"), RandomState(0, torch.device("cpu"))
    history: list[dict[str, float]] = []
    _, stopping = train(classifier, GRAPHS, chosen, config, random, None, recorder(history))
    assert [each["selection_balanced_accuracy"] for each in history] == [1.0] * 3
    losses = [each["selection_loss"] for each in history]
    means = [(3 * math.log(p) + math.log(q)) / 4 for p, q in ((0.9, 0.55), (0.8, 0.8), (0.95, 0.6))]
    assert losses == pytest.approx([-mean for mean in means])
    assert min(losses) == losses[2]
    assert stopping.best_epoch == 2


def test_the_weights_of_the_selected_epoch_are_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    told(monkeypatch, *([[p, 1 - p] * 2 for p in (0.7, 0.9, 0.8, 0.6)]))
    classifier, random = Classifier(Dims(10, 2), SMALL, "gin"), RandomState(0, torch.device("cpu"))
    seen: list[torch.Tensor] = []

    def remember(epoch: int, metrics: dict[str, float]) -> None:
        seen.append(classifier.head.weight.detach().clone())

    config = TrainingConfig(epochs=4)
    train(classifier, GRAPHS, GRAPHS.subset(torch.arange(4)), config, random, None, remember)
    same = [torch.equal(classifier.head.weight, then) for then in seen]
    assert same == [False, True, False, False]


def test_the_rate_falls_where_accuracy_stalls_and_weights_decay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is right on as many graphs in every epoch; that its loss falls does not count."""
    milder = [torch.tensor([[p, 1 - p]] * 60) for p in (0.75, 0.7, 0.65, 0.6)]
    settings = {"epochs": 4, "learning_rate": 0.01, "schedule_patience": 0}
    shares: list[float] = []
    monkeypatch.setattr(Classifier, "begin_epoch", lambda model, share: shares.append(share))
    sizes = []
    for decay in (0.0, 10.0):
        history: list[dict[str, float]] = []
        random = RandomState(0, torch.device("cpu"))
        classifier = Classifier(Dims(10, 2), SMALL, "gin")
        config = TrainingConfig(weight_decay=decay, schedule_factor=0.5, **settings)
        said = iter(milder)
        monkeypatch.setattr(supervised, "predict_proba", lambda *_, said=said: next(said))
        train(classifier, GRAPHS, GRAPHS, config, random, None, recorder(history))
        rates = [epoch["learning_rate"] for epoch in history]
        assert rates == pytest.approx([0.01, 0.01, 0.005, 0.0025])  # as it was in the epoch
        sizes.append(float(classifier.head.weight.detach().abs().sum()))
    assert sizes[1] < sizes[0]
    assert shares == [0.25, 0.5, 0.75, 1.0] * 2


def test_history_grows_by_a_whole_line_per_epoch(tmp_path: Path) -> None:
    fitted(TrainingConfig(epochs=4), tmp_path)
    lines = (tmp_path / "history.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == [1, 2, 3, 4]
    assert json.loads(lines[0]).keys() == {
        "epoch",
        "loss",
        "selection_accuracy",
        "selection_loss",
        "learning_rate",
    }


def test_a_checkpoint_holds_all_that_training_changes_and_belongs_to_its_run(
    tmp_path: Path,
) -> None:
    config, random = TrainingConfig(epochs=1), RandomState(0, torch.device("cpu"))
    classifier = Classifier(Dims(10, 2), SMALL, "gin")
    train(classifier, GRAPHS, GRAPHS, config, random, tmp_path, key="mine")
    parts = load_state(tmp_path / CHECKPOINT)["parts"]
    assert parts.keys() == {"model", "optimizer", "schedule", "stopping", "random"}
    with pytest.raises(UserError, match="belongs to a run of other settings"):
        train(classifier, GRAPHS, GRAPHS, config, random, tmp_path, key="another")


def small_features(scale: float) -> Dataset:
    graphs = replace(
        GRAPHS, x=torch.randn(len(GRAPHS.x), 2, dtype=torch.float64).mul(scale).float()
    )
    return Dataset("mine.npz", graphs, ("0", "1"), numbered(2), continuous=(0, 1))


def test_features_too_small_to_be_scaled_are_named_with_their_column() -> None:
    dataset = small_features(1e-40)
    classifier = Classifier(dataset.dims, SMALL, "gin")
    message = r"mine.npz: the values of 'feature 0' are too small for single precision .*; scale"
    with pytest.raises(UserError, match=message):
        fit_scaler(classifier, dataset.graphs, dataset)
    fit_scaler(classifier, small_features(1e-20).graphs, small_features(1e-20))
    fit_scaler(classifier, small_features(0.0).graphs, small_features(0.0))  # nothing to divide by


def test_the_features_of_a_single_node_are_scaled_by_nothing() -> None:
    dataset = small_features(1.0)
    graph = GraphStore(
        x=torch.tensor([[2.0, 3.0]]),
        edge_index=torch.empty(2, 0, dtype=torch.int64),
        y=torch.tensor([0]),
        node_ptr=torch.tensor([0, 1]),
        edge_ptr=torch.tensor([0, 0]),
    )
    classifier = Classifier(dataset.dims, SMALL, "gin")
    fit_scaler(classifier, graph, replace(dataset, graphs=graph))
    assert classifier.scaler(graph.x).tolist() == [[0.0, 0.0]]


def test_features_too_large_to_be_scaled_are_named_with_their_column() -> None:
    dataset = small_features(1.0)
    dataset.graphs.x[3, 1] = torch.inf
    with pytest.raises(UserError, match="the values of 'feature 1' are too large for single"):
        fit_scaler(Classifier(dataset.dims, SMALL, "gin"), dataset.graphs, dataset)


def test_one_large_feature_anywhere_is_behind_a_training_that_fails() -> None:
    classifier = Classifier(Dims(10, 2), SMALL, "gin")
    large = replace(GRAPHS, x=GRAPHS.x.clone())
    large.x[5, 2] = -2e6
    told = supervised.diverged("it fails", 3, classifier, [GRAPHS, large], "a.setting")
    assert "in epoch 3: node features reach 2e+06 after scaling" in str(told)
    told = supervised.diverged("it fails", 3, classifier, [GRAPHS, GRAPHS], "a.setting")
    assert str(told) == "it fails in epoch 3; lower a.setting"


def test_features_that_are_too_large_are_not_blamed_on_the_learning_rate() -> None:
    graphs = replace(GRAPHS, x=torch.full_like(GRAPHS.x, 1e38))
    with pytest.raises(UserError, match=r"in epoch 1: node features reach 1e\+38 after scaling"):
        fitted(TrainingConfig(epochs=2), graphs=graphs)
    with pytest.raises(UserError, match=r"lower training\.learning_rate"):
        fitted(TrainingConfig(epochs=3, learning_rate=2e9))


def test_patience_ends_training() -> None:
    random = RandomState(0, torch.device("cpu"))
    classifier = Classifier(Dims(10, 2), SMALL, "gin")
    config = TrainingConfig(epochs=500, patience=3, learning_rate=0.5)
    journal, stopping = train(classifier, GRAPHS, GRAPHS, config, random)
    assert journal.epoch == stopping.best_epoch + 3 < 500


def test_class_weights_lift_the_rare_class() -> None:
    """Where features say nothing, an unweighted model guesses the majority, a weighted one not."""
    rare = torch.cat([torch.arange(0, 60, 2), torch.tensor([1, 3, 5])])
    graphs = GRAPHS.subset(rare)
    blind = GraphStore(**{**vars(graphs), "edge_index": torch.zeros_like(graphs.edge_index)})
    batch = blind.batch(torch.arange(len(blind)))
    network = replace(SMALL, batch_norm=False)  # whose statistics of so few graphs are noise
    rare_probability = []
    for weighted in (False, True):
        classifier = Classifier(Dims(blind.num_features, 2), network, "gin")
        config = TrainingConfig(epochs=40, learning_rate=0.01, class_weights=weighted)
        told: list[float] = []

        def ask(epoch: int, _: object, model: Classifier = classifier, to: list = told) -> None:
            to.append(model.eval()(batch).softmax(-1)[:, 1].mean().item())

        train(classifier, blind, blind, config, RandomState(0, torch.device("cpu")), None, ask)
        rare_probability.append(told[-1])  # the epoch that is returned is the most accurate one
    assert rare_probability[0] < 0.2 < rare_probability[1]


def test_fitting_a_networks_scaler_reads_the_columns_that_the_dataset_names() -> None:
    graphs = replace(GRAPHS, x=torch.arange(10.0).expand(len(GRAPHS.x), 10).clone())
    graphs.x[0] += 1
    names = numbered(10)
    dataset = Dataset("toy", graphs, ("a", "b"), names, continuous=(1, 2), clipped=(2,))
    classifier = Classifier(dataset.dims, SMALL, "gin")
    fit_scaler(classifier, graphs, dataset)
    scaler = classifier.scaler
    assert (scaler.mean != 0).nonzero().flatten().tolist() == [1, 2]
    assert scaler.low.isfinite().nonzero().flatten().tolist() == [2]


def test_an_exploding_loss_is_the_users_to_mend() -> None:
    broken = replace(GRAPHS, x=GRAPHS.x * float("inf"))
    with pytest.raises(UserError, match=r"the loss is nan in epoch 1: node features reach inf"):
        fitted(TrainingConfig(epochs=3), graphs=broken)


def test_a_class_without_graphs_weighs_as_much_as_one_with_a_single_graph() -> None:
    assert inverse_frequencies(torch.tensor([0, 0, 1]), 3).tolist() == [0.5, 1.0, 1.0]
