"""Seconds of an epoch and of a prediction, model by model in one process (Tables 11 and 12).

Seconds belong to a machine; the ratio to the plain GNN, measured in turns with the others, does
not.
"""

import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from cores.config import RunConfig
from cores.config.presets import preset_config
from cores.data.dataset import Dataset
from cores.data.datasets import load_dataset
from cores.evaluation.predictions import EVALUATION_BATCH
from cores.models.build import build_model
from cores.paper.times import Timing
from cores.runs.device import tuned_cpu
from cores.runs.fit import PreparedData, fit
from cores.runs.folder import commit, machine_of
from cores.training.state import RandomState

EPOCHS = 2
"""Of a classifier, and again of the policy where there is one; the second counts."""
MOST_GRAPHS = 256
"""An epoch on more graphs is timed on so many of them, and taken to last longer in proportion."""
YARDSTICK = "gnn"


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
    """Time every model, the plain GNN among them, with single graphs and its natural batches."""
    whole = load_dataset(dataset, data_root)
    data = _sample(whole) if action == "train" else whole
    longer = len(whole) / len(data)
    names = [YARDSTICK, *(name for name in models if name != YARDSTICK)]
    configs = [preset_config(data.name, name, "gin", "default", {}) for name in names]
    natural = configs[0].training.batch_size if action == "train" else EVALUATION_BATCH
    timings = []
    for batch_size in (1, natural):
        clocks = [_clock(action, config, data, batch_size, device, longer) for config in configs]
        warm_up = clocks[0].WARM_UP
        rounds = [[clock() for clock in clocks] for _ in range(warm_up + repeats)][warm_up:]
        timings += [
            Timing(
                data.name,
                name,
                action,
                batch_size,
                longer * statistics.median(each[number] for each in rounds),
                # By round: a machine that is slower for a while is so for both.
                statistics.median(each[number] / each[0] for each in rounds),
                repeats,
                machine_of(device),
                commit() or "",
            )
            for number, name in enumerate(names)
        ]
    return timings


def _sample(data: Dataset) -> Dataset:
    """At most ``MOST_GRAPHS`` of the graphs, spread evenly over the classes."""
    if len(data) <= MOST_GRAPHS:
        return data
    by_class = data.graphs.y.argsort(stable=True)
    chosen = by_class[torch.arange(MOST_GRAPHS) * len(data) // MOST_GRAPHS]
    return replace(data, graphs=data.graphs.subset(chosen))


def _clock(
    action: str,
    config: RunConfig,
    data: Dataset,
    batch_size: int,
    device: torch.device,
    longer: float,
) -> "_Training | _Inference":
    epochs = EPOCHS if config.removal is None else 2 * EPOCHS
    ppo = replace(
        config.ppo,
        batch_size=min(batch_size, config.ppo.batch_size),
        # Its roll-outs are a number, not a share, of the graphs.
        env_steps=max(1, round(config.ppo.env_steps / longer)),
    )
    training = replace(config.training, epochs=epochs, batch_size=batch_size)
    config = replace(config, training=training, ppo=ppo)
    kind = _Training if action == "train" else _Inference
    return kind(config, data, batch_size, device)


class _Prepared:
    """A model of a configuration on the graphs of its first split."""

    def __init__(
        self, config: RunConfig, data: Dataset, batch_size: int, device: torch.device
    ) -> None:
        self.config, self.device = config, device
        self.data = PreparedData.of(data, config, device)
        self.random = RandomState(config.seed, device)
        self.model = build_model(config, data.dims).to(device)
        chosen = torch.randperm(len(data.graphs), generator=torch.Generator().manual_seed(0))
        self.batch = self.data.graphs.batch(chosen[:batch_size])

    def _synchronised(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize()
            return time.perf_counter()
        return time.process_time()  # whatever else the machine does meanwhile does not count


class _Training(_Prepared):
    WARM_UP = 0  # the first epoch, which does not count, is one

    def __call__(self) -> float:
        """Seconds of an epoch, selection included; what comes before the first is not counted."""
        stamps: list[float] = []

        def report(epoch: int, metrics: dict[str, float]) -> None:
            stamps.append(self._synchronised())

        fit(self.model, self.config, self.data, self.random, report=report)
        counted = [end - start for start, end in zip(stamps[::2], stamps[1::2], strict=True)]
        return statistics.mean(counted)


class _Inference(_Prepared):
    WARM_UP = 1
    SECONDS = 0.2  # in a few milliseconds, a pause of the machine's would be all that is seen

    @torch.no_grad()
    def __call__(self) -> float:
        """Seconds of a prediction, explanation included; the mean of as many calls as fit."""
        self.model.eval()
        calls, started = 0, self._synchronised()
        while True:
            self.model.predict(self.batch)
            calls += 1
            elapsed = self._synchronised() - started
            if elapsed > self.SECONDS:
                return elapsed / calls
