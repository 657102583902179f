"""Random masks: as many elements as asked for, in connected pieces, and nothing of a policy."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest
from torch import Tensor
from torch_geometric.data import Batch, Data

from cores.config import Removal
from cores.data.synthetic import ba_motifs
from cores.graphs import masks
from cores.graphs.masks import (
    MOST_ROUNDS,
    drawn_once,
    largest,
    masked,
    masked_batches,
    random_ratios,
    scattered,
    smooth_masks,
    smoothed,
)
from cores.graphs.subgraphs import Elements


@given(share=st.floats(0, 1), seed=st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
@pytest.mark.parametrize("removal", ["node", "edge"])
def test_the_asked_share_is_kept_rounded_up_and_never_nothing(
    removal: str, share: float, seed: int
) -> None:
    torch.manual_seed(seed)
    graphs = ba_motifs(num_graphs=6, base_size=7, seed=seed)
    elements = Elements.of(graphs.batch(torch.arange(6)), removal)
    kept = elements.sum((~smooth_masks(elements, torch.full((6,), share))).float())
    expected = (torch.tensor(share) * elements.count - 1e-4).ceil().clamp(min=1)
    assert kept.tolist() == expected.tolist()


def test_with_both_no_edge_is_kept_without_its_ends() -> None:
    torch.manual_seed(0)
    elements = Elements.of(ba_motifs(num_graphs=8, seed=1).batch(torch.arange(8)), "both")
    kept = ~smooth_masks(elements, torch.full((8,), 0.4))
    nodes, pairs = elements.per_node(kept, True), elements.per_pair(kept)
    assert nodes[elements.batch.pair_index[:, pairs]].all()
    ratio = elements.kept_ratio(~kept)
    assert ratio.max() < 0.42
    assert ratio.mean() > 0.3


def test_masks_are_smoother_than_independent_ones() -> None:
    """Of the edges between kept nodes there are more than a draw without the graph would leave."""
    torch.manual_seed(0)
    batch = ba_motifs(num_graphs=200, seed=0).batch(torch.arange(200))
    elements = Elements.of(batch, "node")
    kept = ~smooth_masks(elements, torch.full((200,), 0.4))
    edges_left = kept[batch.edge_index].all(dim=0).double().mean()
    assert edges_left > 1.5 * 0.4**2


def test_a_motif_alone_is_among_the_masks() -> None:
    """The classifier must know what the policy may leave: five nodes that are exactly the motif."""
    torch.manual_seed(0)
    batch = ba_motifs(num_graphs=1000, seed=0).batch(torch.arange(1000))
    elements = Elements.of(batch, "node")
    kept = ~smooth_masks(elements, torch.full((1000,), 0.2))
    whole_motif = elements.sum((kept & batch.node_truth).float()) == 5
    assert 0.005 < whole_motif.double().mean() < 0.5


def test_every_graph_gets_its_own_ratio_between_nothing_and_all() -> None:
    torch.manual_seed(0)
    batch = ba_motifs(num_graphs=500, seed=0).batch(torch.arange(500))
    ratios = random_ratios(Elements.of(batch, "node"))
    assert ratios.min() < 0.15
    assert ratios.max() > 0.95
    assert ratios.std() > 0.15


def test_masked_batches_keep_their_labels_and_their_number_of_graphs() -> None:
    graphs = ba_motifs(num_graphs=12, seed=0)
    whole = list(graphs.batches(5))
    for before, after in zip(whole, masked(whole, "edge"), strict=True):
        assert after.num_graphs == before.num_graphs
        assert torch.equal(after.y, before.y)
        assert after.edge_index.size(1) < before.edge_index.size(1)


@pytest.mark.parametrize("removal", ["node", "edge", "both"])
def test_an_epoch_of_masked_batches_has_every_graph_once_in_one_piece(removal: Removal) -> None:
    graphs = ba_motifs(num_graphs=11, base_size=6, motifs=("cycle", "clique"), seed=3).with_pairs()
    order = torch.randperm(11, generator=torch.Generator().manual_seed(2))
    batches = list(masked_batches(graphs, 4, removal, torch.Generator().manual_seed(2)))
    assert [batch.num_graphs for batch in batches] == [4, 4, 3]
    assert torch.equal(torch.cat([batch.y for batch in batches]), graphs.y[order])
    for batch, index in zip(batches, order.split(4), strict=True):
        sizes = batch.ptr.diff()
        assert torch.equal(sizes, torch.bincount(batch.batch, minlength=len(index)))
        assert bool((sizes >= 1).all())
        assert bool((sizes <= graphs.num_nodes[index]).all())
        source, target = batch.edge_index
        assert torch.equal(batch.batch[source], batch.batch[target])
    kept = sum(batch.edge_index.size(1) for batch in batches)
    assert 0 < kept < int(graphs.num_edges.sum())


def test_a_draw_decided_by_the_graph_is_as_random_as_any() -> None:
    """No place within a graph and no node of a motif is favoured, graphs of one size differ."""
    graphs = ba_motifs(num_graphs=1000, seed=0)
    batch = graphs.batch(torch.arange(1000))
    values, rounds = drawn_once(batch)
    assert kstest(values.numpy(), "uniform").pvalue > 0.01
    by_place = values.view(1000, -1)  # all graphs have 25 nodes
    assert (by_place.mean(dim=0) - 0.5).abs().max() < 0.05  # five standard errors
    assert by_place.unique(dim=0).size(0) > 990  # two graphs may be equal
    assert torch.bincount(rounds).min() > 70
    assert len(torch.bincount(rounds)) == MOST_ROUNDS + 1
    elements = Elements.of(batch, "node")
    kept = largest(smoothed(batch, values, rounds), elements.owner, (elements.count + 1) // 2)
    assert abs(kept[batch.node_truth].float().mean() - 0.5) < 0.05


def test_a_draw_decided_by_the_graph_does_not_depend_on_the_batch() -> None:
    graphs = ba_motifs(num_graphs=20, seed=0)
    together, rounds = drawn_once(graphs.batch(torch.arange(20)))
    alone, rounds_alone = drawn_once(graphs.batch(torch.tensor([7])))
    assert torch.equal(together.view(20, -1)[7], alone)
    assert rounds[7] == rounds_alone[0]


def test_values_are_averaged_as_often_as_their_graph_says() -> None:
    path = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    batch = Batch.from_data_list([path, path, path])
    values = smoothed(batch, torch.tensor([0.0, 0.0, 1.0]).repeat(3), torch.tensor([0, 1, 2]))
    once, twice = [0, 1 / 3, 1 / 2], [1 / 6, (0 + 1 / 3 + 1 / 2) / 3, 5 / 12]
    assert values.tolist() == pytest.approx([0.0, 0.0, 1.0, *once, *twice])


def test_rounds_of_averaging_are_drawn_from_none_to_the_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[int] = []

    def note(batch: Batch, values: Tensor, rounds: Tensor) -> Tensor:
        drawn.extend(rounds.tolist())
        return values

    monkeypatch.setattr(masks, "smoothed", note)
    torch.manual_seed(0)
    batch = ba_motifs(num_graphs=200, base_size=4, seed=0).batch(torch.arange(200))
    smooth_masks(Elements.of(batch, "node"), torch.ones(200))
    assert set(drawn) == set(range(MOST_ROUNDS + 1))


@pytest.mark.parametrize("removal", ["edge", "both"])
def test_edges_are_kept_by_their_smaller_end_and_some_noise(
    removal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same by loops; the noise is a draw times half of the deviation within the graph."""
    batch = ba_motifs(num_graphs=3, base_size=6, seed=2).with_pairs().batch(torch.arange(3))
    torch.manual_seed(0)
    values = torch.rand(batch.x.size(0)) ** 3
    draws = (0.37 * torch.arange(batch.pair_index.size(1))).remainder(1)
    monkeypatch.setattr(masks, "_smooth_values", lambda _: values)
    monkeypatch.setattr(torch, "rand_like", lambda given: draws[: len(given)])
    elements = Elements.of(batch, removal)
    kept = ~smooth_masks(elements, torch.tensor([0.3, 0.5, 0.8]))
    expected: list[int] = []
    nodes_kept: set[int] = set()
    for graph, share in enumerate((0.3, 0.5, 0.8)):
        nodes = (batch.batch == graph).nonzero().flatten().tolist()
        pairs = [i for i, end in enumerate(batch.pair_index[0].tolist()) if end in nodes]
        number = math.ceil(share * (len(pairs) + (len(nodes) if removal == "both" else 0)) - 1e-4)
        deviation = values[nodes].std(correction=0)

        def worth(pair: int, deviation: Tensor = deviation) -> float:
            least = values[batch.pair_index[:, pair]].min()
            return float(least + deviation * draws[pair] / 2)

        if removal == "both":
            wanted = min(math.ceil((1 + float(draws[graph])) / 2 * number - 1e-4), len(nodes))
            best = sorted(nodes, key=lambda node: -float(values[node]))[:wanted]
            nodes_kept.update(best)
            pairs = [i for i in pairs if set(batch.pair_index[:, i].tolist()) <= set(best)]
            number -= wanted
        expected += sorted(pairs, key=lambda pair: -worth(pair))[: max(number, 0)]
    assert set(elements.per_pair(kept).nonzero().flatten().tolist()) == set(expected)
    if removal == "both":
        assert set(elements.per_node(kept, True).nonzero().flatten().tolist()) == nodes_kept


