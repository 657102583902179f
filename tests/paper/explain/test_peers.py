"""Every method scores every node and edge, and those that should find a planted reason."""

from collections.abc import Iterator

import pytest
import torch
from sklearn.metrics import roc_auc_score

from cores.config import NetworkConfig, RunConfig
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.errors import UserError
from cores.evaluation.explanations import truth_auc
from cores.evaluation.predictions import predict
from cores.graphs.store import GraphStore
from cores.models.build import build_effects, build_model
from cores.models.classifier import Classifier
from cores.models.network import GraphModel
from cores.models.sparse import SparseClassifier
from cores_paper.explain import peers
from cores_paper.explain.comparison_rows import METHODS, method_of
from cores_paper.explain.peers import PREPARE, gradient_input, saliency

NETWORK = NetworkConfig(hidden_dim=8, num_layers=2)
GRAPHS = ba_motifs(num_graphs=6, seed=0)
DIMS = Dims(GRAPHS.num_features, 2)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(peers, "GNN_EPOCHS", 3)
    monkeypatch.setattr(peers, "PG_EPOCHS", 2)
    monkeypatch.setattr(peers, "PG_GRAPHS", 4)
    monkeypatch.setattr(peers, "PERMUTATIONS", 2)
    random = torch.get_rng_state()
    yield
    torch.set_rng_state(random)


def model_of(name: str) -> GraphModel:
    torch.manual_seed(0)
    config = RunConfig(model=name, network=NETWORK)
    model = build_model(config, DIMS)
    if isinstance(model, SparseClassifier):
        model.effects = build_effects(config, DIMS, model.scaler)
        for weights in model.effects.parameters():
            torch.nn.init.normal_(weights)  # what is learnt is another test's
    return model.eval()


def test_every_method_of_the_table_can_be_made_ready() -> None:
    assert set(PREPARE) == set(METHODS)
    with pytest.raises(UserError, match="unknown method 'shaply'; did you mean shapley"):
        method_of("shaply")


@pytest.mark.parametrize("name", METHODS)
def test_a_method_scores_every_node_and_edge_twice_alike(name: str) -> None:
    found = []
    for _ in range(2):
        model = model_of(METHODS[name].model)
        torch.manual_seed(1)
        scores = PREPARE[name](model, GRAPHS, 5)(GRAPHS)
        assert scores.nodes.shape == (len(GRAPHS.x),)
        assert scores.edges.shape == (GRAPHS.edge_index.size(1),)
        assert not scores.nodes.isnan().any()
        assert len(scores.edges.unique()) > 1, "all edges alike"
        found.append(scores)
    assert torch.equal(found[0].nodes, found[1].nodes)
    assert torch.equal(found[0].edges, found[1].edges)


@pytest.mark.parametrize("name", ["gnnexplainer", "pgexplainer", "gradient", "shapley"])
@pytest.mark.parametrize("conv", ["gin", "gcn", "gat"])
def test_edge_features_and_graphs_without_edges_are_explained(name: str, conv: str) -> None:
    random = torch.Generator().manual_seed(0)
    store = GraphStore(
        x=torch.randn(6, 3, generator=random),
        edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
        y=torch.tensor([0, 1, 1]),
        node_ptr=torch.tensor([0, 3, 4, 6]),
        edge_ptr=torch.tensor([0, 4, 4, 4]),
        edge_attr=torch.randn(4, 2, generator=random),
    )
    torch.manual_seed(0)
    model = Classifier(Dims(3, 2, 2), NETWORK, conv).eval()
    scores = PREPARE[name](model, store, 0)(store)
    assert (len(scores.nodes), len(scores.edges)) == (6, 4)
    assert scores.edges.isfinite().all()


def test_masks_are_those_of_pygs_explainer() -> None:
    from torch_geometric.explain import Explainer, GNNExplainer

    model, graph = model_of("gnn"), GRAPHS.graph(0)
    torch.manual_seed(2)
    scores = PREPARE["gnnexplainer"](model, GRAPHS, 0)(GRAPHS.subset(torch.arange(1)))
    explainer = Explainer(
        model,
        GNNExplainer(epochs=3, lr=0.01),
        explanation_type="model",
        edge_mask_type="object",
        model_config={
            "mode": "multiclass_classification",
            "task_level": "graph",
            "return_type": "raw",
        },
    )
    torch.manual_seed(2)
    mask = explainer(graph.x, graph.edge_index).edge_mask
    ends = graph.edge_index.T.tolist()
    back = [ends.index([second, first]) for first, second in ends]
    assert torch.allclose(scores.edges, (mask + mask[back]) / 2)


def test_gradients_are_those_of_differences() -> None:
    model, store = model_of("gnn").double(), GRAPHS.subset(torch.arange(1))
    store = GraphStore(
        **{**vars(store), "x": store.x.double() + 0.01 * torch.rand(25, 10).double()}
    )
    found, lengths = gradient_input(model, store), saliency(model, store)
    batch = store.batch(torch.arange(1))
    chosen = int(model(batch).argmax())
    for node in (0, 24):
        slopes = []
        for column in range(10):
            ends = []
            for sign in (1, -1):
                moved = batch.clone()
                moved.x[node, column] += sign * 1e-6
                ends.append(float(model(moved)[0, chosen]))
            slopes.append((ends[0] - ends[1]) / 2e-6)
        slope = torch.tensor(slopes).double()
        assert float(found[node]) == pytest.approx(float(slope @ store.x[node]), rel=1e-3)
        assert float(lengths[node]) == pytest.approx(float(slope.norm()), rel=1e-3)


def test_the_auc_is_scikit_learns_on_graphs_with_a_reason() -> None:
    assert GRAPHS.node_truth is not None
    truth = GRAPHS.node_truth.clone()
    truth[:25] = False  # the first graph has none: it does not count
    scores = torch.rand(len(truth), generator=torch.Generator().manual_seed(0)).mul(8).round()
    expected = roc_auc_score(truth[25:].numpy(), scores[25:].numpy())
    assert truth_auc(scores, truth, GRAPHS.node_ptr) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["cores-node", "cores-edge"])
def test_the_scores_of_cores_are_its_policys_whatever_part_it_shows(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_of(name)
    assert isinstance(model, SparseClassifier)
    for weights in model.policy.parameters():  # those of a new policy give one logit for all
        torch.nn.init.normal_(weights, std=0.5)
    found = predict(model, GRAPHS)
    expected = found.edge_scores if model.scores_edges else found.node_scores
    monkeypatch.setattr("cores.models.sparse.minimal_parts", lambda *_: pytest.fail("searched"))
    scores = PREPARE[name](model, GRAPHS, 0)(GRAPHS)
    assert expected is not None
    assert torch.equal(scores.edges if model.scores_edges else scores.nodes, expected)
    assert model.shown.parts == "minimal", "the model itself is as it was"


def test_random_scores_are_those_of_the_seed() -> None:
    model = model_of("gnn")
    first, again, other = (PREPARE["random"](model, GRAPHS, seed)(GRAPHS) for seed in (0, 0, 1))
    assert torch.equal(first.nodes, again.nodes)
    assert not torch.equal(first.nodes, other.nodes)
