"""Seconds of every part of an epoch, on one dataset and one device."""

import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import cast

import torch

from cores import Dataset, GraphModel, UserError
from cores.config import RunConfig
from cores.graphs.stacked import Chunk
from cores.models.build import build_model
from cores.models.sparse import SparseClassifier
from cores.ppo import RewardedRollout
from cores.runs.device import tuned_cpu
from cores.runs.fit import PreparedData, bilevel_state, training_settings
from cores.training.bilevel import (
    BilevelState,
    chosen,
    fit_classifiers,
    selection_metrics,
    update_policy,
)
from cores.training.optimizer import adam
from cores.training.rollouts import reward_quantile, rewarded
from cores.training.stacked import stacked_fit
from cores.training.state import RandomState
from cores.training.step import Step
from cores.training.supervised import fit_epoch, fit_scaler
from cores_paper.benchmark import median_seconds

INFERENCE_BATCHES = (1, 32, 256)
_IMPORT = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"


@tuned_cpu()
def dataset_benchmark(
    dataset: Dataset, config: RunConfig, device: torch.device, repeats: int = 5
) -> dict[str, float]:
    """Seconds of a plain GNN's epoch and of the parts of a CORES epoch, and their ratios.

    Measured on a model that is hardly trained: how long a step takes does not depend on weights,
    but for the subgraphs of the policy, which keep nearly everything at first.

    Args:
        dataset: The graphs.
        config: Of a model with a policy.
        device: Where to compute.
        repeats: Of every part; the median counts.
    """
    if repeats < 1:
        raise UserError(f"`repeats` must be positive, got {repeats}")
    if config.removal is None:
        raise UserError(f"{config.model} has no policy; choose a CORES model")
    data = PreparedData.of(dataset, config, device)
    config = replace(config, training=training_settings(config, data))
    random = RandomState(config.seed, device)
    plain, model = (
        build_model(each, dataset.dims).to(device)
        for each in (replace(config, model="gnn"), config)
    )
    for each in (plain, model):
        fit_scaler(each, data.part("train"), dataset)
    state = bilevel_state(cast(SparseClassifier, model), config, data, random)
    seconds = {
        **_epoch_seconds(state, plain, repeats),
        **_inference_seconds(state, repeats),
        **_import_seconds(repeats),
    }
    policy_epoch = sum(
        seconds[f"{part}_seconds"] for part in ("rollouts", "policy_updates", "selection")
    )
    ratios = {
        "classifiers_epoch_ratio": seconds["classifiers_epoch_seconds"]
        / seconds["supervised_epoch_seconds"],
        "policy_epoch_ratio": policy_epoch / seconds["supervised_epoch_seconds"],
        **{
            f"inference_ratio_{size}": seconds[f"inference_{size}_seconds"]
            / seconds[f"classifier_inference_{size}_seconds"]
            for size in INFERENCE_BATCHES
        },
        "import_ratio": seconds["import_seconds"] / seconds["import_torch_seconds"],
    }
    return {**ratios, **seconds}


def _epoch_seconds(state: BilevelState, plain: GraphModel, repeats: int) -> dict[str, float]:
    """An epoch of the plain model on full graphs, and the parts of one by Algorithm 1."""
    config, order = state.config, state.random.batches
    graphs, size = state.members[0].train_graphs, config.training.batch_size
    step = Step(plain, adam(plain.parameters(), config.training.learning_rate))
    stacked = stacked_fit([step])

    def supervised() -> None:
        if stacked is None:
            fit_epoch(step, graphs.batches(size, order))
        else:
            stacked.fit(Chunk.of(chunk, size) for chunk in graphs.chunks(size, order))

    rollouts = _rollouts(state)
    epoch = config.warm_up_epochs + 1

    def selection() -> None:
        choices = chosen(state.selected, state.selection_batches)
        selection_metrics(state.selected, choices, config.reward)

    return _medians(
        {
            "loader": lambda: list(graphs.batches(size, order)),
            "supervised_epoch": supervised,
            "classifiers_epoch": partial(fit_classifiers, state, 1),
            "rollouts": partial(_rollouts, state),
            "policy_updates": partial(update_policy, state, rollouts, epoch),
            "selection": selection,
        },
        graphs.store.device,
        repeats,
    )


def _rollouts(state: BilevelState) -> list[RewardedRollout]:
    reward, outcomes = state.config.reward, state.roll_out()
    return rewarded(outcomes, reward_quantile(outcomes, reward.alpha), reward)


@torch.no_grad()
def _inference_seconds(state: BilevelState, repeats: int) -> dict[str, float]:
    """Predictions from the policy's part, and those of the committee alone."""
    shown = replace(state.config.explanation, class_from="part")
    model, graphs = state.model.eval().showing(shown), state.members[0].train_graphs
    actions: dict[str, Callable[[], object]] = {}
    for size in INFERENCE_BATCHES:
        batch = graphs.batch(torch.arange(size) % len(graphs))
        actions[f"inference_{size}"] = partial(model, batch)
        actions[f"classifier_inference_{size}"] = partial(model.classifier, batch)
    return _medians(actions, graphs.store.device, repeats)


def _medians(
    actions: Mapping[str, Callable[[], object]], device: torch.device, repeats: int
) -> dict[str, float]:
    """Median seconds of actions, each until its device has done it."""

    def waited(action: Callable[[], object]) -> None:
        action()
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    return median_seconds(
        {f"{name}_seconds": partial(waited, action) for name, action in actions.items()}, repeats
    )


def _import_seconds(repeats: int) -> dict[str, float]:
    """What a command imports before it trains, and torch alone, each in a process of its own."""
    seconds = {}
    for name, module in (("import", "cores.runs.run"), ("import_torch", "torch")):
        script = [sys.executable, "-c", _IMPORT.format(module)]
        outputs = [subprocess.run(script, capture_output=True, check=True) for _ in range(repeats)]
        seconds[f"{name}_seconds"] = statistics.median(float(each.stdout) for each in outputs)
    return seconds
