"""Runs on one dataset that are compared: one folder, the same settings but for what is compared."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cores.config import RunConfig, merged
from cores.config.presets import preset_config
from cores.data.catalogue import canonical_name
from cores.data.dataset import Dataset, need_classes
from cores.data.datasets import load_dataset
from cores.data.inputs.columns import ColumnNames
from cores.files import make_folder
from cores.models.network import GraphModel
from cores.runs.device import choose_device
from cores.runs.runner import Outcome, run_all, run_folder
from cores.runs.trained import TrainedModel


@dataclass(frozen=True)
class Series:
    """What all runs of a comparison share, and how they are made."""

    dataset: str
    """A name or a path."""
    out: Path
    """Folder of the run folders."""
    conv: str = "gin"
    settings: Mapping[str, Any] | None = None
    """Changes to the default settings, nested."""
    workers: int = 1
    device: str = "auto"
    data_root: Path | None = None
    columns: ColumnNames | None = None

    def config(self, model: str, changes: Mapping[str, Any]) -> RunConfig:
        """The run of a model, with what sets it apart from the others."""
        settings = merged(self.settings or {}, changes)
        return preset_config(canonical_name(self.dataset), model, self.conv, "default", settings)

    def run(
        self, configs: Iterable[RunConfig], done: Callable[[Outcome], None]
    ) -> dict[RunConfig, Outcome]:
        """Make the runs that are not there yet; returns how each ended."""
        make_folder(self.out)
        outcomes = run_all(
            list(configs),
            self.out,
            workers=self.workers,
            device=self.device,
            data_root=self.data_root,
            columns=self.columns,
            done=done,
        )
        return {outcome.config: outcome for outcome in outcomes}

    def run_cases(
        self,
        models: Sequence[str],
        splits: Sequence[int],
        seeds: Sequence[int],
        done: Callable[[Outcome], None],
        changes: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> list["Case"]:
        """Make a run of every model for every split and seed; returns a case for each of these.

        Args:
            models: Their names.
            splits: Numbers of the splits.
            seeds: Of the runs; every split is run with every seed.
            done: Called with every run as it ends.
            changes: Settings of single models, by model.
        """
        chosen = choose_device(self.device)
        reach = self.config(models[0], {}).network.reach
        data = load_dataset(
            canonical_name(self.dataset), self.data_root, columns=self.columns, reach=reach
        )
        need_classes(data, "a comparison of what models keep")
        own = changes or {}
        configs = [
            {
                model: self.config(model, {"split": split, "seed": seed, **own.get(model, {})})
                for model in models
            }
            for split in splits
            for seed in seeds
        ]
        outcomes = self.run((run for runs in configs for run in runs.values()), done)

        def failed(runs: Mapping[str, RunConfig]) -> frozenset[str]:
            return frozenset(
                name for name, run in runs.items() if outcomes[run].failure is not None
            )

        return [Case(data, runs, self.out, chosen, failed(runs)) for runs in configs]


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
