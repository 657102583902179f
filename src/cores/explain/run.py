"""Explanations of the test graphs of a run."""

from pathlib import Path

from cores.data.datasets import load_dataset
from cores.data.splits import split_dataset
from cores.evaluation.predictions import predict
from cores.explain.explanation import Explanation, explanations
from cores.runs.device import tuned_cpu
from cores.runs.folder import check_data, read_columns, read_source
from cores.runs.trained import TrainedModel


@tuned_cpu()
def explain_test_graphs(
    out: Path, count: int, *, data_root: Path | None = None
) -> tuple[list[Explanation], tuple[str, ...]]:
    """What the model of a finished run kept of its first test graphs, and the class names."""
    trained = TrainedModel.load(out)
    config = trained.config
    dataset = load_dataset(read_source(out), data_root, columns=read_columns(out))
    check_data(out, dataset)
    test = split_dataset(dataset, config.split, config.parts).test
    graphs = dataset.graphs.subset(test[:count])
    predictions = predict(trained.model, graphs)
    sets = None
    if len(trained.calibration):
        sets = trained.calibration.sets(predictions.probs, config.alpha, config.sets)
    names = trained.schema.class_names
    return list(explanations(graphs, predictions, names, sets, labelled=True)), names
