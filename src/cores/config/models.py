"""One row per model, message-passing layer and preset; everything else reads these tables.

Needs no torch: a class of the package is named by where it is and imported when a model is built.
"""

from typing import get_args

from cores.config.classifier import RandomConfig
from cores.config.spec import ConvSpec, ModelSpec, PresetSpec, Removal, TaskName
from cores.errors import UserError, nearest
from cores.plugins import load_plugins

NO_MESSAGES = "none"
"""In place of a conv: the same depth without messages."""
_CLASSIFIER = "cores.models.classifier"
_ANY: tuple[TaskName, ...] = get_args(TaskName)
_REMOVED: tuple[tuple[Removal, str], ...] = ("node", "nodes"), ("edge", "edges"), ("both", "both")
_MASKED_TRAINING = {"epochs": 270, "batch_size": 128}
"""Classifiers of masked graphs take longer to learn, 240 epochs, and do best in batches of so many;
the last 30 epochs are the policy's."""
_ROWS = (
    ModelSpec("gnn", "GNN", f"{_CLASSIFIER}:Classifier", tasks=_ANY),
    ModelSpec("mlp", "MLP", f"{_CLASSIFIER}:BlindClassifier", uses_conv=False, tasks=_ANY),
    ModelSpec(
        "random",
        "random",
        "cores.models.control:RandomSubgraph",
        group="random",
        settings=RandomConfig,
        removes="node",
    ),
    *(
        ModelSpec(
            f"cores-{removes}",
            f"CORES {title}",
            "cores.models.sparse:SparseClassifier",
            removes=removes,
            has_policy=True,
            training=_MASKED_TRAINING,
            tasks=_ANY,
        )
        for removes, title in _REMOVED
    ),
)
MODELS: dict[str, ModelSpec] = {row.name: row for row in _ROWS}
"""Every model by name, in the order of the tables; registered ones come before the control."""
LAST = ("random", "cores-node", "cores-edge", "cores-both")
"""The models that end every table."""

CONVS: dict[str, ConvSpec] = {
    row.name: row
    for row in (
        ConvSpec(
            "gin",
            "GIN",
            "cores.models.encoder:GINLayer",
            search={
                "network.gin_eps": (0.0, 0.1, 0.2, 0.3, 0.4),
                "network.gin_train_eps": (False, True),
            },
        ),
        ConvSpec("gcn", "GCN", "cores.models.encoder:GCNLayer"),
        ConvSpec(
            "gat",
            "GAT",
            "cores.models.encoder:GATLayer",
            search={"network.gat_heads": (1, 2, 4)},
        ),
    )
}
"""Every message-passing layer by name."""

PRESETS: dict[str, PresetSpec] = {
    "default": PresetSpec(
        "default",
        "one setting for all datasets",
        lambda model, dataset, conv: {"training": dict(model_spec(model).training)},
    )
}
"""Every preset by name."""


def model_spec(name: str) -> ModelSpec:
    """Return the row of a model."""
    if name not in MODELS:
        load_plugins()
    if name not in MODELS:
        raise UserError(
            f"unknown model {name!r}; {nearest(name, MODELS)} (your own must be registered first)"
        )
    return MODELS[name]


def need_task(model: str, task: TaskName) -> None:
    """Refuse a model that cannot be trained for a task."""
    if task not in model_spec(model).tasks:
        known = ", ".join(name for name, row in MODELS.items() if task in row.tasks)
        raise UserError(f"{model} knows classes alone; models for a {task} task: {known}")


def conv_spec(name: str) -> ConvSpec:
    """Return the row of a message-passing layer."""
    if name not in CONVS:
        load_plugins()
    if name not in CONVS:
        raise UserError(f"unknown conv {name!r}; {nearest(name, CONVS)}")
    return CONVS[name]


def preset_spec(name: str) -> PresetSpec:
    """Return the row of a preset."""
    if name not in PRESETS:
        load_plugins()
    if name not in PRESETS:
        raise UserError(f"unknown preset {name!r}; {nearest(name, PRESETS)}")
    return PRESETS[name]
