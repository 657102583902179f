"""A trained model with all it needs to predict: saved as a run folder, and loaded from one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cores.config import ExplanationConfig, RunConfig, to_dict
from cores.config.nested import from_dict
from cores.config.spec import TaskName
from cores.data.dataset import Dataset, Dims
from cores.data.encoding import Encoding
from cores.data.labels import are_labels
from cores.errors import UserError
from cores.evaluation.predictions import predict_told
from cores.graphs.store import GraphStore
from cores.models.build import build_effects, build_model, network_dims
from cores.models.committee import Committee
from cores.models.elements import EffectNetwork
from cores.models.network import GraphModel
from cores.models.sparse import SparseClassifier
from cores.runs.folder import CONFIG, MODEL, Identity
from cores.tasks import TASKS
from cores.tasks.calibration import Calibration
from cores.training.state import check_fits, load_state, save_state


@dataclass(frozen=True)
class DataSchema:
    """Names and columns of a dataset: enough to build its model again and to name predictions."""

    feature_names: tuple[str, ...]
    edge_feature_names: tuple[str, ...]
    class_names: tuple[str, ...]
    labels: tuple[Any, ...]
    """The labels as they were given."""
    fingerprint: str
    """Fingerprint of the dataset the model was trained on."""
    encoding: Encoding
    """Meaning of the columns."""
    task: TaskName = "classification"
    """Task; numbers have no class names, several labels a pair of values each."""

    @classmethod
    def of(cls, dataset: Dataset) -> "DataSchema":
        """The schema of a dataset."""
        encoding = dataset.encoding
        if encoding is None:
            encoding = Encoding.of_columns(dataset.num_features, dataset.num_edge_features)
        return cls(
            dataset.feature_names,
            dataset.edge_feature_names,
            dataset.class_names,
            dataset.labels,
            dataset.fingerprint,
            encoding,
            dataset.task,
        )

    @classmethod
    def of_settings(cls, known: Mapping[str, Any]) -> "DataSchema":
        """The schema that a run folder holds; raises ``TypeError`` where it holds none.

        Also ``ValueError`` where names are no names, or no number fits the other.
        """
        values = {name: _tupled(value) for name, value in known.items()}
        encoding = {name: _tupled(value) for name, value in known["encoding"].items()}
        schema = cls(**values | {"encoding": Encoding(**encoding)})
        _check_schema(schema)
        return schema

    @property
    def dims(self) -> Dims:
        """Sizes that a network must know of the graphs."""
        classes, edges = len(self.class_names), len(self.edge_feature_names)
        rooted = self.encoding.reach is not None
        molecules = self.encoding.kind == "molecules"
        sizes = len(self.feature_names), classes, edges
        return Dims(*sizes, self.task, rooted=rooted, molecules=molecules)


@dataclass(frozen=True)
class TrainedModel:
    """A model with its configuration, the names of its data, and what calibrates its sets."""

    config: RunConfig
    schema: DataSchema
    model: GraphModel
    calibration: Calibration
    """Without graphs where there was no calibration part."""
    test: Tensor
    """Positions of the test graphs in the dataset."""

    @property
    def effects(self) -> EffectNetwork | None:
        """Tells what each node or edge contributes; None where that was not learnt."""
        return self.model.effects if isinstance(self.model, SparseClassifier) else None

    @property
    def task(self) -> TaskName:
        """Task of the model."""
        return self.schema.task

    @property
    def tolerance(self) -> float | None:
        """The error that counted as none in training; None where no policy learnt from it."""
        if not isinstance(self.model, SparseClassifier):
            return None
        return self.model.classifier.head.known_tolerance

    @property
    def has_committee(self) -> bool:
        """Whether a committee can be asked about parts."""
        model = self.model
        return isinstance(model, SparseClassifier) and isinstance(model.classifier, Committee)

    def sentences(self, metrics: Mapping[str, Any]) -> list[str]:
        """Say in sentences what metrics mean, as ``metrics.json`` holds them."""
        counts = self.calibration.class_counts
        return TASKS[self.task].sentences(metrics, self.config, counts)

    def need_classes(self, what: str) -> None:
        """Refuse what is made for classes alone."""
        TASKS[self.task].need_classes(what, "this model predicts")

    def need_sets(self, what: str) -> None:
        """Refuse what is made for prediction sets alone."""
        TASKS[self.task].need_sets(what, "this model predicts")

    def need_committee(self, remedy: str) -> None:
        """Refuse what asks a committee about parts."""
        if not isinstance(self.model, SparseClassifier):
            raise UserError(f"{self.config.model} shows no parts; {remedy}")
        if not isinstance(self.model.classifier, Committee):
            raise UserError(
                f"the preset {self.config.preset} shows what its policy keeps, at no "
                f"`sufficiency`; {remedy}"
            )

    def showing(self, sufficiency: float | None = None, parts: str | None = None) -> "TrainedModel":
        """Return the model with other parts; None: as it is configured."""
        if sufficiency is not None and not TASKS[self.task].has_sets:
            raise UserError(
                "a part of this model is sufficient within the tolerance of its training "
                "(reward.tolerance); leave `sufficiency` out"
            )
        given = {"sufficiency": sufficiency, "parts": parts}
        changes = {name: value for name, value in given.items() if value is not None}
        if not changes:
            return self
        self.need_committee(f"leave {' and '.join(f'`{name}`' for name in changes)} out")
        assert isinstance(self.model, SparseClassifier)
        shown = from_dict(
            ExplanationConfig, {**to_dict(self.config.explanation), **changes}, "explanation"
        )
        config = replace(self.config, explanation=shown)
        return replace(self, config=config, model=self.model.showing(shown))

    def with_sets(
        self, alpha: float | None, score: str | None, per_class: bool | None
    ) -> "TrainedModel":
        """Return the model with other prediction sets; None: as it is configured."""
        if score is not None or per_class is not None:
            self.need_sets("a choice of `score` or `per_class`")
        config = replace(
            self.config,
            alpha=self.config.alpha if alpha is None else alpha,
            sets=self.config.sets.changed(score, per_class),
        )
        return replace(self, config=config)

    def save(self, out: Path) -> None:
        """Write the weights into a run folder."""
        state = {
            "model": self.model.state_dict(),
            "calibration": {"probs": self.calibration.probs, "labels": self.calibration.labels},
            "parts": {"test": self.test},
        }
        if self.has_committee:  # `cores tune` may have set it
            state["shown"] = {"sufficiency": torch.tensor(self.config.explanation.sufficiency)}
        save_state(out / MODEL, state)

    @classmethod
    def load(cls, out: Path) -> "TrainedModel":
        """The model of a finished run."""
        identity = Identity.read(out)
        config = identity.config
        try:
            schema = DataSchema.of_settings(identity.schema)
        except (TypeError, AttributeError, KeyError, ValueError):
            raise UserError(f"{out / CONFIG} does not name its data as it should") from None
        if not (out / MODEL).exists():
            raise UserError(f"the run in {out} has not finished; go on with resume=True")
        state = load_state(out / MODEL)
        try:
            dims = network_dims(config, schema.dims)
            model = build_model(config, dims)
            has_effects = any(name.startswith("effects.") for name in state["model"])
            if isinstance(model, SparseClassifier) and has_effects:
                model.effects = build_effects(config, dims, model.scaler)
            check_fits(state["model"], model.state_dict())
            model.load_state_dict(state["model"])
            calibration = _calibration(state["calibration"], dims)
            test = _positions(state["parts"]["test"])
            trained = cls(config, schema, model.eval(), calibration, test)
            sufficiency = config.explanation.sufficiency
            if trained.has_committee:
                sufficiency = round(float(state["shown"]["sufficiency"]), 6)
        except UserError:
            raise
        except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
            reason = type(error).__name__
            raise UserError(f"{out / MODEL} does not fit {CONFIG} ({reason})") from None
        if not all(bool(weights.isfinite().all()) for weights in model.parameters()):
            raise UserError(f"{out / MODEL} is damaged: its weights are NaN or infinite")
        if sufficiency == config.explanation.sufficiency:
            return trained
        return trained.showing(sufficiency=sufficiency)  # as it was tuned

    def without_calibration(self) -> "TrainedModel":
        """Return the model without prediction sets."""
        return replace(self, calibration=uncalibrated(self.model))


def calibrate(model: GraphModel, graphs: GraphStore, names: Sequence[str] = ()) -> Calibration:
    """Predict the calibration part, whose graphs may have names."""
    if not len(graphs):
        return uncalibrated(model)
    probs = predict_told(model, graphs, names).cpu()
    return TASKS[model.task].calibration(probs, graphs.y.cpu())


def uncalibrated(model: GraphModel) -> Calibration:
    """Return a calibration without graphs."""
    return TASKS[model.task].calibration.empty(model.num_outputs)


def _calibration(saved: Mapping[str, Any], dims: Dims) -> Calibration:
    """The calibration part of a file; raises a ``TypeError`` or ``ValueError`` where it is none."""
    kind = TASKS[dims.task].calibration
    return kind.checked(saved["probs"], saved["labels"], dims.num_outputs)


def _positions(test: Any) -> Tensor:
    """The test part of a file."""
    if not isinstance(test, Tensor):
        raise TypeError("the test part is no tensor")
    if test.ndim != 1 or test.is_floating_point() or bool((test < 0).any()):
        raise ValueError("the test part holds no positions")
    return test.long()


def _check_schema(schema: DataSchema) -> None:
    """Raise a ``TypeError`` or ``ValueError`` for a schema that no dataset has."""
    columns = schema.feature_names, schema.edge_feature_names
    for names in (*columns, schema.class_names, (schema.fingerprint,)):
        if not (isinstance(names, tuple) and all(isinstance(name, str) for name in names)):
            raise TypeError("a name is no text")
    labels, encoding = schema.labels, schema.encoding
    if schema.task not in TASKS:
        raise ValueError("the task is none of ours")
    if not (
        isinstance(labels, tuple)
        and len(labels) == len(schema.class_names)
        and (groups := TASKS[schema.task].label_groups(labels)) is not None
        and all(_are_classes(tuple(group)) for group in groups)
    ):
        raise ValueError("there is not a label for every class")
    counts = (
        *(encoding.version, encoding.node_numbers, encoding.edge_numbers),
        *(encoding.hops, encoding.fan_out),
    )
    if encoding.kind not in ("graphs", "molecules") or any(
        type(count) is not int or count < 0 for count in counts
    ):
        raise ValueError("the encoding is none of ours")
    for values in (*encoding.node_values, *encoding.edge_values):
        if not all(isinstance(value, int | str) for value in values):
            raise TypeError("a value is neither a number nor text")


def _are_classes(labels: tuple[Any, ...]) -> bool:
    return not any(isinstance(label, tuple | dict) for label in labels) and are_labels(labels)


def _tupled(value: Any) -> Any:
    return tuple(map(_tupled, value)) if isinstance(value, list) else value
