"""Models and convs from outside: registered once, and then like those of the package."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from cores.config import NetworkConfig, RunConfig
from cores.config.models import CONVS, MODELS, conv_spec, model_spec
from cores.config.presets import preset_config
from cores.config.registration import register_conv, register_model
from cores.data.dataset import Dims
from cores.data.synthetic import ba_motifs
from cores.errors import UserError
from cores.models.build import build_model
from cores.models.network import GraphModel, pooled
from cores_paper.presets import search_space

DIMS = Dims(num_features=10, num_classes=2)


@pytest.fixture(autouse=True)
def tables_as_before() -> Iterator[None]:
    """What a test registered is gone after it."""
    models, convs = dict(MODELS), dict(CONVS)
    yield
    for table, before in ((MODELS, models), (CONVS, convs)):
        table.clear()
        table.update(before)


@dataclass(frozen=True)
class BagSettings:
    """Settings of a model that is not ours."""

    width: int = 4
    factor: float = 1.0


class Bag(GraphModel):
    """A sum over nodes, and nothing of the edges."""

    def __init__(self, dims: Dims, config: NetworkConfig, conv: str, own: BagSettings) -> None:
        super().__init__(dims)
        self.factor = own.factor
        self.hidden = nn.Linear(dims.num_features, own.width)
        self.head = nn.Linear(own.width, dims.num_classes)

    def logits(self, batch: Batch) -> Tensor:
        h = self.hidden(self.features(batch)).relu()
        return self.factor * self.head(pooled(h, batch.batch, batch.num_graphs, ("add",)))


class PlainBag(Bag):
    """One without settings of its own."""

    def __init__(self, dims: Dims, config: NetworkConfig, conv: str) -> None:
        super().__init__(dims, config, conv, BagSettings())


class Shift(nn.Module):
    """A layer that passes on the sum of the neighbours."""

    def __init__(self, config: NetworkConfig, edge_dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(config.hidden_dim, config.hidden_dim)

    def forward(self, h: Tensor, edge_index: Tensor, edge_attr: Tensor | None) -> Tensor:
        source, target = edge_index
        return torch.zeros_like(h).index_add(0, target, self.linear(h)[source])


def test_a_registered_model_is_built_with_its_own_settings() -> None:
    register_model("bag", Bag, settings=BagSettings)
    config = RunConfig.from_settings({"model": "bag", "bag": {"width": 7}})
    assert config.model_config == BagSettings(width=7)
    model = build_model(config, DIMS)
    assert isinstance(model, Bag)
    assert model.hidden.out_features == 7
    batch = ba_motifs(num_graphs=3).batch(torch.arange(3))
    assert model(batch).shape == (3, 2)
    assert model.predict(batch).subgraph.batch is batch  # it removes nothing


def test_a_registered_model_may_have_no_settings_of_its_own() -> None:
    register_model("plain-bag", PlainBag, removes="node")
    config = RunConfig(model="plain-bag")
    assert isinstance(build_model(config, DIMS), PlainBag)
    assert config.model_config is None
    assert config.settings.keys() == RunConfig(model="gnn").settings.keys()
    assert (config.spec.removes, config.removal) == ("node", None)  # judged, but without a policy


def test_its_settings_are_in_the_plain_data_under_its_name() -> None:
    register_model("bag", Bag, settings=BagSettings)
    config = RunConfig(model="bag")
    assert config.settings["bag"] == {"width": 4, "factor": 1.0}
    assert RunConfig.from_settings(config.settings) == config
    assert "bag" not in RunConfig(model="gnn").settings


def test_its_settings_are_in_the_key_whatever_their_values() -> None:
    """The schema cannot know their defaults, which may change under the same name."""
    register_model("bag", Bag, settings=BagSettings)
    config = RunConfig(model="bag")
    others = [
        replace(config, model_config=BagSettings(width=5)),
        replace(config, model_config=BagSettings(factor=2.0)),
    ]
    assert len({each.key for each in [config, *others]}) == 3
    told = config.key
    del MODELS["bag"]
    register_model("bag", PlainBag)
    assert RunConfig(model="bag").key != told


def test_its_settings_are_checked_like_ours() -> None:
    register_model("bag", Bag, settings=BagSettings)
    with pytest.raises(UserError, match=r"unknown setting 'bag\.widht'; did you mean width"):
        RunConfig.from_settings({"model": "bag", "bag": {"widht": 3}})
    with pytest.raises(UserError, match=r"setting 'bag\.width' must be of type int, got '3'"):
        RunConfig.from_settings({"model": "bag", "bag": {"width": "3"}})
    assert (
        RunConfig.from_settings({"model": "bag", "bag": {"factor": 2}}).model_config.factor == 2.0
    )


def test_its_own_values_are_searched_for_beside_those_of_all_models() -> None:
    register_model("bag", Bag, settings=BagSettings, search={"bag.width": (2, 4)})
    space = search_space(RunConfig(model="bag"))
    assert space["bag.width"] == [2, 4]
    assert space.keys() - {"bag.width"} == search_space(RunConfig(model="gnn")).keys()


def test_it_has_the_default_preset_and_no_published_settings() -> None:
    register_model("bag", Bag, settings=BagSettings)
    config = preset_config("motifs", "bag", "gin", "default", {"bag": {"width": 3}})
    assert config.model_config.width == 3
    with pytest.raises(UserError, match="the paper has no settings for bag with gin on MUTAG"):
        preset_config("MUTAG", "bag", "gin", "paper", {})


def test_tables_call_it_by_its_title() -> None:
    register_model("bag", Bag, settings=BagSettings)
    register_model("plain-bag", PlainBag, title="Bag of nodes")
    assert (model_spec("bag").title, model_spec("plain-bag").title) == ("bag", "Bag of nodes")
    names = list(MODELS)
    assert names.index("plain-bag") == names.index("bag") + 1 == names.index("random") - 1


def test_registering_twice_is_fine() -> None:
    """A script may be imported twice, and then defines its class twice."""
    for _ in range(2):
        register_model("bag", Bag, settings=BagSettings)
        register_conv("shift", Shift)
    again = type("Bag", (Bag,), {"__qualname__": "Bag"})
    register_model("bag", again, settings=BagSettings)
    assert list(MODELS).count("bag") == list(CONVS).count("shift") == 1
    assert type(build_model(RunConfig(model="bag", conv="shift"), DIMS)) is again


@pytest.mark.parametrize("name", ["bag", "gnn", "cores-node"])
def test_the_name_of_another_model_is_refused(name: str) -> None:
    register_model("bag", Bag, settings=BagSettings)
    before = dict(MODELS)
    with pytest.raises(UserError, match=f"there is a model '{name}' already; choose another name"):
        register_model(name, PlainBag)
    assert before == MODELS


@pytest.mark.parametrize("name", ["network", "gpool", "ppo", "seed", "model_config"])
def test_a_name_that_settings_have_is_refused_for_a_model_with_settings(name: str) -> None:
    """Its settings would take the place of theirs in every file."""
    before = RunConfig.from_settings({"model": "sagpool", "sagpool": {"ratio": 0.2}, "seed": 3})
    with pytest.raises(UserError, match=name):
        register_model(name, Bag, settings=BagSettings)
    assert RunConfig.from_settings(before.settings) == before


@pytest.mark.parametrize("name", ["shift", "gin"])
def test_the_name_of_another_conv_is_refused(name: str) -> None:
    register_conv("shift", Shift)
    other = type("Other", (Shift,), {})
    with pytest.raises(UserError, match=f"there is a conv '{name}' already; choose another name"):
        register_conv(name, other)


def test_the_name_of_a_network_without_messages_is_refused_for_a_conv() -> None:
    """The encoder would go without messages in its place."""
    with pytest.raises(UserError, match="none"):
        register_conv("none", Shift)


@pytest.mark.parametrize("name", ["", "a b", "a.b", "../bag", "bag\n"], ids=repr)
def test_a_name_that_is_none_for_folders_and_options_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="a model's name has letters, digits, - and _, got"):
        register_model(name, PlainBag)
    with pytest.raises(UserError, match="a conv's name has letters, digits, - and _, got"):
        register_conv(name, Shift)


def test_settings_that_are_no_dataclass_are_refused() -> None:
    with pytest.raises(UserError, match="`settings` of the model 'bag' must be a dataclass"):
        register_model("bag", Bag, settings=dict)
    assert "bag" not in MODELS


@pytest.mark.parametrize("model", [name for name in MODELS if MODELS[name].uses_conv])
def test_a_registered_conv_is_in_every_model_that_uses_one(model: str) -> None:
    register_conv("shift", Shift, search={"network.gin_eps": (0.0, 0.5)})
    config = RunConfig(model=model, conv="shift", network=NetworkConfig(hidden_dim=8))
    built = build_model(config, DIMS)
    assert any(isinstance(module, Shift) for module in built.modules())
    batch = ba_motifs(num_graphs=3).batch(torch.arange(3))
    assert built.eval()(batch).isfinite().all()
    if not config.spec.has_policy:
        assert search_space(config)["network.gin_eps"] == [0.0, 0.5]


def test_a_conv_changes_the_key_and_has_a_title() -> None:
    register_conv("shift", Shift)
    assert RunConfig(conv="shift").key != RunConfig().key
    assert conv_spec("shift").title == "SHIFT"


@pytest.mark.parametrize(
    ("name", "close"),
    [("sagpol", "sagpool"), ("cores-nod", "cores-node"), ("bagg", "bag"), ("zzz", "known: gnn")],
)
def test_an_unknown_model_is_told_the_close_ones(name: str, close: str) -> None:
    register_model("bag", Bag, settings=BagSettings)
    with pytest.raises(UserError, match=f"unknown model '{name}'; .*{close}"):
        RunConfig(model=name)


@pytest.mark.parametrize(("name", "close"), [("gatt", "gat"), ("shft", "shift"), ("zzz", "gin")])
def test_an_unknown_conv_is_told_the_close_ones(name: str, close: str) -> None:
    register_conv("shift", Shift)
    with pytest.raises(UserError, match=f"unknown conv '{name}'; .*{close}"):
        RunConfig(conv=name)


def test_every_class_that_is_only_named_is_there() -> None:
    for spec in MODELS.values():
        assert issubclass(spec.network_class(), GraphModel), spec.name
    for conv in CONVS.values():
        assert issubclass(conv.layer_class(), nn.Module), conv.name


def test_settings_that_cannot_be_made_without_arguments_are_refused() -> None:
    wide = dataclass(frozen=True)(type("Wide", (), {"__annotations__": {"width": int}}))
    loose = dataclass(type("Loose", (), {"__annotations__": {"width": int}, "width": 3}))
    for settings in (wide, loose):
        with pytest.raises(UserError, match="must be frozen and have defaults"):
            register_model("wide", Bag, settings=settings)
    assert "wide" not in MODELS


def test_the_settings_of_one_model_or_preset_are_refused_for_another() -> None:
    with pytest.raises(UserError, match="settings of another model or preset"):
        replace(RunConfig(model="sagpool"), model="gsat")
    with pytest.raises(UserError, match="settings of another model or preset"):
        replace(RunConfig(), preset_settings=BagSettings())


@dataclass(frozen=True)
class Optional:
    width: int | None = None
    kinds: tuple[int, ...] = (1, 2)
    depth: Literal[1, 2] = 1


@dataclass(frozen=True)
class Lost:
    sizes: tuple = (1, 2)  # type: ignore[type-arg]  # of what?


def test_settings_that_may_be_left_open_come_back_from_a_file() -> None:
    register_model("open", Bag, settings=Optional)
    for settings in (Optional(), Optional(width=3, depth=2)):
        config = replace(RunConfig(model="open"), model_config=settings)
        assert RunConfig.from_settings(config.settings) == config
    with pytest.raises(UserError, match="must be one of 1, 2, got 3"):
        RunConfig.from_settings({"model": "open", "open": {"depth": 3}})


def test_settings_that_do_not_survive_a_file_are_refused() -> None:
    """Else a model would train for hours and could not be loaded."""
    with pytest.raises(UserError, match="tuple"):
        register_model("lost", Bag, settings=Lost)
    assert "lost" not in MODELS
