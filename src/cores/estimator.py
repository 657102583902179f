"""``Cores``: fit graphs, predict from the part that the model keeps, and show that part."""

import inspect
import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Batch, Data

from cores.config import RunConfig, merged
from cores.config.models import MODELS
from cores.config.names import with_current_names
from cores.config.presets import own_data_settings
from cores.config.run import AskedTask
from cores.config.spec import TaskName
from cores.data.dataset import Dataset, checked, numbered
from cores.data.datasets import load_dataset
from cores.data.inputs.columns import ColumnNames
from cores.data.inputs.labelled import label_numbers
from cores.data.lists import (
    are_smiles,
    from_graphs,
    given_labels,
    listed,
    plain_labels,
    read_graphs,
)
from cores.data.nodes import NodeGraph, from_nodes, given_parts, node_labels
from cores.data.raw import Parsed
from cores.data.targets import as_targets, target_problem
from cores.errors import UserError
from cores.evaluation.metrics import label_accuracy, r2
from cores.evaluation.predictions import Predictions, predict
from cores.explain.explanation import Explanation, explanations, labels_in_sets
from cores.files import locked, make_folder, write_json
from cores.graphs.store import GraphStore
from cores.models.classifier import Classifier
from cores.models.network import GraphModel
from cores.models.policy import Policy
from cores.models.sparse import SparseClassifier
from cores.runs.card import (
    DataFacts,
    measured_again,
    model_card,
    read_card,
    without_data,
    write_card,
)
from cores.runs.device import choose_device, tuned_cpu
from cores.runs.fit import PreparedData, fit_model, measure
from cores.runs.folder import CONFIG, METRICS, write_identity, write_promise
from cores.runs.inputs import EncodedGraphs, labelled_graphs, model_rows
from cores.runs.progress import Reports, phases_of, training_progress
from cores.runs.promise import Promise, tuned_model
from cores.runs.rows import read_metrics
from cores.runs.trained import DataSchema, TrainedModel
from cores.runs.tune import with_promise
from cores.runs.verdict import sentences
from cores.training.judge import train_judge
from cores.training.state import forked_rng

Graphs = Any
"""PyG ``Data``, networkx graphs or SMILES strings in a list, loader or dataset; a
:class:`cores.Dataset`; or the path of a file, as ``cores train`` reads it."""
Labels = Any
"""A label per graph: a list, an array or a tensor."""
Whole = int | np.integer[Any]
Real = float | np.floating[Any]
Setting = Whole | Real
"""Of a dial: from 0, which keeps least, to 1, in steps of 0.05."""


