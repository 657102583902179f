"""What nodes and edges contribute: of a store, as scores, against ground truth, saved and shown."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from cores import Cores
from cores.config import RunConfig
from cores.config.presets import preset_config
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.errors import UserError
from cores.evaluation.effects import effect_metrics, element_effects
from cores.models.build import build_effects, build_model
from cores.models.sparse import SparseClassifier
from cores.runs.trained import TrainedModel

GRAPHS = ba_motifs(num_graphs=6, seed=0)
SMALL = {"network": {"hidden_dim": 8, "num_layers": 1}}
Ask = Callable[..., tuple[int, str, str]]


def model_with_effects(name: str) -> SparseClassifier:
    torch.manual_seed(0)
    config = preset_config("motifs", name, "gin", "default", SMALL)
    dims = Dims(GRAPHS.num_features, 2)
    model = build_model(config, dims)
    assert isinstance(model, SparseClassifier)
    assert element_effects(model, GRAPHS) is None, "nobody has learnt them yet"
    assert effect_metrics(model, GRAPHS) == {}
    model.effects = build_effects(config, dims, model.scaler)
    for weights in model.effects.parameters():
        torch.nn.init.normal_(weights)
    return model.eval()


@pytest.mark.parametrize("name", ["cores-node", "cores-edge", "cores-both"])
def test_every_element_has_an_effect_in_the_order_of_the_store(name: str) -> None:
    model = model_with_effects(name)
    effects = element_effects(model, GRAPHS)
    assert effects is not None
    assert (effects.nodes is None) == (name == "cores-edge")
    assert (effects.edges is None) == (name == "cores-node")
    alone = element_effects(model, GRAPHS.subset(torch.tensor([4])))
    assert alone is not None
    for whole, part, ptr in (
        (effects.nodes, alone.nodes, GRAPHS.node_ptr),
        (effects.edges, alone.edges, GRAPHS.edge_ptr),
    ):
        if whole is not None and part is not None:
            assert len(whole) == int(ptr[-1])
            assert torch.allclose(whole[int(ptr[4]) : int(ptr[5])], part, atol=1e-5)
    scores = effects.scores(GRAPHS)
    assert (len(scores.nodes), len(scores.edges)) == (len(GRAPHS.x), GRAPHS.edge_index.size(1))
    if effects.nodes is None:
        assert effects.edges is not None
        first = GRAPHS.batch(torch.arange(len(GRAPHS))).edge_index[0] == 0
        assert scores.nodes[0] == scores.edges[first].max(), "a node is worth its best edge"
    found = effect_metrics(model, GRAPHS)
    assert set(found) == {"effect_node_auc", "effect_edge_auc"}


def test_effects_are_saved_with_a_model_shown_and_change_no_prediction(tmp_path: Path) -> None:
    graphs = [GRAPHS.graph(index % 6) for index in range(60)]

    def fitted(steps: int) -> Cores:
        settings = SMALL | {"effects": {"steps": steps}}
        model = Cores(epochs=3, judge=False, progress=False, settings=settings, device="cpu")
        return model.fit(graphs)

    model, without = fitted(2), fitted(0)
    assert (model.predict_proba(graphs) == without.predict_proba(graphs)).all()
    assert "effect_node_auc" in model.metrics_
    assert "effect_node_auc" not in without.metrics_
    (none,) = without.explain(graphs[:1])
    assert none.node_effect is None
    model.save(tmp_path / "model")
    (one,), (other,) = model.explain(graphs[:1]), Cores.load(tmp_path / "model").explain(graphs[:1])
    assert one.node_effect is not None
    assert one.edge_effect is None
    assert one.node_effect.shape == (25,)
    assert torch.equal(one.node_effect, other.node_effect)
    assert len(one.get_explanation_subgraph().node_effect) == len(one.kept_nodes)
    assert TrainedModel.load(tmp_path / "model").effects is not None


def test_records_of_explained_graphs_have_effects(ask: Ask, tmp_path: Path) -> None:
    graphs = [GRAPHS.graph(index % 6) for index in range(60)]
    for removal in ("node", "edge"):
        model = Cores(removal=removal, epochs=3, judge=False, progress=False, settings=SMALL)
        model.fit(graphs).save(tmp_path / removal)
        out = tmp_path / f"{removal}.jsonl"
        source = tmp_path / "graphs.jsonl"
        edges = [[a, b] for a, b in graphs[0].edge_index.t().tolist() if a < b]
        source.write_text(json.dumps({"nodes": graphs[0].x.tolist(), "edges": edges}) + "\n")
        status, _, err = ask("explain", tmp_path / removal, source, "--out", out)
        assert status == 0, err
        record = json.loads(out.read_text())
        (expected,) = model.explain(graphs[:1])
        effects = [node["effect"] for node in record["nodes"]]
        if removal == "node":
            assert effects == pytest.approx(expected.node_effect.tolist(), abs=1e-4)
        else:
            assert set(effects) == {None}
            assert all(isinstance(edge["effect"], float) for edge in record["edges"])


def test_settings_say_how_long_effects_are_learnt() -> None:
    config = RunConfig()
    policy_epochs = config.training.epochs - config.warm_up_epochs
    assert config.effect_steps == config.effects.steps * policy_epochs == 30 * policy_epochs
    assert RunConfig(model="gnn").effect_steps == 0
    paper = preset_config("MUTAG", "cores-node", "gin", "paper", {})
    assert paper.effect_steps == 0, "there are no members to learn them from"


def test_a_proposer_by_effects_needs_their_network() -> None:
    asked = {"explanation": {"proposer": "effects"}}
    assert RunConfig.from_settings(asked).explanation.proposer == "effects"
    with pytest.raises(UserError, match=r'the proposer "effects" needs .*: raise effects\.steps'):
        RunConfig.from_settings({**asked, "effects": {"steps": 0}})
