"""SUGAR: subgraphs by breadth-first search, and a share that follows the reward."""

import networkx as nx
import pytest
import torch

from cores.config import NetworkConfig
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.graphs.store import GraphStore
from cores_paper.models.settings import SugarConfig
from cores_paper.models.sugar import SUGAR, AdaptiveShare, sample_subgraphs

NETWORK = NetworkConfig(hidden_dim=8, num_layers=2)


def model_of(conv: str = "gin", **changes: float) -> SUGAR:
    torch.manual_seed(0)
    return SUGAR(Dims(10, 2), NETWORK, conv, SugarConfig(subgraphs=4, size=5, **changes))


def test_subgraphs_are_what_a_breadth_first_search_meets_first() -> None:
    graphs = ba_motifs(num_graphs=3, seed=0)
    batch = graphs.batch(torch.arange(3))
    sampled = sample_subgraphs(batch, count=4, size=6)
    assert sampled.exists.all()
    for graph in range(3):
        whole = nx.Graph()
        inside = batch.batch[batch.edge_index[0]] == graph
        whole.add_edges_from(batch.edge_index[:, inside].T.tolist())
        degrees = dict(whole.degree())
        roots = set()
        for place in range(4):
            members = sampled.nodes[sampled.slot == 4 * graph + place].tolist()
            assert len(members) == 6
            assert sampled.members[members, place].all()
            distances = [
                (node, nx.single_source_shortest_path_length(whole, node)) for node in members
            ]
            # around one of them, nobody outside is nearer than the furthest member
            centres = [
                node
                for node, reach in distances
                if max(reach[each] for each in members)
                <= min(length for each, length in reach.items() if each not in members)
            ]
            assert centres
            roots.add(max(centres, key=lambda node: degrees[node]))
        assert max(degrees, key=lambda node: degrees[node]) in roots


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [0, 3, 1, 2, 4], [4, 3, 2, 1, 0]])
def test_of_nodes_as_near_the_best_connected_are_taken(order: list[int]) -> None:
    # 0 is the root; of its neighbours 1, 2 and 3, the third has one more: 4
    number = torch.tensor(order).argsort()
    ends = number[torch.tensor([[0, 1], [0, 2], [0, 3], [3, 4]])].T
    graphs = GraphStore(
        x=torch.ones(5, 1),
        edge_index=torch.cat([ends, ends.flip(0)], dim=1),
        y=torch.tensor([0]),
        node_ptr=torch.tensor([0, 5]),
        edge_ptr=torch.tensor([0, 8]),
    )
    sampled = sample_subgraphs(graphs.batch(torch.arange(1)), count=1, size=2)
    assert {order[node] for node in sampled.nodes.tolist()} == {0, 3}


def test_what_a_subgraph_is_worth_does_not_grow_with_its_embedding() -> None:
    model, z = model_of(), torch.rand(3, 4, 8)
    torch.testing.assert_close(model._worth(100 * z), model._worth(z), atol=1e-3, rtol=1e-3)


def test_edges_of_a_subgraph_are_those_between_its_nodes() -> None:
    batch = ba_motifs(num_graphs=2, seed=0).batch(torch.arange(2))
    sampled = sample_subgraphs(batch, count=3, size=5)
    ends = sampled.nodes[sampled.edge_index]  # [2, F] in the batch's own numbers
    assert torch.equal(ends, batch.edge_index[:, sampled.edges])
    assert torch.equal(sampled.slot[sampled.edge_index[0]], sampled.slot[sampled.edge_index[1]])
    expected = sum(
        int(sampled.members[batch.edge_index, place].all(dim=0).sum()) for place in range(3)
    )
    assert sampled.edge_index.size(1) == expected


def test_overlap_counts_shared_nodes() -> None:
    batch = ba_motifs(num_graphs=2, seed=0).batch(torch.arange(2))
    sampled = sample_subgraphs(batch, count=3, size=5)
    for graph in range(2):
        members = sampled.members[batch.batch == graph].float()
        assert torch.equal(sampled.overlap[graph], members.T @ members)


