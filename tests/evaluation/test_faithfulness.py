"""Faithfulness of kept parts: by hand, and as PyG measures it."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from cores.config import NetworkConfig, Removal
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.evaluation.faithfulness import (
    agreement_metrics,
    faithfulness_metrics,
    one_edge_each,
    permuted,
    rest_of,
    shuffled_nodes,
)
from cores.evaluation.predictions import Predictions, predict
from cores.graphs.batches import as_batch
from cores.graphs.store import GraphStore
from cores.models.classifier import Classifier
from cores.models.policy import Policy
from cores.models.sparse import SparseClassifier

DIMS = Dims(10, 2)
SMALL = NetworkConfig(hidden_dim=16, num_layers=2)
REMOVALS: tuple[Removal, ...] = ("node", "edge", "both")


def graphs() -> GraphStore:
    store = ba_motifs(num_graphs=20, base_size=9, seed=0)
    torch.manual_seed(1)
    return GraphStore(
        torch.randn_like(store.x), store.edge_index, store.y, store.node_ptr, store.edge_ptr
    )


def chooser(removal: Removal) -> SparseClassifier:
    """A policy that keeps about half, and a classifier to which either class is as likely."""
    torch.manual_seed(0)
    policy = Policy(DIMS, SMALL, "gin", removal, 0.5, 0.02)
    heads = [getattr(policy, name) for name in ("node_head", "edge_head") if hasattr(policy, name)]
    for head in heads:
        torch.nn.init.normal_(head.weight)
    model = SparseClassifier(policy, Classifier(DIMS, SMALL, "gin")).eval()
    batch = graphs().batch(torch.arange(20))
    with torch.no_grad():
        for head in heads:
            head.bias -= policy(batch).median()
        logits = model.classifier(batch)
        model.classifier.head.bias[1] -= (logits[:, 1] - logits[:, 0]).median()
    return model


def measured(model: SparseClassifier, store: GraphStore) -> dict[str, float | None]:
    return faithfulness_metrics(model, store, predict(model, store))


def sum_model(removal: Removal) -> SparseClassifier:
    """Class 1 is likely where the first feature's sum over the nodes is large."""
    model = chooser(removal)

    class Sum(Classifier):
        def logits(self, batch: Batch) -> Tensor:
            total = batch.x.new_zeros(batch.num_graphs).index_add(0, batch.batch, batch.x[:, 0])
            return torch.stack([torch.zeros_like(total), total], dim=1)

    model.classifier = Sum(DIMS, SMALL, "gin").eval()
    return model


def test_by_hand() -> None:
    """One graph of three nodes with values 2, -1, 3; the policy keeps what has a positive one."""
    model = sum_model("node")
    data = Data(
        x=torch.tensor([[2.0], [-1.0], [3.0]]).repeat(1, 10),
        edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
        y=torch.tensor([1]),
    )

    def logits(batch: Batch, *_: object) -> Tensor:
        return -as_batch(batch).x[:, 0]  # large: remove

    model.policy.forward = logits  # type: ignore[method-assign]
    found = measured(model, GraphStore.from_graphs([data]))
    sigmoid = torch.tensor([4.0, 5.0, -1.0]).sigmoid()  # full, kept, rest
    assert found["sufficiency_loss"] == pytest.approx(float(sigmoid[0] - sigmoid[1]))
    assert found["comprehensiveness"] == pytest.approx(float(sigmoid[0] - sigmoid[2]))
    assert found["fidelity_minus"] == 0
    assert found["fidelity_plus"] == 1
    assert found["idempotence"] == 1
    assert found["permutation_stability"] == 1
    assert found["edge_stability"] == 1


@pytest.mark.parametrize("removal", REMOVALS)
def test_a_gnn_does_not_care_how_nodes_are_numbered(removal: Removal) -> None:
    found = measured(chooser(removal), graphs())
    assert found["permutation_stability"] == pytest.approx(1.0)
    for name in ("edge_stability", "idempotence"):
        value = found[name]
        assert value is not None
        assert 0 < value <= 1
    assert measured(chooser(removal), graphs()) == found, "chance is seeded"


