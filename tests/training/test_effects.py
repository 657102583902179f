"""Where the policy starts: the cost of removing an element, learnt from random masks."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch

from cores.config.presets import preset_config
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.graphs.batches import cut
from cores.graphs.subgraphs import Elements
from cores.models.build import build_classifier, build_effects, build_model
from cores.models.sparse import SparseClassifier
from cores.tasks.base import LEAST_LOG_PROB
from cores.tasks.classification import ClassHead
from cores.training.bilevel import BilevelState, start_policy
from cores.training.effects import (
    SPREAD,
    EffectSteps,
    MaskCosts,
    RecordedEffectSteps,
    fit_effects,
    learn_effects,
    mask_costs,
    nats_lost,
    probability_lost,
    random_masks,
)
from cores.training.learner import Learner
from cores.training.state import RandomState

GRAPHS = ba_motifs(num_graphs=12, base_size=8, seed=0).with_pairs()
CPU = torch.device("cpu")
SMALL = {"network": {"hidden_dim": 8, "num_layers": 2}}
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def policy_and_member(
    name: str = "cores-node", **changes: dict[str, object]
) -> tuple[SparseClassifier, Learner]:
    torch.manual_seed(0)
    config = preset_config("motifs", name, "gin", "default", {**SMALL, **changes})
    dims = Dims(GRAPHS.num_features, 2)
    model = build_model(config, dims)
    assert isinstance(model, SparseClassifier)
    return model, Learner(build_classifier(config, dims), GRAPHS.view(), GRAPHS.view(), config)


class SummedNodes(torch.nn.Module):
    """Every node whose first feature is 1 adds a twentieth to the second class's probability."""

    def __init__(self) -> None:
        super().__init__()
        self.head = ClassHead(1, 2)

    def forward(self, batch: Batch) -> Tensor:
        left = batch.x.new_zeros(batch.num_graphs).index_add(0, batch.batch, batch.x[:, 0])
        p = (0.55 + 0.05 * left).clamp(max=0.999)
        return torch.stack([1 - p, p], dim=-1).log()


class MarkedNodes(torch.nn.Module):
    """Loses 0.2 nats with every node whose first feature is 1."""

    def __init__(self) -> None:
        super().__init__()
        self.head = ClassHead(1, 2)

    def forward(self, batch: Batch) -> Tensor:
        left = batch.x.new_zeros(batch.num_graphs).index_add(0, batch.batch, batch.x[:, 0])
        p = torch.exp(0.2 * (left - 6)).clamp(max=0.99)
        return torch.stack([1 - p, p], dim=-1).log()


@pytest.mark.parametrize("name", ["cpu", pytest.param("cuda", marks=needs_gpu)])
def test_elements_whose_removal_costs_most_are_kept_before_ppo(name: str) -> None:
    device = torch.device(name)
    model, member = policy_and_member()
    model.to(device)
    store = member.policy_graphs.store.to(device)
    x = torch.zeros_like(store.x)
    x[::3, 0] = 1.0
    member.policy_graphs = replace(store, x=x).view()
    member.classifier = MarkedNodes()  # type: ignore[assignment]
    fit_effects(model.policy, [member], 300, RandomState(0, device))
    batch = replace(store, x=x).batch(torch.arange(len(store)))
    with torch.no_grad():
        logits = model.policy(batch)
    marked = batch.x[:, 0] > 0
    assert logits[marked].mean() < logits[~marked].mean() - SPREAD / 2
    assert float(logits.std()) == pytest.approx(SPREAD, rel=0.5)


@pytest.mark.usefixtures("unrecorded")
@pytest.mark.parametrize("name", ["cores-node", "cores-edge"])
def test_recorded_steps_are_plain_steps(name: str) -> None:
    """Twelve graphs, five at a time: the last batch has padding graphs too."""
    model, member = policy_and_member(name)
    policy, other = model.policy, deepcopy(model.policy)
    costs = mask_costs(policy, member, torch.arange(12), nats_lost)
    pieces = [Elements.of(piece, policy.removal) for piece in cut(costs.elements.batch, 5)]
    removed = [each[0] for each in costs.elements.split(costs.removed[None], pieces)]
    parts = [MaskCosts(*each) for each in zip(pieces, removed, costs.cost.split(5), strict=True)]
    plain, recorded = EffectSteps(policy, policy, 6), RecordedEffectSteps(other, other, 6)
    for _ in range(2):
        for part in parts:
            plain.run(part, 5)
        recorded.run(costs, 5)
    start = policy_and_member(name)[0].policy
    for one, two, first in zip(
        policy.parameters(), other.parameters(), start.parameters(), strict=True
    ):
        assert torch.allclose(one, two, atol=1e-5)
        assert not torch.equal(one, first)


