"""The estimator as a user meets it: fit, predict, explain, save, load, and what it refuses."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.base import clone, is_classifier
from torch.utils.data import Subset
from torch_geometric.data import Data
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.explain.metric import fidelity, unfaithfulness
from torch_geometric.loader import DataLoader
from torch_geometric.utils import subgraph

from cores import Cores, CoresExplainer, GraphStore, UserError, load_dataset
from cores.estimator.graphs import with_validation

TASK = {
    "mode": "multiclass_classification",
    "task_level": "graph",
    "return_type": "raw",
}


@pytest.fixture(scope="module")
def graphs() -> list[Data]:
    return list(load_dataset("motifs")[:80])


@pytest.fixture(scope="module")
def model(graphs: list[Data]) -> Cores:
    return quick().fit(graphs)


def quick(**changes: Any) -> Cores:
    defaults: dict[str, Any] = {"epochs": 4, "judge": False, "progress": False, "members": 2}
    return Cores(**(defaults | changes))


def test_fit_returns_the_estimator_and_learns_what_ends_in_an_underscore(
    graphs: list[Data],
) -> None:
    model = quick(epochs=2)
    assert not [name for name in vars(model) if name.endswith("_")]
    assert model.fit(graphs) is model
    assert model.classes_.tolist() == [0, 1]
    assert model.n_features_in_ == 10
    assert model.metrics_["test_graphs"] == 8
    assert 0 <= model.metrics_["coverage"] <= 1


@pytest.mark.parametrize(
    "changes",
    [
        {"settings": {"reward": {"lam": 0.3}}},
        {"lam": 0.3, "sufficiency": 0.9, "parts": "cut", "class_from": "part", "members": 3},
        {"settings": {"split": 5, "committee": {"warm_up": 0.5}}},
    ],
)
def test_a_loaded_estimator_would_fit_the_same_model(
    graphs: list[Data], tmp_path: Path, changes: dict[str, Any]
) -> None:
    settings = {**changes.pop("settings", {}), "effects": {"steps": 0}}
    model = quick(**changes, settings=settings, epochs=2)
    model.fit(graphs[:40]).save(tmp_path / "model")
    loaded = Cores.load(tmp_path / "model")
    assert loaded._config(40) == model._config(40)
    for name in ("members", "sufficiency", "parts", "class_from"):
        assert getattr(loaded, name) == getattr(model, name)


def test_predictions_agree_with_each_other(model: Cores, graphs: list[Data]) -> None:
    probs = model.predict_proba(graphs[:9])
    assert probs.shape == (9, 2)
    assert np.allclose(probs.sum(axis=1), 1, atol=1e-6)
    assert (model.predict(graphs[:9]) == model.classes_[probs.argmax(axis=1)]).all()
    labels = [int(graph.y) for graph in graphs[:9]]
    right = float((model.predict(graphs[:9]) == labels).mean())
    assert model.score(graphs[:9]) == model.score(graphs[:9], labels) == right


def test_the_same_seed_gives_the_same_numbers_and_leaves_the_users_draws_alone(
    model: Cores, graphs: list[Data]
) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    again = quick().fit(graphs)
    assert torch.equal(torch.rand(3), expected)
    assert (again.predict_proba(graphs) == model.predict_proba(graphs)).all()
    assert again.metrics_ | {"seconds": 0} == model.metrics_ | {"seconds": 0}


def test_a_larger_alpha_never_adds_a_label(model: Cores, graphs: list[Data]) -> None:
    careful, bold = (model.predict_set(graphs, alpha=alpha) for alpha in (0.2, 0.5))
    assert all(set(small) <= set(large) for small, large in zip(bold, careful, strict=True))
    everything = model.predict_set(graphs[:2], alpha=0.01)  # 8 calibration graphs cannot promise it
    assert everything == [[0, 1], [0, 1]]
    assert model.predict_set(graphs[:2], alpha=0.5, score="aps", per_class=True)


def test_an_explanation_is_pygs_and_tells_what_was_kept(model: Cores, graphs: list[Data]) -> None:
    for graph, explanation in zip(graphs[:3], model.explain(graphs[:3]), strict=True):
        assert explanation.validate()
        assert explanation.node_mask.dtype == explanation.edge_mask.dtype == torch.bool
        kept = explanation.node_mask.squeeze(-1)
        assert explanation.kept_nodes == kept.nonzero().flatten().tolist()
        both_ends = kept[graph.edge_index].all(dim=0)
        assert torch.equal(explanation.edge_mask, both_ends)
        assert 2 * len(explanation.kept_edges) == int(explanation.edge_mask.sum())
        assert explanation.node_score.shape == (graph.num_nodes,)
        assert explanation.prediction == model.predict([graph])[0]
        assert explanation.prediction_set == model.predict_set([graph])[0]
        assert explanation.get_explanation_subgraph().num_nodes == int(kept.sum())


@pytest.mark.parametrize("removal", ["node", "edge", "both"])
def test_anyone_can_check_a_part(removal: str, graphs: list[Data]) -> None:
    """It has what is told of it, and no single unit can go."""
    model = quick(removal=removal, epochs=2).fit(graphs)
    for tau in (0.5, 0.52):
        for graph, found in zip(
            graphs[:4], model.explain(graphs[:4], sufficiency=tau), strict=True
        ):
            (whole,) = model.full_proba([graph])
            assert whole == pytest.approx(found.probabilities, abs=1e-6)
            part = found.get_explanation_subgraph()
            (alone,) = model.full_proba([part])
            label = whole.argmax()
            assert alone[label] == pytest.approx(found.part_probability, abs=1e-5)
            assert alone[label] >= min(tau, whole[label]) - 1e-5
            assert found.weak == (whole[label] < tau)
            assert found.minimal
            assert found.questions > 0
            fewer = [Data(**each) for each in one_less(part, removal)]
            for probs in model.full_proba(fewer) if fewer else ():
                assert probs.argmax() != label or probs[label] < min(tau, whole[label])


def one_less(part: Data, removal: str) -> Iterator[dict[str, Any]]:
    """The parts that are left without each unit."""
    if removal != "edge" and part.num_nodes > 1:
        for node in range(part.num_nodes):
            left = torch.arange(part.num_nodes) != node
            edges, _ = subgraph(left, part.edge_index, relabel_nodes=True)
            yield {"x": part.x[left], "edge_index": edges}
    if removal != "node":
        for a, b in part.edge_index.t().tolist():
            if a < b:
                ends = part.edge_index
                gone = ((ends[0] == a) & (ends[1] == b)) | ((ends[0] == b) & (ends[1] == a))
                yield {"x": part.x, "edge_index": ends[:, ~gone]}


def test_other_parts_are_larger_and_change_no_prediction(model: Cores, graphs: list[Data]) -> None:
    minimal = model.explain(graphs[:9])
    cut = model.explain(graphs[:9], parts="cut")
    assert all(a.node_ratio <= b.node_ratio for a, b in zip(minimal, cut, strict=True))
    assert any(not each.minimal for each in cut)
    few, many = (model.explain(graphs[:9], sufficiency=tau) for tau in (0.5, 0.99))
    assert sum(each.weak for each in few) <= sum(each.weak for each in many)
    expected = model.predict_proba(graphs[:9])
    assert (model.predict_proba(graphs[:9], sufficiency=0.6, parts="policy") == expected).all()
    assert model.score(graphs, parts="cut") == model.score(graphs)
    with pytest.raises(UserError, match=r"`sufficiency` must lie in \[0.5, 1\), got 0.2"):
        model.explain(graphs[:1], sufficiency=0.2)
    with pytest.raises(UserError, match=r"explanation\.parts"):
        model.explain(graphs[:1], parts="smallest")


def test_the_class_may_come_from_the_policys_part(graphs: list[Data]) -> None:
    """The committee then sees nothing else, and the part is inside what it saw."""
    model = quick(class_from="part", epochs=2).fit(graphs)
    seen = model.explain(graphs[:9], parts="policy")
    parts = [each.get_explanation_subgraph() for each in seen]
    assert model.full_proba(parts) == pytest.approx(model.predict_proba(graphs[:9]), abs=1e-6)
    for small, large in zip(model.explain(graphs[:9]), seen, strict=True):
        assert set(small.kept_nodes) <= set(large.kept_nodes)


def test_the_network_gives_the_logarithm_of_the_committees_mean(
    model: Cores, graphs: list[Data]
) -> None:
    members = [member(graphs[0]).softmax(dim=-1) for member in model.classifier_.members]
    mean = torch.stack(members).mean(dim=0)
    temperature = model.classifier_.temperature
    assert torch.allclose(model.network_(graphs[0]) * temperature, mean.log(), atol=1e-5)
    probs = model.network_(graphs[0]).softmax(dim=-1).detach().numpy()
    assert probs == pytest.approx(model.predict_proba(graphs[:1]), abs=1e-6)


def test_pygs_metrics_run_on_our_explanations(model: Cores, graphs: list[Data]) -> None:
    explainer = Explainer(
        model.classifier_,
        CoresExplainer(model.policy_),
        explanation_type="model",
        node_mask_type="object",
        edge_mask_type="object",
        model_config=TASK,
    )
    ours = model.explain(graphs[:1], parts="policy")[0]
    theirs = explainer(graphs[0].x, graphs[0].edge_index)
    assert torch.equal(ours["node_mask"], theirs.node_mask)
    assert torch.equal(ours["edge_mask"], theirs.edge_mask)
    assert fidelity(explainer, ours) == fidelity(explainer, theirs)
    assert 0 <= unfaithfulness(explainer, ours) <= 1


def test_pygs_explainer_runs_on_our_classifier(model: Cores, graphs: list[Data]) -> None:
    explainer = Explainer(
        model.classifier_,
        GNNExplainer(epochs=3),
        explanation_type="model",
        node_mask_type="attributes",
        edge_mask_type="object",
        model_config=TASK,
    )
    explanation = explainer(graphs[0].x, graphs[0].edge_index)
    assert explanation.node_mask.shape == graphs[0].x.shape


def test_a_saved_model_predicts_the_same(model: Cores, graphs: list[Data], tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    loaded = Cores.load(tmp_path / "model", device="cpu")
    assert (loaded.predict_proba(graphs) == model.predict_proba(graphs)).all()
    assert loaded.predict_set(graphs) == model.predict_set(graphs)
    assert loaded.metrics_["accuracy"] == model.metrics_["accuracy"]
    with pytest.raises(UserError, match="is not empty; choose another folder"):
        model.save(tmp_path / "model")
    with pytest.raises(UserError, match="is a file; choose another folder"):
        model.save(tmp_path / "model" / "config.json")


def test_text_labels_come_back_as_text(graphs: list[Data], tmp_path: Path) -> None:
    names = np.array(["cycle", "house"])[[int(graph.y) for graph in graphs]]
    model = quick(epochs=2, removal="edge").fit(graphs, names)
    assert set(model.predict(graphs)) <= {"cycle", "house"}
    assert model.explain(graphs[:1])[0].prediction in ("cycle", "house")
    model.save(tmp_path / "model")
    assert Cores.load(tmp_path / "model").classes_.tolist() == ["cycle", "house"]


def test_validation_graphs_select_the_weights(graphs: list[Data]) -> None:
    labels = [int(graph.y) for graph in graphs]
    first = quick(epochs=2).fit(graphs[:60], validation=graphs[60:])
    second = quick(epochs=2).fit(graphs[:60], labels[:60], (graphs[60:], labels[60:]))
    assert (first.predict_proba(graphs) == second.predict_proba(graphs)).all()
    assert first.metrics_["test_graphs"] == 6


def test_settings_reach_the_run_and_arguments_come_last(graphs: list[Data]) -> None:
    settings = {"training": {"epochs": 2, "batch_size": 16}, "committee": {"warm_up": 0.5}}
    config = Cores(settings=settings, seed=3)._config(80)
    assert (config.training.epochs, config.training.batch_size) == (2, 16)
    assert (config.committee.warm_up, config.seed, config.split) == (0.5, 3, 4)
    assert Cores(epochs=5, settings=settings)._config(80).training.epochs == 5
    assert Cores()._config(80).training.epochs == Cores()._config(10).training.epochs == 270


def test_another_model_is_fitted_saved_and_loaded(graphs: list[Data], tmp_path: Path) -> None:
    model = quick(epochs=2, settings={"model": "gpool", "gpool": {"ratio": 0.4}}).fit(graphs)
    assert 0.3 < model.metrics_["node_ratio"] < 0.5
    model.save(tmp_path / "model")
    loaded = Cores.load(tmp_path / "model")
    assert loaded.settings == {"training": {"epochs": 2}, "model": "gpool", "gpool": {"ratio": 0.4}}
    assert (loaded.predict_proba(graphs) == model.predict_proba(graphs)).all()


def test_numpys_numbers_are_numbers() -> None:
    """A search over parameters gives them."""
    model = Cores(epochs=np.int64(5), seed=np.int64(2), lam=np.float64(0.25))
    config = model._config(80)
    assert (config.training.epochs, config.seed, config.reward.lam) == (5, 2, 0.25)


def test_graphs_may_come_from_a_loader_or_a_subset(model: Cores, graphs: list[Data]) -> None:
    expected = model.predict_proba(graphs[:7])
    loader = DataLoader(graphs[:7], batch_size=3)
    assert np.allclose(model.predict_proba(loader), expected, atol=1e-6)
    assert np.allclose(model.predict_proba(Subset(graphs, range(7))), expected, atol=1e-6)
    assert np.allclose(model.predict_proba(GraphStore.from_graphs(graphs[:7])), expected, atol=1e-6)


def test_labels_of_any_shape_score_alike(model: Cores, graphs: list[Data]) -> None:
    labels = [int(graph.y) for graph in graphs]
    for shaped in (np.array(labels), np.array(labels)[:, None], [graph.y for graph in graphs]):
        assert model.score(graphs, shaped) == model.score(graphs)


def test_an_explanation_does_not_claim_a_label_it_does_not_know(
    model: Cores, graphs: list[Data]
) -> None:
    assert all("y" not in explanation for explanation in model.explain(graphs[:4]))


def test_validation_is_checked_on_its_own(graphs: list[Data]) -> None:
    labels = [int(graph.y) for graph in graphs]
    with pytest.raises(UserError, match="`graphs` has 60 graphs and 61 labels"):
        quick().fit(graphs[:60], labels[:61], (graphs[60:], labels[61:]))
    with pytest.raises(UserError, match="`validation` has no graphs"):
        quick().fit(graphs, validation=[])
    dataset, selection = with_validation(iter(graphs[:60]), None, tuple(graphs[60:]))
    assert (len(dataset), selection.tolist()) == (80, list(range(60, 80)))


def test_drawing_to_a_file_leaves_the_screen_alone(
    model: Cores, graphs: list[Data], tmp_path: Path
) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    model.explain(graphs[:1])[0].visualize_graph(tmp_path / "kept.png")
    assert mpl.get_backend() == "svg"
    assert (tmp_path / "kept.png").stat().st_size > 1000
    with pytest.raises(UserError, match=r"cannot draw a \.foo file; known: .*png"):
        model.explain(graphs[:1])[0].visualize_graph(tmp_path / "kept.foo")


def test_networkx_graphs_fit_and_predict() -> None:
    shapes = [nx.cycle_graph(5 + number % 3) for number in range(20)]
    shapes += [nx.path_graph(5 + number % 3) for number in range(20)]
    model = quick(removal=None, epochs=2).fit(shapes, ["ring"] * 20 + ["path"] * 20)
    assert set(model.predict(shapes)) <= {"ring", "path"}
    assert model.explain(shapes[:1])[0].node_ratio == 1
    with pytest.raises(UserError, match="has no policy"):
        _ = model.policy_


def test_scikit_learn_takes_it_for_a_classifier(model: Cores) -> None:
    assert is_classifier(model)
    copied = clone(model)
    assert copied.get_params() == model.get_params()
    assert not hasattr(copied, "classes_")
    assert model.set_params(seed=3).seed == 3
    model.set_params(seed=0)
    with pytest.raises(UserError, match="unknown parameter 'sed'"):
        model.set_params(sed=3)
    assert repr(Cores(removal="edge", seed=2)) == "Cores(removal='edge', seed=2)"


def test_a_fitted_model_travels_to_other_processes(model: Cores, graphs: list[Data]) -> None:
    """As joblib sends it to its workers."""
    sent = pickle.loads(pickle.dumps(model))
    assert (sent.predict_proba(graphs) == model.predict_proba(graphs)).all()


def changed(graph: Data, **values: Any) -> Data:
    copied = graph.clone()
    for name, value in values.items():
        copied[name] = value
    return copied


def test_what_cannot_be_fitted_is_refused_in_one_line(graphs: list[Data]) -> None:
    first, *rest = graphs
    bad: dict[str, tuple[list[Any], str]] = {
        "empty": ([], "the list of graphs is empty"),
        "widths": ([first, changed(first, x=torch.ones(25, 3)), *rest], "graph 1 has 3 node fea"),
        "labels": ([first, changed(first, y=None), *rest], "graph 1 has no label; set its y"),
        "nan": ([changed(first, x=first.x * torch.nan), *rest], "graph 0 has NaN, infinite"),
        "one class": ([g for g in graphs if int(g.y)], "every graph has the label 1"),
        "floats": ([changed(first, y=torch.tensor([0.5])), *rest], "graph 0 has the label 0.5, a"),
        "no nodes": ([*rest, Data(x=torch.ones(0, 10))], "graph 79 has no nodes; leave it out"),
        "type": ([first, "CCO", *rest], "graph 1 is a str; give PyG Data, networkx"),
        "few": (graphs[:9], "has 4 graphs, but each of the 5 parts"),
    }
    for graphs_given, message in bad.values():
        model = quick()
        with pytest.raises(ValueError, match=message) as raised:
            model.fit(graphs_given)
        assert isinstance(raised.value, UserError)
        assert "\n" not in str(raised.value)
        assert not hasattr(model, "classes_")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"removal": "nodes"}, "`removal` is node, edge, both or None, got 'nodes'"),
        ({"conv": "gim"}, "unknown conv 'gim'; did you mean gin"),
        ({"epochs": 0}, r"training.epochs must lie in \(0, 2\^31\), got 0"),
        ({"lam": 2.0}, r"`lam` must lie in \[0, 1\], got 2.0"),
        ({"settings": {"network": {"width": 3}}}, "unknown setting 'network.width'"),
        ({"device": "tpu"}, "device"),
        ({"seed": -1}, "`seed` is a whole number from 0, got -1"),
        ({"settings": {"conv": "gcn"}}, "`settings` names conv; give it as the argument `conv`"),
    ],
)
def test_a_wrong_parameter_is_named(
    graphs: list[Data], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        quick(**changes).fit(graphs)


def test_predicting_what_does_not_fit_is_refused(model: Cores, graphs: list[Data]) -> None:
    with pytest.raises(UserError, match="not fitted yet; call fit first"):
        Cores().predict(graphs)
    with pytest.raises(UserError, match="not fitted yet; call fit first"):
        _ = Cores().classifier_
    with pytest.raises(UserError, match="have 3 node features, the model was fitted on 10"):
        model.predict([Data(x=torch.ones(2, 3), edge_index=torch.tensor([[0], [1]]))])
    with pytest.raises(UserError, match=r"`alpha` must lie in \(0, 1\), got 1"):
        model.predict_set(graphs[:1], alpha=1.0)
    with pytest.raises(UserError, match="`y` has 2 labels for 3 graphs"):
        model.score(graphs[:3], [0, 1])


def test_folders_that_hold_no_model_of_this_version_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"holds no model: config\.json is missing"):
        Cores.load(tmp_path)
    (tmp_path / "config.json").write_text('{"version": "0.1.0", "config": {}, "task": {}}')
    with pytest.raises(UserError, match=r"written by version 0\.1\.0 .* train the model again"):
        Cores.load(tmp_path)
