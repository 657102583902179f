"""A trained model that turns rows of a file into records, with what it kept of each graph."""

from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from cores.config import SetsConfig
from cores.data.inputs.columns import ColumnNames
from cores.data.inputs.labelled import OnError
from cores.data.inputs.sources import Rows
from cores.data.raw import Parsed, Rejected
from cores.errors import UserError
from cores.evaluation.predictions import TOO_LARGE, Predictions, predict_any, unpredicted
from cores.graphs.store import GraphStore
from cores.runs.device import choose_device, tuned_cpu
from cores.runs.folder import read_columns
from cores.runs.inputs import EncodedGraphs, OnUnknown, check_kind
from cores.runs.records import (
    Record,
    RecordFormat,
    add_molecules,
    failed_record,
    prediction_records,
    record_fields,
)
from cores.runs.trained import TrainedModel
from cores.tasks import TASKS

_UNPREDICTED = f"the model gives no probabilities: {TOO_LARGE}"


@dataclass(frozen=True)
class PredictOptions:
    """How graphs are predicted."""

    alpha: float | None = None
    """Error rate of the prediction sets; None: the run's."""
    score: str | None = None
    """Conformal score; None: the run's."""
    per_class: bool | None = None
    """Whether every class is covered as often; None: the run's."""
    lam: float | None = None
    """Setting of the model's dial, where it has one; None: the run's."""
    columns: ColumnNames = field(default_factory=ColumnNames)
    on_error: OnError = "skip"
    """Rows that are no graphs: ``skip`` gives them a record with an error, ``fail`` stops."""
    on_unknown: OnUnknown = "error"
    """Labels of nodes or edges that no graph of the training had."""


def run_columns(run: Path, options: PredictOptions) -> ColumnNames:
    """The columns that the user names, else those of the training where they are there again."""
    return replace(options.columns, remembered=read_columns(run))


