"""Rollouts on the graphs of several members at once, as on a GPU."""

from dataclasses import replace

import pytest
import torch

from cores.config import RewardConfig, RunConfig
from cores.config.presets import preset_config
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.graphs.components import count_pieces
from cores.graphs.subgraphs import Elements
from cores.models.build import build_classifier, build_model
from cores.models.sparse import SparseClassifier
from cores.training.learner import Learner
from cores.training.rollouts import _outcome, rollout_reward


def model_and_member(**reward: int) -> tuple[SparseClassifier, Learner, RunConfig]:
    """That removes nodes, and a member who rewards it on nine graphs."""
    torch.manual_seed(0)
    changes = {"network": {"hidden_dim": 8, "num_layers": 2}, "reward": reward}
    config = preset_config("MUTAG", "cores-node", "gin", "default", changes)
    graphs = ba_motifs(num_graphs=9, base_size=6, seed=0)
    dims = Dims(graphs.num_features, 2)
    model = build_model(config, dims)
    assert isinstance(model, SparseClassifier)
    member = Learner(build_classifier(config, dims), graphs.view(), graphs.view(), config)
    return model, member, config


@pytest.mark.parametrize("max_pieces", [0, 1])
@pytest.mark.parametrize("model_name", ["cores-node", "cores-edge", "cores-both"])
def test_each_member_predicts_from_the_samples_of_its_own_graphs(
    model_name: str, max_pieces: int
) -> None:
    torch.manual_seed(0)
    changes = {
        "network": {"hidden_dim": 8, "num_layers": 2},
        "reward": {"max_pieces": max_pieces},
    }
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
    asked, keep = count_pieces(elements, removed), outcome.rollout.log_probs[0].exp()
    removed = model.policy.connected(elements, removed, keep)
    assert torch.equal(count_pieces(elements, removed), asked.clamp(max=max_pieces or 99))
    assert asked.max() > 1
    assert torch.equal(outcome.kept_ratio, elements.kept_ratio(removed))
    assert torch.equal(elements.batch.y, graphs.y[torch.cat(own)])
    for number, sample in enumerate(removed):
        subgraphs = Elements.of(elements.batch, model.policy.removal).subgraph(sample).batch
        for (member, _), columns in zip(parts, (slice(0, 5), slice(5, 7)), strict=True):
            with torch.no_grad():
                expected = member.classifier(subgraphs).softmax(dim=-1)
            assert torch.allclose(outcome.probs[number, columns], expected[columns], atol=1e-5)


def test_a_subgraph_is_right_where_it_is_predicted_like_the_full_graph() -> None:
    model, member, _ = model_and_member()
    with torch.no_grad():
        member.classifier.head.bias[:] = torch.tensor([0.0, 50.0])
    outcome = _outcome(model, [(member, torch.arange(9))], samples=2)
    assert outcome.labels.tolist() == [1] * 9, "whatever the label"
    settings = RewardConfig(lam=1.0)
    reward = rollout_reward(outcome, torch.tensor(0.5), settings)
    assert (reward[~outcome.restored] > 0).all()


@pytest.mark.parametrize("max_pieces", [0, 2])
def test_pieces_of_the_sampled_part_cost_as_much_as_nodes(max_pieces: int) -> None:
    model, member, config = model_and_member(max_pieces=max_pieces)
    outcome = _outcome(model, [(member, torch.arange(9))], samples=4)
    free, costly = (
        rollout_reward(outcome, torch.tensor(0.5), replace(config.reward, pieces_penalty=weight))
        for weight in (0.0, 0.7)
    )
    elements = outcome.rollout.elements
    pieces = count_pieces(elements, elements.restored(outcome.rollout.removed)[0])
    beyond = (pieces - max(1, max_pieces)).clamp(min=0) / elements.batch.ptr.diff()
    assert beyond.max() > 0
    assert torch.allclose(free - costly, 0.7 * beyond, atol=1e-6)
