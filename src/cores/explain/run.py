"""Explanations by the model of a run: of its test graphs, or of any input."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from cores.data.inputs.sources import CHUNK, holds_rows
from cores.data.labels import label_text, plain_labels
from cores.errors import UserError
from cores.explain.drawing import draw_graphs
from cores.explain.explanation import Explanation, explain_graphs
from cores.explain.plotting import WRONG, figure_bytes
from cores.explain.report import REPORT, json_lines, report_page, write_pictures
from cores.explain.survey import Conditions, Survey
from cores.files import make_folder, write_atomically
from cores.files.escape import figure as figure_text
from cores.runs.inputs import PredictOptions, check_kind, input_rows
from cores.runs.opened import PredictedGraphs, Run


def explain_test_graphs(
    out: Path, count: int, *, data_root: Path | None = None
) -> tuple[list[Explanation], tuple[str, ...]]:
    """Explain the first test graphs of a finished run; also return the class names."""
    run = Run.open(out, device="cpu")
    trained = run.trained
    trained.need_classes("a picture of test graphs")
    graphs = run.dataset(data_root).graphs.subset(trained.test[:count])
    names = trained.schema.class_names
    return explain_graphs(trained, graphs, names, run.config.alpha, labelled=True), names


def draw_subgraphs(
    explanations: Sequence[Explanation], class_names: Sequence[str], path: Path
) -> None:
    """Draw graphs, their kept parts strong, into a PNG."""
    from matplotlib.figure import Figure

    columns = 3
    figure = Figure(figsize=(10, 3 * -(-len(explanations) // columns) + 0.5))
    titles = []
    for each in explanations:
        text = (
            f"true {figure_text(class_names[int(each.y)])}, predicted "
            f"{figure_text(each.prediction)} ({float(each.probabilities.max()):.2f})\n"
            f"{each.kept_text}"
        )
        wrong = {"label": f"WRONG: {text}", "color": WRONG, "fontweight": "bold"}
        titles.append(wrong if each.correct is False else {"label": text})
    drawings = [each.drawing for each in explanations]
    edges_alone = all(bool(each.node_mask.all()) for each in explanations)
    draw_graphs(figure, drawings, titles, edges_alone=edges_alone, columns=columns)
    write_atomically(path, figure_bytes(figure, "png", dpi=130))


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
    """Explain graphs of an input, or a run's test graphs; returns what was written and found.

    ``out`` is a file that ends in .html or .jsonl, or a folder to make; None is ``report.html`` in
    the run folder, which is the only one that is replaced where it exists.
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
    """Predict the test graphs of a file; its dataset has the usable rows that have a label."""
    schema = predictor.trained.schema
    labelled = 0
    for rows in input_rows(source, predictor.identity.columns, None, CHUNK):
        parsed, positions = rows.parse(schema.encoding.layout), []
        for label in parsed.labels:
            known = label_text(label, schema.class_names, schema.task) is not None
            positions.append(places.get(labelled, -1) if known else -1)
            labelled += known
        chosen = [at for at, position in enumerate(positions) if position >= 0]
        found = predictor.predicted(replace(parsed, positions=positions), chosen)
        yield replace(found, rejected=[row for row in found.rejected if row.position >= 0])
