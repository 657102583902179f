"""Where explained graphs come from: an input of the user's, or the test graphs of a run."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch

from cores.data.inputs.labelled import label_text
from cores.data.inputs.sources import CHUNK, holds_rows
from cores.data.lists import plain_labels
from cores.runs.inputs import check_kind, input_rows
from cores.runs.predictor import PredictedGraphs, Predictor


def input_graphs(
    predictor: Predictor,
    source: str,
    data_root: Path | None = None,
) -> Iterator[PredictedGraphs]:
    """The graphs of an input, predicted chunk by chunk, as `cores predict` does."""
    schema = predictor.trained.schema
    for rows in predictor.rows(source, data_root):
        check_kind(rows, schema)
        parsed = rows.parse(schema.encoding.layout)
        predictor.failed(parsed.rejected)
        found = predictor.predicted(parsed)
        predictor.failed(found.rejected)
        found.rejected.extend(parsed.rejected)
        yield found


def held_out_graphs(
    predictor: Predictor, data_root: Path | None = None
) -> Iterator[PredictedGraphs]:
    """The test graphs of a run, predicted chunk by chunk and counted from 0."""
    run = predictor.run
    source, test, dataset = run.identity.source, run.trained.test, run.dataset(data_root)
    places = {place: number for number, place in enumerate(test.sort().values.tolist())}
    if holds_rows(Path(source)):  # a dataset does not keep the molecules of its file
        yield from _test_rows(predictor, source, places)
        return
    labels = plain_labels(dataset)
    for part in torch.tensor(list(places), dtype=torch.int64).split(CHUNK):
        chosen = part.tolist()
        yield predictor.predicted_graphs(
            dataset.graphs.subset(part),
            [dataset.graph_name(place) for place in chosen],
            [places[place] for place in chosen],
            [place + 1 for place in chosen],
            [labels[place] for place in chosen],
        )


def _test_rows(
    predictor: Predictor, source: str, places: dict[int, int]
) -> Iterator[PredictedGraphs]:
    """The test graphs of a file of rows; its dataset has the usable rows that have a label."""
    schema = predictor.trained.schema
    known, task, layout = schema.class_names, schema.task, schema.encoding.layout
    before = 0
    for rows in input_rows(source, predictor.run.identity.columns, None, CHUNK):
        parsed = rows.parse(layout)
        labelled = [
            at
            for at, label in enumerate(parsed.labels)
            if label_text(label, known, task) is not None
        ]
        numbers = dict(enumerate(labelled, before))
        before += len(labelled)
        chosen = {at: places[number] for number, at in numbers.items() if number in places}
        found = predictor.predicted(parsed, chosen)
        by_position = {parsed.positions[at]: number for at, number in chosen.items()}
        yield replace(
            found,
            positions=[by_position[position] for position in found.positions],
            rejected=[
                replace(row, position=by_position[row.position])
                for row in found.rejected
                if row.position in by_position
            ],
        )
