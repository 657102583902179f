"""The judge: an independent classifier that shows whether a model's subgraphs are honest.

It is trained on randomly masked training graphs, always in the same way, and never sees the policy;
then it classifies the subgraphs that the policy kept. A model that is right where its judge is at
chance has a private code (docs/honesty.md). One judge serves every model of a dataset, split, conv
and kind of removal; it is kept in the user's cache folder.
"""

import hashlib
import json
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Batch

from cores import ranks
from cores.config import NetworkConfig, PartsConfig, Removal, RunConfig, to_dict
from cores.data.dataset import Dataset
from cores.data.splits import Split, split_dataset
from cores.errors import UserError
from cores.evaluation.predictions import EVALUATION_BATCH, Predictions, predict_proba
from cores.files import cache_folder, make_folder
from cores.graphs.masks import RECIPE, masked, masked_batches, smooth_masks
from cores.graphs.stacked import Chunk
from cores.graphs.store import GraphStore
from cores.graphs.subgraphs import Elements
from cores.models.classifier import Classifier
from cores.tasks import TASKS
from cores.training.optimizer import adam
from cores.training.schedule import Cosine
from cores.training.stacked import stacked_fit
from cores.training.state import check_fits, forked_rng, load_state, save_state
from cores.training.step import Step
from cores.training.supervised import Report, fit_epoch, fit_head, fit_scaler, no_report

PARTS = PartsConfig()
"""The shares by which the judge of a run divides the graphs, whatever the run's preset."""
EPOCHS, BATCH_SIZE, LEARNING_RATE, FINAL_RATE, WEIGHT_DECAY, SEED = 150, 32, 3e-3, 0.05, 1e-4, 7919
MANY_GRAPHS, FEWEST_EPOCHS = 2000, 20
"""Above so many training graphs its batches are four times as large, and it sees as many graphs in
all as at this number."""
RANDOM_MASKS = 5
"""Random masks per graph behind ``judge_random_accuracy``."""


@dataclass(frozen=True)
class Judge:
    """An independent classifier of subgraphs."""

    classifier: Classifier
    removal: Removal

    def metrics(self, predictions: Predictions, graphs: GraphStore) -> dict[str, float]:
        """Score it on the kept subgraphs, the full graphs, and random subgraphs of the same size.

        As accuracies, and as balanced ones: with a rare class, the former say little. In a
        regression, as mean errors.
        """
        labels = graphs.y
        chosen = predict_proba(self.classifier, predictions.subgraphs(graphs))
        full = predict_proba(self.classifier, graphs.batches(EVALUATION_BATCH))
        with forked_rng(labels.device):
            torch.manual_seed(SEED)
            random = [
                predict_proba(self.classifier, self._random(predictions, graphs))
                for _ in range(RANDOM_MASKS)
            ]
        return {
            f"judge_{seen}{name}": sum(measure(probs, labels) for probs in drawn) / len(drawn)
            for name, measure in TASKS[self.classifier.task].judged.items()
            for seen, drawn in (("", [chosen]), ("full_", [full]), ("random_", random))
        }

    def _random(self, predictions: Predictions, graphs: GraphStore) -> Iterator[Batch]:
        """Random subgraphs that keep as much of every graph as the model did."""
        ratio = predictions.kept_ratio(graphs, self.removal)
        for index in torch.arange(len(graphs)).split(EVALUATION_BATCH):
            elements = Elements.of(graphs.batch(index), self.removal)
            removed = smooth_masks(elements, ratio[index.to(ratio.device)])
            yield elements.subgraph(removed).batch


def judge_of(
    dataset: Dataset, config: RunConfig, device: torch.device, report: Report = no_report
) -> Judge:
    """The judge of a run that removes something: from the cache, or trained now and kept there."""
    try:
        cache = _cached(dataset, config, device)
    except UserError as error:
        _not_kept(error)
        cache = None
    parts = judge_parts(dataset, config)
    return train_judge(dataset, parts, config, device, report, cache)


def is_kept(dataset: Dataset, config: RunConfig, device: torch.device) -> bool:
    """Return whether the judge of a run is in the cache, and can be read there."""
    try:
        return os.access(_cached(dataset, config, device), os.R_OK)
    except UserError:  # there is no cache
        return False


def judge_parts(dataset: Dataset, config: RunConfig) -> Split:
    """The parts of the graphs that a run's judge knows.

    Its shares are its own, but the graphs are divided in the same way, so that its test part is
    the run's.
    """
    parts = replace(PARTS, kind=config.parts.kind, folds=config.parts.folds)
    return split_dataset(dataset, config.split, parts)


