"""Lists of graphs from Python: what is read of them, and how a bad one is named."""

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from cores.data.datasets import load_dataset
from cores.data.lists import from_graphs
from cores.errors import UserError

PAIR = torch.tensor([[0, 1], [1, 0]])
NAN = float("nan")


def pyg(**changes: Any) -> Data:
    """Two joined nodes with one feature and label 0, with some of it changed or, by None, gone."""
    attributes = {"x": torch.ones(2, 1), "edge_index": PAIR, "y": torch.tensor([0])} | changes
    return Data(**{name: value for name, value in attributes.items() if value is not None})


def path(nodes: int, y: Any = 0, kind: type[nx.Graph] = nx.Graph, **changes: Any) -> nx.Graph:
    """A path with label y; changes are attributes of its nodes (x) or edges (edge_attr)."""
    graph = nx.path_graph(nodes, create_using=kind)
    graph.graph["y"] = y
    if "x" in changes:
        nx.set_node_attributes(graph, changes["x"], "x")
    if "edge_attr" in changes:
        nx.set_edge_attributes(graph, changes["edge_attr"], "edge_attr")
    return graph


def test_pyg_graphs_are_read_with_all_they_carry() -> None:
    first = pyg(
        x=torch.tensor([[0.5, 1.0], [2.0, 0.0]]),
        edge_attr=torch.tensor([[3.0], [4.0]]),
        node_truth=torch.tensor([True, False]),
        edge_truth=torch.tensor([True, True]),
        y=torch.tensor([7]),
    )
    second = pyg(
        x=torch.tensor([[1.5, 1.0]]),
        edge_index=PAIR[:, :0],
        edge_attr=torch.empty(0, 1),
        node_truth=torch.tensor([True]),
        edge_truth=torch.tensor([], dtype=torch.bool),
        y=torch.tensor([-2]),
    )
    dataset = from_graphs([first, second])
    assert dataset.labels == (-2, 7)
    assert dataset.class_names == ("-2", "7")
    assert dataset.graphs.y.tolist() == [1, 0]
    for ours, theirs in zip(dataset, (first, second), strict=True):
        for name in ("x", "edge_index", "edge_attr", "node_truth", "edge_truth"):
            assert torch.equal(ours[name], theirs[name]), name
    assert dataset.feature_names == ("feature 0", "feature 1")
    assert dataset.edge_feature_names == ("feature 0",)


def test_a_node_id_of_the_users_is_no_neighbourhood() -> None:
    dataset = from_graphs(
        [pyg(node_id=torch.tensor([7, 8]), y=torch.tensor([at])) for at in (0, 1)]
    )
    assert not dataset.dims.rooted
    from_graphs([pyg(node_id=["a", "b"]), pyg(y=torch.tensor([1]))])  # nor read at all


def test_nothing_of_the_given_graphs_is_changed() -> None:
    graphs = [pyg(x=None, num_nodes=2), pyg(x=None, num_nodes=2, y=torch.tensor([1]))]
    before = [set(graph.keys()) for graph in graphs]
    from_graphs(graphs)
    assert [set(graph.keys()) for graph in graphs] == before


def test_columns_that_are_neither_constant_nor_binary_are_standardised() -> None:
    first = pyg(x=torch.tensor([[0.0, 5.0, 0.1, 2.0], [1.0, 5.0, 0.2, 0.0]]))
    second = pyg(x=torch.tensor([[1.0, 5.0, 7.0, 1.0]]), edge_index=PAIR[:, :0])
    assert from_graphs([first, second], y=[0, 1]).continuous == (2, 3)


def test_any_numbers_serve_as_features() -> None:
    one_column = from_graphs([pyg(x=torch.tensor([3, 4])), pyg(x=torch.tensor([5, 6]))])
    assert one_column.graphs.x.tolist() == [[3.0], [4.0], [5.0], [6.0]]


def test_a_graph_of_nothing_but_edges_has_the_nodes_that_they_name() -> None:
    found = from_graphs([pyg(x=None), pyg(x=None, y=torch.tensor([1]))])
    assert found.graphs.num_nodes.tolist() == [2, 2]


