"""The paper's tables and figures as lists of runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cores.config import RunConfig, merged
from cores.settings import preset_config

COMPARISONS = {
    "comparison-gin": "gin",
    "comparison-gcn": "gcn",
    "comparison-gat": "gat",
}
"""Tables of models by datasets, by the conv they use."""


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

TARGETS = (*COMPARISONS, *ABLATIONS, *TIMES)


def runs_of(
    target: str,
    datasets: Sequence[str],
    models: Sequence[str],
    splits: Sequence[int],
    preset: str,
    epochs: int | None = None,
) -> list[RunConfig]:
    """The runs of a table or figure; ``epochs`` shortens them."""
    variants: list[dict[str, Any]] = [{}]
    if target in ABLATIONS:
        ablation = ABLATIONS[target]
        variants = [
            {"reward": {**ablation.fixed, ablation.setting: value}} for value in ablation.values
        ]
    shorter = {} if epochs is None else {"training": {"epochs": epochs}}
    return [
        preset_config(
            dataset,
            model,
            COMPARISONS.get(target, "gin"),
            preset,
            merged({"split": split, **shorter}, variant),
        )
        for dataset in datasets
        for model in models
        for variant in variants
        for split in splits
    ]
