"""Whether runs that were trained apart keep the same of the same graphs."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from cores.config import Removal
from cores.data.dataset import Dataset
from cores.data.splits import split_dataset
from cores.errors import UserError
from cores.evaluation.faithfulness import agreement_metrics
from cores.evaluation.predictions import Predictions, predict
from cores.graphs.store import GraphStore
from cores.runs.trained import TrainedModel


def load_others(run: Path, trained: TrainedModel, others: Sequence[Path]) -> list[TrainedModel]:
    """The models of other runs on the same data, which remove the same; the run itself is no other.

    Args:
        run: The folder that they are compared with.
        trained: Its model.
        others: Their folders; a pattern of the shell may name the run among them.
    """
    removal = _removal(trained, run)
    found = []
    for folder in dict.fromkeys(other.resolve() for other in others):
        if folder == run.resolve():
            continue
        other = TrainedModel.load(folder)
        if other.schema != trained.schema:
            raise UserError(f"the run in {folder} was trained on other data than that in {run}")
        if _removal(other, folder) != removal:
            raise UserError(
                f"{folder} holds a {other.config.model}, {run} a {trained.config.model}; runs are "
                "compared that remove the same"
            )
        found.append(other)
    if not found:
        raise UserError(f"`other` names no run but {run} itself")
    return found


def held_out_part(trained: TrainedModel, dataset: Dataset) -> Tensor:
    """Positions of the graphs that a run has not seen; of one before version 0.3, by its split."""
    if trained.test is not None:
        return trained.test
    return split_dataset(dataset, trained.config.split, trained.config.parts).test


def agreement(
    trained: TrainedModel,
    predictions: Predictions,
    others: Sequence[TrainedModel],
    graphs: GraphStore,
    device: torch.device,
) -> dict[str, float]:
    """The overlap of what a model and others keep of graphs, and of random parts as large.

    Args:
        trained: The model.
        predictions: Its own, from its policy's mode where it has one.
        others: As :func:`load_others` gives them.
        graphs: On the device.
        device: Where to compute.
    """
    found = [predictions]
    found += [predict(other.model.to(device), graphs) for other in others]
    return agreement_metrics(found, graphs, _removal(trained))


def _removal(trained: TrainedModel, folder: Path | None = None) -> Removal:
    removes = trained.config.spec.removes
    if removes is None:
        raise UserError(f"a {trained.config.model} removes nothing ({folder}): nothing to compare")
    return removes