class Cores:
    """A graph classifier that decides from a small subgraph it chose itself, and shows it.

    It follows scikit-learn: the constructor stores its arguments, ``fit`` learns and returns the
    estimator, and what it learns has a trailing underscore.

    Example::

        model = Cores(removal="node").fit(graphs)          # PyG graphs with labels in .y
        model.predict(new_graphs)
        model.predict_set(new_graphs, alpha=0.1)           # holds the true label 9 times out of 10
        for explanation in model.explain(new_graphs):
            explanation.kept_nodes, explanation.prediction

    Args:
        removal: What the policy removes: ``"node"``, ``"edge"`` or ``"both"``. None trains the
            plain network, which sees full graphs.
        conv: Message-passing layer: ``"gin"``, ``"gcn"``, ``"gat"`` or a registered one.
        epochs: Length of the training; None chooses it by the number of graphs.
        seed: Of the weights, the order of batches and the division of the graphs. On a CPU, the
            same seed gives the same numbers.
        device: ``"cpu"``, ``"cuda"``, or ``"auto"``, which takes a GPU where there is one.
        progress: Whether to show the phases of the training on standard error.
        desired_ratio: d, the share to keep at which the sparsity reward is nearly full.
        lam: Lambda, the weight of accuracy against sparsity in the reward.
        judge: Whether to train an independent classifier that checks the kept subgraphs; it takes
            about as long as the classifier itself.
        settings: Any other setting, nested as in a settings file, e.g.
            ``{"network": {"hidden_dim": 128}}``, or ``{"model": "gsat"}`` for another model.
        max_loss: With a dial (``settings={"reward": {"dial": True}}``): the share of every class
            that may be right on the full graph and wrong on the kept part. It is promised, as by
            ``tune``; where the calibration graphs are too few, ``fit`` warns and the dial stands
            where it stands without this argument: where it seemed best in training, without a
            promise.
        task: ``"classification"``, ``"regression"`` for numbers, ``"multilabel"`` for several
            labels per graph, or ``"auto"``, which takes more than 20 different labels that are not
            whole for numbers.

    Attributes:
        classes_: The labels, as they were given; numbers have none. Where graphs have several
            labels, a list with the two values of each.
        label_names_: What each of several labels is called.
        metrics_: What was measured on the test part that ``fit`` sets aside, and what that says, in
            sentences (``"verdicts"``).
        network_: The trained PyTorch module; it takes PyG graphs with unscaled features.
        n_features_in_: Columns of the node features.
    """

    _estimator_type = "classifier"
    _card: str | None

    def __init__(
        self,
        removal: str | None = "node",
        conv: str = "gin",
        epochs: Whole | None = None,
        seed: Whole = 0,
        device: str = "auto",
        progress: bool = True,
        desired_ratio: Real | None = None,
        lam: Real | None = None,
        judge: bool = True,
        settings: Mapping[str, Any] | None = None,
        max_loss: Real | None = None,
        task: str = "auto",
    ) -> None:
        self.removal = removal
        self.conv = conv
        self.epochs = epochs
        self.seed = seed
        self.device = device
        self.progress = progress
        self.desired_ratio = desired_ratio
        self.lam = lam
        self.judge = judge
        self.settings = settings
        self.max_loss = max_loss
        self.task = task

    def fit(
        self,
        graphs: Graphs,
        y: Labels = None,
        validation: Graphs | None = None,
    ) -> "Cores":
        """Train policy and classifier, calibrate them, and measure them on a part set aside.

        The graphs are divided into parts for training, calibration and test, and for selecting
        weights unless ``validation`` is given. Nothing is written to disk.

        Args:
            graphs: PyG ``Data``, networkx graphs, SMILES strings, a dataset, or a path. A single
                ``Data`` is one graph whose nodes are classified; its ``train_mask``, ``val_mask``
                and ``test_mask`` divide them where they are there.
            y: A label per graph, or per node; if not given, each graph's own. For several labels a
                row of values per graph, NaN or None where one is not known.
            validation: Labelled graphs, or graphs and their labels, by which weights are selected.
        """
        if isinstance(graphs, str | Path):
            reach = self._config(1).network.reach
            graphs = load_dataset(graphs, task=self._asked_task, reach=reach)
            if graphs.unusable is not None and graphs.unusable.count:
                count = graphs.unusable.count
                message = f"{count} rows could not be used: {graphs.unusable}"
                warnings.warn(message, stacklevel=2)
        if _is_node_graph(graphs):
            if validation is not None:
                raise UserError("`val_mask` names the nodes of validation; leave `validation` out")
            reach = self._config(1).network.reach
            graphs, y = from_nodes(graphs, y, reach=reach, task=self._asked_task), None
        dataset, selection = _with_validation(graphs, y, validation, self._asked_task)
        if _is_one_way(dataset.graphs):
            warnings.warn(
                "every edge has one direction, and messages go that way only; for undirected "
                "graphs give both (torch_geometric.utils.to_undirected)",
                stacklevel=2,
            )
        config = self._config(len(dataset))
        device = choose_device(self.device)
        data = PreparedData.of(dataset, config, device, selection)
        shown = training_progress(config.model, phases_of(config, self.judge, len(dataset)))
        with (
            tuned_cpu(),
            forked_rng(device),  # the user's random numbers are not ours to move
            shown if self.progress else nullcontext(Reports()) as reports,
        ):
            fitted = fit_model(config, data, report=reports.training)
            judge = None
            if self.judge and config.spec.removes is not None:
                judge = train_judge(dataset, data.split, config, device, reports.judge)
            metrics = measure(fitted.trained, data.part("test"), config.alpha, judge)
        metrics |= {
            "epochs": fitted.epochs,
            "best_epoch": fitted.best_epoch,
            "seconds": round(fitted.seconds, 3),
            **fitted.promise,
        }
        if "no_promise" in metrics:
            warnings.warn(f"no promise: {metrics['no_promise']}", stacklevel=2)
        counts = fitted.trained.calibration.class_counts
        self.metrics_ = metrics | {"verdicts": sentences(metrics, config, counts)}
        self._card = model_card(config, self.metrics_, DataFacts.of(data))
        return self._take(fitted.trained)

    def tune(
        self,
        max_loss: Real,
        confidence: Real | None = None,
        loss: str = "excess",
        per_class: bool = True,
    ) -> "Cores":
        """Set the dial where least is kept and a promise holds, by half of the calibration part.

        What is promised is in ``metrics_["promise"]``; the other metrics stay those of before, and
        say so. The other half of the calibration part calibrates prediction sets from then on.

        Args:
            max_loss: The largest loss, a share of the graphs.
            confidence: Promise it of this very model, with this probability; None: on average over
                calibration parts.
            loss: ``"excess"``, right on the full graph and wrong on the kept part;
                ``"disagreement"``, another class than on the full graph; or ``"accuracy"``.
            per_class: Whether it is promised for every class.
        """
        shares = _python_number(max_loss), _python_number(confidence)
        promise = Promise(shares[0], loss, shares[1], per_class)
        tuned, found = tuned_model(self._trained, promise)
        self.metrics_ = with_promise(tuned, self.metrics_, found)
        self._card = measured_again(self._card, tuned.config, self.metrics_)
        return self._take(tuned)

    def predict(self, graphs: Graphs, lam: Setting | None = None) -> NDArray[Any]:
        """The predicted label of every graph, or the number; of several labels, [graphs, labels].

        Args:
            graphs: The graphs to predict.
            lam: Setting of a model with a dial, from 0, which keeps least, to 1, in steps of 0.05;
                None takes the one that was chosen when it was trained.
        """
        if self._trained.task == "regression":
            return _predictions(self._trained.at(lam), graphs)[1].probs[:, 0].numpy()
        probs = self.predict_proba(graphs, lam)
        if self._trained.task == "multilabel":
            return _values((probs > 0.5).astype(int), self._labels)
        return self.classes_[probs.argmax(axis=1)]

    def predict_proba(self, graphs: Graphs, lam: Setting | None = None) -> NDArray[np.float32]:
        """Probability of every class, in the order of ``classes_``; [graphs, classes].

        Where graphs have several labels, that each has the second of its values; [graphs, labels].
        """
        self._trained.need_sets("predict_proba")
        return _predictions(self._trained.at(lam), graphs)[1].probs.numpy()

    def predict_set(
        self,
        graphs: Graphs,
        alpha: float = 0.1,
        score: str | None = None,
        per_class: bool | None = None,
        lam: Setting | None = None,
    ) -> list[list[Any]]:
        """A set of labels per graph that misses the true one at most a share ``alpha`` of the time.

        The promise holds on average over draws of calibration and new graphs. A set may be empty,
        or hold every label where there were too few calibration graphs for ``alpha``. Where graphs
        have several labels, each has a set of its values, and the promise holds for each label.

        Args:
            graphs: The graphs to predict.
            alpha: Error rate.
            score: Conformal score: ``"lac"``, ``"aps"``, ``"raps"`` or ``"randomised-aps"``.
            per_class: Whether every class is covered as often.
            lam: Setting of a model with a dial; the promise holds at every one.
        """
        trained = self._trained.at(lam)
        trained.need_sets("predict_set (numbers have predict_interval)")
        _, predictions = _predictions(trained, graphs)
        sets = _sets(trained, predictions, alpha, score, per_class)
        if sets is None:
            raise UserError(_UNCALIBRATED)
        if trained.task == "multilabel":
            return [labels_in_sets(self._labels, held) for held in sets]
        return [
            [label for label, inside in zip(self._labels, row, strict=True) if inside]
            for row in sets.tolist()
        ]

    def predict_interval(
        self, graphs: Graphs, alpha: float = 0.1, lam: Setting | None = None
    ) -> NDArray[np.float32]:
        """An interval per graph that misses the true number at most a share ``alpha`` of the time.

        The promise is that of :meth:`predict_set`. Where there were too few calibration graphs for
        ``alpha``, the intervals have no ends.

        Args:
            graphs: The graphs to predict.
            alpha: Error rate.
            lam: Setting of a model with a dial.

        Returns:
            Lower and upper ends; [graphs, 2].
        """
        trained = self._trained.at(lam)
        if trained.task != "regression":
            raise UserError("predict_interval is for numbers; classes have predict_set")
        _, predictions = _predictions(trained, graphs)
        intervals = _sets(trained, predictions, alpha, None, None)
        if intervals is None:
            raise UserError(_UNCALIBRATED)
        return intervals.numpy()

    def explain(
        self, graphs: Graphs, alpha: float = 0.1, lam: Setting | None = None
    ) -> list[Explanation]:
        """What the model kept of every graph, as PyG explanations, with prediction and set."""
        trained = self._trained.at(lam)
        store, predictions = _predictions(trained, graphs)
        sets = _sets(trained, predictions, alpha, None, None)
        return list(explanations(store, predictions, self._labels, sets))

    def score(self, graphs: Graphs, y: Labels = None, lam: Setting | None = None) -> float:
        """Accuracy on labelled graphs; where numbers are predicted, R2.

        Of several labels, the share of the known values that is predicted. Of a graph whose nodes
        are classified, those of its ``test_mask`` count, where it has one.
        """
        if _is_node_graph(graphs) and self._trained.schema.encoding.reach is not None:
            return self._score_nodes(graphs, y, lam)
        if isinstance(graphs, str | Path):
            graphs = labelled_graphs(str(graphs), self._trained.schema, ColumnNames())
        elif not isinstance(graphs, Dataset):
            graphs = listed(graphs)  # they are read twice
        labels = plain_labels(graphs) if y is None else given_labels(y)
        if self._trained.task == "multilabel":
            names = self._trained.schema.class_names
            probs = torch.from_numpy(self.predict_proba(graphs, lam))
            if len(labels) != len(probs):
                raise UserError(f"`y` has {len(labels)} rows for {len(probs)} graphs")
            return label_accuracy(probs, label_numbers(labels, names, self._labels, "`y`"))
        predicted = self.predict(graphs, lam).tolist()
        if len(labels) != len(predicted):
            raise UserError(f"`y` has {len(labels)} labels for {len(predicted)} graphs")
        if self._trained.task == "regression":
            for number, label in enumerate(labels):
                if (problem := target_problem(label)) is not None:
                    raise UserError(f"graph {number} {problem}")
            found = r2(torch.tensor(predicted)[:, None], as_targets(labels))
            return float("nan") if found is None else found
        for label in labels:
            if label not in self._labels:
                known = ", ".join(map(repr, self._labels))
                raise UserError(f"`y` has the label {label!r}, the model knows {known}")
        return float(np.mean([a == b for a, b in zip(predicted, labels, strict=True)]))

    def _score_nodes(self, graph: Data, y: Labels, lam: Setting | None) -> float:
        labels = node_labels(NodeGraph(graph), y)
        parts = given_parts(graph, len(labels))
        chosen = [
            node
            for node, label in enumerate(labels)
            if label is not None and (not parts or parts[node] == "test")
        ]
        if not chosen:
            raise UserError("no node has a label; set y")
        predicted = self.predict(graph, lam)
        return float(np.mean([predicted[node] == labels[node] for node in chosen]))

    def save(self, folder: str | Path) -> None:
        """Write the model into a new folder, which ``Cores.load`` reads, with a model card."""
        trained = self._trained
        out = Path(folder)
        if out.exists() and not out.is_dir():
            raise UserError(f"{out} is a file; choose another folder")
        if out.exists() and any(out.iterdir()):
            raise UserError(f"{out} is not empty; choose another folder")
        make_folder(out)
        with locked(out):
            device = next(trained.model.parameters()).device
            write_identity(out, trained.config, asdict(trained.schema), device)
            trained.save(out)
            config = trained.config
            identity = {
                "dataset": config.dataset,
                "model": config.model,
                "conv": config.conv,
                "preset": config.preset,
                "split": config.split,
                "seed": config.seed,
            }
            write_card(out, without_data(self._card or model_card(config, self.metrics_, None)))
            write_promise(out, self.metrics_.get("promise"))
            write_json(out / METRICS, identity | self.metrics_)

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto") -> "Cores":
        """The model of a folder that ``save`` or ``cores train`` wrote."""
        out = Path(folder)
        if not (out / CONFIG).exists():
            raise UserError(f"{out} holds no model: {CONFIG} is missing")
        trained = TrainedModel.load(out)
        config = trained.config
        model = cls(
            removal=config.removal,
            conv=config.conv,
            epochs=config.training.epochs,
            seed=config.seed,
            device=device,
            settings=_settings_of(config),
            task=config.task,
        )
        model.metrics_ = read_metrics(out / METRICS) if (out / METRICS).exists() else {}
        model._card = read_card(out)  # what it was trained on, nobody else knows
        trained.model.to(choose_device(device))
        return model._take(trained)

    @property
    def classifier_(self) -> Classifier | GraphModel:
        """The classifier f_theta, a PyTorch module that takes any PyG graphs."""
        network = self._trained.model
        return network.classifier if isinstance(network, SparseClassifier) else network

    @property
    def policy_(self) -> Policy:
        """The policy pi_phi; the plain network has none."""
        network = self._trained.model
        if not isinstance(network, SparseClassifier):
            raise UserError("the plain network has no policy; set `removal` to node, edge or both")
        return network.policy

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor, as scikit-learn asks for them."""
        return {name: getattr(self, name) for name in _arguments()}

    def set_params(self, **params: Any) -> "Cores":
        """Change arguments of the constructor."""
        for name, value in params.items():
            if name not in _arguments():
                raise UserError(f"unknown parameter {name!r}; known: {', '.join(_arguments())}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = _arguments()
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value != defaults[name]
        ]
        return f"Cores({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn must know of this estimator; only scikit-learn asks."""
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

        numbers, several = self._predicts("regression"), self._predicts("multilabel")
        return Tags(
            estimator_type="regressor" if numbers else "classifier",
            target_tags=TargetTags(required=False, multi_output=several),
            classifier_tags=None if numbers else ClassifierTags(multi_label=several),
            regressor_tags=RegressorTags() if numbers else None,
            input_tags=InputTags(two_d_array=False),
        )

    def _config(self, num_graphs: int) -> RunConfig:
        model = "gnn" if self.removal is None else f"cores-{self.removal}"
        if model not in MODELS:
            raise UserError(f"`removal` is node, edge, both or None, got {self.removal!r}")
        settings = with_current_names(self.settings or {})
        for name in ("conv", "seed", "task"):
            if name in settings:
                raise UserError(f"`settings` names {name}; give it as the argument `{name}`")
        seed = _python_number(self.seed)
        if not isinstance(seed, int) or seed < 0:
            raise UserError(f"`seed` is a whole number from 0, got {self.seed!r}")
        defaults = {
            "dataset": "graphs",
            "model": model,
            "split": seed + 1,
            **own_data_settings(num_graphs),
        }
        epochs = {"epochs": _python_number(self.epochs)}
        reward = {
            "desired_ratio": _python_number(self.desired_ratio),
            "lam": _python_number(self.lam),
            "max_loss": _python_number(self.max_loss),
            "promised": None if self.max_loss is None else True,
        }
        given: dict[str, Any] = {
            "conv": self.conv,
            "seed": seed,
            "task": self._asked_task,
            "training": {name: value for name, value in epochs.items() if value is not None},
            "reward": {name: value for name, value in reward.items() if value is not None},
        }
        return RunConfig.from_settings(merged(merged(defaults, settings), given))

    def _take(self, trained: TrainedModel) -> "Cores":
        self._fitted = trained
        self.network_ = trained.model
        self.classes_: Any
        if trained.task == "classification":
            self.classes_ = np.array(trained.schema.labels)
        if trained.task == "multilabel":
            self.classes_ = [np.array(pair) for pair in trained.schema.labels]
            self.label_names_ = trained.schema.class_names
        self.n_features_in_ = trained.schema.dims.num_features
        return self

    @property
    def _trained(self) -> TrainedModel:
        if not hasattr(self, "_fitted"):
            raise UserError("this Cores is not fitted yet; call fit first, or Cores.load")
        return self._fitted

    @property
    def _asked_task(self) -> AskedTask:
        if self.task not in get_args(AskedTask):
            known = ", ".join(get_args(AskedTask))
            raise UserError(f"`task` is one of {known}, got {self.task!r}")
        return cast(AskedTask, self.task)

    def _predicts(self, task: TaskName) -> bool:
        fitted = getattr(self, "_fitted", None)
        return (self.task if fitted is None else fitted.task) == task

    @property
    def _labels(self) -> tuple[Any, ...]:
        return self._trained.schema.labels


