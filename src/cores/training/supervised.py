"""Supervised training: the plain GNN, the baselines, and the inner Eq. (6)."""

import math
from collections.abc import Callable, Iterable
from pathlib import Path

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch_geometric.data import Batch

from cores.config import TrainingConfig
from cores.data.dataset import Dataset
from cores.errors import UserError
from cores.evaluation.predictions import EVALUATION_BATCH, predict_proba
from cores.graphs.stacked import Chunk
from cores.graphs.store import GraphStore
from cores.models.classifier import Classifier
from cores.models.network import GraphModel, Network
from cores.models.scaler import FeatureScaler
from cores.tasks import TASKS
from cores.training.balance import shuffled_batches, shuffled_chunks
from cores.training.journal import Journal, Stateful
from cores.training.optimizer import adam, rates, set_rate
from cores.training.schedule import Schedule, plateau
from cores.training.stacked import stacked_fit
from cores.training.state import RandomState
from cores.training.step import Step
from cores.training.stopping import EarlyStopping

Report = Callable[[int, dict[str, float]], None]
"""Called after every epoch with its number, from 1, and its metrics."""


def no_report(epoch: int, metrics: dict[str, float]) -> None:
    """Ignore the metrics."""


def fit_epoch(step: Step, batches: Iterable[Batch]) -> float:
    """One epoch of gradient steps, Eq. (6); returns the mean loss."""
    step.model.train()
    total, graphs = torch.zeros((), device=next(step.model.parameters()).device), 0
    for batch in batches:
        total += step(batch) * batch.num_graphs
        graphs += batch.num_graphs
    return float(total) / graphs


def fit_scaler(model: Network, graphs: GraphStore, dataset: Dataset) -> None:
    """Fit a network's scaler to the graphs that it is trained on."""
    if isinstance(model.scaler, FeatureScaler):
        _check_spread(graphs, dataset)
        model.scaler.fit(graphs.x, dataset.continuous, dataset.clipped)


def fit_head(classifier: GraphModel, targets: Tensor, loss: str) -> None:
    """Fit what a head must know of the labels of its training graphs."""
    if isinstance(classifier, Classifier):
        classifier.head.fit(targets, loss)


def _check_spread(graphs: GraphStore, dataset: Dataset) -> None:
    """Refuse columns to be standardised whose deviation is no number in single precision."""
    columns = list(dataset.continuous)
    if not columns:
        return
    spread = graphs.x[:, columns].double().std(dim=0, correction=0)
    limits = torch.finfo(torch.float32)
    wrong = ((spread > 0) & (spread < limits.tiny)) | ~(spread < limits.max)
    for place in wrong.nonzero().flatten().tolist():
        size = "small" if spread[place] < 1 else "large"
        raise UserError(
            f"{dataset.name}: the values of {dataset.feature_names[columns[place]]!r} are too "
            f"{size} for single precision (deviation {float(spread[place]):g}); scale that column"
        )


def diverged(
    what: str, epoch: int, model: Network, graphs: Iterable[GraphStore], setting: str
) -> UserError:
    """Return the error for a training whose numbers are no longer finite."""
    largest = max(float(model.scaler(store.x).abs().max()) for store in graphs)
    if largest > HUGE_FEATURE:
        return UserError(
            f"{what} in epoch {epoch}: node features reach {largest:g} after scaling; scale them, "
            "or remove what is out of range"
        )
    return UserError(f"{what} in epoch {epoch}; lower {setting}")


HUGE_FEATURE = 1e6
"""Scaled features above this are named as the likely cause of a diverged training."""


def train(
    model: GraphModel,
    train_graphs: GraphStore,
    selection_graphs: GraphStore,
    config: TrainingConfig,
    random: RandomState,
    folder: Path | None = None,
    report: Report = no_report,
    key: str = "",
) -> tuple[Journal, EarlyStopping]:
    """Train until patience runs out, then restore the selected weights.

    An epoch is better than another by selection accuracy, then by a lower selection loss; where
    classes are balanced, by their means over the classes; in a regression, by a lower mean error;
    of several labels, by their mean ROC-AUC.
    With a folder, the run is recorded there and resumes from where it was killed; ``key`` tells
    its checkpoints from those of other runs.
    """
    optimizer = adam(model.parameters(), config.learning_rate, config.weight_decay)
    schedule = _schedule(optimizer, config)
    stopping = EarlyStopping(model, config.patience)
    state: dict[str, Stateful] = {
        "model": model,
        "optimizer": optimizer,
        "schedule": schedule,
        "stopping": stopping,
        "random": random,
    }
    journal = Journal(folder, state, key=key)
    weights = None
    if config.weighs_classes:
        weights = inverse_frequencies(train_graphs.y, model.num_classes)
    step = Step(model, optimizer, weights)
    stacked = stacked_fit([step])
    task = TASKS[model.task]
    selection_batches = list(selection_graphs.batches(EVALUATION_BATCH))

    for epoch in journal.epochs(config.epochs):
        if stopping.exhausted:
            break
        phase = model.phase
        model.begin_epoch(epoch / config.epochs)
        if model.phase != phase:
            _begin_anew(optimizer, schedule, config)
        drawn = train_graphs, config.batch_size, random.batches, config.balanced
        if stacked is None:
            loss = fit_epoch(step, shuffled_batches(*drawn))
        else:
            chunks = shuffled_chunks(*drawn)
            (loss,) = stacked.fit(Chunk.of(chunk, config.batch_size) for chunk in chunks)
        if not math.isfinite(loss):
            said = f"the loss is {loss}"
            raise diverged(said, epoch, model, [train_graphs], "training.learning_rate")
        probs = predict_proba(model, selection_batches)
        found = task.selection(probs, selection_graphs.y, config.balanced)
        rate = {"learning_rate": rates(optimizer)[0]}
        metrics = {"loss": loss} | found.metrics | rate | found.balanced
        schedule.step(found.score[0])
        if model.selectable:
            stopping.step(found.score, epoch)
        journal.record(**metrics)
        report(epoch, metrics)

    stopping.restore_best()  # Deviation D1: the paper reports the last epoch
    return journal, stopping


def _schedule(optimizer: Optimizer, config: TrainingConfig) -> Schedule:
    return plateau(
        optimizer, config.schedule_factor, config.schedule_patience, config.min_learning_rate
    )


def _begin_anew(optimizer: Optimizer, schedule: Schedule, config: TrainingConfig) -> None:
    """Take learning rate and schedule back to where they began; what was learnt stays."""
    for group in optimizer.param_groups:
        set_rate(group, config.learning_rate)
    schedule.load_state_dict(_schedule(optimizer, config).state_dict())


def inverse_frequencies(labels: Tensor, num_classes: int) -> Tensor:
    """Weight of every class so that all classes weigh the same in sum, 1 on average.

    >>> inverse_frequencies(torch.tensor([0, 0, 0, 1]), num_classes=2)
    tensor([0.6667, 2.0000])
    """
    counts = torch.bincount(labels, minlength=num_classes)
    return len(labels) / (num_classes * counts.clamp(min=1))
