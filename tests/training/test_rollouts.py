"""Rollouts on the graphs of several referees at once, as on a GPU."""

import pytest
import torch

from cores.config.presets import preset_config
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.graphs.subgraphs import Elements
from cores.models.build import build_classifier, build_model
from cores.models.sparse import SparseClassifier
from cores.training.learner import Learner
from cores.training.rollouts import _outcome


@pytest.mark.parametrize("model_name", ["cores-node", "cores-edge", "cores-both"])
def test_each_referee_predicts_from_the_samples_of_its_own_graphs(model_name: str) -> None:
    torch.manual_seed(0)
    changes = {"network": {"hidden_dim": 8, "num_layers": 2}}
    config = preset_config("MUTAG", model_name, "gin", "default", changes)
    graphs = ba_motifs(num_graphs=9, base_size=6, seed=0).with_pairs()
    dims = Dims(graphs.num_features, 2)
    model = build_model(config, dims)
    assert isinstance(model, SparseClassifier)
    own = torch.tensor([0, 2, 4, 6, 8]), torch.tensor([7, 1])
    parts = [
        (Learner(build_classifier(config, dims), graphs.view(), graphs.view(index), config), index)
        for index in own
    ]
    outcome = _outcome(model, parts, samples=3)
    elements = outcome.rollout.elements
    removed, restored = elements.restored(outcome.rollout.removed)
    assert torch.equal(outcome.restored, restored)
    assert torch.equal(outcome.kept_ratio, elements.kept_ratio(removed))
    assert torch.equal(elements.batch.y, graphs.y[torch.cat(own)])
    for number, sample in enumerate(removed):
        subgraphs = Elements.of(elements.batch, model.policy.removal).subgraph(sample).batch
        for (referee, _), columns in zip(parts, (slice(0, 5), slice(5, 7)), strict=True):
            with torch.no_grad():
                expected = referee.classifier(subgraphs).softmax(dim=-1)
            assert torch.allclose(outcome.probs[number, columns], expected[columns], atol=1e-5)