_UNCALIBRATED = "the model has no calibration part; fit it with parts.calibration > 0"


def _predictions(trained: TrainedModel, graphs: Graphs) -> tuple[GraphStore, Predictions]:
    store = _unlabelled(graphs, trained)
    device = next(trained.model.parameters()).device
    with tuned_cpu():
        return store, predict(trained.model, store.placed(device)).cpu()


def _sets(
    trained: TrainedModel,
    predictions: Predictions,
    alpha: float,
    score: str | None,
    per_class: bool | None,
) -> torch.Tensor | None:
    if not isinstance(alpha, float) or not 0 < alpha < 1:
        raise UserError(f"`alpha` must lie in (0, 1), got {alpha!r}")
    if not len(trained.calibration):
        return None
    sets = trained.config.sets.changed(score, per_class)
    return trained.calibration.sets(predictions.probs, alpha, sets)


def _values(chosen: NDArray[np.int64], pairs: tuple[Any, ...]) -> NDArray[Any]:
    """The predicted values of several labels; of one kind, or objects where they differ in that."""
    kinds = {type(value) for pair in pairs for value in pair}
    columns = [np.array(pair)[chosen[:, at]] for at, pair in enumerate(pairs)]
    if len(kinds) > 1:
        columns = [column.astype(object) for column in columns]
    return np.stack(columns, axis=1)


