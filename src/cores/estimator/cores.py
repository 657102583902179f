"""``Cores``: fit graphs, predict their classes, and show the part that decides."""

import warnings
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cores.data.dataset import Dataset
from cores.data.datasets import load_dataset
from cores.data.inputs.columns import ColumnNames
from cores.data.labels import given_labels, plain_labels
from cores.data.lists import listed
from cores.data.nodes import from_nodes
from cores.errors import UserError
from cores.estimator.graphs import (
    Graphs,
    Labels,
    graph_score,
    is_node_graph,
    is_one_way,
    node_score,
    unlabelled,
    with_validation,
)
from cores.estimator.parameters import (
    Parameters,
    Real,
    committee_arguments,
    python_number,
    settings_of,
)
from cores.evaluation.predictions import predict_full, predict_told
from cores.explain.explanation import Explanation, explain_graphs
from cores.files import locked, make_folder, write_json
from cores.models.network import GraphModel
from cores.models.policy import Policy
from cores.models.sparse import SparseClassifier
from cores.runs.card import DataFacts, model_card, write_card
from cores.runs.device import choose_device, tuned_cpu
from cores.runs.fit import PreparedData, fit_model, measure_for_preset
from cores.runs.folder import CONFIG, METRICS, write_identity, write_promise
from cores.runs.inputs import labelled_graphs
from cores.runs.opened import Run
from cores.runs.progress import Reports, phases_of, training_progress
from cores.runs.promise import Promise, tuned_model
from cores.runs.rows import read_metrics
from cores.runs.run import metric_names
from cores.runs.trained import TrainedModel
from cores.runs.tune import with_promise
from cores.tasks import TASKS
from cores.training.judge import train_judge
from cores.training.state import forked_rng