def train_judge(
    dataset: Dataset,
    parts: Split,
    config: RunConfig,
    device: torch.device,
    report: Report = no_report,
    cache: Path | None = None,
) -> Judge:
    """Train a judge on the training and policy parts, or take it from a file that keeps it."""
    with forked_rng(device):
        torch.manual_seed(SEED)
        classifier = Classifier(dataset.dims, _network(config), config.conv).to(device)
        judge = Judge(classifier, _removal(config))
        with ranks.copied(_readable(cache)) as kept:
            restored = kept is not None and _restored(judge, kept)
        if not restored:
            _train(judge, dataset, _learnt(parts), report)
            if cache is not None and ranks.leads():
                _keep(judge, cache)
    return judge


def _removal(config: RunConfig) -> Removal:
    if config.spec.removes is None:
        raise ValueError(f"{config.model} removes nothing to judge")
    return config.spec.removes


def _network(config: RunConfig) -> NetworkConfig:
    """Return the judge's network settings; it reads edge features where the judged model does."""
    return NetworkConfig(edge_features=config.network.edge_features)


def _learnt(parts: Split) -> Tensor:
    """The graphs that a judge learns from."""
    return torch.cat([parts.train, parts.policy]).sort().values


def _cached(dataset: Dataset, config: RunConfig, device: torch.device) -> Path:
    """Path of a cached judge, named by everything that its weights depend on."""
    removal = _removal(config)
    recipe = {
        "data": dataset.fingerprint,
        "graphs": _learnt(judge_parts(dataset, config)).tolist(),
        "conv": config.conv,
        "removal": removal,
        "device": device.type,
        "network": to_dict(_network(config)),
        "training": [EPOCHS, BATCH_SIZE, LEARNING_RATE, FINAL_RATE, WEIGHT_DECAY, SEED],
        "many": [MANY_GRAPHS, FEWEST_EPOCHS],
        "scaler": [dataset.continuous, dataset.clipped],
        "masks": RECIPE,
        "layout": 3,  # of the file
    }
    key = hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:16]
    return cache_folder() / "judges" / f"{Path(dataset.name).stem}-{removal}-{key}.safetensors"


def _readable(path: Path | None) -> Path | None:
    """A file that can be read, None otherwise."""
    try:
        if path is not None:
            path.open("rb").close()
    except OSError:
        return None
    return path


def _restored(judge: Judge, path: Path) -> bool:
    """Load a judge from the cache if possible; one that cannot be read is trained again."""
    try:
        weights = load_state(path)["classifier"]
        check_fits(weights, judge.classifier.state_dict())
        judge.classifier.load_state_dict(weights)
    except (UserError, KeyError, ValueError):
        return False
    return True


def _keep(judge: Judge, path: Path) -> None:
    """Into the cache, if it can be written."""
    try:
        make_folder(path.parent)
        save_state(path, {"classifier": judge.classifier.state_dict()})
    except UserError as error:
        _not_kept(error)


def _not_kept(error: UserError) -> None:
    """A run must not fail at its end because of a cache."""
    warnings.warn(f"the judge is not kept for the next run: {error}", stacklevel=3)


def epochs_for(num_graphs: int) -> int:
    """Number of epochs that a judge is trained for.

    >>> epochs_for(1000), epochs_for(10_000)
    (150, 30)
    """
    if num_graphs <= MANY_GRAPHS:
        return EPOCHS
    return max(FEWEST_EPOCHS, EPOCHS * MANY_GRAPHS // num_graphs)


def _train(judge: Judge, dataset: Dataset, index: Tensor, report: Report) -> None:
    """Train on random masks of the given graphs; the last weights are kept."""
    classifier = judge.classifier
    device = next(classifier.parameters()).device
    graphs = dataset.graphs.subset(index).placed(device)
    if judge.removal != "node":
        graphs = graphs.with_pairs()
    fit_scaler(classifier, graphs, dataset)
    fit_head(classifier, graphs.y, "squared")
    optimizer = adam(classifier.parameters(), LEARNING_RATE, WEIGHT_DECAY)
    step = Step(classifier, optimizer)
    stacked = stacked_fit([step])
    size = 4 * BATCH_SIZE if len(graphs) > MANY_GRAPHS else BATCH_SIZE
    epochs = epochs_for(len(graphs))
    schedule = Cosine(optimizer, epochs, FINAL_RATE)
    order = torch.Generator().manual_seed(SEED)
    for epoch in range(1, epochs + 1):
        if stacked is None:
            loss = fit_epoch(step, masked_batches(graphs, size, judge.removal, order))
        else:
            chunks = masked(graphs.chunks(size, order), judge.removal)
            (loss,) = stacked.fit(Chunk.of(chunk, size) for chunk in chunks)
        schedule.step(0.0)
        report(EPOCHS * epoch // epochs, {"loss": loss})  # of the usual number