def _python_number(value: Any) -> Any:
    """A number as Python's own: searches over parameters give NumPy's."""
    return value.item() if isinstance(value, np.generic) else value


def _settings_of(config: RunConfig) -> dict[str, Any]:
    """The settings that differ from the defaults and are no arguments of the constructor."""
    arguments = ("dataset", "conv", "preset", "split", "seed", "task")
    found = {name: value for name, value in config.changes.items() if name not in arguments}
    if config.removal is None and config.model != "gnn":
        found["model"] = config.model
    return found


def _arguments() -> dict[str, Any]:
    """The arguments of the constructor and their defaults."""
    parameters = inspect.signature(Cores.__init__).parameters
    return {name: found.default for name, found in parameters.items() if name != "self"}


def _with_validation(
    graphs: Graphs,
    y: Labels,
    validation: Graphs | None,
    task: AskedTask = "auto",
) -> tuple[Dataset, torch.Tensor | None]:
    """One dataset of both, and the positions of the validation graphs in it."""
    if validation is None:
        return checked(from_graphs(graphs, y, task=task)), None
    others, labels = validation, None
    if isinstance(validation, tuple) and len(validation) == 2 and not _is_graph(validation[0]):
        others, labels = validation
    if isinstance(others, str | Path):
        others = load_dataset(others, task=task)
    first, known = _with_labels(graphs, y, "graphs")
    second, added = _with_labels(others, labels, "validation")
    dataset = from_graphs(_alike(first, second), known + added, task=task)
    if isinstance(graphs, Dataset):
        if graphs.given_parts:
            raise UserError("the split column gives the parts; leave `validation` out")
        dataset = replace(  # its columns mean, and are scaled, as it says
            dataset,
            feature_names=graphs.feature_names,
            edge_feature_names=graphs.edge_feature_names,
            continuous=graphs.continuous,
            clipped=graphs.clipped,
            encoding=graphs.encoding,
        )
    return checked(dataset), torch.arange(len(first), len(first) + len(second))


