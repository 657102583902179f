"""Explanations by the model of a run: of its test graphs, or of any input."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch

from cores.data.inputs.sources import CHUNK, holds_rows
from cores.data.labels import label_text, plain_labels
from cores.errors import UserError
from cores.evaluation.effects import element_effects
from cores.evaluation.predictions import predict
from cores.explain.explanation import Explanation, explanations
from cores.explain.report import REPORT, json_lines, report_page, write_pictures
from cores.explain.survey import Conditions, Survey
from cores.files import make_folder, write_atomically
from cores.runs.device import tuned_cpu
from cores.runs.inputs import PredictOptions, check_kind, input_rows
from cores.runs.opened import PredictedGraphs, Run


@tuned_cpu()
def explain_test_graphs(
    out: Path, count: int, *, data_root: Path | None = None
) -> tuple[list[Explanation], tuple[str, ...]]:
    """Explain the first test graphs of a finished run; returns the class names, too."""
    run = Run.open(out, device="cpu")
    trained, config = run.trained, run.config
    trained.need_classes("a picture of test graphs")
    graphs = run.dataset(data_root).graphs.subset(trained.test[:count])
    predictions = predict(trained.model, graphs)
    sets = None
    if len(trained.calibration):
        sets = trained.calibration.sets(predictions.probs, config.alpha, config.sets)
    names = trained.schema.class_names
    effects = element_effects(trained.model, graphs)
    task = trained.task
    found = explanations(graphs, predictions, names, sets, task, labelled=True, effects=effects)
    return list(found), names


def explain_run(
    run: Path,
    source: str | None,
    out: Path | None,
    choice: Conditions,
    options: PredictOptions,
    *,
    device: str = "auto",
    data_root: Path | None = None,
) -> tuple[Path, Survey]:
    """Explain graphs of an input, or a run's test graphs, in a file or folder.

    Args:
        run: The run folder.
        source: An input as for predictions; None for the test graphs.
        out: A file that ends in .html or .jsonl, or a folder to make; None for ``report.html`` in
            the run folder, which is the only one that is replaced where it exists.
        choice: Which graphs to show.
        options: How graphs are predicted.
        device: Where to compute.
        data_root: Folder of the named datasets.

    Returns:
        What was written, and what was found.
    """
    path = run / REPORT if out is None else out
    if path.suffix.lower() not in (".html", ".jsonl", ""):
        raise UserError(f"`out` must end in .html or .jsonl, or be a folder, got {path.name}")
    if out is not None and out.exists():
        raise UserError(f"{out} exists already; delete it, or choose another `out`")
    predictor = Run.open(run, options, device=device)
    chunks = (
        held_out_graphs(predictor, data_root)
        if source is None
        else input_graphs(predictor, source, data_root)
    )
    survey = Survey.of(predictor.trained, chunks, choice)
    if path.suffix.lower() == "":
        write_pictures(survey.shown, path)
        return path, survey
    if path.suffix.lower() == ".jsonl":
        content = json_lines(survey.shown)
    else:
        name = "the run's test part" if source is None else Path(source).name
        content = report_page(run, predictor, survey, choice, name).encode()
    make_folder(path.absolute().parent)
    write_atomically(path, content)
    return path, survey


def input_graphs(
    predictor: Run,
    source: str,
    data_root: Path | None = None,
) -> Iterator[PredictedGraphs]:
    """Predict the graphs of an input chunk by chunk, as `cores predict` does."""
    schema = predictor.trained.schema
    for rows in predictor.rows(source, data_root):
        check_kind(rows, schema)
        parsed = rows.parse(schema.encoding.layout)
        predictor.failed(parsed.rejected)
        found = predictor.predicted(parsed)
        predictor.failed(found.rejected)
        found.rejected.extend(parsed.rejected)
        yield found


def held_out_graphs(predictor: Run, data_root: Path | None = None) -> Iterator[PredictedGraphs]:
    """Predict the test graphs of a run chunk by chunk, counted from 0."""
    source, test = predictor.identity.source, predictor.trained.test
    dataset = predictor.dataset(data_root)
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


def _test_rows(predictor: Run, source: str, places: dict[int, int]) -> Iterator[PredictedGraphs]:
    """The test graphs of a file of rows; its dataset has the usable rows that have a label."""
    schema = predictor.trained.schema
    known, task, layout = schema.class_names, schema.task, schema.encoding.layout
    before = 0
    for rows in input_rows(source, predictor.identity.columns, None, CHUNK):
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
