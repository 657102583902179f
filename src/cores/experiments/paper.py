"""The paper's tables as lists of runs."""

from collections.abc import Sequence

from cores.config import RunConfig
from cores.settings import preset_config

COMPARISONS = {
    "comparison-gin": "gin",
    "comparison-gcn": "gcn",
    "comparison-gat": "gat",
}
"""Tables of models by datasets, by the conv they use."""


def comparison(
    target: str,
    datasets: Sequence[str],
    models: Sequence[str],
    splits: Sequence[int],
    preset: str,
    epochs: int | None = None,
) -> list[RunConfig]:
    """The runs of a comparison table; ``epochs`` shortens them."""
    changes = {} if epochs is None else {"training": {"epochs": epochs}}
    return [
        preset_config(dataset, model, COMPARISONS[target], preset, {"split": split, **changes})
        for dataset in datasets
        for model in models
        for split in splits
    ]
