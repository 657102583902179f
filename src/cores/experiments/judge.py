"""The judge: a fresh classifier that never met the policy says whether its subgraphs are honest.

It learns from randomly masked training graphs, always by the recipe below, and is then shown what
a policy kept. A model that is right where its judge guesses has a private code (docs/honesty.md).
On one machine, one judge serves every model of a dataset, split, conv and kind of removal; it is
kept in the user's cache folder.
"""

import hashlib
import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch.optim import Adam
from torch_geometric.data import Batch

from cores.config import Conv, NetworkConfig, PartsConfig, Removal, to_dict
from cores.data.dataset import Dataset
from cores.data.splits import FeatureScaler, split_graphs
from cores.data.store import GraphStore
from cores.errors import UserError
from cores.evaluation.metrics import accuracy
from cores.evaluation.predictions import EVALUATION_BATCH, Predictions, predict_proba
from cores.files import cache_folder, make_folder
from cores.graphs import Elements
from cores.masks import RECIPE, masked, smooth_masks
from cores.models.classifier import Classifier
from cores.training.schedule import Cosine
from cores.training.state import load_state, save_state
from cores.training.supervised import fit_epoch

NETWORK = NetworkConfig()
PARTS = PartsConfig()
"""The judge learns from the training and policy parts of the ``default`` preset, in any preset."""
EPOCHS, BATCH_SIZE, LEARNING_RATE, FINAL_RATE, WEIGHT_DECAY, SEED = 150, 32, 3e-3, 0.05, 1e-4, 7919
RANDOM_MASKS = 5
"""Random masks per graph behind ``judge_random_accuracy``."""


@dataclass(frozen=True)
class Judge:
    """A classifier with the scaler of its inputs."""

    classifier: Classifier
    scaler: FeatureScaler
    removal: Removal

    def figures(self, predictions: Predictions, graphs: GraphStore) -> dict[str, float]:
        """Its accuracy on the kept subgraphs, the whole graphs, and random subgraphs as small.

        ``graphs`` are not scaled yet.
        """
        graphs = replace(graphs, x=self.scaler(graphs.x))
        labels = graphs.y
        chosen = predict_proba(self.classifier, predictions.subgraphs(graphs))
        whole = predict_proba(self.classifier, graphs.batches(EVALUATION_BATCH))
        with torch.random.fork_rng():
            torch.manual_seed(SEED)
            random = [
                accuracy(predict_proba(self.classifier, self._random(predictions, graphs)), labels)
                for _ in range(RANDOM_MASKS)
            ]
        return {
            "judge_accuracy": accuracy(chosen, labels),
            "judge_full_accuracy": accuracy(whole, labels),
            "judge_random_accuracy": sum(random) / len(random),
        }

    def _random(self, predictions: Predictions, graphs: GraphStore) -> Iterator[Batch]:
        """Random subgraphs that keep as much of every graph as the model did."""
        ratio = predictions.kept_ratio(graphs, self.removal)
        for index in torch.arange(len(graphs)).split(EVALUATION_BATCH):
            elements = Elements.of(graphs.batch(index), self.removal)
            removed = smooth_masks(elements, ratio[index.to(ratio.device)])
            yield elements.subgraph(removed).batch


def judge_of(
    dataset: Dataset, split: int, conv: Conv, removal: Removal, device: torch.device
) -> Judge:
    """The judge of a dataset's split: from the cache, or trained now and kept there."""
    with torch.random.fork_rng():
        torch.manual_seed(SEED)
        classifier = Classifier(
            dataset.graphs.num_features,
            len(dataset.class_names),
            NETWORK,
            conv,
            dataset.graphs.num_edge_features,
        ).to(device)
        judge = Judge(classifier, FeatureScaler(dataset.graphs.num_features), removal)
        path = _cached(dataset, split, conv, removal, device)
        if not _restored(judge, path):
            _train(judge, dataset, split)
            _keep(judge, path)
    judge.scaler.to(device)
    return judge


def _cached(
    dataset: Dataset, split: int, conv: Conv, removal: Removal, device: torch.device
) -> Path:
    """Where a judge is kept: named by all that decides its weights."""
    recipe = {
        "data": dataset.fingerprint,
        "split": split,
        "conv": conv,
        "removal": removal,
        "device": device.type,
        "network": to_dict(NETWORK),
        "parts": to_dict(PARTS),
        "training": [EPOCHS, BATCH_SIZE, LEARNING_RATE, FINAL_RATE, WEIGHT_DECAY, SEED],
        "scaler": [dataset.continuous, dataset.clipped],
        "masks": RECIPE,
    }
    key = hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:16]
    return cache_folder() / "judges" / f"{Path(dataset.name).stem}-{removal}-{key}.safetensors"


def _restored(judge: Judge, path: Path) -> bool:
    """Whether a judge was found in the cache; a damaged one is trained anew."""
    if not path.exists():
        return False
    try:
        state = load_state(path)
        judge.classifier.load_state_dict(state["classifier"])
        judge.scaler.load_state_dict(state["scaler"])
    except (UserError, KeyError, RuntimeError, TypeError):
        return False
    return True


def _keep(judge: Judge, path: Path) -> None:
    """Into the cache; a run must not fail at its end because that cannot be written."""
    parts = {"classifier": judge.classifier, "scaler": judge.scaler}
    try:
        make_folder(path.parent)
        save_state(path, {name: part.state_dict() for name, part in parts.items()})
    except UserError as error:
        warnings.warn(f"the judge is not kept for the next run: {error}", stacklevel=2)


def _train(judge: Judge, dataset: Dataset, split: int) -> None:
    """Learn from random masks of the training graphs; there is no choice of weights to make."""
    parts = split_graphs(dataset.graphs.y, split, PARTS, dataset.class_names)
    index = torch.cat([parts.train, parts.policy]).sort().values
    graphs = dataset.graphs.subset(index)
    judge.scaler.fit(graphs.x, dataset.continuous, dataset.clipped)
    device = next(judge.classifier.parameters()).device
    graphs = replace(graphs, x=judge.scaler(graphs.x)).to(device)
    optimizer = Adam(
        judge.classifier.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY, fused=True
    )
    schedule = Cosine(optimizer, EPOCHS, FINAL_RATE)
    order = torch.Generator().manual_seed(SEED)
    for _ in range(EPOCHS):
        fit_epoch(
            judge.classifier, masked(graphs.batches(BATCH_SIZE, order), judge.removal), optimizer
        )
        schedule.step(0.0)
