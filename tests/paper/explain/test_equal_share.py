"""The best-scored part of every graph, as large as another method's."""

import pytest
import torch

from cores.config import NetworkConfig
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.evaluation.faithfulness import faithfulness_metrics
from cores.evaluation.predictions import predict, predict_proba
from cores.evaluation.scores import Scores
from cores.graphs.subgraphs import Elements
from cores.models.classifier import Classifier
from cores.models.policy import Policy
from cores.models.sparse import SparseClassifier
from cores_paper.explain.equal_share import EqualShare

NETWORK = NetworkConfig(hidden_dim=8, num_layers=2)
DIMS = Dims(num_features=10, num_classes=2)


def chooser(removal: str) -> SparseClassifier:
    torch.manual_seed(0)
    policy = Policy(DIMS, NETWORK, "gin", removal, 0.5, 0.02)
    for weights in policy.parameters():  # one that has not learnt keeps everything
        torch.nn.init.normal_(weights, std=0.5)
    return SparseClassifier(policy, Classifier(DIMS, NETWORK, "gin")).eval()


@pytest.mark.parametrize("removal", ["node", "edge"])
def test_a_policy_at_its_own_share_is_the_policy(removal: str) -> None:
    """Its scores, cut at what it keeps itself, give its own subgraphs and its own metrics."""
    graphs = ba_motifs(num_graphs=8, seed=0).with_pairs()
    model = chooser(removal)
    found = predict(model, graphs)
    ratio = found.kept_ratio(graphs, removal)
    assert 0 < ratio.mean() < 1
    share = EqualShare(graphs, removal, ratio, model.classifier)
    if removal == "edge":
        scores = Scores.of_edges(graphs, found.edge_scores)
    else:
        scores = Scores.of_nodes(graphs, found.node_scores)
    metrics = share.metrics(scores, model)
    expected = faithfulness_metrics(model, graphs, found)
    pairs = ("sufficiency", "sufficiency_loss"), ("comprehensiveness", "comprehensiveness")
    for name, of_model in pairs:
        assert metrics[name] == pytest.approx(expected[of_model], abs=1e-6)
    own = predict_proba(model.classifier, found.subgraphs(graphs)).argmax(dim=-1)
    assert metrics["judge_accuracy"] == pytest.approx(float((own == graphs.y).double().mean()))


def test_so_many_elements_are_kept_and_the_best_ones() -> None:
    graphs = ba_motifs(num_graphs=3, seed=0)
    elements = Elements.of(graphs.batch(torch.arange(3)), "node")
    ratio = torch.tensor([0.2, 0.04, 1.0])
    share = EqualShare(graphs, "node", ratio, torch.nn.Identity())
    values = torch.arange(75.0) % 25
    kept = ~share.removed(elements, values, torch.arange(3))
    assert kept.view(3, 25).sum(dim=1).tolist() == [5, 1, 25]
    assert kept[:25].nonzero().flatten().tolist() == [20, 21, 22, 23, 24]


def test_equal_scores_are_cut_without_regard_to_their_place() -> None:
    """Motifs come last in the files: the first or last of equal nodes would tell too much."""
    graphs = ba_motifs(num_graphs=2, seed=0)
    elements = Elements.of(graphs.batch(torch.arange(2)), "node")
    share = EqualShare(graphs, "node", torch.tensor([0.4, 0.4]), torch.nn.Identity())
    kept = ~share.removed(elements, torch.zeros(50), torch.arange(2))
    first = kept[:25].nonzero().flatten()
    assert torch.equal(first, kept[25:].nonzero().flatten())
    assert (first < 10).any() and (first > 15).any()  # noqa: PT018 - one fact
