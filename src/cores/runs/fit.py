"""A model trained on a dataset as its configuration asks for: what every run and estimator does."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from cores import ranks
from cores.config import RunConfig, TrainingConfig
from cores.config.models import preset_spec
from cores.config.spec import imported
from cores.data.dataset import Dataset
from cores.data.splits import Split, split_dataset
from cores.errors import UserError
from cores.evaluation.effects import effect_metrics
from cores.evaluation.explanations import ground_truth_metrics
from cores.evaluation.predictions import Predictions, predict, predict_full
from cores.graphs.masks import RECIPE
from cores.graphs.store import GraphStore
from cores.models.build import build_model
from cores.models.classifier import BlindClassifier, Classifier
from cores.models.committee import Committee
from cores.models.control import RandomSubgraph
from cores.models.encoder import NodeNorm
from cores.models.network import GraphModel
from cores.models.sparse import SparseClassifier
from cores.runs.trained import DataSchema, TrainedModel, calibrate
from cores.tasks import TASKS, Task
from cores.training import bilevel, supervised
from cores.training.balance import settled as settle_balance
from cores.training.bilevel import BilevelState
from cores.training.journal import Journal, SharedState
from cores.training.judge import Judge
from cores.training.learner import Learner
from cores.training.state import RandomState
from cores.training.supervised import Report, fit_head, fit_scaler, no_report
from cores.training.temperature import fit_temperature

READ_ROOTS = Classifier, SparseClassifier, RandomSubgraph
"""Models that classify a node from its neighbourhood, and never remove it."""


@dataclass(frozen=True)
class PreparedData:
    """The graphs of a run on their device, and who may look at which."""

    dataset: Dataset
    graphs: GraphStore
    split: Split

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        config: RunConfig,
        device: torch.device,
        selection: Tensor | None = None,
    ) -> "PreparedData":
        """Divide a dataset as the configuration asks for, unless the selection part is given."""
        if config.removal == "edge" and not int(dataset.graphs.num_edges.sum()):
            raise UserError(
                f"no graph of {dataset.name} has an edge to remove; remove nodes instead "
                '(model="cores-node")'
            )
        if dataset.graphs.rooted and not issubclass(config.spec.network_class(), READ_ROOTS):
            raise UserError(
                f"{config.model} classifies whole graphs, {dataset.name} has nodes to classify; "
                "take gnn, mlp, cores-node, cores-edge, cores-both or random"
            )
        TASKS[dataset.task].check_settings(config, dataset.name)
        split = split_dataset(dataset, config.split, config.parts, selection)
        graphs = dataset.graphs.placed(device)
        if config.removal not in (None, "node"):
            graphs = graphs.with_pairs()
        return cls(dataset, graphs, split)

    def part(self, name: str) -> GraphStore:
        """The graphs of a part."""
        return self.graphs.subset(getattr(self.split, name))

    def names(self, name: str) -> list[str]:
        """Names of the graphs of a part, as the data have them."""
        return [self.dataset.graph_name(at) for at in getattr(self.split, name).tolist()]


@dataclass(frozen=True)
class FittedModel:
    """A trained model, and how its training went."""

    trained: TrainedModel
    facts: dict[str, Any]
    """What metrics say of the training: epochs and seconds."""


def fit_model(
    config: RunConfig,
    data: PreparedData,
    *,
    folder: Path | None = None,
    report: Report = no_report,
    warm_ups: Path | None = None,
    begin: Callable[[DataSchema], None] = lambda schema: None,
) -> FittedModel:
    """Build a model, train it by Algorithm 1 if it has a policy, else supervised, and calibrate it.

    Args:
        config: Settings of the run.
        data: The graphs, divided.
        folder: Where to record the run, so that it can be resumed; None records nothing.
        report: Called after every epoch.
        warm_ups: A folder in which runs that differ in the reward alone share their warm-ups.
        begin: Called with the names of the data once the model is built, before it is trained.
    """
    device = data.graphs.device
    random = RandomState(config.seed, device)
    schema = DataSchema.of(data.dataset)
    model = build_model(config, schema.dims).to(device)
    begin(schema)
    if ranks.current() is not None:
        check_shareable(model, config)
    index = training_graphs(config, data.split)
    settled = replace(config, training=training_settings(config, data))
    fit_scaler(model, data.dataset.graphs.subset(index), data.dataset)
    for classifier in classifiers_of(model):
        fit_head(classifier, data.dataset.graphs.y[index], config.training.loss)
    key = "" if folder is None else f"{config.key}-{data.dataset.fingerprint}"
    train_preset = imported(preset_spec(config.preset).train)
    if not isinstance(model, SparseClassifier):
        train, selection = data.graphs.subset(index), data.part("selection")
        journal, stopping = supervised.train(
            model, train, selection, settled.training, random, folder, report, key
        )
    elif train_preset is not None:
        if ranks.current() is not None:
            raise UserError(f"the preset {config.preset} trains in one process, without torchrun")
        journal, stopping = train_preset(model, settled, data, random, folder, report, key)
    else:
        state = bilevel_state(model, settled, data, random)
        journal = Journal(folder, state.parts, _shared_warm_up(config, data, warm_ups), key)
        bilevel.train(state, journal, report)
        fit_temperature(model, data.part("selection"), settled.training.balanced)
        model.effects = bilevel.fit_effect_network(state, data.dataset.dims, report)
        stopping = state.stopping
    seconds = journal.seconds  # what follows is not training
    calibration = calibrate(model, data.part("calibration"), data.names("calibration"))
    trained = TrainedModel(config, schema, model, calibration, data.split.test)
    facts = {
        "epochs": journal.epoch,
        "best_epoch": stopping.best_epoch,
        "seconds": round(seconds, 3),
    }
    return FittedModel(trained, facts)


def check_shareable(model: GraphModel, config: RunConfig) -> None:
    """Refuse a model that several processes cannot train together.

    A loss must be a mean over graphs, and what is drawn or averaged over a batch must be so over
    those of all processes.
    """
    known = Classifier, BlindClassifier, SparseClassifier
    if type(model) not in known or any(
        isinstance(layer, _BatchNorm | _DropoutNd) and not isinstance(layer, NodeNorm)
        for layer in model.modules()
    ):
        raise UserError(
            f"{config.model} with {config.conv} learns from whole batches; train it in one "
            "process, without torchrun"
        )


def bilevel_state(
    model: SparseClassifier, config: RunConfig, data: PreparedData, random: RandomState
) -> BilevelState:
    """Build the state with which Algorithm 1 begins."""
    members = _members(model, config, data, random)
    return BilevelState(model, members, data.part("selection"), config, random)


def training_settings(config: RunConfig, data: PreparedData) -> TrainingConfig:
    """The settings of training, with "auto" settled by the classes of the training graphs."""
    index = training_graphs(config, data.split)
    y, task = data.dataset.graphs.y[index], data.dataset.task
    return settle_balance(config.training, y, task)  # Deviation D15


def _shared_warm_up(
    config: RunConfig, data: PreparedData, folder: Path | None
) -> SharedState | None:
    if folder is None or config.warm_up_key is None:
        return None
    device = data.graphs.device.type
    name = f"{config.warm_up_key}-{data.dataset.fingerprint}-{device}-masks{RECIPE}"
    return SharedState(folder / f"{name}.safetensors", config.warm_up_epochs)


def training_graphs(config: RunConfig, split: Split) -> torch.Tensor:
    """Graphs the returned classifier is trained on.

    The policy part is among them for a model without a policy, unless it selects by that part, and
    for one whose policy is rewarded by a committee.
    """
    own_loop = config.removal is not None and preset_spec(config.preset).train is not None
    if own_loop or split.selection is split.policy:
        return split.train
    return torch.cat([split.train, split.policy]).sort().values


def _members(
    model: SparseClassifier, config: RunConfig, data: PreparedData, random: RandomState
) -> list[Learner]:
    """Divide the graphs among the members of the committee.

    The training and policy parts are divided into as many folds as there are members; each is
    trained on all folds but its own and rewards on that one, so no classifier ever rewards on a
    graph it was trained on. A single one rewards on the policy part.
    """
    graphs, split = data.graphs, data.split
    assert isinstance(model.classifier, Committee)
    index = training_graphs(config, data.split)
    dealt = index[torch.randperm(len(index), generator=random.batches)]
    order = TASKS[data.dataset.task].order(graphs.y.cpu()[dealt])
    dealt = dealt[order.argsort(stable=True)]  # class by class: each fold has some
    number = len(model.classifier.members)
    folds = [dealt[first::number] for first in range(number)] if number > 1 else [split.policy]
    return [
        Learner(member, graphs.view(index[~torch.isin(index, fold)]), graphs.view(fold), config)
        for member, fold in zip(model.classifier.members, folds, strict=True)
    ]


def classifiers_of(model: GraphModel) -> list[GraphModel]:
    """Return the classifiers that a model consists of."""
    classifier = model.classifier if isinstance(model, SparseClassifier) else model
    return list(classifier.members) if isinstance(classifier, Committee) else [classifier]


def measure(
    trained: TrainedModel,
    graphs: GraphStore,
    alpha: float,
    judge: Judge | None = None,
    names: Sequence[str] = (),
    predictions: Predictions | None = None,
) -> dict[str, Any]:
    """The metrics of a model on labelled graphs.

    Args:
        trained: The model.
        graphs: What to measure on.
        alpha: Error rate of the prediction sets.
        judge: Judges its subgraphs.
        names: What the data call the graphs.
        predictions: The model's for these graphs, where they are known.
    """
    model = trained.model
    if predictions is None:
        predictions = predict(model, graphs, names)
    probs, labels, task = predictions.probs, graphs.y, TASKS[model.task]
    sets, pieces = trained.config.sets, None
    if trained.config.spec.removes is not None and predictions.pieces is not None:
        pieces = float(predictions.pieces.double().mean())
    metrics = {
        **{name: quality(probs, labels) for name, quality in task.quality.items()},
        "node_ratio": float(predictions.node_ratio.mean()),
        "edge_ratio": float(predictions.edge_ratio.mean()),
        "pieces": pieces,
        **task.compared(probs, predict_full(model, graphs, names), labels),
        **(_unjudged(task) if judge is None else judge.metrics(predictions, graphs)),
        **trained.calibration.metrics(probs, labels, alpha, sets),
        "alpha": alpha,
        **({} if trained.tolerance is None else {"tolerance": trained.tolerance}),
        **_part_metrics(trained, predictions),
        **ground_truth_metrics(predictions, graphs),
        **effect_metrics(model, graphs),
        "test_graphs": len(labels),
    }
    names_of = trained.schema.class_names
    return {
        name: dict(zip(names_of, value, strict=True)) if isinstance(value, list) else value
        for name, value in metrics.items()
    }


def _part_metrics(trained: TrainedModel, predictions: Predictions) -> dict[str, Any]:
    """What is measured of the parts that are shown; nothing where nobody asked for them."""
    part, shown = predictions.part, trained.config.explanation
    if part is None:
        return {}
    return {
        "sufficiency": shown.sufficiency,
        "weak": float(part.weak.double().mean()),
        "minimal": float(part.minimal.double().mean()),
        "questions": float(part.questions.double().mean()),
        "committee_std": float(part.std.double().mean()),
        "members": trained.config.committee.members,
    }


def measure_for_preset(
    trained: TrainedModel, graphs: GraphStore, judge: Judge | None, names: Sequence[str] = ()
) -> dict[str, Any]:
    """Measure a model on test graphs as its preset does it; by :func:`measure`, if it is silent."""
    own = imported(preset_spec(trained.config.preset).measure)
    if own is None:
        return measure(trained, graphs, trained.config.alpha, judge, names)
    return dict(own(trained, graphs, judge, names))


def _unjudged(task: Task) -> dict[str, None]:
    """For a model that removes nothing, and on graphs that no judge was trained for."""
    seen = ("", "full_", "random_")
    return {f"judge_{each}{name}": None for name in task.judged for each in seen}
