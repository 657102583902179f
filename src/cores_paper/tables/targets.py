"""The paper's tables and figures: their runs, and the numbers that they report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from cores.config import RunConfig, merged
from cores.config.models import MODELS
from cores.config.presets import preset_config
from cores.runs.rows import Spread
from cores_paper.presets import (
    has_authors_settings,
    has_published_settings,
    published,
    published_file,
)

MEASURED = {"network": {"edge_features": False}}
"""The tables were measured with the defaults of version 0.2, which did not read edge features."""
HAS_SETTINGS: dict[str, Callable[[str], bool]] = {
    "default": lambda model: True,
    "paper": has_published_settings,
    "authors": has_authors_settings,
}
"""Whether a preset has settings for a model."""
PLAIN_GNN = "gnn"
"""The model that all others are compared with: no pooling, nothing removed."""
SPLITS = (1, 2, 3, 4, 5)
"""The splits of every table, as many as in the paper."""
BASE_CONV = "gin"
"""The conv of ablations, pictures and timings, and of models that do not use one."""
COMPARISONS = {f"comparison-{name}": name for name in ("gin", "gcn", "gat")}
"""Tables 3, 10 and 9, models by datasets, and the conv of each."""
ARCHITECTURES = "architectures"
"""Table 2: the plain GNN and CORES with the other convs."""
TARGET_CONVS = {name: (conv,) for name, conv in COMPARISONS.items()} | {
    ARCHITECTURES: tuple(conv for conv in COMPARISONS.values() if conv != BASE_CONV)
}
"""The convs of every target with tables of runs, but for the ablations."""


@dataclass(frozen=True)
class Ablation:
    """A figure over one setting of the reward, with the other fixed."""

    setting: str
    values: tuple[float, ...]
    fixed: dict[str, float]


POLICYS_PART = {"explanation": {"parts": "policy", "class_from": "part"}}
"""The settings at which lambda and d decide how much is kept, as in the paper."""
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


def policies() -> tuple[str, ...]:
    """The models with a policy."""
    return tuple(name for name, spec in MODELS.items() if spec.has_policy)


def paper_policies() -> tuple[str, ...]:
    """The paper's models with a policy: CORES, removing nodes or edges."""
    return ("cores-node", "cores-edge")


def paper_baselines() -> tuple[str, ...]:
    """The paper's models without a policy, but for the plain GNN."""
    return ("sagpool", "diffpool", "sugar", "gpool")


def models_of(target: str, preset: str) -> tuple[str, ...]:
    """The default models of a table or figure.

    A comparison has all models, those registered by a script included, except policies that the
    paper lacks and GMT, a peer in explaining; at the ``paper`` preset, those that the paper has
    settings for, and at ``authors`` CORES and the control.
    """
    if target in ABLATIONS:
        return paper_policies()
    if target in PICTURES:
        return (PICTURES[target].model,)
    if target == ARCHITECTURES:
        return tuple(filter(HAS_SETTINGS[preset], (PLAIN_GNN, *paper_policies())))
    return tuple(
        name
        for name, spec in MODELS.items()
        if (not spec.has_policy or name in paper_policies())  # a policy takes long
        and name != "gmt"  # a peer in explaining
        and HAS_SETTINGS[preset](name)
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
            {"reward": {**ablation.fixed, ablation.setting: value}, **POLICYS_PART}
            for value in ablation.values
        ]
    shorter = {} if epochs is None else {"training": {"epochs": epochs}}
    runs = [
        preset_config(
            dataset,
            model,
            conv if MODELS[model].uses_conv else BASE_CONV,
            preset,
            merged({"split": split, "seed": seed, **MEASURED, **shorter}, variant),
        )
        for conv in TARGET_CONVS.get(target, (BASE_CONV,))
        for dataset in datasets
        for model in models
        for variant in variants
        for split in splits
        for seed in seeds
    ]
    return list(dict.fromkeys(runs))


def published_metric(dataset: str, conv: str, model: str, metric: str) -> Spread | None:
    """Mean and deviation of a metric in the paper's tables; None where they lack it."""
    found = published(model).get(dataset, {}).get(conv, {}).get(f"reported_{metric}")
    return None if found is None else Spread(found["mean"] / 100, found["std"] / 100, len(SPLITS))


@cache
def published_seconds(action: str, dataset: str) -> dict[str, float]:
    """Seconds by model, of a training epoch (``train``) or a prediction (``inference``)."""
    return published_file("reported_times.toml")[action].get(dataset, {})


@cache
def published_statistics() -> dict[str, dict[str, Any]]:
    """Table 1 by dataset, then by column."""
    return published_file("reported_datasets.toml")
