"""Faithfulness of kept parts: by hand, and as PyG measures it."""

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from cores.config import NetworkConfig, Removal
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.evaluation.faithfulness import (
    faithfulness_metrics,
    one_edge_each,
    permuted,
    rest_of,
    shuffled_nodes,
)
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
    found = faithfulness_metrics(model, GraphStore.from_graphs([data]))
    sigmoid = torch.tensor([4.0, 5.0, -1.0]).sigmoid()  # full, kept, rest
    assert found["sufficiency"] == pytest.approx(float(sigmoid[0] - sigmoid[1]))
    assert found["comprehensiveness"] == pytest.approx(float(sigmoid[0] - sigmoid[2]))
    assert found["fidelity_minus"] == 0
    assert found["fidelity_plus"] == 1
    assert found["idempotence"] == 1
    assert found["permutation_stability"] == 1
    assert found["edge_stability"] == 1


@pytest.mark.parametrize("removal", REMOVALS)
def test_a_gnn_does_not_care_how_nodes_are_numbered(removal: Removal) -> None:
    found = faithfulness_metrics(chooser(removal), graphs())
    assert found["permutation_stability"] == pytest.approx(1.0)
    for name in ("edge_stability", "idempotence"):
        value = found[name]
        assert value is not None
        assert 0 < value <= 1
    assert faithfulness_metrics(chooser(removal), graphs()) == found, "chance is seeded"


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
    found = faithfulness_metrics(model, GraphStore.from_graphs([data]))
    assert found["edge_stability"] == stability, "of edges, the missing one does not count"


@pytest.mark.parametrize("removal", REMOVALS)
def test_kept_part_and_rest_share_nothing(removal: Removal) -> None:
    batch = graphs().batch(torch.arange(20))
    choice = chooser(removal).choose(batch)
    rest, kept = rest_of(choice), choice.subgraph.batch
    if removal == "edge":
        assert rest.edge_index.size(1) + kept.edge_index.size(1) == batch.edge_index.size(1)
        assert rest.x.size(0) == batch.x.size(0)
    else:
        assert rest.x.size(0) + kept.x.size(0) == batch.x.size(0)
        both = torch.cat([rest.x, kept.x])
        assert torch.equal(both[both[:, 0].argsort()], batch.x[batch.x[:, 0].argsort()])


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
    found = faithfulness_metrics(chooser("node"), GraphStore.from_graphs([lonely]))
    assert found["edge_stability"] is None
    assert found["permutation_stability"] == 1


def test_fidelity_is_what_pyg_measures() -> None:
    """Where edges are removed, masking messages as PyG does is the same as removing them."""
    from torch_geometric.explain import Explainer, ModelConfig
    from torch_geometric.explain.metric import fidelity

    from cores.explain.explainer import CoresExplainer

    model, store = chooser("edge"), graphs()
    found = faithfulness_metrics(model, store)
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