@pytest.mark.parametrize("name", ["cores-node", "cores-edge", "cores-both"])
def test_logits_are_stretched_around_the_start(name: str) -> None:
    model, _ = policy_and_member(name)
    batch = GRAPHS.batch(torch.arange(len(GRAPHS)))
    with torch.no_grad():
        for head_name, head in model.policy.named_children():
            if head_name.endswith("_head"):
                head.weight.normal_(std=30.0)  # type: ignore[union-attr,operator]
        model.policy.stretch(model.policy(batch), SPREAD)
        logits = model.policy(batch)
    assert float(logits.std()) == pytest.approx(SPREAD, rel=1e-3)
    assert float(logits.mean()) == pytest.approx(model.policy.start, abs=1e-3)


def test_a_single_logit_has_no_spread() -> None:
    model, _ = policy_and_member()
    model.policy.stretch(torch.ones(1), SPREAD)
    assert model.policy.node_head.bias.item() == pytest.approx(model.policy.start)


def test_masks_keep_something_of_every_graph_and_one_half_of_them_is_smooth() -> None:
    torch.manual_seed(0)
    elements = Elements.of(GRAPHS.batch(torch.arange(12).repeat(50)), "node")
    removed = random_masks(elements)
    assert (elements.kept_ratio(removed) > 0).all()
    source, target = elements.batch.edge_index
    together = (removed[source] == removed[target]).float()
    edges = elements.batch.batch[source]
    smooth, alone = (together[edges % 2 == half].mean() for half in (0, 1))
    assert smooth > alone + 0.1


def test_a_cost_is_what_the_prediction_from_the_full_graph_loses() -> None:
    _, member = policy_and_member()
    full, part = torch.tensor([[[0.0, 2.0], [5.0, 0.0]], [[0.0, 1.0], [-90.0, 0.0]]])
    elements = Elements.of(GRAPHS.batch(torch.arange(2)), "node")
    nothing = torch.zeros(len(elements.owner), dtype=torch.bool)
    nats, probability = [], []
    for cost, found in ((nats_lost, nats), (probability_lost, probability)):
        logits = iter([full, part])
        member.classifier.forward = lambda batch, given=logits: next(given)  # type: ignore[method-assign,misc]
        found += cost(member, elements, nothing).tolist()
    before, after = full.log_softmax(-1), part.log_softmax(-1)
    lost = [float(before[0, 1] - after[0, 1]), float(before[1, 0]) - LEAST_LOG_PROB]
    assert nats == pytest.approx(lost)
    before, after = full.softmax(-1), part.softmax(-1)
    assert probability == pytest.approx(
        [float(before[0, 1] - after[0, 1]), float(before[1, 0] - after[1, 0])]
    )


@pytest.mark.parametrize("name", ["cpu", pytest.param("cuda", marks=needs_gpu)])
def test_effects_are_what_each_element_contributes(name: str) -> None:
    """Of a prediction that is a sum over nodes, the summands; nodes that do nothing have none."""
    device = torch.device(name)
    model, member = policy_and_member()
    store = member.policy_graphs.store.to(device)
    x = torch.zeros_like(store.x)
    x[::3, 0] = 1.0
    member.policy_graphs = replace(store, x=x).view()
    member.classifier = SummedNodes()  # type: ignore[assignment]
    config = preset_config("motifs", "cores-node", "gin", "default", SMALL)
    network = build_effects(config, Dims(GRAPHS.num_features, 2), model.scaler).to(device)
    told: list[int] = []
    learn_effects(network, [member], 450, RandomState(0, device), done=told.append)
    batch = replace(store, x=x).batch(torch.arange(len(store)))
    with torch.no_grad():
        effects = network(batch)
    marked = batch.x[:, 0] > 0
    assert effects[marked].min() > 1.5 * effects[~marked].max()
    assert effects[marked].max() < 0.06
    assert told[-1] == 450


def test_a_policy_is_new_until_ppo_has_changed_it() -> None:
    changes = {"training": {"epochs": 6}, "ppo": {"effect_steps": 3}}
    model, member = policy_and_member(**changes)
    config = preset_config("motifs", "cores-node", "gin", "default", changes)
    state = BilevelState(model, [member, member], GRAPHS, config, RandomState(0, CPU))
    assert state.policy_is_new
    start_policy(state)
    state.averaged.update_parameters(model.policy)
    assert not state.policy_is_new