def test_the_largest_come_first_and_among_equals_the_smaller_tie() -> None:
    owner, number = torch.tensor([0, 0, 0, 0, 1, 1]), torch.tensor([2, 1])
    values = torch.tensor([1.0, 3.0, 1.0, 1.0, 5.0, 5.0])
    ties = torch.tensor([2, 0, 1, 3, 1, 0])
    chosen = largest(values, owner, number, ties)
    assert chosen.tolist() == [False, True, True, False, False, True]


def test_what_breaks_ties_is_fixed() -> None:
    """By these numbers graphs of before were cut; the same again are the same parts."""
    assert scattered(torch.arange(3)).tolist() == [2654435761, 1013904226, 3668339987]


def test_what_is_drawn_for_a_graph_is_fixed() -> None:
    """The random control is measured on these masks; the next version must measure it on them."""
    path = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    edge = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]))
    values, rounds = drawn_once(Batch.from_data_list([path, edge, edge]))
    of_edge = [15583035, 2816202]
    assert (values * 2**24).tolist() == [9725226, 2435137, 11298155, *of_edge, *of_edge]
    assert rounds.tolist() == [3, 3, 3]


@pytest.mark.parametrize("removal", ["node", "edge", "both"])
def test_a_last_graph_without_nodes_has_nothing_to_mask(removal: str) -> None:
    ends = torch.tensor([[0, 1], [1, 0]])
    owner, ptr = torch.tensor([0, 0, 1]), torch.tensor([0, 2, 3, 3])
    batch = Batch(x=torch.ones(3, 1), edge_index=ends, batch=owner, ptr=ptr)
    elements = Elements.of(batch, removal)
    kept = ~smooth_masks(elements, torch.ones(3))
    assert elements.subgraph(~kept).batch.num_graphs == 3
    assert elements.per_node(kept, True).tolist() == [True] * 3
    values, rounds = drawn_once(batch)
    assert (len(values), len(rounds)) == (3, 3)
