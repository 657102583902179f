"""The runs of several models on every split and seed of a dataset."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cores import Dataset, GraphModel, load_dataset
from cores.config import RunConfig, merged
from cores.config.presets import preset_config
from cores.data.catalogue import canonical_name
from cores.data.dataset import need_classes
from cores.data.inputs.columns import ColumnNames
from cores.files import make_folder
from cores.runs.device import choose_device
from cores.runs.runner import Outcome, run_all, run_folder
from cores.runs.trained import TrainedModel


@dataclass(frozen=True)
class Case:
    """One split and seed: the runs of all models on it."""

    dataset: Dataset
    configs: Mapping[str, RunConfig]
    """By model."""
    out: Path
    device: torch.device
    failed: frozenset[str]
    """Models whose runs have failed."""

    def folder(self, model: str) -> Path:
        """The run folder of a model."""
        return run_folder(self.out, self.configs[model])

    def model(self, name: str) -> GraphModel:
        """The model of a run, from its folder: as it was trained, whoever had it before."""
        return TrainedModel.load(self.folder(name)).model.to(self.device)


def run_cases(
    dataset: str,
    models: Sequence[str],
    out: Path,
    *,
    splits: Sequence[int],
    seeds: Sequence[int],
    done: Callable[[Outcome], None],
    conv: str = "gin",
    settings: Mapping[str, Any] | None = None,
    workers: int = 1,
    device: str = "auto",
    data_root: Path | None = None,
    columns: ColumnNames | None = None,
) -> list[Case]:
    """Train every model on every split with every seed; returns a case for each of these.

    Runs that are there already are not repeated.
    """
    chosen, name = choose_device(device), canonical_name(dataset)

    def config(model: str, **differs: Any) -> RunConfig:
        return preset_config(name, model, conv, "default", merged(settings or {}, differs))

    reach = config(models[0]).network.reach
    data = load_dataset(name, data_root, columns=columns, reach=reach)
    need_classes(data, "a comparison of what models keep")
    cases = [
        {model: config(model, split=split, seed=seed) for model in models}
        for split in splits
        for seed in seeds
    ]
    make_folder(out)
    outcomes = run_all(
        [run for configs in cases for run in configs.values()],
        out,
        workers=workers,
        device=device,
        data_root=data_root,
        columns=columns,
        done=done,
    )
    failed = {outcome.config for outcome in outcomes if outcome.failure is not None}
    return [
        Case(data, configs, out, chosen, frozenset(m for m in configs if configs[m] in failed))
        for configs in cases
    ]
