"""A model with a dial: the same weights at every setting, and many settings predicted at once."""

import pytest
import torch

from cores.config import NetworkConfig, Removal
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.errors import UserError
from cores.evaluation import dial
from cores.evaluation.dial import predict_settings
from cores.evaluation.predictions import predict
from cores.models.classifier import Classifier
from cores.models.policy import Policy
from cores.models.sparse import SparseClassifier

GRAPHS = ba_motifs(num_graphs=9, base_size=6, seed=0)
SETTINGS = (0.0, 0.3, 1.0)


def dialled_model(removal: Removal) -> SparseClassifier:
    """With random weights, so that it keeps something else at every setting."""
    torch.manual_seed(1)
    dims, network = Dims(GRAPHS.num_features, 2), NetworkConfig(hidden_dim=8, num_layers=2)
    policy = Policy(dims, network, "gin", removal, 0.5, 0.02, lam=0.5)
    for weights in policy.parameters():
        torch.nn.init.normal_(weights, std=0.5)
    (batch,) = GRAPHS.with_pairs().batches(len(GRAPHS))
    policy.stretch(policy(batch), 3.0)  # around even chances
    return SparseClassifier(policy, Classifier(dims, network, "gin")).eval()


@pytest.mark.parametrize("removal", ["node", "edge", "both"])
@pytest.mark.parametrize("size", [4, 100])
def test_all_settings_at_once_are_those_one_by_one(
    removal: Removal, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dial, "evaluation_batch", lambda device: size)
    model, graphs = dialled_model(removal), GRAPHS.with_pairs()
    index = torch.tensor([8, 1, 5, 0, 7])
    found = predict_settings(model, graphs.view(index), SETTINGS)
    for place, lam in enumerate(SETTINGS):
        expected = predict(model.at(lam), graphs.subset(index))
        torch.testing.assert_close(found.probs[place], expected.probs)
        kept = expected.kept_ratio(graphs.subset(index), removal)
        torch.testing.assert_close(found.kept_ratio[place], kept)
    assert len(found.kept_ratio.mean(dim=1).unique()) == len(SETTINGS)


def test_another_classifier_may_predict() -> None:
    model = dialled_model("node")
    other = Classifier(Dims(GRAPHS.num_features, 2), NetworkConfig(hidden_dim=4), "gin").eval()
    found = predict_settings(model, GRAPHS.view(), SETTINGS, other)
    expected = predict(SparseClassifier(model.at(0.3).policy, other), GRAPHS)
    torch.testing.assert_close(found.probs[1], expected.probs)


def test_a_graph_without_a_prediction_is_told_by_its_name_at_any_setting() -> None:
    model = dialled_model("node")
    graphs = ba_motifs(num_graphs=3, base_size=6, seed=0)
    graphs.x[-1] = torch.nan
    with pytest.raises(UserError, match="no probabilities for graph c and 2 more"):
        predict_settings(model, graphs.view(), SETTINGS, names=["a", "b", "c"])


def test_another_setting_shares_the_weights_and_changes_nothing() -> None:
    model = dialled_model("node")
    before = predict(model, GRAPHS)
    other = model.at(0.0)
    assert not torch.equal(predict(other, GRAPHS).probs, before.probs)
    assert torch.equal(predict(model, GRAPHS).probs, before.probs)
    assert float(model.state_dict()["policy.lam"]) == 0.5
    assert float(other.state_dict()["policy.lam"]) == 0.0
    shared = zip(model.parameters(), other.parameters(), strict=True)
    assert all(ours is theirs for ours, theirs in shared)
