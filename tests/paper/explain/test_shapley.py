"""Sampled Shapley values against exact ones, on graphs of a few nodes."""

from itertools import combinations, permutations
from math import factorial

import pytest
import torch

from cores.config import NetworkConfig
from cores.data.dataset import Dims
from cores.graphs.store import GraphStore
from cores.graphs.subgraphs import remove_nodes
from cores.models.classifier import Classifier
from cores_paper.explain import shapley
from cores_paper.explain.shapley import contributions, shapley_values


def graphs() -> GraphStore:
    """A path of four nodes with a triangle's edge, a single node, and an edge."""
    random = torch.Generator().manual_seed(0)
    return GraphStore(
        x=2 * torch.randn(7, 3, generator=random),
        edge_index=torch.tensor([[0, 1, 1, 2, 2, 3, 0, 2, 0, 1], [1, 0, 2, 1, 3, 2, 2, 0, 1, 0]]),
        y=torch.tensor([0, 1, 1]),
        node_ptr=torch.tensor([0, 4, 5, 7]),
        edge_ptr=torch.tensor([0, 8, 8, 10]),
    )


def classifier() -> Classifier:
    torch.manual_seed(0)
    network = NetworkConfig(hidden_dim=8, num_layers=2)
    return Classifier(Dims(num_features=3, num_classes=2), network, "gin").eval()


CLASSES = torch.tensor([0, 1, 0])


@torch.no_grad()
def value(model: Classifier, index: int, nodes: tuple[int, ...]) -> float:
    """Probability of the class from the subgraph of some nodes."""
    batch = graphs().batch(torch.tensor([index]))
    removed = torch.ones(batch.x.size(0), dtype=torch.bool)
    removed[list(nodes)] = False
    probs = model(remove_nodes(batch, removed)).softmax(dim=-1)
    return float(probs[0, CLASSES[index]])


def exact(model: Classifier) -> list[float]:
    """By the formula, over all subsets."""
    found = []
    for index, size in enumerate(graphs().num_nodes.tolist()):
        for node in range(size):
            others = [other for other in range(size) if other != node]
            total = 0.0
            for count in range(size):
                weight = factorial(count) * factorial(size - count - 1) / factorial(size)
                for chosen in combinations(others, count):
                    added = value(model, index, (*chosen, node)) - value(model, index, chosen)
                    total += weight * added
            found.append(total)
    return found


def test_the_mean_over_all_orders_is_the_shapley_value() -> None:
    model, store = classifier(), graphs()
    orders = [
        torch.tensor([*first, 0, *last])
        for first in permutations(range(4))
        for last in permutations(range(2))
    ]
    mean = torch.stack([contributions(model, store, CLASSES, rank) for rank in orders]).mean(dim=0)
    assert mean.tolist() == pytest.approx(exact(model), abs=1e-5)


def test_sampling_comes_close_to_the_shapley_value() -> None:
    model, random = classifier(), torch.Generator().manual_seed(0)
    found = shapley_values(model, graphs(), CLASSES, 2000, random)
    expected = exact(model)
    assert max(expected) - min(expected) > 0.1
    assert found.tolist() == pytest.approx(expected, abs=0.02)


def test_values_add_up_and_do_not_depend_on_how_much_is_classified_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, store = classifier(), graphs()
    found = []
    for most in (10**6, 7, 1):
        monkeypatch.setattr(shapley, "MOST_ITEMS", most)
        random = torch.Generator().manual_seed(3)
        found.append(shapley_values(model, store, CLASSES, 3, random))
    assert torch.allclose(found[0], found[1], atol=1e-6)
    assert torch.allclose(found[0], found[2], atol=1e-6)
    for index, nodes in enumerate(found[0].split([4, 1, 2])):
        gained = value(model, index, tuple(range(len(nodes)))) - value(model, index, ())
        assert float(nodes.sum()) == pytest.approx(gained, abs=1e-5)
