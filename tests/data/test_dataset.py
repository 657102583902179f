"""A dataset is a sequence of PyG graphs, indexed as PyG indexes its own."""

from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from cores.data.dataset import Dataset, Dims
from cores.data.synthetic import ba_motifs
from cores.graphs.store import GraphStore


@pytest.fixture
def dataset() -> Dataset:
    """Twelve graphs of five to sixteen nodes, each with its own number as a feature."""
    graphs = [
        Data(
            x=torch.tensor([[float(number), 1.0]]).expand(number + 5, 2),
            edge_index=torch.tensor([[0, 1], [1, 0]]),
            edge_attr=torch.ones(2, 3),
            y=torch.tensor([number % 2]),
        )
        for number in range(12)
    ]
    names = ("number", "one"), ("a", "b", "c")
    return Dataset("twelve", GraphStore.from_graphs(graphs), ("even", "odd"), *names, (0,))


def numbers(dataset: Dataset) -> list[int]:
    return [int(graph.x[0, 0]) for graph in dataset]


MASK = [True, False, False] * 4


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (slice(3), [0, 1, 2]),
        (slice(-2, None), [10, 11]),
        (slice(None, None, 5), [0, 5, 10]),
        (slice(5, 5), []),
        (slice(None, None, -1), list(range(11, -1, -1))),
        ([7, 2, 2], [7, 2, 2]),
        ([-1, 0], [11, 0]),
        ([], []),
        (range(2, 5), [2, 3, 4]),
        (torch.tensor([7, 2, 2]), [7, 2, 2]),
        (np.array([7, -12]), [7, 0]),
        (MASK, [0, 3, 6, 9]),
        (torch.tensor(MASK), [0, 3, 6, 9]),
        (np.array(MASK), [0, 3, 6, 9]),
    ],
    ids=str,
)
def test_several_graphs_are_a_dataset_like_the_whole(
    dataset: Dataset, index: Any, expected: list[int]
) -> None:
    chosen = dataset[index]
    assert isinstance(chosen, Dataset)
    assert numbers(chosen) == expected
    assert len(chosen) == len(expected)
    assert chosen.graphs.y.tolist() == [number % 2 for number in expected]
    for name in ("name", "class_names", "feature_names", "edge_feature_names", "continuous"):
        assert getattr(chosen, name) == getattr(dataset, name), name
    assert chosen.dims == dataset.dims


@pytest.mark.parametrize("index", [4, -8, np.int64(4), torch.tensor(4), torch.tensor(-8)], ids=repr)
def test_a_number_of_any_kind_is_one_graph(dataset: Dataset, index: Any) -> None:
    graph = dataset[index]
    assert isinstance(graph, Data)
    assert graph.x[:, 0].tolist() == [4.0] * 9
    assert graph.edge_attr.shape == (2, 3)
    assert graph.y.tolist() == [0]


@pytest.mark.parametrize("index", [12, -13, [0, 12], [True], torch.tensor([True] * 13)], ids=str)
def test_a_graph_that_is_not_there_is_an_index_error(dataset: Dataset, index: Any) -> None:
    with pytest.raises(IndexError):
        dataset[index]


def test_choosing_changes_nothing_of_the_whole(dataset: Dataset) -> None:
    before = dataset.fingerprint
    dataset[2:4].graphs.x.zero_()
    assert dataset.fingerprint == before


def test_a_loop_ends_after_the_last_graph(dataset: Dataset) -> None:
    assert numbers(dataset) == list(range(12))


def test_a_dataset_names_its_sizes_as_pyg_does(dataset: Dataset) -> None:
    assert (dataset.num_features, dataset.num_node_features) == (2, 2)
    assert (dataset.num_edge_features, dataset.num_classes) == (3, 2)
    assert dataset.dims == Dims(num_features=2, num_classes=2, num_edge_features=3)


def test_labels_are_the_class_names_unless_they_were_given(dataset: Dataset) -> None:
    assert dataset.labels == ("even", "odd")
    graphs, names = ba_motifs(num_graphs=2), ("0", "1")
    assert Dataset("motifs", graphs, names, ("a",) * 10, labels=(0, 1)).labels == (0, 1)


def test_a_dataset_is_shown_in_one_line(dataset: Dataset) -> None:
    assert repr(dataset) == "Dataset(twelve: 12 graphs, 2 features, 2 classes)"
    assert repr(dataset[:3]) == "Dataset(twelve: 3 graphs, 2 features, 2 classes)"


def test_half_a_graph_is_refused(dataset: Dataset) -> None:
    with pytest.raises(IndexError, match="whole numbers"):
        dataset[1.5]