@pytest.mark.parametrize(("removal", "stability"), [("node", 0.5), ("edge", 1.0)])
def test_a_missing_edge_may_change_what_is_kept(removal: Removal, stability: float) -> None:
    """Two edges side by side; a policy keeps all nodes that have one, or all edges."""
    data = Data(x=torch.ones(4, 10), edge_index=torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]]))
    data.y = torch.tensor([0])
    model = chooser(removal)

    def logits(batch: Batch, *_: object) -> Tensor:
        if removal == "edge":
            return -torch.ones(batch.pair_index.size(1))
        degree = torch.bincount(batch.edge_index[0], minlength=batch.x.size(0))
        return torch.where(degree > 0, -1.0, 1.0)

    model.policy.forward = logits  # type: ignore[method-assign]
    found = measured(model, GraphStore.from_graphs([data]))
    assert found["edge_stability"] == stability, "of edges, the missing one does not count"


@pytest.mark.parametrize("removal", REMOVALS)
def test_kept_part_and_rest_share_nothing(removal: Removal) -> None:
    batch = graphs().batch(torch.arange(20))
    subgraph = chooser(removal).choose(batch).subgraph
    rest, kept = rest_of(batch, subgraph, removal), subgraph.batch
    if removal == "edge":
        assert rest.edge_index.size(1) + kept.edge_index.size(1) == batch.edge_index.size(1)
        assert rest.x.size(0) == batch.x.size(0)
    else:
        assert rest.x.size(0) + kept.x.size(0) == batch.x.size(0)
        both = torch.cat([rest.x, kept.x])
        assert torch.equal(both[both[:, 0].argsort()], batch.x[batch.x[:, 0].argsort()])


def test_an_edge_between_removed_nodes_belongs_to_the_rest() -> None:
    """Also where the policy would have kept it, had it kept its ends."""
    batch = graphs().batch(torch.arange(20))
    model = chooser("both")
    subgraph = model.choose(batch).subgraph
    rest = rest_of(batch, subgraph, "both")
    gone = subgraph.removed_nodes[batch.edge_index].all(dim=0)
    assert rest.edge_index.size(1) == int(gone.sum()) > 0


@pytest.mark.parametrize("removal", REMOVALS)
def test_the_policy_is_not_asked_again_about_graphs_it_has_decided_on(removal: Removal) -> None:
    model, store = chooser(removal), graphs()
    predictions = predict(model, store)
    asked: list[Tensor] = []
    model.policy.register_forward_pre_hook(lambda _, given: asked.append(given[0].edge_index))
    faithfulness_metrics(model, store, predictions)
    whole = store.batch(torch.arange(20)).edge_index
    assert len(asked) == 3, "the kept part, other numbers, one edge less"
    assert not any(torch.equal(edges, whole) for edges in asked)


def kept_nodes(store: GraphStore, kept: list[list[int]]) -> Predictions:
    """Predictions that keep these nodes, by their numbers in all graphs."""
    found = predict(chooser("node"), store)
    removed = torch.ones(int(store.node_ptr[-1]), dtype=torch.bool)
    removed[torch.tensor([node for graph in kept for node in graph])] = False
    return replace(found, removed_nodes=removed)


def path_of(nodes: int) -> Data:
    ends = torch.arange(nodes - 1)
    edges = torch.stack([torch.cat([ends, ends + 1]), torch.cat([ends + 1, ends])])
    return Data(x=torch.randn(nodes, 10), edge_index=edges, y=torch.tensor([0]))


