"""A stack of classifiers computes what each of them computes, and shares their weights."""

from copy import deepcopy

import pytest
import torch
from torch_geometric.data import Batch

from cores.config import NetworkConfig
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.graphs.stacked import Chunk, StackedBatches, needed_capacity
from cores.models.classifier import BlindClassifier, Classifier
from cores.models.stack import Stack, stackable

CONFIG = NetworkConfig(hidden_dim=8, num_layers=2)


def classifiers(
    number: int = 3, config: NetworkConfig = CONFIG, edge_features: int = 0, conv: str = "gin"
) -> list[Classifier]:
    torch.manual_seed(0)
    models = [Classifier(Dims(3, 2, edge_features), config, conv) for _ in range(number)]
    for model in models:
        model.scaler = models[0].scaler
    return models


def batch_of(first: int, number: int, edge_features: int = 0) -> Batch:
    torch.manual_seed(first)
    store = ba_motifs(num_graphs=40, base_size=9, seed=0)
    batch = store.batch(torch.arange(first, first + number))
    batch.x = torch.randn(batch.x.size(0), 3)
    batch.y = torch.rand(number, 2).softmax(dim=-1)
    if edge_features:
        batch.edge_attr = torch.randn(batch.edge_index.size(1), edge_features)
    return batch


def single_node() -> Batch:
    """A graph of which one node is left."""
    batch = batch_of(0, 1)
    batch.x, batch.batch = batch.x[:1], batch.batch[:1]
    batch.edge_index, batch.ptr = batch.edge_index[:, :0], torch.tensor([0, 1])
    return batch


def side_by_side(batches: list[Batch | None]) -> Batch:
    """The batches of several models as one."""
    size = max(batch.num_graphs for batch in batches if batch is not None)
    chunks = [
        Chunk(batch, size, [0] * row + [batch.num_graphs])
        for row, batch in enumerate(batches)
        if batch is not None
    ]
    stacked = StackedBatches(len(batches), 1, needed_capacity(chunks), chunks[0].batch)
    stacked.load(chunks)
    return stacked.at(torch.tensor([0]))


@pytest.mark.parametrize("edge_features", [0, 2])
@pytest.mark.parametrize("batch_norm", [True, False])
def test_losses_and_gradients_are_those_of_the_classifiers(
    edge_features: int, batch_norm: bool
) -> None:
    config = NetworkConfig(hidden_dim=8, num_layers=2, batch_norm=batch_norm)
    models = classifiers(config=config, edge_features=edge_features)
    alone = [deepcopy(model).train() for model in models]
    batches = [
        batch_of(first, number, edge_features) for first, number in ((0, 6), (6, 4), (10, 1))
    ]
    expected = [model.loss(batch) for model, batch in zip(alone, batches, strict=True)]
    torch.stack(expected).sum().backward()
    stack = Stack(models).train()
    losses = stack.losses(side_by_side(list(batches)))
    assert losses.tolist() == pytest.approx(torch.stack(expected).tolist(), rel=1e-5)
    stack.backward(losses)
    for one, two in zip(alone, models, strict=True):
        for (name, weights), same in zip(one.named_parameters(), two.parameters(), strict=True):
            assert weights.grad is not None
            assert same.grad is not None
            assert torch.allclose(weights.grad, same.grad, atol=1e-5), name
        for name, seen in one.named_buffers():
            assert torch.allclose(two.get_buffer(name), seen, atol=1e-6), name


@pytest.mark.parametrize("nothing", [None, single_node()], ids=["no graph", "one node"])
def test_nothing_is_learnt_about_nodes_from_one_node_or_none(nothing: Batch | None) -> None:
    models = classifiers(2)
    before = deepcopy(models[1].state_dict())
    stack = Stack(models).train()
    losses = stack.losses(side_by_side([batch_of(0, 6), nothing]))
    stack.backward(losses)
    for name, seen in models[1].named_buffers():
        assert torch.equal(seen, before[name]), name
    gradients = [weights.grad for weights in models[1].parameters()]
    assert all(gradient is not None and gradient.isfinite().all() for gradient in gradients)
    if nothing is None:
        assert losses[1].item() == 0
        assert not any(gradient.any() for gradient in gradients if gradient is not None)
    else:
        other = classifiers(2)[1].train()
        assert losses[1].item() == pytest.approx(other.loss(nothing).item(), abs=1e-6)
    assert int(models[0].encoder.norms[0].get_buffer("num_batches_tracked")) == 1


def test_a_stack_may_have_one_classifier() -> None:
    (model,) = classifiers(1)
    assert stackable([model])
    expected = deepcopy(model).train().loss(batch_of(0, 6)).item()
    losses = Stack([model]).train().losses(side_by_side([batch_of(0, 6)]))
    assert losses.tolist() == pytest.approx([expected], rel=1e-5)


def test_weights_are_shared_both_ways() -> None:
    models = classifiers(2)
    stack = Stack(models)
    assert stack.network.scaler is models[0].scaler, "it may be fitted or restored later"
    with torch.no_grad():
        for weights in stack.parameters():
            weights.fill_(0.5)
    assert all((weights == 0.5).all() for model in models for weights in model.parameters())
    fresh = classifiers(1)[0].state_dict()
    models[1].load_state_dict(fresh)
    joined = stack.network.encoder.output.weight
    assert torch.equal(joined[1], fresh["encoder.output.weight"])
    assert (joined[0] == 0.5).all()
    models[1].encoder.norms[0].get_buffer("running_mean").fill_(7)
    assert stack.network.encoder.norms[0].get_buffer("running_mean")[:, 0].tolist() == [0.0, 7.0]


def test_what_cannot_be_stacked_is_known() -> None:
    assert stackable(classifiers())
    assert stackable(classifiers(edge_features=2))
    assert not stackable(classifiers(conv="gcn"))
    learnt = NetworkConfig(hidden_dim=8, gin_train_eps=True)
    assert not stackable(classifiers(config=learnt)), "epsilon is a weight that is in no layer"
    assert not stackable([torch.nn.Linear(2, 2)])
    assert stackable([BlindClassifier(Dims(3, 2), CONFIG, "gin")])

    class Stricter(Classifier):
        """With a loss of its own."""

    assert not stackable([Stricter(Dims(3, 2), CONFIG, "gin")])
    strangers = classifiers()
    strangers[1].scaler = deepcopy(strangers[0].scaler)
    assert not stackable(strangers)