def test_small_graphs_and_graphs_without_edges_have_fewer_subgraphs() -> None:
    graphs = GraphStore(
        x=torch.ones(3, 10),
        edge_index=torch.tensor([[0, 1], [1, 0]]),
        y=torch.tensor([0, 1]),
        node_ptr=torch.tensor([0, 2, 3]),
        edge_ptr=torch.tensor([0, 2, 2]),
    )
    batch = graphs.batch(torch.arange(2))
    sampled = sample_subgraphs(batch, count=4, size=5)
    assert sampled.exists.sum(dim=-1).tolist() == [2, 1]
    model = model_of()
    model.loss(batch).backward()
    assert model.eval().predict(batch).probs.isfinite().all()


@pytest.mark.parametrize(("better_up", "expected"), [(True, 0.9), (False, 0.2)])
def test_the_share_moves_with_the_reward(better_up: bool, expected: float) -> None:
    torch.manual_seed(0)
    share = AdaptiveShare(SugarConfig(explore=0.1, first_ratio=0.5))
    for _ in range(200):
        ratio = float(share.ratio)
        share.step(ratio if better_up else 1 - ratio)
    assert (float(share.ratio) >= expected) if better_up else (float(share.ratio) <= expected)


def test_equal_accuracies_pay_nothing() -> None:
    share = AdaptiveShare(SugarConfig())
    for _ in range(3):
        share.step(0.7)
    assert not share.values.any()


def test_the_share_settles_and_is_saved_with_the_weights() -> None:
    share = AdaptiveShare(SugarConfig())
    share.recent.copy_(torch.tensor([9, 10] * 5))
    share.state.fill_(10)
    assert share.settled
    share.step(1.0)
    assert int(share.state) == 10
    other = AdaptiveShare(SugarConfig())
    other.load_state_dict(share.state_dict())
    assert other.settled
    assert float(other.ratio) == pytest.approx(0.55)


def test_fewer_subgraphs_show_less_of_a_graph() -> None:
    batch = ba_motifs(num_graphs=4, seed=0).batch(torch.arange(4))
    model = model_of().eval()
    shares = []
    for state in (0, 19):
        model.share.state.fill_(state)
        shares.append(float((~model.predict(batch).subgraph.removed_nodes).float().mean()))
    assert 0 < shares[0] < shares[1] < 1
    assert torch.allclose(model.full_logits(batch), model(batch), atol=1e-6)  # k is 1 now


def test_what_is_in_no_chosen_subgraph_does_not_matter() -> None:
    batch = ba_motifs(num_graphs=4, seed=0).batch(torch.arange(4))
    model = model_of().eval()
    sampled = sample_subgraphs(batch, 4, 5)
    z = torch.randn(4, 4, 8)
    chosen = torch.tensor([[True, True, False, False]] * 4)
    before, _ = model._classified(sampled, z, chosen)
    after, _ = model._classified(sampled, z + 3 * ~chosen[..., None], chosen)
    assert torch.equal(before, after)
    moved, _ = model._classified(sampled, z + 3 * chosen[..., None], chosen)
    assert not torch.allclose(before, moved)
    seen = sampled.members.any(dim=-1)
    other = batch.clone()
    other.x = torch.where(seen[:, None], other.x, other.x + 3)
    assert not seen.all()
    assert torch.equal(model.predict(other).probs, model.predict(batch).probs)


def test_a_graph_alone_has_no_other_to_be_told_from() -> None:
    batch = ba_motifs(num_graphs=2, seed=0).batch(torch.arange(1))
    model = model_of(information_weight=1.0)
    plain = model_of(information_weight=0.0)
    assert torch.equal(model.loss(batch), plain.loss(batch))


@pytest.mark.parametrize("conv", ["gin", "gcn", "gat"])
def test_every_weight_gets_a_gradient(conv: str) -> None:
    batch = ba_motifs(num_graphs=8, seed=0).batch(torch.arange(8))
    batch.x = torch.randn(batch.x.shape, generator=torch.Generator().manual_seed(0))
    model = model_of(conv, first_ratio=1.0)
    model.loss(batch).backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.isfinite().all(), name
        assert weight.grad.abs().sum() > 0, name
    assert float(model._right[1]) == 8
    model.begin_epoch(0.5)
    assert float(model._right[1]) == 0
