"""Orders at equal risk: what a promise allows to be cut away, and what is left of a graph."""

from functools import cache

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch

from cores.config import NetworkConfig
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.evaluation.predictions import predict
from cores.evaluation.scores import Scores
from cores.graphs.store import GraphStore
from cores.graphs.subgraphs import Elements
from cores.models.classifier import Classifier
from cores.models.policy import Policy
from cores.models.sparse import SparseClassifier
from cores_paper.explain.cuts import (
    SHARES,
    Cuts,
    better_rule,
    controlled_setting,
    dial_cuts,
    ordered_cuts,
    rules_of,
    share_rule,
    threshold_rule,
)

NODES = 25
DIMS = Dims(num_features=10, num_classes=2)
NETWORK = NetworkConfig(hidden_dim=8, num_layers=1)


class Reader(Classifier):
    """Predicts the class that one node of a graph has in its first feature; without it, class 0."""

    def logits(self, batch: Batch) -> Tensor:
        said = batch.x.new_zeros(batch.num_graphs).index_add(0, batch.batch, batch.x[:, 0])
        return torch.stack([torch.full_like(said, 0.5), said], dim=-1)


@cache
def world(number: int, seed: int) -> tuple[GraphStore, Tensor]:
    """Graphs of 25 nodes, and which node of each holds the answer."""
    graphs = ba_motifs(num_graphs=number, seed=seed)
    random = torch.Generator().manual_seed(seed)
    place = torch.arange(number) * NODES + torch.randint(NODES, (number,), generator=random)
    graphs.x.zero_()
    graphs.x[place, 0] = graphs.y.float()
    holds = torch.zeros(len(graphs.x))
    holds[place] = 1.0
    return graphs, holds


def chance(number: int, seed: int) -> Tensor:
    return torch.rand(number * NODES, generator=torch.Generator().manual_seed(seed))


def cuts(seed: int, values: Tensor, rule: str = "share") -> Cuts:
    graphs, _ = world(200, seed)
    scores = Scores.of_nodes(graphs, values)
    reader = Reader(DIMS, NETWORK, "gin")
    return ordered_cuts(reader, graphs, "node", scores, rules_of(scores, "node")[rule])


@pytest.mark.parametrize("rule", ["share", "threshold"])
@pytest.mark.parametrize("confidence", [None, 0.9])
def test_a_perfect_order_keeps_less_than_chance_at_the_same_risk(
    rule: str, confidence: float | None
) -> None:
    kept = {}
    for name in ("perfect", "chance"):
        calibration, test = (
            cuts(seed, world(200, seed)[1] if name == "perfect" else chance(200, seed + 9), rule)
            for seed in (1, 2)
        )
        place = controlled_setting(calibration, 0.1, confidence)
        found = test.metrics(place)
        kept[name] = found["kept_ratio"]
        assert found["full_accuracy"] == 1
        assert found["loss"] == pytest.approx(1 - found["accuracy"])
        assert found["loss"] < 0.15
    assert kept["perfect"] == pytest.approx(1 / NODES)
    assert kept["chance"] > 0.6, "half of the graphs need the one node"


def test_a_smaller_loss_keeps_more_and_too_few_graphs_keep_all() -> None:
    found = cuts(1, chance(200, 3))
    places = [controlled_setting(found, loss) for loss in (0.01, 0.05, 0.1, 0.3)]
    assert places == sorted(places)
    assert places[0] < places[-1]
    assert controlled_setting(found, 0.1, 0.9) <= controlled_setting(found, 0.1)
    few = Cuts(found.predicted[:5], found.kept_ratio[:5], found.labels[:5])
    assert controlled_setting(few, 0.1) == 0
    assert few.metrics(0)["kept_ratio"] == 1


def test_shares_and_thresholds_cut_the_worst_scored() -> None:
    graphs, _ = world(3, 0)
    elements = Elements.of(graphs.batch(torch.arange(3)), "node")
    values = torch.cat([torch.arange(25.0), torch.arange(25.0) + 100, torch.zeros(25)])
    kept = share_rule(elements, values).view(len(SHARES), 3, NODES)
    assert kept[0].all()
    assert kept[10].sum(dim=1).tolist() == [13, 13, 13]
    assert kept[-1].sum(dim=1).tolist() == [1, 1, 1]
    assert kept[10, 0].nonzero().flatten().tolist() == [*range(12, 25)]
    kept = threshold_rule(values)(elements, values).view(len(SHARES), 3, NODES)
    assert kept[0].all()
    # 38 of all: the second graph's, and the best of the first
    assert kept[10].sum(dim=1).tolist() == [13, 25, 25], "equal scores share their fate"
    assert kept[-1].sum(dim=1).tolist() == [1, 1, 25], "the best of a graph stay"
    lower = threshold_rule(values + 1000)(elements, values)
    assert lower[0].all(), "all is kept of graphs whose scores are lower, too"
    assert lower[1].view(3, NODES).sum(dim=1).tolist() == [1, 1, 25]


def test_the_rule_that_keeps_less_is_taken() -> None:
    labels = torch.zeros(100, dtype=torch.long)
    right, wrong = torch.zeros(100, 3, dtype=torch.long), torch.zeros(100, 3, dtype=torch.long)
    wrong[:20, 1] = 1  # a fifth is lost halfway, and nothing at the end
    kept = torch.tensor([1.0, 0.5, 0.2]).expand(100, 3)
    found = {"first": Cuts(wrong, kept, labels), "second": Cuts(right, kept, labels)}
    assert better_rule(found, 0.1) == "second"
    assert better_rule(found, 0.3) == "first", "of equal ones the first"


def test_the_dial_turns_from_the_full_graph_to_its_sparsest_setting() -> None:
    graphs = ba_motifs(num_graphs=8, seed=0)
    torch.manual_seed(0)
    policy = Policy(DIMS, NETWORK, "gin", "node", 0.5, 0.02, lam=0.5)
    for weights in policy.parameters():
        torch.nn.init.normal_(weights, std=0.5)
    model = SparseClassifier(policy, Classifier(DIMS, NETWORK, "gin")).eval()
    found = dial_cuts(model, graphs)
    assert found.predicted.shape == (8, 22)
    assert (found.kept_ratio[:, 0] == 1).all()
    assert not found.losses[:, 0].any()
    for column, lam in ((1, 1.0), (21, 0.0)):
        expected = predict(model.at(lam), graphs)
        torch.testing.assert_close(found.kept_ratio[:, column], expected.node_ratio)
        assert torch.equal(found.predicted[:, column], expected.probs.argmax(dim=-1))


def test_edges_are_cut_as_pairs() -> None:
    graphs = ba_motifs(num_graphs=4, seed=0).with_pairs()
    scores = Scores.of_edges(graphs, torch.rand(graphs.edge_index.size(1)))
    classifier = Classifier(DIMS, NETWORK, "gin")
    found = ordered_cuts(classifier, graphs, "edge", scores, share_rule)
    assert (found.kept_ratio.diff(dim=1) <= 0).all()
    assert (found.kept_ratio[:, 10] - 0.5).abs().max() < 0.05