def _alike(first: list[Any], second: list[Any]) -> list[Any]:
    """Both as one list; SMILES become graphs where the others are."""
    if are_smiles(first) == are_smiles(second):
        return first + second
    return [*_graphs(first), *_graphs(second)]


def _graphs(items: list[Any]) -> list[Any]:
    return read_graphs(items) if are_smiles(items) else items


def _with_labels(graphs: Graphs, y: Labels, name: str) -> tuple[list[Any], list[Any]]:
    items = list(graphs) if isinstance(graphs, Dataset) else listed(graphs)
    source = graphs if isinstance(graphs, Dataset) else items
    labels = plain_labels(source) if y is None else given_labels(y)
    if not items:
        raise UserError(f"`{name}` has no graphs")
    if len(labels) != len(items):
        raise UserError(f"`{name}` has {len(items)} graphs and {len(labels)} labels")
    return items, labels


def _is_one_way(graphs: GraphStore) -> bool:
    """Whether there are edges, and none of them has its opposite."""
    ends = graphs.edge_index
    between = int((ends[0] != ends[1]).sum())
    pairs = graphs.pairs.ends
    return between > 0 and between == int((pairs[0] != pairs[1]).sum())


def _is_graph(item: Any) -> bool:
    return isinstance(item, Data | str | Path) or hasattr(item, "adj")


