"""How tables and plots order and name models and datasets, and format numbers."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from cores.config import Removal
from cores.config.models import MODELS, model_spec
from cores.data.catalogue import PAPER_DATASETS
from cores.runs.rows import Spread

TIE = 5e-5
"""Means that differ by less are equal: the paper gives two decimals of a percent."""
REMOVED: Mapping[Removal | None, str] = {
    "node": "nodes",
    "edge": "edges",
    "both": "nodes and edges",
}
"""The elements that a model removes, in words."""


def percent(value: Spread | None) -> str:
    """Mean ± deviation in percent.

    >>> percent(Spread(0.8244, 0.05, 5)), percent(None)
    ('82.4 ± 5.0', '–')
    """
    deviation = "" if value is None or value.std is None else f" ± {100 * value.std:.1f}"
    return mean_percent(value) + deviation


def mean_percent(value: Spread | None) -> str:
    """Mean in percent.

    >>> mean_percent(Spread(0.8244, 0.05, 5))
    '82.4'
    """
    return "–" if value is None else f"{100 * value.mean:.1f}"


def ordered_datasets(datasets: Iterable[str]) -> list[str]:
    """Each dataset once: the paper's in its order, then the others by name.

    >>> ordered_datasets(["motifs", "PTC", "BZR", "PTC", "mine"])
    ['BZR', 'PTC', 'mine', 'motifs']
    """
    measured = set(datasets)
    paper = [name for name in PAPER_DATASETS if name in measured]
    return [*paper, *sorted(measured - set(paper))]


def ordered_models(models: Iterable[str]) -> list[str]:
    """Each model once, in the order of the registry; those not registered last, by name.

    >>> ordered_models(["cores-node", "mine", "gnn", "gnn"])
    ['gnn', 'cores-node', 'mine']
    """
    measured = set(models)
    registered = [name for name in MODELS if name in measured]
    return [*registered, *sorted(measured - set(registered))]


def model_title(model: str) -> str:
    """What tables call a model: its title; its name if it is not registered."""
    return MODELS[model].title if model in MODELS else model


def removal_titles(models: Sequence[str]) -> dict[str, str]:
    """What each model removes, in words, with its title if another one removes the same.

    >>> removal_titles(["cores-node", "cores-edge"])
    {'cores-node': 'removing nodes', 'cores-edge': 'removing edges'}
    """
    removed = {model: REMOVED[model_spec(model).removes] for model in models}
    models_removing = Counter(removed.values())
    return {
        model: f"removing {words}"
        + (f", {model_title(model)}" if models_removing[words] > 1 else "")
        for model, words in removed.items()
    }
