"""The policy: one decision per element, the same whatever the order of the nodes."""

import pytest
import torch
from torch_geometric.data import Batch, Data

from cores.config import NetworkConfig
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.graphs.components import count_pieces, subgraph_pieces
from cores.graphs.store import GraphStore
from cores.graphs.subgraphs import Elements
from cores.models.classifier import Classifier
from cores.models.policy import Critic, Policy
from cores.models.sparse import SparseClassifier

ROUGH = NetworkConfig(hidden_dim=8, num_layers=2, dropout=0.5, batch_norm=True, gat_heads=2)
DIMS = Dims(num_features=3, num_classes=2)
REMOVALS = ("node", "edge", "both")


def policy(
    removal: str,
    min_probability: float = 0.0,
    initial_removal: float = 0.27,
    layer: str = "gin",
) -> Policy:
    torch.manual_seed(0)
    return Policy(DIMS, ROUGH, layer, removal, initial_removal, min_probability)


def trained(removal: str, min_probability: float = 0.0, layer: str = "gin") -> Policy:
    """A policy whose decisions differ from element to element."""
    chooser = policy(removal, min_probability, layer=layer)
    for name, weight in chooser.named_parameters():
        if name.endswith("head.weight"):
            torch.nn.init.normal_(weight)
    return chooser


def random_graphs(count: int = 4, seed: int = 0) -> GraphStore:
    """Motifs with random node features."""
    graphs = ba_motifs(num_graphs=count, base_size=8, seed=seed)
    torch.manual_seed(seed)
    return GraphStore(
        x=torch.randn(graphs.x.size(0), 3),
        edge_index=graphs.edge_index,
        y=graphs.y,
        node_ptr=graphs.node_ptr,
        edge_ptr=graphs.edge_ptr,
    )


def alone(graph: Data) -> GraphStore:
    """A store of one graph."""
    return GraphStore(
        x=graph.x,
        edge_index=graph.edge_index,
        y=graph.y,
        node_ptr=torch.tensor([0, graph.x.size(0)]),
        edge_ptr=torch.tensor([0, graph.edge_index.size(1)]),
    )


def model(removal: str, min_probability: float = 0.02, max_pieces: int = 0) -> SparseClassifier:
    torch.manual_seed(1)
    classifier = Classifier(DIMS, ROUGH, "gin")
    chooser = trained(removal, min_probability)
    chooser.max_pieces = max_pieces
    return SparseClassifier(chooser, classifier).eval()


@pytest.mark.parametrize("removal", REMOVALS)
@pytest.mark.parametrize("layer", ["gin", "gcn", "gat"])
def test_renaming_the_nodes_renames_the_decisions(removal: str, layer: str) -> None:
    graph = random_graphs(2).graph(0)
    order = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(3))
    renamed = Data(x=graph.x[order], edge_index=order.argsort()[graph.edge_index], y=graph.y)
    chooser = trained(removal, layer=layer)
    batches = [alone(each).batch(torch.arange(1)) for each in (graph, renamed)]
    one, other = (chooser(batch) for batch in batches)
    elements = [Elements.of(batch, removal) for batch in batches]
    nodes = [
        each.per_node(logits, 0.0) for each, logits in zip(elements, (one, other), strict=True)
    ]
    assert torch.allclose(nodes[0][order], nodes[1], atol=1e-5)
    edges = [
        each.per_edge(logits, 0.0) for each, logits in zip(elements, (one, other), strict=True)
    ]
    assert torch.allclose(edges[0], edges[1], atol=1e-5)  # edges were listed in the same order


@pytest.mark.parametrize("removal", ["edge", "both"])
def test_both_directions_of_an_edge_share_their_fate(removal: str) -> None:
    batch = random_graphs(5).batch(torch.arange(5))
    torch.manual_seed(0)
    for _ in range(5):
        gone = model(removal).choose(batch, sample=True).subgraph.removed_edges
        fates = {}
        for (a, b), removed in zip(batch.edge_index.T.tolist(), gone.tolist(), strict=True):
            assert fates.setdefault(frozenset((a, b)), removed) == removed
        assert 0 < int(gone.sum()) < len(gone)


@pytest.mark.parametrize("removal", REMOVALS)
def test_probabilities_log_probabilities_and_entropies_agree_with_torch(removal: str) -> None:
    batch = random_graphs().batch(torch.arange(4))
    for min_probability in (0.0, 0.1):
        chooser = trained(removal, min_probability)
        logits = chooser(batch)
        reference = torch.distributions.Bernoulli(probs=chooser.probabilities(logits))
        decisions = torch.tensor([[0.0], [1.0]]).expand(2, len(logits))  # kept, removed
        assert torch.allclose(chooser.log_probs(logits), reference.log_prob(decisions), atol=1e-5)
        assert torch.allclose(chooser.entropy(logits), reference.entropy(), atol=1e-5)


