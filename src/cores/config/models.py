"""One row per model, and one per message-passing layer; everything else reads these tables.

Needs no torch: a built-in class is named by where it is and imported when a model is built.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from importlib import import_module
from typing import Any, Literal

from cores.config.baselines import DiffPoolConfig, GSATConfig, PoolConfig, SugarConfig
from cores.errors import UserError, nearest

Removal = Literal["node", "edge", "both"]
NO_MESSAGES = "none"
"""In place of a conv: the same depth without messages."""


@dataclass(frozen=True)
class ModelSpec:
    """A model that can be trained, judged and compared."""

    name: str
    title: str
    """What tables call it."""
    network: str | type
    """Its class (a :class:`~cores.models.network.GraphModel`), or ``module:Class``."""
    group: str = ""
    """Name of its own settings in files and options."""
    settings: type | None = None
    """The frozen dataclass of its own settings."""
    removes: Removal | None = None
    """What it removes; None for a model that sees full graphs. It is judged on what is left."""
    has_policy: bool = False
    """Whether it is CORES: trained by Algorithm 1, with the settings of reward and PPO."""
    uses_conv: bool = True
    """Whether its layers depend on the conv; if not, one run serves the tables of every conv."""
    in_paper: bool = False
    """Whether the paper's comparisons have it."""
    published: str = ""
    """File of its published settings and of what the paper reports."""
    search: Mapping[str, Sequence[Any]] = field(default_factory=dict, hash=False)
    """Values that a search chooses from, by setting, beside those that all models have."""
    not_searched: tuple[str, ...] = ()
    """Settings of all models that it does not read."""

    def network_class(self) -> Any:
        """Import the class where it was only named."""
        return _imported(self.network)


@dataclass(frozen=True)
class ConvSpec:
    """A message-passing layer."""

    name: str
    title: str
    layer: str | type
    """Its class, or ``module:Class``; made from a NetworkConfig and a number of edge features."""
    in_paper: bool = False
    search: Mapping[str, Sequence[Any]] = field(default_factory=dict, hash=False)

    def layer_class(self) -> Any:
        """Import the class where it was only named."""
        return _imported(self.layer)


_CLASSIFIER = "cores.models.classifier"
_SPARSE = "cores.models.sparse:SparseClassifier"
_BASELINES = "cores.models.baselines"
_SHARES = {
    "pool.ratio": (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95),
    "pool.multiplier": (0.5, 1.0, 1.5, 2.0),
}
_ROWS = (
    ModelSpec("gnn", "GNN", f"{_CLASSIFIER}:Classifier", in_paper=True, published="gnn.toml"),
    ModelSpec(
        "mlp",
        "MLP",
        f"{_CLASSIFIER}:BlindClassifier",
        uses_conv=False,
        published="gnn.toml",  # the shape and the rates of the GNN it is compared with
    ),
    ModelSpec(
        "sagpool",
        "SAGPool",
        f"{_BASELINES}.topk:SAGPool",
        group="pool",
        settings=PoolConfig,
        removes="node",
        in_paper=True,
        published="sagpool.toml",
        search=_SHARES,
    ),
    ModelSpec(
        "diffpool",
        "DiffPool",
        f"{_BASELINES}.diffpool:DiffPool",
        group="diffpool",
        settings=DiffPoolConfig,
        in_paper=True,
        published="diffpool.toml",
    ),
    ModelSpec("gsat", "GSAT", f"{_BASELINES}.gsat:GSAT", group="gsat", settings=GSATConfig),
    ModelSpec(
        "sugar",
        "SUGAR",
        f"{_BASELINES}.sugar:SUGAR",
        group="sugar",
        settings=SugarConfig,
        removes="node",
        in_paper=True,
        published="sugar.toml",
        not_searched=("network.pooling",),  # its subgraphs vote; there is no readout to choose
    ),
    ModelSpec(
        "gpool",
        "GPool",
        f"{_BASELINES}.topk:GPool",
        group="pool",
        settings=PoolConfig,
        removes="node",
        in_paper=True,
        published="gpool.toml",
        search=_SHARES,
    ),
    ModelSpec(
        "random",
        "random",
        f"{_BASELINES}.control:RandomSubgraph",
        group="pool",
        settings=PoolConfig,
        removes="node",
    ),
    ModelSpec(
        "cores-node",
        "CORES nodes",
        _SPARSE,
        removes="node",
        has_policy=True,
        in_paper=True,
        published="cores_node.toml",
    ),
    ModelSpec(
        "cores-edge",
        "CORES edges",
        _SPARSE,
        removes="edge",
        has_policy=True,
        in_paper=True,
        published="cores_edge.toml",
    ),
    ModelSpec("cores-both", "CORES both", _SPARSE, removes="both", has_policy=True),
)
MODELS: dict[str, ModelSpec] = {row.name: row for row in _ROWS}
"""Every model by name, in the order of the tables: those that see full graphs, then the others."""