def test_graphs_without_features_get_a_constant_one() -> None:
    graphs = [pyg(x=None, num_nodes=2), pyg(x=None, edge_index=None, num_nodes=3)]
    dataset = from_graphs(graphs, y=["a", "b"])
    assert dataset.graphs.x.tolist() == [[1.0]] * 5
    assert dataset.graphs.num_edges.tolist() == [2, 0]


@pytest.mark.parametrize(
    "y",
    [["b", "a", "b"], ("b", "a", "b"), np.array(["b", "a", "b"])],
    ids=["list", "tuple", "numpy"],
)
def test_labels_given_beside_the_graphs_come_before_their_own(y: Any) -> None:
    dataset = from_graphs([pyg() for _ in range(3)], y=y)
    assert dataset.labels == ("a", "b")
    assert dataset.graphs.y.tolist() == [1, 0, 1]


@pytest.mark.parametrize("y", [torch.tensor([4, 2]), np.array([4, 2]), [4, np.int64(2)]], ids=repr)
def test_numbers_of_any_kind_are_labels(y: Any) -> None:
    dataset = from_graphs([pyg(), pyg()], y=y)
    assert dataset.labels == (2, 4)
    assert [type(label) for label in dataset.labels] == [int, int]


def test_a_dataset_is_taken_as_it_is_and_may_be_labelled_anew() -> None:
    motifs = load_dataset("motifs")
    assert from_graphs(motifs) is motifs
    relabelled = from_graphs(motifs[:3], y=["x", "y", "x"])
    assert relabelled.graphs.y.tolist() == [0, 1, 0]
    assert torch.equal(relabelled.graphs.edge_index, motifs[:3].graphs.edge_index)


def test_any_iterable_of_graphs_will_do() -> None:
    assert len(from_graphs(pyg() for _ in range(3))) == 3


def test_an_undirected_networkx_edge_is_there_in_both_directions() -> None:
    (graph,) = from_graphs([path(3, x={0: [1.0, 2.0], 1: [3.0, 4.0], 2: [5.0, 6.0]})])
    ends = {tuple(edge) for edge in graph.edge_index.T.tolist()}
    assert ends == {(0, 1), (1, 0), (1, 2), (2, 1)}
    assert graph.x.tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


def test_a_loop_of_an_undirected_graph_is_one_edge() -> None:
    graph = path(2)
    graph.add_edge(1, 1)
    ends = from_graphs([graph])[0].edge_index.T.tolist()
    assert sorted(ends) == [[0, 1], [1, 0], [1, 1]]


def test_a_directed_networkx_edge_is_there_in_its_own_direction() -> None:
    (graph,) = from_graphs([path(3, kind=nx.DiGraph, edge_attr={(0, 1): 0.5, (1, 2): 2.0})])
    assert graph.edge_index.T.tolist() == [[0, 1], [1, 2]]
    assert graph.edge_attr.tolist() == [[0.5], [2.0]]


def test_features_of_an_undirected_networkx_edge_are_those_of_both_directions() -> None:
    (graph,) = from_graphs([path(3, edge_attr={(0, 1): [1.0, 0.0], (1, 2): [0.0, 1.0]})])
    by_ends = dict(zip(map(tuple, graph.edge_index.T.tolist()), graph.edge_attr, strict=True))
    assert by_ends[0, 1].tolist() == by_ends[1, 0].tolist() == [1.0, 0.0]
    assert by_ends[1, 2].tolist() == by_ends[2, 1].tolist() == [0.0, 1.0]


def test_networkx_nodes_of_any_name_are_counted_in_their_own_order() -> None:
    graph = nx.Graph(y="acid")
    graph.add_node("O", x=8)
    graph.add_node("C", x=6)
    graph.add_edge("C", "O")
    (read,) = from_graphs([graph])
    assert read.x.tolist() == [[8.0], [6.0]]
    assert sorted(read.edge_index.T.tolist()) == [[0, 1], [1, 0]]


