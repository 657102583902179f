"""What this package brings to `cores`, by the functions that are open to any other. No torch."""

from typing import Any

import cores
from cores_paper.models.settings import (
    DiffPoolConfig,
    GMTConfig,
    GSATConfig,
    PoolConfig,
    SugarConfig,
)
from cores_paper.presets import (
    PaperConfig,
    authors_settings,
    fixed_settings,
    paper_settings,
)

SHARES = {
    "ratio": (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95),
    "multiplier": (0.5, 1.0, 1.5, 2.0),
}
"""Values of PoolConfig that a search chooses from."""


def register() -> None:
    """Register the baselines, the published presets and the commands; the entry point."""
    # In the order of the paper's tables.
    _register_pool("sagpool", "SAGPool")
    cores.register_model(
        "diffpool",
        "cores_paper.models.diffpool:DiffPool",
        title="DiffPool",
        settings=DiffPoolConfig,
    )
    cores.register_model("gsat", "cores_paper.models.gsat:GSAT", title="GSAT", settings=GSATConfig)
    cores.register_model("gmt", "cores_paper.models.gmt:GMT", title="GMT", settings=GMTConfig)
    cores.register_model(
        "sugar",
        "cores_paper.models.sugar:SUGAR",
        title="SUGAR",
        settings=SugarConfig,
        removes="node",
        search={"network.pooling": ()},  # its subgraphs vote; there is no readout to choose
    )
    _register_pool("gpool", "GPool")
    training: dict[str, Any] = {
        "group": "paper",
        "own": PaperConfig,
        "train": "cores_paper.training.algorithm:train",
        "measure": "cores_paper.training.actions:measure_actions",
        "fixed": fixed_settings(),
    }
    cores.register_preset(
        "paper", paper_settings, summary="the published settings, in Algorithm 1", **training
    )
    cores.register_preset(
        "authors",
        authors_settings,
        summary="these in the schedule of the authors' program",
        samples=True,
        **training,
    )
    for module in ("reproduce", "compare_explanations", "search", "benchmark"):
        cores.register_command(f"cores_paper.cli.{module}:{module.upper()}")


def _register_pool(name: str, title: str) -> None:
    cores.register_model(
        name,
        f"cores_paper.models.topk:{title}",
        title=title,
        settings=PoolConfig,
        removes="node",
        search={f"{name}.{setting}": values for setting, values in SHARES.items()},
    )