def test_no_probability_is_below_the_least_one_or_above_its_complement() -> None:
    extreme = torch.tensor([-100.0, 0.0, 100.0])
    assert policy("node", 0.02).probabilities(extreme).tolist() == pytest.approx([0.02, 0.5, 0.98])


def test_removal_starts_where_it_is_told() -> None:
    batch = random_graphs().batch(torch.arange(4))
    batch.x *= 100  # whatever the scale of the features
    for removal in ("node", "edge"):
        assert torch.allclose(
            policy(removal, initial_removal=0.27)(batch).sigmoid(), torch.tensor(0.27)
        )


def test_where_nodes_are_removed_too_edges_start_to_be_gone_as_often() -> None:
    batch = random_graphs().batch(torch.arange(4))
    keep = 1 - policy("both", initial_removal=0.27)(batch).sigmoid()  # one number for all
    assert torch.allclose(keep**3, torch.tensor(0.73))


def test_a_saturated_policy_still_has_a_gradient_that_is_a_number() -> None:
    logits = torch.tensor([-200.0, 20.0, 200.0], requires_grad=True)
    policy("node", min_probability=0.0).entropy(logits).sum().backward()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


def test_with_both_an_edge_that_lost_an_end_is_not_kept() -> None:
    batch = random_graphs(2).batch(torch.arange(1))
    elements = Elements.of(batch, "both")
    removed = torch.zeros(len(elements.owner), dtype=torch.bool)
    removed[0] = True  # a node, not its edges
    subgraph = elements.subgraph(removed).batch
    kept = subgraph.num_nodes + subgraph.edge_index.size(1) / 2
    assert elements.kept_ratio(removed).item() == pytest.approx(kept / len(elements.owner))


@pytest.mark.parametrize("max_pieces", [0, 1])
@pytest.mark.parametrize("removal", REMOVALS)
def test_with_the_mask_held_fixed_what_was_removed_cannot_be_seen(
    removal: str, max_pieces: int
) -> None:
    graphs = random_graphs(6)
    batch, chooser = graphs.batch(torch.arange(6)), model(removal, max_pieces=max_pieces)
    elements = Elements.of(batch, removal)
    torch.manual_seed(5)
    asked, _ = elements.restored(torch.rand(len(elements.owner)) < 0.5)
    removed = chooser.policy.connected(elements, asked, torch.rand(len(elements.owner)))
    assert torch.equal(removed, asked) == (max_pieces == 0), "some is removed by the limit alone"
    before = elements.subgraph(removed)
    logits = chooser.classifier(before.batch)
    batch.x[before.removed_nodes] = 1e6  # features of removed nodes
    gone = before.removed_edges
    batch.edge_index[:, gone] = batch.edge_index[:, gone].flip(0)  # wiring of removed edges
    after = Elements.of(batch, removal).subgraph(removed)
    assert torch.equal(chooser.classifier(after.batch), logits)
    assert bool(before.removed_nodes.any()) == (removal != "edge")
    assert gone.any()


@pytest.mark.parametrize("removal", REMOVALS)
def test_a_graph_that_lost_everything_is_restored_and_told(removal: str) -> None:
    batch = random_graphs(3).batch(torch.arange(3))
    elements = Elements.of(batch, removal)
    removed = elements.owner == 1  # all of the second graph
    removed[0] = True  # and something of the first
    after, empty = elements.restored(removed)
    assert empty.tolist() == [False, True, False]
    assert elements.kept_ratio(after).tolist()[1:] == [1, 1]
    assert after[0]
    assert after.sum() == 1


def test_both_restores_a_graph_without_nodes_even_if_edges_were_to_stay() -> None:
    batch = random_graphs(2).batch(torch.arange(1))
    elements = Elements.of(batch, "both")
    removed = torch.arange(len(elements.owner)) < batch.num_nodes
    after, empty = elements.restored(removed)
    assert empty.tolist() == [True]
    assert not after.any()


def test_an_edge_policy_leaves_a_graph_without_edges_alone() -> None:
    no_edges = torch.empty(2, 0, dtype=torch.int64)
    lonely = alone(Data(x=torch.ones(2, 3), edge_index=no_edges, y=torch.tensor([0])))
    choice = model("edge").choose(lonely.batch(torch.arange(1)))
    assert choice.elements.kept_ratio(choice.removed).tolist() == [1]
    assert model("edge")(lonely.batch(torch.arange(1))).shape == (1, 2)


def test_the_mode_is_the_likelier_decision_on_every_element() -> None:
    batch, chooser = random_graphs(6).batch(torch.arange(6)), model("node", 0.0)
    torch.nn.init.normal_(chooser.policy.node_head.weight)
    choice = chooser.choose(batch)
    likelier = chooser.policy(batch) > 0
    left = ~choice.elements.restored(likelier)[1][choice.elements.owner]
    assert left.any()
    assert torch.equal(choice.removed[left], likelier[left])


