"""A trained model with all it needs to predict: saved as a run folder, and loaded from one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int, Num
from torch import Tensor

from cores.config import RunConfig
from cores.config.policy import SETTINGS
from cores.config.spec import TaskName
from cores.data.dataset import Dataset, Dims
from cores.data.encoding import Encoding
from cores.data.labels import are_labels
from cores.errors import UserError
from cores.evaluation.dial import predict_settings
from cores.evaluation.predictions import predict, predict_full
from cores.graphs.store import GraphStore
from cores.models.build import build_effects, build_model, network_dims
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
        return Dims(len(self.feature_names), classes, edges, self.task, rooted=rooted)


@dataclass(frozen=True)
class DialCalibration:
    """The calibration part at every setting of a model's dial."""

    probs: Float[Tensor, "settings graphs classes"]
    kept_ratio: Float[Tensor, "settings graphs"]
    full_probs: Float[Tensor, "graphs classes"]
    """From the full graphs."""
    labels: Num[Tensor, "graphs *labels"]
    chosen_by: Int[Tensor, " choosing"]
    """Graphs by which the dial was set: they calibrate nothing."""

    def calibration(self, place: int, task: TaskName = "classification") -> Calibration:
        """Return the calibration of prediction sets at a setting."""
        others = torch.ones(len(self.labels), dtype=torch.bool)
        others[self.chosen_by] = False
        return TASKS[task].calibration(self.probs[place][others], self.labels[others])


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
    dial: DialCalibration | None = None
    """The calibration part at every setting of the dial; None without one."""

    @property
    def lam(self) -> float | None:
        """Setting of the dial; None without one."""
        return dial_setting(self.model)

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

    def at(self, lam: Any) -> "TrainedModel":
        """Return the model at another setting of its dial, calibrated there; None: as it is."""
        if lam is None:
            return self
        if self.lam is None or not isinstance(self.model, SparseClassifier):
            raise UserError("this model was trained for one lambda; train with reward.dial")
        place = setting(lam)
        if SETTINGS[place] == self.lam:
            return self
        if self.dial is None:
            raise UserError("this model has no prediction sets at other settings of its dial")
        calibration = self.dial.calibration(place, self.task)
        return replace(self, model=self.model.at(SETTINGS[place]), calibration=calibration)

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
        save_state(
            out / MODEL,
            {
                "model": self.model.state_dict(),
                "calibration": {
                    "probs": self.calibration.probs,
                    "labels": self.calibration.labels,
                },
                **({} if self.dial is None else {"dial": vars(self.dial)}),
                "parts": {"test": self.test},
            },
        )

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
            dial = None if dial_setting(model) is None else _dial(state["dial"], dims)
            test = _positions(state["parts"]["test"])
        except UserError:
            raise
        except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
            reason = type(error).__name__
            raise UserError(f"{out / MODEL} does not fit {CONFIG} ({reason})") from None
        if not all(bool(weights.isfinite().all()) for weights in model.parameters()):
            raise UserError(f"{out / MODEL} is damaged: its weights are NaN or infinite")
        trained = cls(config, schema, model.eval(), calibration, test, dial)
        if trained.lam is not None and trained.lam not in SETTINGS:
            raise UserError(f"{out / MODEL} is damaged: its dial stands at {trained.lam:g}")
        return trained

    def without_calibration(self) -> "TrainedModel":
        """Return the model without prediction sets."""
        return replace(self, calibration=uncalibrated(self.model), dial=None)


_DIGITS = 6
"""Decimals of a setting; the network has half as many again, and not all of them are right."""


def dial_setting(model: GraphModel) -> float | None:
    """Read the setting of a model's dial; None without one."""
    if not isinstance(model, SparseClassifier) or model.policy.lam is None:
        return None
    return round(float(model.policy.lam), _DIGITS)


def setting(lam: Any) -> int:
    """The place of a value of lambda among the settings of a dial."""
    if not isinstance(lam, Real) or round(float(lam), _DIGITS) not in SETTINGS:
        step = SETTINGS[1] - SETTINGS[0]
        raise UserError(f"`lam` goes from 0 to 1 in steps of {step:g}, got {lam}")
    return SETTINGS.index(round(float(lam), _DIGITS))


def calibrate(
    model: GraphModel, graphs: GraphStore, names: Sequence[str] = ()
) -> tuple[Calibration, DialCalibration | None]:
    """Predict the calibration part, whose graphs may have names; at every setting of a dial."""
    dial = _calibrated_dial(model, graphs, names)
    if dial is not None:
        return dial.calibration(setting(dial_setting(model)), model.task), dial
    if not len(graphs):
        return uncalibrated(model), None
    probs = predict(model, graphs, names).probs.cpu()
    return TASKS[model.task].calibration(probs, graphs.y.cpu()), None


def _calibrated_dial(
    model: GraphModel, graphs: GraphStore, names: Sequence[str]
) -> DialCalibration | None:
    """The calibration part at every setting of a model's dial; None without a dial."""
    if not isinstance(model, SparseClassifier) or model.policy.lam is None:
        return None
    labels, nobody = graphs.y.cpu(), torch.empty(0, dtype=torch.int64)
    if not len(graphs):
        settings, empty = len(SETTINGS), uncalibrated(model).probs
        return DialCalibration(
            empty.expand(settings, *empty.shape), torch.empty(settings, 0), empty, labels, nobody
        )
    found = predict_settings(model, graphs.view(), names=names)
    return DialCalibration(
        found.probs.cpu(),
        found.kept_ratio.cpu(),
        predict_full(model, graphs, names).cpu(),
        labels,
        nobody,
    )


def uncalibrated(model: GraphModel) -> Calibration:
    """Return a calibration without graphs."""
    return TASKS[model.task].calibration.empty(model.num_outputs)


def _calibration(saved: Mapping[str, Any], dims: Dims) -> Calibration:
    """The calibration part of a file; raises a ``TypeError`` or ``ValueError`` where it is none."""
    kind = TASKS[dims.task].calibration
    return kind.checked(saved["probs"], saved["labels"], dims.num_outputs)


def _dial(saved: Mapping[str, Any], dims: Dims) -> DialCalibration:
    """The calibration part of a file at every setting of the dial; raises as those above."""
    probs, kept_ratio, chosen_by = (saved[name] for name in ("probs", "kept_ratio", "chosen_by"))
    full = _calibration({"probs": saved["full_probs"], "labels": saved["labels"]}, dims)
    if not all(isinstance(values, Tensor) for values in (probs, kept_ratio, chosen_by)):
        raise TypeError("the calibration of the dial is not made of tensors")
    settings, graphs = len(SETTINGS), len(full.labels)
    shapes = tuple(probs.shape), tuple(kept_ratio.shape), chosen_by.ndim
    if shapes != ((settings, graphs, dims.num_outputs), (settings, graphs), 1):
        raise ValueError("the calibration of the dial has another shape")
    for values in (probs, kept_ratio):
        if not (values.is_floating_point() and values.isfinite().all()):
            raise ValueError("the calibration of the dial holds no shares")
    if chosen_by.dtype != torch.int64 or not ((chosen_by >= 0) & (chosen_by < graphs)).all():
        raise ValueError("the dial was not set by graphs of the calibration part")
    return DialCalibration(probs, kept_ratio, full.probs, full.labels, chosen_by)


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