def _is_node_graph(graphs: Graphs) -> bool:
    """Whether it is a single graph: its nodes are classified."""
    return isinstance(graphs, Data) and not isinstance(graphs, Batch)


def _unlabelled(graphs: Graphs, trained: TrainedModel) -> GraphStore:
    """The graphs with a model's columns, whatever their labels are."""
    schema = trained.schema
    if (reach := schema.encoding.reach) is not None and _is_node_graph(graphs):
        graph = NodeGraph(graphs)
        graph.check_finite()
        return _checked(graph.neighbourhoods(torch.arange(len(graph)), reach), trained)
    if isinstance(graphs, str | Path):
        layout = schema.encoding.layout
        chunks = [rows.parse(layout) for rows in model_rows(str(graphs), schema, ColumnNames())]
        if not chunks:
            raise UserError(f"{graphs} holds no graphs")
        parsed = Parsed.joined(chunks)
        if parsed.rejected:
            raise UserError(f"{graphs}: {parsed.rejected[0]}")
        encoded = EncodedGraphs.of(parsed, schema)
        if encoded.rejected:
            raise UserError(f"{graphs}: {encoded.rejected[0]}")
        return encoded.graphs
    if isinstance(graphs, Dataset):
        _check_names(graphs, schema)
        return _checked(graphs.graphs, trained)
    items = listed(graphs)
    if (schema.encoding.kind == "molecules") != are_smiles(items) and items:
        what = "molecules; give SMILES" if schema.encoding.kind == "molecules" else "other graphs"
        raise UserError(f"the model was fitted on {what}")
    records = read_graphs(items)
    store = GraphStore.from_graphs(records, torch.zeros(len(records), dtype=torch.int64))
    return _checked(store, trained)