@pytest.mark.parametrize("bias", [5.0, 40.0])  # at 40 every probability is 1 in 32 bits
@pytest.mark.parametrize("removal", ["node", "edge", "both"])
def test_a_mode_that_would_remove_everything_keeps_what_is_least_likely_removed(
    removal: str, bias: float
) -> None:
    batch, chooser = random_graphs(6).batch(torch.arange(6)), model(removal, 0.0)
    for name, values in chooser.policy.named_parameters():
        if name.endswith("_head.bias"):
            torch.nn.init.constant_(values, bias)
        elif name.endswith("_head.weight"):
            torch.nn.init.normal_(values, std=0.05)
    choice, logits = chooser.choose(batch), chooser.policy(batch)
    assert logits.min() > 0
    decided = choice.elements.owner if removal == "edge" else batch.batch
    for graph in decided.unique():
        mine = decided == graph
        kept = ~choice.removed[: len(decided)][mine]
        least = logits[: len(decided)][mine]
        assert torch.equal(kept, least == least.min())
        assert kept.sum() < len(kept)
    assert choice.removed[len(decided) :].all()  # edges, where nodes are removed too


def remove_half(chooser: Policy, batch: Batch) -> None:
    """Shift the logits of nodes, and of edges, so that a half of them is above 0."""
    elements = Elements.of(batch, chooser.removal)
    with torch.no_grad():
        if chooser.removal != "edge":
            chooser.node_head.bias -= elements.per_node(chooser(batch), 0.0).median()
        if chooser.removal != "node":
            chooser.edge_head.bias -= elements.per_pair(chooser(batch)).median()


@pytest.mark.parametrize("sample", [False, True])
@pytest.mark.parametrize("max_pieces", [1, 2])
@pytest.mark.parametrize("removal", REMOVALS)
def test_no_more_pieces_are_left_than_may_be(removal: str, max_pieces: int, sample: bool) -> None:
    batch = random_graphs(20).batch(torch.arange(20))
    free, limited = model(removal), model(removal, max_pieces=max_pieces)
    found = []
    for chooser in (free, limited):
        remove_half(chooser.policy, batch)
        torch.manual_seed(3)
        found.append(chooser.choose(batch, sample))
    before, after = (count_pieces(choice.elements, choice.removed) for choice in found)
    assert before.max() > max_pieces
    assert torch.equal(after, before.clamp(max=max_pieces))
    assert torch.equal(subgraph_pieces(found[1].subgraph.batch, removal), after)
    assert (found[1].removed | ~found[0].removed).all(), "nothing comes back"
    if not sample:
        predicted = limited.predict(batch)
        expected = limited.classifier(found[1].subgraph.batch)
        assert torch.equal(limited(batch), expected)
        assert torch.equal(predicted.probs, expected.softmax(dim=-1))
        assert torch.equal(predicted.subgraph.removed_nodes, found[1].subgraph.removed_nodes)


@pytest.mark.parametrize("removal", REMOVALS)
def test_the_piece_that_is_left_is_the_one_most_likely_kept(removal: str) -> None:
    path = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    graph = Data(x=torch.ones(5, 3), edge_index=torch.cat([path, path.flip(0)], 1))
    graph.y = torch.tensor([0])
    elements = Elements.of(alone(graph).batch(torch.arange(1)), removal)
    gone = {"node": [2], "edge": [1, 2], "both": [2]}[removal]
    removed = torch.zeros(len(elements.owner), dtype=torch.bool)
    removed[gone] = True
    keep = torch.linspace(0.1, 0.9, len(elements.owner))
    chooser = model(removal, max_pieces=1).policy
    left = elements.subgraph(chooser.connected(elements, removed, keep)).batch
    later = elements.subgraph(chooser.connected(elements, removed, 1 - keep)).batch
    for kept, ends in ((left, [3, 4]), (later, [0, 1])):
        if removal == "edge":
            assert sorted(kept.edge_index[:, 0].tolist()) == ends
            assert kept.num_nodes == 5, "where only edges are removed every node stays"
        else:
            assert kept.num_nodes == 2
            assert kept.num_edges == 2


def test_scores_of_nodes_and_edges_follow_from_what_is_decided() -> None:
    batch = random_graphs(3).batch(torch.arange(3))
    nodes = model("node").predict(batch)
    ends = nodes.node_scores[batch.edge_index]
    assert torch.allclose(nodes.edge_scores, ends[0] * ends[1])
    edges = model("edge").predict(batch)
    best = torch.stack(
        [edges.edge_scores[batch.edge_index[1] == node].max() for node in range(batch.num_nodes)]
    )
    assert torch.equal(edges.node_scores, best)


def test_the_critics_value_does_not_depend_on_chance_or_on_the_batch() -> None:
    torch.manual_seed(0)
    critic, graphs = Critic(DIMS, ROUGH, "gin"), random_graphs()
    together = critic(graphs.batch(torch.arange(4)))
    assert torch.equal(together, critic(graphs.batch(torch.arange(4))))
    alone = critic(graphs.batch(torch.tensor([2])))
    assert torch.allclose(alone[0], together[2], atol=1e-5)
