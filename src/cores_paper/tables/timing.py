"""Measure the seconds of a training epoch and of a prediction (Tables 11 and 12).

All models are timed in one process, in alternation. Seconds depend on the machine; ratios to the
plain GNN depend on it less.
"""

import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from cores import Dataset, load_dataset
from cores.config import RunConfig, merged
from cores.config.presets import preset_config
from cores.evaluation.predictions import EVALUATION_BATCH
from cores.models.build import build_model
from cores.runs.device import tuned_cpu
from cores.runs.fit import PreparedData, fit_model
from cores.runs.folder import commit, machine_of
from cores_paper.tables.targets import (
    BASE_CONV,
    MEASURED,
    PLAIN_GNN,
    POLICYS_PART,
    policies,
)
from cores_paper.tables.timing_rows import Timing

EPOCHS = 2
"""Epochs of the classifier, and as many of the policy if there is one; every second is timed."""
MAX_GRAPHS = 256
"""An epoch on more graphs is timed on this many of them, and its seconds scaled up."""


@tuned_cpu()
def time_models(
    action: str,
    dataset: str,
    models: Sequence[str],
    *,
    repeats: int,
    data_root: Path | None = None,
    device: torch.device,
) -> list[Timing]:
    """Time the plain GNN and every model on single graphs, and at the usual batch size."""
    full = load_dataset(dataset, data_root)
    data = _sample(full) if action == "train" else full
    scale = len(full) / len(data)
    names = [PLAIN_GNN, *(name for name in models if name != PLAIN_GNN)]
    # As in the paper, a policy's prediction is made from its part. Half of the epochs are its own.
    policys = merged(POLICYS_PART, {"committee": {"warm_up": 0.5}, "effects": {"steps": 0}})
    changes = [merged(MEASURED, policys if name in policies() else {}) for name in names]
    configs = [
        preset_config(data.name, name, BASE_CONV, "default", changed)
        for name, changed in zip(names, changes, strict=True)
    ]
    usual = configs[0].training.batch_size if action == "train" else EVALUATION_BATCH
    timings = []
    for batch_size in (1, usual):
        clocks = [_clock(action, config, data, batch_size, device, scale) for config in configs]
        warm_up = clocks[0].WARM_UP
        rounds = [[clock() for clock in clocks] for _ in range(warm_up + repeats)][warm_up:]
        timings += [
            Timing(
                data.name,
                name,
                action,
                batch_size,
                scale * statistics.median(seconds[number] for seconds in rounds),
                # The ratio is taken within a round, where a slower machine slows both alike.
                statistics.median(seconds[number] / seconds[0] for seconds in rounds),
                repeats,
                machine_of(device),
                commit() or "",
            )
            for number, name in enumerate(names)
        ]
    return timings


def _sample(data: Dataset) -> Dataset:
    """At most ``MAX_GRAPHS`` graphs, with the classes in their proportions."""
    if len(data) <= MAX_GRAPHS:
        return data
    by_class = data.graphs.y.argsort(stable=True)
    chosen = by_class[torch.arange(MAX_GRAPHS) * len(data) // MAX_GRAPHS]
    return replace(data, graphs=data.graphs.subset(chosen))


def _clock(
    action: str,
    config: RunConfig,
    data: Dataset,
    batch_size: int,
    device: torch.device,
    scale: float,
) -> "_TrainingClock | _InferenceClock":
    """A callable that returns the seconds of an action; ``scale``: all graphs per sampled graph."""
    epochs = 2 * EPOCHS if config.spec.has_policy else EPOCHS
    ppo = replace(
        config.ppo,
        batch_size=min(batch_size, config.ppo.batch_size),
        # A number of graphs per epoch, not a share of them: scaled down with the sample.
        env_steps=max(1, round(config.ppo.env_steps / scale)),
    )
    training = replace(config.training, epochs=epochs, batch_size=batch_size)
    config = replace(config, training=training, ppo=ppo)
    clock = _TrainingClock if action == "train" else _InferenceClock
    return clock(config, data, batch_size, device)


class _Clock:
    """A model, built but not trained, and the graphs of its split."""

    def __init__(
        self, config: RunConfig, data: Dataset, batch_size: int, device: torch.device
    ) -> None:
        self.config, self.device = config, device
        self.data = PreparedData.of(data, config, device)
        self.model = build_model(config, data.dims).to(device)
        chosen = torch.randperm(len(data.graphs), generator=torch.Generator().manual_seed(0))
        self.batch = self.data.graphs.batch(chosen[:batch_size])

    def _now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize()
            return time.perf_counter()
        return time.process_time()  # does not count other processes


class _TrainingClock(_Clock):
    WARM_UP = 0  # every call begins with an epoch that is not timed

    def __call__(self) -> float:
        """Seconds of an epoch, selection included, without what precedes the first epoch."""
        stamps: list[float] = []

        def report(epoch: int, metrics: dict[str, float]) -> None:
            stamps.append(self._now())

        fit_model(self.config, self.data, report=report)
        epochs = [end - start for start, end in zip(stamps[::2], stamps[1::2], strict=True)]
        return statistics.mean(epochs)


class _InferenceClock(_Clock):
    WARM_UP = 1
    SECONDS = 0.2  # a shorter measurement could consist of one pause of the machine

    @torch.no_grad()
    def __call__(self) -> float:
        """Seconds of a prediction, explanation included: the mean over ``SECONDS`` of calls."""
        self.model.eval()
        calls, started = 0, self._now()
        while True:
            self.model.predict(self.batch)
            calls += 1
            elapsed = self._now() - started
            if elapsed > self.SECONDS:
                return elapsed / calls