def test_models_that_keep_the_same_overlap_wholly_and_others_by_what_they_share() -> None:
    """Two graphs of four nodes; three models, so three pairs."""
    store = GraphStore.from_graphs([path_of(4), path_of(4)])
    first = kept_nodes(store, [[0, 1], [4, 5, 6, 7]])
    second = kept_nodes(store, [[1, 2], [4, 5, 6, 7]])
    third = kept_nodes(store, [[0, 1], [4]])
    assert agreement_metrics([first, first], store, "node")["run_overlap"] == 1
    found = agreement_metrics([first, second, third], store, "node")
    pairs = [1 / 3, 1, 1, 1 / 4, 1 / 3, 1 / 4]  # 1 with 2, 1 with 3, 2 with 3; two graphs each
    assert found["run_overlap"] == pytest.approx(sum(pairs) / 6)
    assert agreement_metrics([first, second, third], store, "node") == found, "chance is seeded"


def test_random_parts_overlap_as_chance_has_it() -> None:
    store = GraphStore.from_graphs([path_of(10) for _ in range(400)])
    kept = [list(range(10 * graph, 10 * graph + 3)) for graph in range(400)]
    predictions = kept_nodes(store, kept)
    found = agreement_metrics([predictions, predictions], store, "node")
    ways = {0: 35, 1: 63, 2: 21, 3: 1}  # of 120 choices of 3 out of 10: how many are shared
    expected = sum(number * shared / (6 - shared) for shared, number in ways.items()) / 120
    assert found["run_overlap_random"] == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("removal", ["edge", "both"])
def test_a_model_agrees_with_itself(removal: Removal) -> None:
    store = graphs()
    predictions = predict(chooser(removal), store)
    found = agreement_metrics([predictions, predictions], store, removal)
    assert found["run_overlap"] == 1 > found["run_overlap_random"] > 0


def test_a_permuted_graph_is_the_same_graph() -> None:
    batch = graphs().batch(torch.arange(20))
    batch.edge_attr = torch.randn(batch.edge_index.size(1), 3)
    order = shuffled_nodes(batch, torch.Generator().manual_seed(0))
    assert not torch.equal(order, torch.arange(len(order)))
    other = permuted(batch, order)
    assert torch.equal(other.batch, batch.batch)
    assert torch.equal(batch.x[batch.edge_index], other.x[other.edge_index])
    assert torch.equal(batch.edge_attr, other.edge_attr)


def test_one_edge_of_every_graph_is_both_its_directions() -> None:
    batch = graphs().batch(torch.arange(20))
    missing = one_edge_each(batch, torch.Generator().manual_seed(0))
    owner = batch.batch[batch.edge_index[0]]
    assert torch.bincount(owner[missing]).tolist() == [2] * 20
    ends = batch.edge_index[:, missing]
    for graph in range(20):
        first, second = ends[:, owner[missing] == graph].T.tolist()
        assert first == second[::-1]


def test_graphs_without_edges_have_no_stability_against_their_loss() -> None:
    lonely = Data(x=torch.randn(3, 10), edge_index=torch.empty(2, 0, dtype=torch.long))
    lonely.y = torch.tensor([0])
    found = measured(chooser("node"), GraphStore.from_graphs([lonely]))
    assert found["edge_stability"] is None
    assert found["permutation_stability"] == 1


def test_fidelity_is_what_pyg_measures() -> None:
    """Where edges are removed, masking messages as PyG does is the same as removing them."""
    from torch_geometric.explain import Explainer, ModelConfig
    from torch_geometric.explain.metric import fidelity

    from cores.explain.explanation import CoresExplainer

    model, store = chooser("edge"), graphs()
    found = measured(model, store)
    explainer = Explainer(
        model.classifier,
        CoresExplainer(model.policy),
        explanation_type="model",
        edge_mask_type="object",
        model_config=ModelConfig(
            mode="multiclass_classification", task_level="graph", return_type="raw"
        ),
    )
    plus, minus = [], []
    for index in range(len(store)):
        batch = store.batch(torch.tensor([index]))
        explanation = explainer(batch.x, batch.edge_index, batch=batch.batch)
        positive, negative = fidelity(explainer, explanation)
        plus.append(positive)
        minus.append(negative)
    assert found["fidelity_plus"] == pytest.approx(sum(plus) / len(plus))
    assert found["fidelity_minus"] == pytest.approx(sum(minus) / len(minus))
    assert sum(plus) + sum(minus) > 0, "something changes"
