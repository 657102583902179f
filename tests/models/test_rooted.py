"""Networks on neighbourhoods: the root is never removed, and its embedding is the readout."""

from copy import copy
from typing import Any

import pytest
import torch
from torch_geometric.data import Batch, Data

from cores.config import Reach, Removal, RunConfig
from cores.data.dataset import Dataset
from cores.data.nodes import from_nodes
from cores.graphs.batches import copies, cut
from cores.graphs.masks import random_ratios, smooth_masks
from cores.graphs.subgraphs import Elements, roots_of
from cores.models.build import build_model
from cores.models.sparse import SparseClassifier
from cores.ppo import collect
from cores.training.effects import random_masks

REMOVALS: list[Any] = ["node", "edge", "both"]


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    random = torch.Generator().manual_seed(0)
    ends = torch.randint(40, (2, 90), generator=random)
    return from_nodes(
        Data(
            x=torch.randn(40, 3, generator=random),
            edge_index=torch.cat([ends, ends.flip(0)], dim=1).unique(dim=1),
            y=torch.arange(40) % 2,
        ),
        reach=Reach(2, 5),
    )


def network(dataset: Dataset, removal: Removal) -> SparseClassifier:
    torch.manual_seed(0)
    config = RunConfig.from_settings(
        {"model": f"cores-{removal}", "network": {"hidden_dim": 8, "num_layers": 2}}
    )
    model = build_model(config, dataset.dims)
    assert isinstance(model, SparseClassifier)
    for name, head in model.policy.named_children():
        if name.endswith("_head"):
            torch.nn.init.normal_(head.weight)
            torch.nn.init.constant_(head.bias, 3.0)  # it wants to remove nearly everything
    return model.eval()


def everything(dataset: Dataset) -> Batch:
    return dataset.graphs.batch(torch.arange(len(dataset)))


@pytest.mark.parametrize("removal", REMOVALS)
def test_the_root_is_never_removed(dataset: Dataset, removal: Removal) -> None:
    model, batch = network(dataset, removal), everything(dataset)
    roots = roots_of(batch)
    assert int(roots.sum()) == len(dataset)
    elements = Elements.of(batch, removal)
    rollout = collect(model.policy, batch, samples=4)
    masks = [
        model.choose(batch).removed,
        model.choose(batch, sample=True).removed,
        smooth_masks(elements, random_ratios(elements)),
        smooth_masks(elements, torch.zeros(len(dataset))),
        random_masks(elements),
        *rollout.removed,
    ]
    for removed in masks:
        nodes = elements.subgraph(removed).removed_nodes
        assert not bool((nodes & roots).any())
        assert removal == "edge" or bool(removed.any())


@pytest.mark.parametrize("removal", REMOVALS)
def test_whoever_gives_tensors_need_not_say_that_there_are_roots(
    dataset: Dataset, removal: Removal
) -> None:
    model, batch = network(dataset, removal), everything(dataset)
    plain = model(batch.x, batch.edge_index, batch=batch.batch)
    assert torch.equal(plain, model(batch))


@pytest.mark.parametrize("removal", REMOVALS)
def test_nothing_that_is_removed_reaches_the_classifier(dataset: Dataset, removal: Removal) -> None:
    model, batch = network(dataset, removal), everything(dataset)
    choice = model.choose(batch)
    gone = choice.subgraph.removed_nodes
    changed = copy(choice.elements.batch)
    changed.x = torch.where(gone[:, None], torch.randn_like(batch.x), batch.x)
    again = Elements.of(changed, removal).subgraph(choice.removed).batch
    assert removal == "edge" or bool(gone.any())
    seen = model.classifier.logits(choice.subgraph.batch)
    assert torch.equal(seen, model.classifier.logits(again))


def test_the_random_control_keeps_the_root(dataset: Dataset) -> None:
    config = RunConfig.from_settings({"model": "random", "network": {"hidden_dim": 8}})
    model, batch = build_model(config, dataset.dims), everything(dataset)
    for training in (False, True):
        removed = model.train(training).prediction(batch).subgraph.removed_nodes
        assert bool(removed.any())
        assert not bool((removed & roots_of(batch)).any())


def test_the_readout_is_the_embedding_of_the_root(dataset: Dataset) -> None:
    model, batch = network(dataset, "node"), everything(dataset)
    classifier = model.classifier
    h = classifier.embed(classifier.encoder, batch)
    expected = classifier.head(h[batch.ptr[:-1]])
    torch.testing.assert_close(classifier.logits(batch), expected)


def test_what_is_made_of_a_batch_still_knows_its_roots(dataset: Dataset) -> None:
    batch = everything(dataset)
    made = [copies(batch, 2), *cut(batch, 7), Elements.of(batch, "edge").batch]
    made += [network(dataset, "node").choose(batch).subgraph.batch]
    for each in made:
        spared = Elements.of(each, "node").spared
        assert spared is not None
        assert int(spared.sum()) == each.num_graphs
    assert Elements.of(without_roots(), "node").spared is None


def without_roots() -> Batch:
    return Batch.from_data_list([Data(torch.ones(2, 1), torch.tensor([[0, 1], [1, 0]]))])


def test_decisions_that_are_none_have_no_part_in_the_objective(dataset: Dataset) -> None:
    batch = everything(dataset)
    rollout = collect(network(dataset, "node").policy, batch, samples=2)
    roots = roots_of(batch)
    assert bool((rollout.log_probs[:, roots] == 0).all())
    assert bool((rollout.log_probs[:, ~roots] < 0).all())
