"""Explanations by the model of a run: of its test graphs, or of any input."""

from pathlib import Path

from cores.errors import UserError
from cores.evaluation.effects import element_effects
from cores.evaluation.predictions import predict
from cores.explain.explanation import Explanation, explanations
from cores.explain.inputs import held_out_graphs, input_graphs
from cores.explain.report import REPORT, json_lines, report_page, write_pictures
from cores.explain.survey import Choice, Survey
from cores.files import make_folder, write_atomically
from cores.runs.device import tuned_cpu
from cores.runs.inputs import PredictOptions
from cores.runs.predictor import Predictor
from cores.runs.run import Run


@tuned_cpu()
def explain_test_graphs(
    out: Path, count: int, *, data_root: Path | None = None
) -> tuple[list[Explanation], tuple[str, ...]]:
    """What the model of a finished run kept of its first test graphs, and the class names."""
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
    found = explanations(graphs, predictions, names, sets, labelled=True, effects=effects)
    return list(found), names


def explain_run(
    run: Path,
    source: str | None,
    out: Path | None,
    choice: Choice,
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
    predictor = Predictor(run, options, device)
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
