"""The paper's tables and figures as lists of runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cores.config import RunConfig, merged
from cores.config.models import MODELS
from cores.config.presets import has_published_settings, preset_config

SPLITS = (1, 2, 3, 4, 5)
"""Of every table: the paper trains each model on five."""
COMPARISONS = {
    "comparison-gin": "gin",
    "comparison-gcn": "gcn",
    "comparison-gat": "gat",
}
"""Tables 3, 10 and 9: models by datasets, by the conv they use."""
ARCHITECTURES = "architectures"
"""Table 2: the plain GNN and CORES with the other two convs."""
CONVS = {name: (conv,) for name, conv in COMPARISONS.items()} | {ARCHITECTURES: ("gcn", "gat")}
"""Convs of the tables of runs."""


@dataclass(frozen=True)
class Ablation:
    """A figure over one setting of the reward, the other held fixed."""

    setting: str
    values: tuple[float, ...]
    fixed: dict[str, float]


ABLATIONS = {
    "ablation-d": Ablation("desired_ratio", (0.2, 0.4, 0.6, 0.8, 0.9), {"lam": 0.0}),
    "ablation-lambda": Ablation("lam", (0.0, 0.25, 0.5, 0.75, 1.0), {"desired_ratio": 0.1}),
}
"""Figures 3 and 4, with GIN."""

TIMES = {"time-train": "train", "time-inference": "inference"}
"""Tables 11 and 12: what is timed."""


@dataclass(frozen=True)
class Picture:
    """A figure of graphs, of what is kept of them, and of what is predicted from that."""

    dataset: str
    model: str
    symbols: tuple[str, ...] = ()
    """What to call a node, by its one-hot label; nothing without."""
    classes: tuple[str, ...] = ()
    """What to call a class, in the dataset's order; as there without."""


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
"""In the order of the paper, but for the times, which want the machine for themselves."""


def models_of(target: str, preset: str) -> tuple[str, ...]:
    """The models of a table or figure; of those compared, the paper gives settings for a few."""
    if target in ABLATIONS:
        return ("cores-node", "cores-edge")
    if target in PICTURES:
        return (PICTURES[target].model,)
    if target == ARCHITECTURES:
        return ("gnn", "cores-node", "cores-edge")
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
    """The runs of a table or figure, each once; ``epochs`` shortens them.

    A model without a conv has one row, at the settings of GIN, in every table.
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
        for conv in CONVS.get(target, ("gin",))
        for dataset in datasets
        for model in models
        for variant in variants
        for split in splits
        for seed in seeds
    ]
    return list(dict.fromkeys(runs))
