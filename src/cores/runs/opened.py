"""A finished run, opened: its data, and records of new graphs with what its model kept of each."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from cores.config import RunConfig, SetsConfig
from cores.data.dataset import Dataset
from cores.data.datasets import load_dataset
from cores.data.inputs.columns import ColumnNames
from cores.data.inputs.sources import CHUNK
from cores.data.raw import Parsed, Rejected, Rows
from cores.data.splits import split_dataset
from cores.errors import UserError
from cores.evaluation.predictions import TOO_LARGE, Predictions, predict_any, unpredicted
from cores.graphs.store import GraphStore
from cores.runs.device import choose_device, tuned_cpu
from cores.runs.folder import MODEL, Identity
from cores.runs.inputs import EncodedGraphs, PredictOptions, check_kind, input_rows
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
from cores.training.judge import Judge, judge_of
from cores.training.supervised import Report, no_report

_UNPREDICTED = f"the model gives no probabilities: {TOO_LARGE}"


@dataclass(frozen=True)
class Run:
    """A finished run, opened: its model, which predicts new graphs, and its data."""

    folder: Path
    identity: Identity
    trained: TrainedModel
    """On the device."""
    device: torch.device
    options: PredictOptions

    @classmethod
    def open(
        cls, folder: Path, options: PredictOptions | None = None, *, device: str = "auto"
    ) -> "Run":
        """Open the folder of a finished run, with the sets and parts that were asked for."""
        chosen, options = choose_device(device), options or PredictOptions()
        trained = TrainedModel.load(folder).showing(options.sufficiency, options.parts)
        trained = trained.with_sets(options.alpha, options.score, options.per_class)
        trained.model.to(chosen)
        return cls(folder, Identity.read(folder), trained, chosen, options)

    @property
    def config(self) -> RunConfig:
        """The settings of the run, with the prediction sets that were asked for."""
        return self.trained.config

    @property
    def alpha(self) -> float:
        """Error rate of the prediction sets."""
        return self.config.alpha

    @property
    def sets(self) -> SetsConfig:
        """Score and grouping of the prediction sets."""
        return self.config.sets

    def at(self, alpha: float, sufficiency: float | None = None) -> "Run":
        """The same model with another error rate of its sets, or another sufficiency."""
        shown = self.trained.showing(sufficiency)
        return replace(self, trained=shown.with_sets(alpha, None, None))

    def dataset(self, data_root: Path | None = None) -> Dataset:
        """Read the data of the run again; refuse them where they have changed.

        Args:
            data_root: Folder of the named datasets.
        """
        data = self.read(self.identity.source, data_root)
        self.identity.check_data(data)
        self._check_test(data)
        return data

    def read(self, source: str, data_root: Path | None = None) -> Dataset:
        """Read the run's data from a place, by the columns that the run has read."""
        return load_dataset(
            source,
            data_root,
            columns=self.identity.columns,
            task=self.trained.task,
            reach=self.config.network.reach,
        )

    def test_graphs(self, data: Dataset) -> tuple[GraphStore, list[str]]:
        """The test graphs among those of the run's dataset, on its device, and their names."""
        self._check_test(data)
        names = [data.graph_name(at) for at in self.trained.test.tolist()]
        return data.graphs.subset(self.trained.test).to(self.device), names

    def judge(self, data: Dataset, report: Report = no_report) -> Judge | None:
        """The judge of the test graphs; None without one, or where it could have learnt them."""
        test = split_dataset(data, self.config.split, self.config.parts).test
        if self.config.spec.removes is None or not torch.equal(self.trained.test, test):
            return None
        return judge_of(data, self.config, self.device, report)

    def _check_test(self, data: Dataset) -> None:
        if not bool((self.trained.test < len(data)).all()):
            raise UserError(
                f"{self.folder / MODEL} names test graphs that the dataset does not have"
            )

    @property
    def columns(self) -> ColumnNames:
        """The columns that the user names, else those of the training where they are there."""
        return replace(self.options.columns, remembered=self.identity.columns)

    def rows(self, source: str, data_root: Path | None = None, size: int = CHUNK) -> Iterator[Rows]:
        """Read an input in chunks of ``size`` rows."""
        reach = self.trained.schema.encoding.reach
        return input_rows(source, self.columns, data_root, size, reach)

    @property
    def reads_molecules(self) -> bool:
        """True for a model that was trained on molecules."""
        return self.trained.schema.encoding.kind == "molecules"

    @property
    def fields(self) -> tuple[str, ...]:
        """Fields of its records."""
        return record_fields(self.reads_molecules, self.trained.has_committee, self.trained.task)

    @property
    def promise(self) -> str:
        """The promise of its prediction sets, in words."""
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
        predictions = predict_any(self.trained.model, graphs.to(self.device)).cpu()
        records = self._records(graphs, predictions, ids, parts or bool(molecules))
        if molecules:
            add_molecules(records, molecules, graphs, predictions)
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