def _check_names(dataset: Dataset, schema: DataSchema) -> None:
    """Refuse columns that are as many and mean something else; numbered ones could be any."""
    ours, theirs = schema.feature_names, dataset.feature_names
    plain = numbered(len(ours))
    if len(ours) == len(theirs) and ours != theirs and plain not in (ours, theirs):
        first = next(pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1])
        raise UserError(
            f"{dataset.name} has the column {first[1]!r} where the model was fitted on "
            f"{first[0]!r}; give the path of the file, and it gets the model's columns"
        )


def _checked(store: GraphStore, trained: TrainedModel) -> GraphStore:
    """Graphs that have as many columns as the model was fitted on, and reads."""
    dims = trained.schema.dims
    if store.rooted != dims.rooted:
        what = "nodes; give one graph" if dims.rooted else "whole graphs; give a list of them"
        raise UserError(f"the model classifies {what}")
    if not store.edge_index.numel():  # no edge, so no feature of one is missing
        store = replace(store, edge_attr=torch.empty(0, dims.num_edge_features))
    for found, fitted, what in (
        (store.num_features, dims.num_features, "node"),
        (store.num_edge_features, dims.num_edge_features, "edge"),
    ):
        if found != fitted and (what == "node" or trained.config.network.edge_features):
            raise UserError(
                f"the graphs have {found} {what} features, the model was fitted on {fitted}"
            )
    return store
