"""The flat store gives the batches PyG's collation gives."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch

from cores.data.synthetic import ba_motifs
from cores.graphs.store import GraphStore

GRAPHS = ba_motifs(num_graphs=12, base_size=6, motifs=("cycle", "clique"), seed=3)


def assert_same_batch(ours: Batch, theirs: Batch) -> None:
    assert ours.num_graphs == theirs.num_graphs
    for name in ("x", "edge_index", "y", "batch", "ptr", "node_truth", "edge_truth"):
        assert torch.equal(ours[name], theirs[name]), name


@given(st.lists(st.integers(0, 11), min_size=1, max_size=20))
@settings(max_examples=30, deadline=None)
def test_any_choice_of_graphs_equals_pyg_collation(chosen: list[int]) -> None:
    ours = GRAPHS.batch(torch.tensor(chosen))
    theirs = Batch.from_data_list([GRAPHS.graph(index) for index in chosen])
    assert_same_batch(ours, theirs)


def test_a_subset_batches_like_the_graphs_chosen_from_the_whole() -> None:
    chosen = torch.tensor([7, 2, 2, 9])
    subset = GRAPHS.subset(chosen)
    assert len(subset) == 4
    assert_same_batch(subset.batch(torch.arange(4)), GRAPHS.batch(chosen))


def test_an_epoch_visits_every_graph_once() -> None:
    graphs = GraphStore(
        x=torch.arange(12.0)[:, None],
        edge_index=torch.empty(2, 0, dtype=torch.int64),
        y=torch.zeros(12, dtype=torch.int64),
        node_ptr=torch.arange(13),
        edge_ptr=torch.zeros(13, dtype=torch.int64),
    )
    generator = torch.Generator().manual_seed(0)
    seen = torch.cat([batch.x for batch in graphs.batches(5, generator)]).flatten()
    assert seen.sort().values.tolist() == list(range(12))
    assert seen.tolist() != list(range(12)), "shuffled"
    in_order = torch.cat([batch.x for batch in graphs.batches(5)]).flatten()
    assert in_order.tolist() == list(range(12))