CONVS: dict[str, ConvSpec] = {
    row.name: row
    for row in (
        ConvSpec(
            "gin",
            "GIN",
            "cores.models.encoder:GINLayer",
            in_paper=True,
            search={
                "network.gin_eps": (0.0, 0.1, 0.2, 0.3, 0.4),
                "network.gin_train_eps": (False, True),
            },
        ),
        ConvSpec("gcn", "GCN", "cores.models.encoder:GCNLayer", in_paper=True),
        ConvSpec(
            "gat",
            "GAT",
            "cores.models.encoder:GATLayer",
            in_paper=True,
            search={"network.gat_heads": (1, 2, 4)},
        ),
    )
}
"""Every message-passing layer by name."""


def register_model(
    name: str,
    network: type,
    *,
    title: str | None = None,
    settings: type | None = None,
    removes: Removal | None = None,
    search: Mapping[str, Sequence[Any]] | None = None,
) -> None:
    """Add a model: it can then be trained, judged, searched for, timed and compared by name.

    Registering the same class again under its name changes nothing, so that a script may be
    imported twice.

    Args:
        name: What commands and files call it.
        network: A :class:`cores.models.network.GraphModel`, made as ``network(dims, config,
            conv)``, with its own settings as a fourth argument where it has some.
        title: What tables call it; the name, if not given.
        settings: A frozen dataclass with defaults: its own settings, under its name in files and
            options.
        removes: What it removes; it is then judged on what is left. None if it sees full graphs.
        search: Values for ``cores search``, by setting.
    """
    if settings is not None and not is_dataclass(settings):
        raise UserError(f"`settings` of the model {name!r} must be a dataclass, got {settings!r}")
    if settings is not None:
        try:
            hash(settings())
        except TypeError as error:
            raise UserError(
                f"`settings` of the model {name!r} must be frozen and have defaults ({error})"
            ) from None
    row = ModelSpec(
        name,
        title or name,
        network,
        group=name if settings is not None else "",
        settings=settings,
        removes=removes,
        search=search or {},
    )
    if settings is not None and name not in MODELS and name in _settings_names():
        raise UserError(f"{name!r} is the name of settings; choose another name for the model")
    _register(MODELS, row, "model")


def _settings_names() -> set[str]:
    """Names that settings have in files and options, today or before."""
    from cores.config.names import INTRODUCED_AS
    from cores.config.run import RunConfig, model_groups  # it imports this module

    names = {*RunConfig.__dataclass_fields__, *model_groups()}
    return names | {old.partition(".")[0] for old in INTRODUCED_AS.values()}


def register_conv(
    name: str,
    layer: type,
    *,
    title: str | None = None,
    search: Mapping[str, Sequence[Any]] | None = None,
) -> None:
    """Add a message-passing layer, for every model that uses one.

    Args:
        name: What commands and files call it.
        layer: A module made as ``layer(config, edge_dim)``, from a
            :class:`cores.config.NetworkConfig` and the number of edge features it may use, and
            called as ``layer(h, edge_index, edge_attr)``.
        title: What tables call it; the name in capitals, if not given.
        search: Values for ``cores search``, by setting.
    """
    if name == NO_MESSAGES:
        raise UserError(f"{name!r} stands for a network without messages; choose another name")
    _register(CONVS, ConvSpec(name, title or name.upper(), layer, search=search or {}), "conv")


def model_spec(name: str) -> ModelSpec:
    """The row of a model."""
    if name not in MODELS:
        raise UserError(
            f"unknown model {name!r}; {nearest(name, MODELS)} (your own must be registered first)"
        )
    return MODELS[name]


def conv_spec(name: str) -> ConvSpec:
    """The row of a message-passing layer."""
    if name not in CONVS:
        raise UserError(f"unknown conv {name!r}; {nearest(name, CONVS)}")
    return CONVS[name]


def _register(table: dict[str, Any], row: ModelSpec | ConvSpec, kind: str) -> None:
    known = table.get(row.name)
    if known is not None and _place(known) != _place(row):
        raise UserError(f"there is a {kind} {row.name!r} already; choose another name")
    if not row.name.replace("-", "").replace("_", "").isalnum():
        raise UserError(f"a {kind}'s name has letters, digits, - and _, got {row.name!r}")
    table[row.name] = row


def _place(row: ModelSpec | ConvSpec) -> str:
    """Where a row's class is defined: a script that is imported again defines it again."""
    kind = row.network if isinstance(row, ModelSpec) else row.layer
    return kind if isinstance(kind, str) else f"{kind.__qualname__}"


def _imported(place: str | type) -> Any:
    if not isinstance(place, str):
        return place
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
