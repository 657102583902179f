"""One graph whose nodes are classified, as a dataset."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Batch, Data

from cores import UserError, load_dataset
from cores.config import Reach
from cores.data.lists import from_graphs
from cores.data.nodes import from_nodes
from cores.data.synthetic import NODE_GRAPHS


def ring(nodes: int = 12, **more: Any) -> Data:
    """A cycle; every third node has another class, and a feature that says so."""
    place = torch.arange(nodes)
    ends = torch.stack([place, (place + 1) % nodes])
    y = (place % 3 == 0).long()
    x = torch.stack([y.float(), place.float()], dim=1)
    return Data(x=x, edge_index=torch.cat([ends, ends.flip(0)], dim=1), y=y, **more)


def masks(*parts: list[int]) -> dict[str, torch.Tensor]:
    found = {}
    for name, part in zip(("train_mask", "val_mask", "test_mask"), parts, strict=True):
        found[name] = torch.zeros(12, dtype=torch.bool)
        found[name][part] = True
    return found


def test_every_labelled_node_is_a_graph_with_itself_marked() -> None:
    data = ring()
    data.y[[4, 5]] = -1
    dataset = from_nodes(data, reach=Reach(1, 0))
    assert dataset.ids == tuple(str(node) for node in range(12) if node not in (4, 5))
    graph = dataset[0]
    assert graph.node_id.tolist() == [0, 1, 11]
    assert graph.x[:, -1].tolist() == [1, 0, 0]
    assert torch.equal(graph.x[:, :2], data.x[graph.node_id])
    assert dataset.feature_names == ("feature 0", "feature 1", "the node itself")
    assert dataset.dims.rooted
    # those without a label are context
    assert 4 in dataset[3].node_id.tolist()
    # A list of them is what they are, out of a loader, too.
    listed = from_graphs([Batch.from_data_list(list(dataset))])
    assert listed.dims == dataset.dims
    assert torch.equal(listed.graphs.node_id, dataset.graphs.node_id)


def test_masks_are_the_parts() -> None:
    dataset = from_nodes(ring(**masks([0, 1, 2, 3], [5, 6], [8, 9])), reach=Reach(1, 0))
    assert dataset.ids == ("0", "1", "2", "3", "5", "6", "8", "9")
    assert dataset.given_parts == ("train",) * 4 + ("val",) * 2 + ("test",) * 2


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"y": None}, "the nodes have no labels"),
        ({"y": torch.zeros(5, dtype=torch.int64)}, "`y` has 5 labels for 12 nodes"),
        ({"y": torch.zeros(12)}, "y holds floats"),
        ({"y": torch.full((12,), -1)}, "no node has a label"),
        ({"train_mask": torch.ones(12)}, "train_mask must hold a truth value for each of 12"),
        ({"train_mask": torch.ones(12, 2).bool()}, r"got torch.bool of shape \(12, 2\)"),
        ({"train_mask": torch.ones(12).bool()}, "test_mask is missing"),
        (
            {"train_mask": torch.ones(12).bool(), "test_mask": torch.ones(12).bool()},
            "node 0 is in train_mask and in test_mask",
        ),
        ({"x": torch.full((12, 1), torch.nan)}, "node 0 has NaN"),
        ({"x": torch.ones(5, 1)}, "an edge names a node that is not there"),
    ],
)
def test_what_is_wrong_is_told(change: dict[str, Any], told: str) -> None:
    data = ring()
    for name, value in change.items():
        data[name] = value
    with pytest.raises(UserError, match=told):
        from_nodes(data)


def test_a_file_with_one_graph_and_a_label_per_node_is_read(tmp_path: Path) -> None:
    torch.save(ring(), tmp_path / "graph.pt")
    dataset = load_dataset(tmp_path / "graph.pt", reach=Reach(2, 0))
    assert len(dataset) == 12
    assert dataset.graphs.num_nodes.tolist() == [5] * 12
    assert dataset.encoding is not None
    assert dataset.encoding.reach == Reach(2, 0)


def test_the_truth_of_a_node_is_its_own_motif() -> None:
    graph = NODE_GRAPHS["Tree_Cycles"]()
    assert graph.data.num_nodes == 511 + 80 * 6
    dataset = load_dataset("tree_cycles")
    store = dataset.graphs
    assert store.node_truth is not None
    assert store.edge_truth is not None
    tree, cycle = dataset[0], dataset[511 + 8]
    assert not tree.node_truth.any()
    assert not tree.edge_truth.any()
    assert cycle.node_id[cycle.node_truth].sort().values.tolist() == list(range(517, 523))
    assert int(cycle.edge_truth.sum()) == 12
    assert torch.equal(NODE_GRAPHS["Tree_Cycles"]().data.edge_index, graph.data.edge_index)