class Predictor:
    """A trained model that turns rows of a file into records."""

    def __init__(self, run: Path, options: PredictOptions, device: str = "auto") -> None:
        self.trained = TrainedModel.load(run).at(options.lam)
        self.options = options
        self.device = choose_device(device)
        self.trained.model.to(self.device)
        config = self.trained.config
        self.alpha = _checked(config.alpha if options.alpha is None else options.alpha)
        if options.score is not None or options.per_class is not None:
            self.trained.need_sets("a choice of `score` or `per_class`")
        self.sets: SetsConfig = config.sets.changed(options.score, options.per_class)

    def at(self, alpha: float, lam: float | None = None) -> "Predictor":
        """The same model with another error rate of its sets, or another setting of its dial."""
        other = copy(self)
        other.alpha = _checked(alpha)
        other.trained = self.trained.at(lam)
        return other

    @property
    def reads_molecules(self) -> bool:
        """Whether the model was trained on molecules."""
        return self.trained.schema.encoding.kind == "molecules"

    @property
    def fields(self) -> tuple[str, ...]:
        """Of its records."""
        return record_fields(self.reads_molecules, self.trained.lam is not None, self.trained.task)

    @property
    def promise(self) -> str:
        """What its sets promise, in words."""
        return self.trained.calibration.promise(self.alpha, self.sets.per_class)

    def format_of(self, path: Path) -> RecordFormat:
        """The format in which its records are written to a file."""
        schema = self.trained.schema
        return RecordFormat.of(path, self.fields, schema.labels, schema.class_names, schema.task)

    def records(self, rows: Rows) -> list[Record]:
        """One record per row, in order; rows that are no graphs have an error."""
        schema = self.trained.schema
        check_kind(rows, schema)
        parsed = rows.parse(schema.encoding.layout)
        by_position = self.failed(parsed.rejected)
        if len(parsed.graphs):
            by_position |= self._predicted(parsed)
        return [by_position[position] for position in sorted(by_position)]

    def failed(self, rejected: Sequence[Rejected]) -> dict[int, Record]:
        """The records of rows that cannot be used, by position; refuses them if asked to."""
        if rejected and self.options.on_error == "fail":
            raise UserError(f'{rejected[0]}; mend it, or set on_error="skip"')
        return {
            row.position: failed_record(row.id, f"line {row.line}: {row.reason}", self.fields)
            for row in rejected
        }

    def _predicted(self, parsed: Parsed) -> dict[int, Record]:
        """The records of graphs, by position."""
        found = self.predicted(parsed)
        return dict(zip(found.positions, found.records, strict=True)) | self.failed(found.rejected)

    def predicted(self, parsed: Parsed, chosen: Collection[int] | None = None) -> "PredictedGraphs":
        """What the model predicts for parsed graphs, or for some of them."""
        encoded = EncodedGraphs.of(parsed, self.trained.schema, self.options.on_unknown)
        self.failed(encoded.rejected)  # refuses them, if that was asked for
        graphs, index = encoded.graphs, encoded.index
        if chosen is not None:
            places = [place for place, at in enumerate(index) if at in chosen]
            graphs = graphs.subset(torch.tensor(places, dtype=torch.int64))
            index = [index[place] for place in places]

        def of(values: Sequence[Any]) -> list[Any]:
            return [values[at] for at in index] if values else []

        rows = of(parsed.ids), of(parsed.positions), of(parsed.lines), of(parsed.labels)
        found = self.predicted_graphs(graphs, *rows, of(parsed.molecules))
        return replace(found, rejected=[*encoded.rejected, *found.rejected])

    @tuned_cpu()
    def predicted_graphs(
        self,
        graphs: GraphStore,
        ids: Sequence[str],
        positions: Sequence[int],
        lines: Sequence[int],
        labels: Sequence[Any],
        molecules: Sequence[Any] = (),
        *,
        parts: bool = True,
    ) -> "PredictedGraphs":
        """What the model predicts for graphs that have its columns.

        Without ``parts`` records do not list what is kept; those of molecules always do.
        """
        if not len(graphs):
            return PredictedGraphs(graphs, None, [], [], [], [], [])
        predictions = predict_any(self.trained.model, graphs.to(self.device)).cpu()
        records = self._records(graphs, predictions, ids, parts or bool(molecules))
        if molecules:
            add_molecules(records, molecules, graphs, predictions)
        if self.trained.lam is not None:
            records = [record | {"lam": self.trained.lam} for record in records]
        missing = unpredicted(predictions.probs).nonzero().flatten().tolist()
        rejected = [Rejected(positions[at], lines[at], ids[at], _UNPREDICTED) for at in missing]
        return PredictedGraphs(
            graphs, predictions, records, list(positions), list(labels), list(molecules), rejected
        )

    def _records(
        self, graphs: GraphStore, predictions: Predictions, ids: Sequence[str], parts: bool
    ) -> list[Record]:
        calibration, schema = self.trained.calibration, self.trained.schema
        sets, p_values = None, None
        if len(calibration):
            sets = calibration.sets(predictions.probs, self.alpha, self.sets)
            p_values = calibration.p_values(predictions.probs, self.sets)
        told = TASKS[schema.task].records(
            predictions.probs, schema.labels, schema.class_names, sets, p_values
        )
        return prediction_records(graphs, predictions, ids, told, parts=parts)


def _checked(alpha: float) -> float:
    if not 0 < alpha < 1:
        raise UserError(f"`alpha` must lie in (0, 1), got {alpha}")
    return alpha


@dataclass(frozen=True)
class PredictedGraphs:
    """Graphs, what the model predicts for each, and where they stand in the input."""

    graphs: GraphStore
    predictions: Predictions | None
    """None where there are no graphs."""
    records: list[Record]
    positions: list[int]
    """Of each graph's row in the input, from 0."""
    labels: list[Any]
    """As the input has them, None where it has none."""
    molecules: list[Any]
    """Of rdkit; empty for other graphs."""
    rejected: list[Rejected]
    """Rows that cannot be used; among them graphs that the model has no prediction for."""
