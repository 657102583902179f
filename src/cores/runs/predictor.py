"""A trained model that turns rows of a file into records, with what it kept of each graph."""

from collections.abc import Collection, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from cores.config import SetsConfig
from cores.data.inputs.columns import ColumnNames
from cores.data.inputs.sources import CHUNK
from cores.data.raw import Parsed, Rejected, Rows
from cores.errors import UserError
from cores.evaluation.predictions import TOO_LARGE, Predictions, predict_any, unpredicted
from cores.graphs.store import GraphStore
from cores.runs.device import tuned_cpu
from cores.runs.inputs import EncodedGraphs, PredictOptions, check_kind, input_rows
from cores.runs.records import (
    Record,
    RecordFormat,
    add_molecules,
    failed_record,
    prediction_records,
    record_fields,
)
from cores.runs.run import Run
from cores.tasks import TASKS

_UNPREDICTED = f"the model gives no probabilities: {TOO_LARGE}"


class Predictor:
    """A trained model that turns rows of a file into records."""

    def __init__(self, run: Path, options: PredictOptions, device: str = "auto") -> None:
        self.run = Run.open(run, options, device=device)
        self.trained = self.run.trained
        self.options = options

    @property
    def alpha(self) -> float:
        """Error rate of the prediction sets."""
        return self.trained.config.alpha

    @property
    def sets(self) -> SetsConfig:
        """Score and grouping of the prediction sets."""
        return self.trained.config.sets

    def at(self, alpha: float, lam: float | None = None) -> "Predictor":
        """The same model with another error rate of its sets, or another setting of its dial."""
        other = copy(self)
        other.trained = self.trained.at(lam).with_sets(alpha, None, None)
        return other

    @property
    def columns(self) -> ColumnNames:
        """The columns that the user names, else those of the training where they are there."""
        return replace(self.options.columns, remembered=self.run.identity.columns)

    def rows(self, source: str, data_root: Path | None = None, size: int = CHUNK) -> Iterator[Rows]:
        """Read an input in chunks of ``size`` rows."""
        reach = self.trained.schema.encoding.reach
        return input_rows(source, self.columns, data_root, size, reach)

    @property
    def reads_molecules(self) -> bool:
        """Whether the model was trained on molecules."""
        return self.trained.schema.encoding.kind == "molecules"

    @property
    def fields(self) -> tuple[str, ...]:
        """Fields of its records."""
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
        """Predict rows, one record each, in order; rows that are no graphs have an error."""
        schema = self.trained.schema
        check_kind(rows, schema)
        parsed = rows.parse(schema.encoding.layout)
        by_position = self.failed(parsed.rejected)
        if len(parsed.graphs):
            found = self.predicted(parsed)
            by_position |= dict(zip(found.positions, found.records, strict=True))
            by_position |= self.failed(found.rejected)
        return [by_position[position] for position in sorted(by_position)]

    def failed(self, rejected: Sequence[Rejected]) -> dict[int, Record]:
        """The records of rows that cannot be used, by position; refuses them if asked to."""
        if rejected and self.options.on_error == "fail":
            raise UserError(f'{rejected[0]}; mend it, or set on_error="skip"')
        return {
            row.position: failed_record(row.id, f"line {row.line}: {row.reason}", self.fields)
            for row in rejected
        }

    def predicted(self, parsed: Parsed, chosen: Collection[int] | None = None) -> "PredictedGraphs":
        """Predict parsed graphs, or some of them."""
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
        """Predict graphs that have the model's columns.

        Without ``parts`` records do not list what is kept; those of molecules always do.
        """
        if not len(graphs):
            return PredictedGraphs(graphs, None, [], [], [], [], [])
        predictions = predict_any(self.trained.model, graphs.to(self.run.device)).cpu()
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


@dataclass(frozen=True)
class PredictedGraphs:
    """Graphs, what the model predicts for each, and where they stand in the input."""

    graphs: GraphStore
    predictions: Predictions | None
    """None where there are no graphs."""
    records: list[Record]
    positions: list[int]
    """Position of each graph's row in the input, from 0."""
    labels: list[Any]
    """As the input has them, None where it has none."""
    molecules: list[Any]
    """Molecules of rdkit; empty for other graphs."""
    rejected: list[Rejected]
    """Rows that cannot be used; among them graphs that the model has no prediction for."""
