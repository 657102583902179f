"""Networks on neighbourhoods: the root is never removed, and its embedding is the readout."""

from copy import copy
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data
from torch_geometric.utils import k_hop_subgraph

from cores.config import ExplanationConfig, Reach, Removal, RunConfig
from cores.data.dataset import Dataset
from cores.data.nodes import NodeGraph, from_nodes
from cores.evaluation.effects import element_effects
from cores.graphs.batches import copies, cut
from cores.graphs.components import subgraph_pieces
from cores.graphs.masks import random_ratios, smooth_masks
from cores.graphs.subgraphs import Elements, roots_of
from cores.models.build import build_effects, build_model
from cores.models.committee import Committee
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


def network(dataset: Dataset, removal: Removal, max_pieces: int = 0) -> SparseClassifier:
    torch.manual_seed(0)
    config = RunConfig.from_settings(
        {
            "model": f"cores-{removal}",
            "network": {"hidden_dim": 8, "num_layers": 2},
            "reward": {"max_pieces": max_pieces},
        }
    )
    model = build_model(config, dataset.dims)
    assert isinstance(model, SparseClassifier)
    for name, head in model.policy.named_children():
        if name.endswith("_head"):
            torch.nn.init.normal_(head.weight)
            torch.nn.init.constant_(head.bias, 3.0)  # it wants to remove nearly everything
    return model.eval().showing(ExplanationConfig(parts="policy", class_from="part"))


@pytest.mark.parametrize("removal", ["node", "both"])
def test_the_root_has_no_effect_since_no_mask_tells_one(dataset: Dataset, removal: Removal) -> None:
    model = network(dataset, removal)
    config = RunConfig.from_settings({"model": f"cores-{removal}", "network": {"hidden_dim": 8}})
    model.effects = build_effects(config, dataset.dims, model.scaler)
    for weights in model.effects.parameters():
        torch.nn.init.normal_(weights)
    effects = element_effects(model, dataset.graphs)
    assert effects is not None
    assert effects.nodes is not None
    roots = roots_of(everything(dataset))
    assert (effects.nodes[roots] == 0).all()
    assert (effects.nodes[~roots] != 0).any()


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
    assert isinstance(model.classifier, Committee)
    classifier = model.classifier.members[0]
    h = classifier.embed(classifier.encoder, batch)
    expected = classifier.head(h[batch.ptr[:-1]])
    torch.testing.assert_close(classifier.logits(batch), expected)


def test_what_is_made_of_a_batch_still_knows_its_roots(dataset: Dataset) -> None:
    batch = everything(dataset)
    made = [copies(batch, 2), *cut(batch, 7), Elements.of(batch, "edge").batch]
    made += [network(dataset, "node").choose(batch).subgraph.batch]
    for each in made:
        protected = Elements.of(each, "node").protected
        assert protected is not None
        assert int(protected.sum()) == each.num_graphs
    assert Elements.of(without_roots(), "node").protected is None


def without_roots() -> Batch:
    return Batch.from_data_list([Data(torch.ones(2, 1), torch.tensor([[0, 1], [1, 0]]))])


def test_decisions_that_are_none_have_no_part_in_the_objective(dataset: Dataset) -> None:
    batch = everything(dataset)
    rollout = collect(network(dataset, "node").policy, batch, samples=2)
    roots = roots_of(batch)
    assert bool((rollout.log_probs[:, roots] == 0).all())
    assert bool((rollout.log_probs[:, ~roots] < 0).all())


def random_graph(seed: int) -> Data:
    """Any graph: with loops, repeated edges, and edges that have one direction."""
    random = torch.Generator().manual_seed(seed)
    nodes = 25
    ends = torch.randint(nodes, (2, 40), generator=random)
    edge_index = torch.cat([ends, ends[:, ::2].flip(0)], dim=1)
    return Data(
        x=torch.randn(nodes, 3, generator=random),
        edge_index=edge_index,
        edge_attr=torch.randn(edge_index.size(1), 2, generator=random),
        y=torch.arange(nodes) % 2,
    )


@pytest.mark.parametrize("removal", REMOVALS)
@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**31), st.integers(0, 24))
def test_nothing_outside_of_the_neighbourhood_changes_a_prediction(
    removal: Removal, seed: int, root: int
) -> None:
    data, reach = random_graph(seed), Reach(2, 0)
    inside, _, _, near = k_hop_subgraph(root, 2, data.edge_index, num_nodes=data.num_nodes)
    far = torch.ones(data.num_nodes, dtype=torch.bool)
    far[inside] = False
    other = copy(data)  # what is far has other features, and none of its edges
    other.x = torch.where(far[:, None], 1e6, data.x)
    other.edge_index, other.edge_attr = data.edge_index[:, near], data.edge_attr[near]
    other.y = torch.zeros_like(data.y)
    model = network(from_nodes(data, reach=reach), removal)
    found = [
        model.predict(
            NodeGraph(each).neighbourhoods(torch.tensor([root]), reach).batch(torch.tensor([0]))
        )
        for each in (data, other)
    ]
    assert torch.equal(found[0].probs, found[1].probs)
    assert torch.equal(found[0].subgraph.removed_edges, found[1].subgraph.removed_edges)


@pytest.mark.parametrize("removal", REMOVALS)
@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**31), st.integers(0, 24))
def test_a_prediction_is_that_of_a_graph_without_what_was_removed(
    removal: Removal, seed: int, root: int
) -> None:
    """The classifier is given a graph that is put together from what is kept, and nothing else."""
    data, reach = random_graph(seed), Reach(2, 0)
    dataset = from_nodes(data, reach=reach)
    model = network(dataset, removal)
    graph = dataset[root]
    seen = model.predict(graph)
    nodes = graph.node_id[~seen.subgraph.removed_nodes].sort().values
    ends = graph.node_id[graph.edge_index[:, ~seen.subgraph.removed_edges]]
    rebuilt = Data(
        x=torch.cat([data.x[nodes], (nodes == root)[:, None].float()], dim=1),
        edge_index=torch.searchsorted(nodes, ends),
        edge_attr=graph.edge_attr[~seen.subgraph.removed_edges],
    )
    probs = model.classifier(rebuilt).softmax(dim=-1)
    torch.testing.assert_close(probs, seen.probs, atol=1e-6, rtol=0)


@pytest.mark.parametrize("removal", REMOVALS)
def test_a_limit_on_pieces_leaves_one_that_has_the_root(removal: Removal) -> None:
    """A path whose root, at one end, is cut off from a longer piece with better scores."""
    ends = torch.stack([torch.arange(6), torch.arange(1, 7)])
    path = Data(torch.ones(7, 1), torch.cat([ends, ends.flip(0)], dim=1), y=torch.arange(7) % 2)
    dataset = from_nodes(path, reach=Reach(6, 0))
    model = network(dataset, removal, max_pieces=1)
    elements = Elements.of(dataset.graphs.batch(torch.tensor([0])), removal)
    removed = torch.zeros(len(elements.owner), dtype=torch.bool)
    removed[2] = True  # the third node, or the third edge
    left = elements.subgraph(model.policy.connected(elements, removed, torch.ones(len(removed))))
    assert int(roots_of(left.batch).sum()) == 1
    assert left.batch.edge_index.min() == 0
    assert subgraph_pieces(left.batch, removal).tolist() == [1]
    assert left.batch.edge_index.size(1) == (4 if removal == "edge" else 2)
