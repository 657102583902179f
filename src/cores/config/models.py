"""One row per model, and one per message-passing layer; everything else reads these tables.

Needs no torch: a class of the package is named by where it is and imported when a model is built.
"""

from typing import get_args

from cores.config.baselines import BASELINES
from cores.config.spec import ConvSpec, ModelSpec, TaskName
from cores.errors import UserError, nearest

NO_MESSAGES = "none"
"""In place of a conv: the same depth without messages."""
_CLASSIFIER = "cores.models.classifier"
_SPARSE = "cores.models.sparse:SparseClassifier"
_ANY: tuple[TaskName, ...] = get_args(TaskName)
_MASKED_TRAINING = {"epochs": 330, "batch_size": 128}
"""Classifiers of masked graphs take longer to learn, 240 epochs, and do best in batches of so many;
the last 90 epochs are the policy's."""
_ROWS = (
    ModelSpec(
        "gnn",
        "GNN",
        f"{_CLASSIFIER}:Classifier",
        in_paper=True,
        published="gnn.toml",
        tasks=_ANY,
    ),
    ModelSpec(
        "mlp",
        "MLP",
        f"{_CLASSIFIER}:BlindClassifier",
        uses_conv=False,
        published="gnn.toml",  # the shape and the rates of the GNN it is compared with
        tasks=_ANY,
    ),
    *BASELINES,
    ModelSpec(
        "cores-node",
        "CORES nodes",
        _SPARSE,
        removes="node",
        has_policy=True,
        in_paper=True,
        training=_MASKED_TRAINING,
        published="cores_node.toml",
        tasks=_ANY,
    ),
    ModelSpec(
        "cores-edge",
        "CORES edges",
        _SPARSE,
        removes="edge",
        has_policy=True,
        in_paper=True,
        training=_MASKED_TRAINING,
        published="cores_edge.toml",
        tasks=_ANY,
    ),
    ModelSpec(
        "cores-both",
        "CORES both",
        _SPARSE,
        removes="both",
        has_policy=True,
        training=_MASKED_TRAINING,
        tasks=_ANY,
    ),
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


def model_spec(name: str) -> ModelSpec:
    """The row of a model."""
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
    """The row of a message-passing layer."""
    if name not in CONVS:
        raise UserError(f"unknown conv {name!r}; {nearest(name, CONVS)}")
    return CONVS[name]