class Cores(Parameters):
    """A graph classifier that shows a small subgraph from which its prediction is as sure.

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
        lam: Lambda, the weight of accuracy against sparsity in the reward of the training.
        judge: Whether to train an independent classifier that checks the kept subgraphs; it takes
            about as long as the classifier itself.
        settings: Any other setting, nested as in a settings file, e.g.
            ``{"network": {"hidden_dim": 128}}``, ``{"model": "gsat"}`` for another model, or
            ``{"preset": "mine"}`` for a registered preset.
        task: ``"classification"``, ``"regression"`` for numbers, ``"multilabel"`` for several
            labels per graph, or ``"auto"``, which takes more than 20 different labels that are not
            whole for numbers.
        members: Classifiers in the committee, whose mean probability is the prediction.
        sufficiency: tau, the probability that the committee must give the predicted class from a
            part alone; None takes the preset's. Of numbers, ``{"reward": {"tolerance": ...}}`` in
            ``settings`` takes its place.
        parts: Which part is shown: ``"minimal"``, of which no single node or edge can go;
            ``"cut"``, a quicker one; or ``"policy"``, what the policy keeps.
        class_from: What the committee predicts from: the ``"whole"`` graph, or the ``"part"`` that
            the policy keeps.

    Attributes:
        classes_: The labels, as they were given; numbers have none. Where graphs have several
            labels, a list with the two values of each.
        label_names_: What each of several labels is called.
        metrics_: What was measured on the test part that ``fit`` sets aside, and what that says, in
            sentences (``"verdicts"``).
        network_: The trained PyTorch module; it takes PyG graphs with unscaled features, and gives
            the logarithm of the committee's mean probability.
        n_features_in_: Columns of the node features.
    """

    _estimator_type = "classifier"
    _facts: DataFacts | None
    _columns: ColumnNames

    def fit(
        self,
        graphs: Graphs,
        y: Labels = None,
        validation: Graphs | None = None,
    ) -> "Cores":
        """Train committee and policy, calibrate them, and measure them on a part set aside.

        The graphs are divided into parts for training, calibration and test, and for selecting
        weights unless ``validation`` is given. Nothing is written to disk.

        Args:
            graphs: PyG ``Data``, networkx graphs, SMILES strings, a dataset, or a path, which is
                read by ``load_dataset``, where columns of a file can be named. A single
                ``Data`` is one graph whose nodes are classified; its ``train_mask``, ``val_mask``
                and ``test_mask`` divide them where they are there.
            y: A label per graph, or per node; if not given, each graph's own. For several labels a
                row of values per graph, NaN or None where one is not known.
            validation: Labelled graphs, or graphs and their labels, by which weights are selected.
        """
        task, reach = self._asked_task, self._config(1).network.reach
        if isinstance(graphs, str | Path):
            graphs = load_dataset(graphs, task=task, reach=reach)
            _warn_of_unusable(graphs)
        columns = graphs.columns if isinstance(graphs, Dataset) else None
        if is_node_graph(graphs):
            if validation is not None:
                raise UserError("`val_mask` names the nodes of validation; leave `validation` out")
            graphs, y = from_nodes(graphs, y, reach=reach, task=task), None
        dataset, selection = with_validation(graphs, y, validation, task)
        if is_one_way(dataset.graphs):
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
            metrics = measure_for_preset(fitted.trained, data.part("test"), judge)
        metrics |= fitted.facts
        self.metrics_ = metrics | {"verdicts": fitted.trained.sentences(metrics)}
        self._facts = DataFacts.of(dataset, data.split)
        self._columns = ColumnNames(remembered=columns)
        return self._take(fitted.trained)

    def tune(
        self, max_wrong: Real, confidence: Real | None = None, per_class: bool = False
    ) -> "Cores":
        """Set the least sufficiency at which a promise holds, by the calibration part.

        What is promised is in ``metrics_["promise"]``; the other metrics stay those of before, and
        say so.

        Args:
            max_wrong: The largest share of graphs that are told a wrong class and are not weak.
            confidence: Promise it of this very model, with this probability; None: on average over
                calibration parts.
            per_class: Whether it is promised for every class.
        """
        promise = Promise(python_number(max_wrong), python_number(confidence), per_class)
        tuned, found = tuned_model(self._trained, promise)
        self.metrics_ = with_promise(tuned, self.metrics_, found)
        return self._take(tuned)

    def predict(
        self, graphs: Graphs, sufficiency: Real | None = None, parts: str | None = None
    ) -> NDArray[Any]:
        """Predict the label of every graph, or the number; of several labels, [graphs, labels].

        Like all that takes both, it is what ``explain`` tells with them. No prediction depends on
        them: they decide which part is shown for it.

        Args:
            graphs: The graphs to predict.
            sufficiency: Another tau than that of the model.
            parts: Other parts than those of the model.
        """
        probs = self._probs(self._showing(sufficiency, parts), graphs)
        found: NDArray[Any] = TASKS[self._trained.task].predicted_array(probs, self._labels)
        return found

    def predict_proba(
        self, graphs: Graphs, sufficiency: Real | None = None, parts: str | None = None
    ) -> NDArray[np.float32]:
        """Predict the probability of every class, in the order of ``classes_``; [graphs, classes].

        Where graphs have several labels, that each has the second of its values; [graphs, labels].
        """
        self._trained.need_sets("predict_proba")
        return self._probs(self._showing(sufficiency, parts), graphs).numpy()

    def full_proba(self, graphs: Graphs) -> NDArray[np.float32]:
        """What the committee gives graphs as they are, nothing removed: so anyone can ask it.

        Probabilities as those of :meth:`predict_proba`; where numbers are predicted, these in the
        first column.
        """
        trained = self._trained
        store = unlabelled(graphs, trained, self._columns).placed(self._device)
        with tuned_cpu():
            return predict_full(trained.model, store).cpu().numpy()

    def predict_set(
        self,
        graphs: Graphs,
        alpha: float = 0.1,
        score: str | None = None,
        per_class: bool | None = None,
        sufficiency: Real | None = None,
        parts: str | None = None,
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
            sufficiency: Another tau than that of the model.
            parts: Other parts than those of the model.
        """
        trained = self._showing(sufficiency, parts)
        trained.need_sets("predict_set (numbers have predict_interval)")
        sets = self._sets(trained, graphs, alpha, score, per_class)
        return TASKS[trained.task].in_sets(sets, self._labels)

    def predict_interval(self, graphs: Graphs, alpha: float = 0.1) -> NDArray[np.float32]:
        """An interval per graph that misses the true number at most a share ``alpha`` of the time.

        The promise is that of :meth:`predict_set`. Where there were too few calibration graphs for
        ``alpha``, the intervals have no ends. All are equally wide, unless the model was trained
        with ``training.quantiles``.

        Args:
            graphs: The graphs to predict.
            alpha: Error rate.

        Returns:
            Lower and upper ends; [graphs, 2].
        """
        trained = self._trained
        if TASKS[trained.task].has_sets:
            raise UserError("predict_interval is for numbers; classes have predict_set")
        return self._sets(trained, graphs, alpha).numpy()

    def explain(
        self,
        graphs: Graphs,
        alpha: float = 0.1,
        sufficiency: Real | None = None,
        parts: str | None = None,
    ) -> list[Explanation]:
        """Explain graphs by a sufficient part, as PyG explanations, with prediction and set.

        Args:
            graphs: The graphs to predict.
            alpha: Error rate of the sets.
            sufficiency: Another tau than that of the model.
            parts: Other parts than those of the model.
        """
        _check_alpha(alpha)
        trained = self._showing(sufficiency, parts)
        store = unlabelled(graphs, trained, self._columns)
        return explain_graphs(trained, store, self._labels, alpha)

    def score(
        self,
        graphs: Graphs,
        y: Labels = None,
        sufficiency: Real | None = None,
        parts: str | None = None,
    ) -> float:
        """Accuracy on labelled graphs; where numbers are predicted, R2.

        Of several labels, the share of the known values that is predicted. Of a graph whose nodes
        are classified, those of its ``test_mask`` count, where it has one.
        """
        trained = self._trained
        if is_node_graph(graphs) and trained.schema.encoding.reach is not None:
            return node_score(self.predict(graphs, sufficiency, parts), graphs, y)
        if isinstance(graphs, str | Path):
            graphs = labelled_graphs(str(graphs), trained.schema, self._columns)
            _warn_of_unusable(graphs)
        elif not isinstance(graphs, Dataset):
            graphs = listed(graphs)  # they are read twice
        labels = plain_labels(graphs) if y is None else given_labels(y)
        probs = self._probs(self._showing(sufficiency, parts), graphs)
        return graph_score(probs, labels, trained.schema)

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
            config, device = trained.config, self._device
            read = self._columns.remembered
            columns = None if read is None else asdict(read)
            known = None if self._facts is None else self._facts.plain
            write_identity(out, config, asdict(trained.schema), device, columns=columns, data=known)
            trained.save(out)
            write_card(out, model_card(config, trained.schema, self.metrics_, self._facts))
            write_promise(out, self.metrics_.get("promise"))
            write_json(out / METRICS, metric_names(config) | self.metrics_)

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto") -> "Cores":
        """Read the model of a folder that ``save`` or ``cores train`` wrote."""
        out = Path(folder)
        if not (out / CONFIG).exists():
            raise UserError(f"{out} holds no model: {CONFIG} is missing")
        run = Run.open(out, device=device)
        config = run.config
        model = cls(
            removal=config.removal,
            conv=config.conv,
            epochs=config.training.epochs,
            seed=config.seed,
            device=device,
            settings=settings_of(config),
            task=config.task,
            **committee_arguments(config),
        )
        model.metrics_ = read_metrics(out / METRICS) if (out / METRICS).exists() else {}
        model._facts = DataFacts.read(run.identity.data)
        model._columns = ColumnNames(remembered=run.identity.columns)
        return model._take(run.trained)

    @property
    def classifier_(self) -> GraphModel:
        """The committee, or the one classifier, as a PyTorch module that takes any PyG graphs."""
        network = self._trained.model
        return network.classifier if isinstance(network, SparseClassifier) else network

    @property
    def policy_(self) -> Policy:
        """The policy pi_phi; the plain network has none."""
        network = self._trained.model
        if not isinstance(network, SparseClassifier):
            raise UserError("the plain network has no policy; set `removal` to node, edge or both")
        return network.policy

    def _take(self, trained: TrainedModel) -> "Cores":
        self._fitted = trained
        self.network_ = trained.model
        self.classes_: Any
        task, names = TASKS[trained.task], trained.schema.class_names
        if task.has_sets:
            self.classes_ = task.classes(trained.schema.labels)
        if task.has_sets and not task.has_classes:
            self.label_names_ = names
        self.n_features_in_ = trained.schema.dims.num_features
        return self

    @property
    def _trained(self) -> TrainedModel:
        if not hasattr(self, "_fitted"):
            raise UserError("this Cores is not fitted yet; call fit first, or Cores.load")
        return self._fitted

    def _probs(self, trained: TrainedModel, graphs: Graphs) -> torch.Tensor:
        store = unlabelled(graphs, trained, self._columns).placed(self._device)
        with tuned_cpu():
            return predict_told(trained.model, store).cpu()

    def _showing(self, sufficiency: Real | None, parts: str | None) -> TrainedModel:
        return self._trained.showing(python_number(sufficiency), parts)

    @property
    def _device(self) -> torch.device:
        return next(self._trained.model.parameters()).device

    def _sets(
        self,
        trained: TrainedModel,
        graphs: Graphs,
        alpha: float,
        score: str | None = None,
        per_class: bool | None = None,
    ) -> torch.Tensor:
        _check_alpha(alpha)
        if not len(trained.calibration):
            raise UserError("the model has no calibration part; fit it with parts.calibration > 0")
        sets = trained.config.sets.changed(score, per_class)
        return trained.calibration.sets(self._probs(trained, graphs), alpha, sets)

    @property
    def _labels(self) -> tuple[Any, ...]:
        return self._trained.schema.labels


def _warn_of_unusable(dataset: Dataset) -> None:
    """Warn the caller of the estimator of rows of a file that could not be used."""
    rows = dataset.unusable
    if rows is not None and (note := rows.note) is not None:
        warnings.warn(note, stacklevel=3)


def _check_alpha(alpha: Any) -> None:
    if not isinstance(alpha, float) or not 0 < alpha < 1:
        raise UserError(f"`alpha` must lie in (0, 1), got {alpha!r}")