@pytest.mark.parametrize("name", ["y", "label"])
def test_a_networkx_graph_holds_its_label(name: str) -> None:
    graphs = [nx.path_graph(2), nx.path_graph(3)]
    for graph, label in zip(graphs, ("toxic", "mild"), strict=True):
        graph.graph[name] = label
    dataset = from_graphs(graphs)
    assert dataset.labels == ("mild", "toxic")
    assert dataset.graphs.y.tolist() == [1, 0]


def test_a_networkx_graph_without_edges_goes_with_others_whose_edges_have_features() -> None:
    """A single atom has no bond, and nothing is wrong with it."""
    dataset = from_graphs([path(3, edge_attr=2.0), path(1, y=1)])
    assert dataset.graphs.num_edges.tolist() == [4, 0]
    assert dataset.graphs.edge_attr.tolist() == [[2.0]] * 4


@pytest.mark.parametrize("things", ["MUTAG", None, 3, pyg()], ids=["text", "None", "int", "Data"])
def test_what_is_no_list_of_graphs_is_named_by_its_type(things: Any) -> None:
    kind = type(things).__name__
    with pytest.raises(UserError, match=f"give a list of graphs, got a {kind}"):
        from_graphs(things)


def test_an_empty_list_is_refused() -> None:
    with pytest.raises(UserError, match="the list of graphs is empty"):
        from_graphs([])


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "other width": (lambda: pyg(x=torch.ones(2, 3)), "has 3 node features, graph 0 has 1"),
    "no features": (lambda: pyg(x=None, num_nodes=2), "has no node features x, others have"),
    "no columns": (lambda: pyg(x=torch.ones(2, 0)), "has node features without columns"),
    "no label": (lambda: pyg(y=None), "has no label; set its y, or give `y`"),
    "NaN": (
        lambda: pyg(x=torch.tensor([[1.0], [NAN]])),
        "has NaN, infinite or too large node features",
    ),
    "infinite": (
        lambda: pyg(x=torch.tensor([[1.0], [-torch.inf]])),
        "has NaN, infinite or too large node",
    ),
    "float label": (lambda: pyg(y=torch.tensor([1.0])), "has the label 1.0, a float"),
    "NaN label": (lambda: pyg(y=torch.tensor([NAN])), "has the label nan, a float"),
    "two labels": (lambda: pyg(y=torch.tensor([0, 1])), r"has the label \[0, 1\]; a graph has one"),
    "text among numbers": (lambda: pyg(y="toxic"), "text"),
    "no nodes": (lambda: pyg(x=torch.empty(0, 1), edge_index=PAIR[:, :0]), "has no nodes"),
    "edge too high": (lambda: pyg(edge_index=PAIR + 1), "names a node that is not there .of 2"),
    "edge below 0": (lambda: pyg(edge_index=PAIR - 1), "names a node that is not there .of 2"),
    "one row of ends": (lambda: pyg(edge_index=PAIR[:1]), r"two rows, got torch.int64 .*\(1, 2\)"),
    "flat ends": (lambda: pyg(edge_index=PAIR.flatten()), r"two rows, got torch.int64 .*\(4,\)"),
    "float ends": (lambda: pyg(edge_index=PAIR.float()), "two rows, got torch.float32"),
    "too many rows": (lambda: pyg(x=torch.ones(3, 1), num_nodes=2), "has 2 nodes and 3 rows of x"),
    "one number": (lambda: pyg(x=torch.tensor(1.0)), "x must be a dense tensor of real numbers"),
    "complex features": (lambda: pyg(x=torch.ones(2, 1) * 1j), "x must be a dense tensor of real"),
    "sparse features": (lambda: pyg(x=torch.ones(2, 1).to_sparse()), "x must be a dense tensor"),
    "no values": (lambda: pyg(x=torch.ones(2, 1, device="meta")), "x must be a dense tensor"),
    "sparse ends": (lambda: pyg(edge_index=PAIR.to_sparse()), "edge_index must be a dense tensor"),
    "true ends": (lambda: pyg(edge_index=PAIR.bool()), "whole numbers in two rows, got torch.bool"),
    "two numbers of nodes": (lambda: pyg(num_nodes=torch.ones(2)), "num_nodes must be a whole"),
    "a number far too high": (lambda: pyg(x=None, num_nodes=2**45), "nodes without features, not"),
    "an edge far too high": (lambda: pyg(x=None, edge_index=PAIR * 2**45), "without features, not"),
    "cubic features": (lambda: pyg(x=torch.ones(2, 1, 3)), "rows of x"),
    "NumPy features": (lambda: pyg(x=np.ones((2, 1))), "tensor"),
    "NumPy ends": (lambda: pyg(edge_index=PAIR.numpy()), "tensor"),
    "edge features": (lambda: pyg(edge_attr=torch.ones(2, 1)), "other edge features than graph 0"),
    "node truth": (lambda: pyg(node_truth=torch.tensor([True] * 3)), "node_truth"),
    "edge truth": (lambda: pyg(edge_truth=torch.tensor([True] * 3)), "edge_truth"),
    "a number": (lambda: 3, "is a int; give PyG Data, networkx graphs or SMILES"),
    "networkx without nodes": (lambda: nx.Graph(y=0), "has no nodes"),
    "networkx with words": (lambda: path(2, x="C"), "must be as many numbers on every node"),
    "networkx with gaps": (lambda: path(2, x={0: [1.0, 2.0]}), "as many numbers on every node"),
}


