"""A trained model with all it needs to predict: saved as a run folder, and loaded from one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cores.config import RunConfig
from cores.data.dataset import Dataset, Dims
from cores.data.encoding import Encoding
from cores.errors import UserError
from cores.evaluation.predictions import predict
from cores.evaluation.sets import Calibration
from cores.graphs.store import GraphStore
from cores.models.build import build_model
from cores.models.network import GraphModel
from cores.runs.folder import CONFIG, MODEL, read_identity
from cores.training.state import load_state, save_state


@dataclass(frozen=True)
class DataSchema:
    """What a model must know of its dataset to be built again, and to name its predictions."""

    feature_names: tuple[str, ...]
    edge_feature_names: tuple[str, ...]
    class_names: tuple[str, ...]
    labels: tuple[Any, ...]
    """The labels as they were given."""
    fingerprint: str
    """Of the dataset the model was trained on."""
    encoding: Encoding
    """What the columns are made of."""

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
        )

    @classmethod
    def of_settings(cls, known: Mapping[str, Any]) -> "DataSchema":
        """The schema that a run folder holds; raises ``TypeError`` where it holds none."""
        values = {name: _tupled(value) for name, value in known.items()}
        if "encoding" in known:
            encoding = {name: _tupled(value) for name, value in known["encoding"].items()}
            values["encoding"] = Encoding(**encoding)
        else:  # written by version 0.2
            columns = values["feature_names"], values["edge_feature_names"]
            values["encoding"] = Encoding.of_names(*columns)
        return cls(**values)

    @property
    def dims(self) -> Dims:
        """What a network must know of the graphs."""
        return Dims(len(self.feature_names), len(self.class_names), len(self.edge_feature_names))


@dataclass(frozen=True)
class TrainedModel:
    """A model with its configuration, the names of its data, and what calibrates its sets."""

    config: RunConfig
    schema: DataSchema
    model: GraphModel
    calibration: Calibration
    """Without graphs where there was no calibration part."""
    test: Tensor | None = None
    """Positions of the test graphs in the dataset; None in folders of before version 0.3."""

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
                **({} if self.test is None else {"parts": {"test": self.test}}),
            },
        )

    @classmethod
    def load(cls, out: Path) -> "TrainedModel":
        """The model of a finished run."""
        config, known = read_identity(out)
        try:
            schema = DataSchema.of_settings(known)
        except (TypeError, AttributeError, KeyError):
            raise UserError(f"{out / CONFIG} does not name its data as it should") from None
        if not (out / MODEL).exists():
            raise UserError(f"the run in {out} has not finished; go on with resume=True")
        state = load_state(out / MODEL)
        try:
            model = build_model(config, schema.dims)
            model.load_state_dict(state["model"])
            calibration = Calibration(**state["calibration"])
            _check_calibration(calibration, schema)
            test = state["parts"]["test"].long() if "parts" in state else None
        except UserError:
            raise
        except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
            reason = type(error).__name__
            raise UserError(f"{out / MODEL} does not fit {CONFIG} ({reason})") from None
        if not all(bool(weights.isfinite().all()) for weights in model.parameters()):
            raise UserError(f"{out / MODEL} is damaged: its weights are NaN or infinite")
        return cls(config, schema, model.eval(), calibration, test)

    def without_calibration(self) -> "TrainedModel":
        """The same model without prediction sets."""
        return replace(self, calibration=uncalibrated(self.model.num_classes))


def calibrate(model: GraphModel, graphs: GraphStore, names: Sequence[str] = ()) -> Calibration:
    """Predict the calibration part, whose graphs may have names."""
    if not len(graphs):
        return uncalibrated(model.num_classes)
    return Calibration(predict(model, graphs, names).probs.cpu(), graphs.y.cpu())


def uncalibrated(num_classes: int) -> Calibration:
    """Where there is no calibration part."""
    return Calibration(torch.empty(0, num_classes), torch.empty(0, dtype=torch.int64))


def _check_calibration(calibration: Calibration, schema: DataSchema) -> None:
    probs, labels = calibration.probs, calibration.labels
    if not (isinstance(probs, Tensor) and isinstance(labels, Tensor)):
        raise TypeError("the calibration part is not made of tensors")
    shape = (len(labels), len(schema.class_names))
    if tuple(probs.shape) != shape or labels.dtype != torch.int64 or not probs.isfinite().all():
        raise ValueError("the calibration part has another shape")


def _tupled(value: Any) -> Any:
    return tuple(map(_tupled, value)) if isinstance(value, list) else value
