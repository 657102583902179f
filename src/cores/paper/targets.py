"""The paper's tables and figures as lists of runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cores.config import RunConfig, merged
from cores.config.models import MODELS
from cores.config.presets import has_published_settings, preset_config

PLAIN_GNN = "gnn"
"""The model that all others are compared with: no pooling, nothing removed."""
SPLITS = (1, 2, 3, 4, 5)
"""The splits of every table, as many as in the paper."""
COMPARISONS = {
    "comparison-gin": "gin",
    "comparison-gcn": "gcn",
    "comparison-gat": "gat",
}
"""Tables 3, 10 and 9, models by datasets, and the conv of each."""
ARCHITECTURES = "architectures"
"""Table 2: the plain GNN and CORES with the other two convs."""
TARGET_CONVS = {name: (conv,) for name, conv in COMPARISONS.items()} | {
    ARCHITECTURES: ("gcn", "gat")
}
"""The convs of every target with tables of runs, but for the ablations."""


@dataclass(frozen=True)
class Ablation:
    """A figure over one setting of the reward, with the other fixed."""

    setting: str
    values: tuple[float, ...]
    fixed: dict[str, float]


ABLATIONS = {
    "ablation-d": Ablation("desired_ratio", (0.2, 0.4, 0.6, 0.8, 0.9), {"lam": 0.0}),
    "ablation-lambda": Ablation("lam", (0.0, 0.25, 0.5, 0.75, 1.0), {"desired_ratio": 0.1}),
}
"""Figures 3 and 4, with GIN."""

TIMES = {"time-train": "train", "time-inference": "inference"}
"""Tables 11 and 12, by the action that is timed."""


@dataclass(frozen=True)
class Picture:
    """A figure of graphs, the subgraphs that are kept, and the predictions."""

    dataset: str
    model: str
    symbols: tuple[str, ...] = ()
    """Names of the node labels, by their one-hot column; nodes are unnamed if empty."""
    classes: tuple[str, ...] = ()
    """Names of the classes, in the dataset's order; the dataset's own names if empty."""


PICTURES = {
    "pipeline": Picture("motifs", "cores-node"),
    "mutag": Picture(
        "MUTAG",
        "cores-node",
        symbols=("C", "N", "O", "F", "I", "Cl", "Br"),
        classes=("not mutagenic", "mutagenic"),
    ),
}
"""Figures 1 and 5."""

STATISTICS = "datasets"
"""Table 1."""
SPARSITY_REWARD = "sparsity-reward"
"""Figure 2: R_s over the kept ratio, by d."""

TARGETS = (
    *(STATISTICS, ARCHITECTURES, *COMPARISONS, *ABLATIONS),
    *(SPARSITY_REWARD, *PICTURES, *TIMES),
)
"""In the order of the paper, except that timings, which need an idle machine, come last."""


def models_of(target: str, preset: str) -> tuple[str, ...]:
    """The default models of a table or figure; at the ``paper`` preset, those with settings."""
    if target in ABLATIONS:
        return ("cores-node", "cores-edge")
    if target in PICTURES:
        return (PICTURES[target].model,)
    if target == ARCHITECTURES:
        return (PLAIN_GNN, "cores-node", "cores-edge")
    return tuple(
        name
        for name in MODELS
        if name != "cores-both" and (preset == "default" or has_published_settings(name))
    )


def runs_of(
    target: str,
    datasets: Sequence[str],
    models: Sequence[str],
    splits: Sequence[int],
    preset: str,
    epochs: int | None = None,
    seeds: Sequence[int] = (0,),
) -> list[RunConfig]:
    """The runs of a table or figure, without duplicates; ``epochs`` shortens them.

    A model that does not use the conv runs once, at the settings of GIN, for all tables.
    """
    variants: list[dict[str, Any]] = [{}]
    if target in ABLATIONS:
        ablation = ABLATIONS[target]
        variants = [
            {"reward": {**ablation.fixed, ablation.setting: value}} for value in ablation.values
        ]
    shorter = {} if epochs is None else {"training": {"epochs": epochs}}
    runs = [
        preset_config(
            dataset,
            model,
            conv if MODELS[model].uses_conv else "gin",
            preset,
            merged({"split": split, "seed": seed, **shorter}, variant),
        )
        for conv in TARGET_CONVS.get(target, ("gin",))
        for dataset in datasets
        for model in models
        for variant in variants
        for split in splits
        for seed in seeds
    ]
    return list(dict.fromkeys(runs))