@pytest.mark.parametrize(("make", "message"), BAD.values(), ids=BAD)
def test_a_bad_graph_is_named_by_its_number(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(UserError, match=rf"graph 2\b.*{message}"):
        from_graphs([pyg(), pyg(), make(), pyg()])


def test_edge_features_that_do_not_fit_the_edges_are_named() -> None:
    good, long = pyg(edge_attr=torch.ones(2, 1)), pyg(edge_attr=torch.ones(3, 1))
    with pytest.raises(UserError, match="graph 1 has 2 edges and 3 rows of edge_attr"):
        from_graphs([good, long])
    wide = pyg(edge_attr=torch.ones(2, 2))
    with pytest.raises(UserError, match="graph 1 has other edge features than graph 0"):
        from_graphs([good, wide])
    unknown = pyg(edge_attr=torch.tensor([[1.0], [NAN]]))
    with pytest.raises(UserError, match="graph 1 has NaN, infinite or too large edge features"):
        from_graphs([good, unknown])


def test_truth_values_among_numbers_are_numbers() -> None:
    assert from_graphs([pyg(), pyg()], [True, False]).labels == (False, True)
    mixed = from_graphs([pyg(), pyg()], [True, 2]).labels
    assert [type(label) for label in mixed] == [int, int]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0], "`y` has 1 labels for 2 graphs"),
        ([0, 1, 2], "`y` has 3 labels for 2 graphs"),
        ([0, 0.5], "graph 1 has the label 0.5, a float"),
        ([0, None], "graph 1 has the label None"),
        ([0, 2**63], "a label is too large a number"),
        (["a", "\ud800"], "or holds half a character"),
        ([[0], [0, 1]], r"graph 1 has the label \[0, 1\]"),
        ("ab", "`y`"),
        (5, "`y`"),
    ],
    ids=str,
)
def test_labels_that_do_not_fit_are_named(y: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        from_graphs([pyg(), pyg()], y=y)


def test_features_that_a_gradient_flows_through_are_copied_without_it() -> None:
    graph = pyg(x=torch.ones(2, 1, requires_grad=True))
    assert not from_graphs([graph, pyg(y=1)]).graphs.x.requires_grad
    assert graph.x.requires_grad


def test_a_graph_whose_edges_are_in_a_sparse_tensor_is_refused() -> None:
    graph = Data(x=torch.ones(2, 1), adj_t=torch.ones(2, 2).to_sparse(), y=0)
    with pytest.raises(UserError, match="graph 1 has an adj_t and no edge_index"):
        from_graphs([pyg(), graph])
