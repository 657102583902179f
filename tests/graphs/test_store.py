"""The flat store gives the batches PyG's collation gives, and the graphs it was made of."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Batch, Data

from cores.data.synthetic import ba_motifs
from cores.graphs import store
from cores.graphs.store import GraphStore

GRAPHS = ba_motifs(num_graphs=12, base_size=6, motifs=("cycle", "clique"), seed=3)


def assert_same_batch(ours: Batch, theirs: Batch) -> None:
    assert ours.num_graphs == theirs.num_graphs
    for name in ("x", "edge_index", "y", "batch", "ptr", "node_truth", "edge_truth"):
        assert torch.equal(ours[name], theirs[name]), name
    assert ("edge_attr" in ours) == ("edge_attr" in theirs)
    if "edge_attr" in theirs:
        assert torch.equal(ours.edge_attr, theirs.edge_attr)


def random_graph(seed: int) -> Data:
    """Up to six nodes, maybe no edges, with all that a graph may carry."""
    generator = torch.Generator().manual_seed(seed)
    nodes, edges = (int(torch.randint(least, 7, (), generator=generator)) for least in (1, 0))
    return Data(
        x=torch.randn(nodes, 2, generator=generator),
        edge_index=torch.randint(nodes, (2, edges), generator=generator),
        edge_attr=torch.randn(edges, 3, generator=generator),
        y=torch.tensor([seed % 3]),
        node_truth=torch.rand(nodes, generator=generator) < 0.5,
        edge_truth=torch.rand(edges, generator=generator) < 0.5,
    )


def assert_same_graph(ours: Data, theirs: Data) -> None:
    assert set(ours.keys()) == set(theirs.keys())
    for name, value in theirs.to_dict().items():
        assert torch.equal(ours[name], value), name
        assert ours[name].dtype == value.dtype, name


seeds_of_graphs = st.lists(st.integers(0, 50), min_size=1, max_size=6)


@given(seeds_of_graphs)
@settings(max_examples=40, deadline=None)
def test_graphs_come_out_of_a_store_as_they_went_in(seeds: list[int]) -> None:
    graphs = [random_graph(seed) for seed in seeds]
    store = GraphStore.from_graphs(graphs)
    assert len(store) == len(store.to_graphs()) == len(graphs)
    for ours, theirs in zip(store.to_graphs(), graphs, strict=True):
        assert_same_graph(ours, theirs)


@given(seeds_of_graphs, st.data())
@settings(max_examples=40, deadline=None)
def test_batches_of_given_graphs_equal_pyg_collation(seeds: list[int], data: st.DataObject) -> None:
    graphs = [random_graph(seed) for seed in seeds]
    chosen = data.draw(st.lists(st.integers(0, len(graphs) - 1), min_size=1, max_size=8))
    ours = GraphStore.from_graphs(graphs).batch(torch.tensor(chosen))
    assert_same_batch(ours, Batch.from_data_list([graphs[index] for index in chosen]))


def test_a_store_made_of_its_own_graphs_is_the_same_store() -> None:
    again = GraphStore.from_graphs(GRAPHS.to_graphs())
    for name, value in vars(again).items():
        expected = getattr(GRAPHS, name)
        same = torch.equal(value, expected) if isinstance(value, Tensor) else value == expected
        assert same, name


def test_labels_may_be_given_beside_the_graphs() -> None:
    graphs = [random_graph(seed) for seed in range(3)]
    assert GraphStore.from_graphs(graphs, torch.tensor([4, 0, 4])).y.tolist() == [4, 0, 4]
    assert [int(graph.y) for graph in graphs] == [0, 1, 2]


def test_what_some_graphs_lack_is_left_out_for_all() -> None:
    graphs = [random_graph(seed) for seed in range(3)]
    del graphs[1].edge_attr, graphs[2].node_truth
    store = GraphStore.from_graphs(graphs)
    assert store.edge_attr is None
    assert store.num_edge_features == 0
    assert store.node_truth is None
    assert store.edge_truth is not None


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


@given(seeds_of_graphs, st.integers(1, 4), st.booleans())
@settings(max_examples=60, deadline=None)
def test_batches_cut_from_many_graphs_are_those_of_their_own(
    seeds: list[int], size: int, paired: bool
) -> None:
    graphs = GraphStore.from_graphs([random_graph(seed) for seed in seeds])
    if paired:
        graphs = graphs.with_pairs()
    alone = [graphs.batch(index) for index in torch.arange(len(graphs)).split(size)]
    for ours, theirs in zip(graphs.batches(size), alone, strict=True):
        assert set(ours.keys()) == set(theirs.keys())
        assert ours.num_graphs == theirs.num_graphs
        for name, value in theirs.to_dict().items():
            assert torch.equal(ours[name], value), name


@pytest.mark.parametrize("chunk", [1, 3, 5, 100])
def test_an_epoch_does_not_depend_on_how_many_graphs_are_gathered_at_once(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = list(GRAPHS.batches(2, torch.Generator().manual_seed(1)))
    monkeypatch.setattr(store, "CHUNK", chunk)
    gathered = [batch.num_graphs for batch in GRAPHS.chunks(2)]
    assert max(gathered) == min(12, max(2, chunk // 2 * 2))
    for ours, theirs in zip(
        GRAPHS.batches(2, torch.Generator().manual_seed(1)), before, strict=True
    ):
        assert_same_batch(ours, theirs)


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


def test_the_same_generator_gives_the_same_order() -> None:
    orders = [
        torch.cat([b.y + 3 * b.num_nodes for b in GRAPHS.batches(1, torch.Generator())])
        for _ in range(2)
    ]
    assert torch.equal(*orders)


def test_columns_are_counted_and_edges_are_paired_where_asked() -> None:
    graphs = GraphStore.from_graphs([random_graph(seed) for seed in range(5)])
    assert (graphs.num_features, graphs.num_edge_features) == (2, 3)
    assert GRAPHS.num_edge_features == 0
    assert "pair_index" not in graphs.batch(torch.arange(2))
    assert "pair_index" in graphs.with_pairs().subset(torch.arange(3)).batch(torch.arange(2))


def test_a_subset_has_all_that_its_graphs_have() -> None:
    graphs = [random_graph(seed) for seed in (4, 9, 11)]
    subset = GraphStore.from_graphs(graphs).subset(torch.tensor([2, 0]))
    assert_same_graph(subset.graph(0), graphs[2])
    assert_same_graph(subset.graph(1), graphs[0])


def test_pointers_stay_on_the_cpu() -> None:
    graphs = GraphStore.from_graphs([random_graph(4)]).to(torch.device("meta"))
    assert {graphs.node_ptr.device.type, graphs.edge_ptr.device.type} == {"cpu"}
    moved = (graphs.x, graphs.edge_index, graphs.edge_attr, graphs.y, graphs.node_truth)
    assert {value.device.type for value in moved if value is not None} == {"meta"}


def test_edges_lie_in_rows_however_they_were_given() -> None:
    graph = random_graph(4)
    graph.edge_index = graph.edge_index.T.contiguous().T
    assert not graph.edge_index.is_contiguous()
    store = GraphStore(
        x=graph.x,
        edge_index=graph.edge_index,
        y=graph.y,
        node_ptr=torch.tensor([0, len(graph.x)]),
        edge_ptr=torch.tensor([0, graph.edge_index.size(1)]),
    )
    assert store.edge_index.is_contiguous()
    assert torch.equal(store.edge_index, graph.edge_index)


def test_a_view_has_the_batches_of_a_subset() -> None:
    index = torch.tensor([7, 2, 9, 0, 5])
    view, copied = GRAPHS.view(index), GRAPHS.subset(index)
    assert len(view) == 5
    assert torch.equal(view.y, copied.y)
    assert_same_batch(view.batch(torch.tensor([3, 1])), copied.batch(torch.tensor([3, 1])))
    for seed in (None, 4):
        seeded = [None if seed is None else torch.Generator().manual_seed(seed) for _ in range(2)]
        pairs = zip(view.batches(2, seeded[0]), copied.batches(2, seeded[1]), strict=True)
        for ours, theirs in pairs:
            assert_same_batch(ours, theirs)
    assert torch.equal(view.order(), index)
    assert sorted(view.order(torch.Generator().manual_seed(0)).tolist()) == sorted(index.tolist())
    assert torch.equal(GRAPHS.view().y, GRAPHS.y)


def test_graphs_that_stream_give_the_same_batches() -> None:
    streamed = GRAPHS.with_pairs().streamed(torch.device("cpu"))
    assert streamed.device == torch.device("cpu")
    index = torch.tensor([7, 2, 9])
    assert_same_batch(streamed.batch(index), GRAPHS.batch(index))
    pairs = GRAPHS.with_pairs().batch(index).pair_index
    assert torch.equal(streamed.batch(index).pair_index, pairs)
    for ours, theirs in zip(streamed.batches(5), GRAPHS.batches(5), strict=True):
        assert_same_batch(ours, theirs)
    assert_same_batch(streamed.subset(index).batch(torch.tensor([1])), GRAPHS.batch(index[1:2]))
    assert streamed.subset(index).streams_to == torch.device("cpu")


def test_only_what_is_large_stays_where_it_was() -> None:
    elsewhere = GRAPHS.streamed(torch.device("meta"))
    assert elsewhere.device.type == "meta"
    devices = {name: getattr(elsewhere, name).device.type for name in ("x", "edge_index", "y")}
    assert devices == {"x": "cpu", "edge_index": "cpu", "y": "meta"}


def test_graphs_stream_to_a_gpu_that_has_no_room_for_them() -> None:
    needed = GRAPHS.x.nbytes + GRAPHS.edge_index.nbytes
    assert GRAPHS.fits(int(needed / store.ROOM_ON_GPU) + 1)
    assert not GRAPHS.fits(int(needed / store.ROOM_ON_GPU) - 1)
    with_features = replace(GRAPHS, edge_attr=torch.ones(GRAPHS.edge_index.size(1), 4))
    assert not with_features.fits(int(needed / store.ROOM_ON_GPU) + 1)
    assert GRAPHS.placed(torch.device("cpu")).streams_to is None
