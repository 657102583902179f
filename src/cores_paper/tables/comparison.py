"""All models side by side: accuracy, average rank, kept ratios, and the paper's numbers."""

from collections.abc import Sequence
from dataclasses import dataclass

from cores.config import Removal
from cores.config.models import model_spec
from cores.data.catalogue import PAPER_DATASETS
from cores.runs.rows import Row, Spread, matching, spread
from cores_paper.tables.cells import AccuracyCell
from cores_paper.tables.price import CONFIDENCE, paired_difference, price_table
from cores_paper.tables.rows import rows_of_conv
from cores_paper.tables.style import TIE, model_title, ordered_datasets, ordered_models, percent
from cores_paper.tables.table import Bold, Cell, Table
from cores_paper.tables.targets import PLAIN_GNN, paper_baselines, published_metric


@dataclass(frozen=True)
class KeptRatio:
    """A kept ratio, and what a model must remove to have it below 1."""

    caption: str
    removals: tuple[Removal, ...]


KEPT = {
    "node_ratio": KeptRatio("Nodes kept", ("node", "both")),
    "edge_ratio": KeptRatio("Edges kept", ("node", "edge", "both")),
}


def accuracy_table(rows: Sequence[Row], conv: str, metric: str = "accuracy") -> Table:
    """A metric of every model on every dataset; for the accuracy, with average ranks.

    A model ranks on a dataset by its mean among the models that ran on it, 1 being the best; ties
    share their ranks. The first average is over the datasets that a model ran on, as in the paper,
    the second over those that all models ran on. A cell with missing runs gives the number it has,
    and does not rank.
    """
    models = _models(rows)
    spreads = _spreads(rows, conv, metric)
    datasets = [
        name for name in _datasets(rows) if any((name, model) in spreads for model in models)
    ]
    runs = max((value.runs for value in spreads.values()), default=0)
    complete = {key: value for key, value in spreads.items() if value.runs == runs}
    lines: list[list[Cell]] = []
    for dataset in datasets:
        means = [complete[dataset, model].mean for model in models if (dataset, model) in complete]
        best = max(means, default=1.0)
        cells = [_cell(spreads.get((dataset, model)), runs, best) for model in models]
        lines.append([dataset, *cells])
    if metric == "accuracy" and len(models) > 1:
        ranks = {name: _ranks(complete, name, models) for name in datasets}
        shared = [name for name in datasets if len(ranks[name]) == len(models)]
        titles = {"rank, own datasets": datasets, f"rank, {len(shared)} shared datasets": shared}
        for title, names in titles.items():
            averages = [
                _mean([ranks[name][model] for name in names if model in ranks[name]])
                for model in models
            ]
            lines.append([title, *averages])
    return Table(["dataset", *map(model_title, models)], lines)


def kept_table(rows: Sequence[Row], conv: str, metric: str) -> Table | None:
    """The ratio of nodes or edges that models keep, the paper's in brackets.

    It has every model that removes nodes or edges respectively; removing nodes removes their edges,
    too. None without such a model. The last line is the average rank over the datasets that a model
    ran on, the sparsest being 1.
    """
    spreads = _spreads(rows, conv, metric)
    runs = max((value.runs for value in spreads.values()), default=0)
    measured = {model for _, model in spreads}
    models = [
        model
        for model in _models(rows)
        if model in measured and model_spec(model).removes in KEPT[metric].removals
    ]
    if not models:
        return None
    lines = []
    ranks: dict[str, list[float]] = {model: [] for model in models}
    for dataset in _datasets(rows):
        kept = {model: spreads.get((dataset, model)) for model in models}
        means = {model: value.mean for model, value in kept.items() if value and value.runs == runs}
        for model, mean in means.items():
            ranks[model].append(rank(-mean, [-other for other in means.values()]))
        texts = [
            percent(value)
            + _in_brackets(published_metric(dataset, conv, model, metric))
            + _runs_note(value, runs)
            for model, value in kept.items()
        ]
        lines.append([dataset, *texts])
    lines.append(["rank, own datasets", *(_mean(ranks[model]) for model in models)])
    return Table(["dataset", *map(model_title, models)], lines)


def coverage_table(rows: Sequence[Row], conv: str) -> Table:
    """Coverage of the prediction sets, and their mean size."""
    models = _models(rows)
    coverage, sizes = (_spreads(rows, conv, metric) for metric in ("coverage", "set_size"))
    lines = [
        [
            dataset,
            *(
                f"{percent(coverage[dataset, model])} / {sizes[dataset, model].mean:.2f}"
                if (dataset, model) in coverage
                else "–"
                for model in models
            ),
        ]
        for dataset in _datasets(rows)
    ]
    return Table(["dataset", *map(model_title, models)], lines)


def baselines_table(rows: Sequence[Row], conv: str) -> Table:
    """The paper's baselines: our accuracy, the paper's in brackets, and how many are reached.

    Reached is a mean of at least the paper's minus one of its deviations.
    """
    cells = {
        model: {cell.dataset: cell for cell in _baseline_cells(rows, model, conv)}
        for model in paper_baselines()
    }
    models = [model for model in cells if cells[model]]
    lines = []
    for dataset in PAPER_DATASETS:
        found = [cells[model].get(dataset) for model in models]
        if any(found):
            lines.append([dataset, *(_beside_the_paper(cell) for cell in found)])
    counts = [
        f"{sum(cell.reached for cell in cells[model].values())} of {len(cells[model])}"
        for model in models
    ]
    lines.append(["reached", *counts])
    return Table(["dataset", *map(model_title, models)], lines)


def _baseline_cells(rows: Sequence[Row], model: str, conv: str) -> list[AccuracyCell]:
    """A baseline on the datasets that the paper reports it on and that no run is missing on."""
    spreads = _spreads(rows, conv, "accuracy")
    runs = max((value.runs for value in spreads.values()), default=0)
    cells = []
    for dataset in PAPER_DATASETS:
        ours = spreads.get((dataset, model))
        paper = published_metric(dataset, conv, model, "accuracy")
        if ours is not None and ours.runs == runs and paper is not None:
            cells.append(AccuracyCell(dataset, ours, paper))
    return cells


def _beside_the_paper(cell: AccuracyCell | None) -> str:
    if cell is None:
        return "–"
    mark = "" if cell.reached else " short"
    return f"{percent(cell.ours)}{_in_brackets(cell.paper)}{mark}"


def gnn_difference_table(rows: Sequence[Row], conv: str) -> Table:
    """Every model's accuracy minus the plain GNN's on the same test graphs, with an interval.

    A cell gives its number of splits where others share more splits with the GNN.
    """
    models = [model for model in _models(rows) if model != PLAIN_GNN]
    differences = {}
    for dataset in _datasets(rows):
        dataset_rows = matching(rows_of_conv(rows, conv), {"dataset": dataset})
        gnn = matching(dataset_rows, {"model": PLAIN_GNN})
        for model in models:
            model_rows = matching(dataset_rows, {"model": model})
            difference = paired_difference(model_rows, gnn, "accuracy")
            if difference is not None:
                differences[dataset, model] = difference
    most = max((difference.splits for difference in differences.values()), default=0)
    lines = []
    for dataset in _datasets(rows):
        texts = []
        for model in models:
            difference = differences.get((dataset, model))
            if difference is None:
                texts.append("–")
                continue
            missing = difference.splits < most
            note = f" ({difference.splits} of {most} splits)" if missing else ""
            texts.append(f"{difference}{note}")
        if any((dataset, model) in differences for model in models):
            lines.append([dataset, *texts])
    return Table(["dataset", *map(model_title, models)], lines)


def comparison_tables(rows: Sequence[Row], conv: str) -> dict[str, Table]:
    """Every table of a comparison that there are runs for, by caption."""
    models = _models(rows)
    tables = {
        "Accuracy": accuracy_table(rows, conv),
        "Balanced accuracy": accuracy_table(rows, conv, "balanced_accuracy"),
    }
    splits = len({row["split"] for row in rows})
    if splits > 1 and len(models) > 1 and PLAIN_GNN in models:
        caption = f"Accuracy less the GNN's on the same test graphs, {CONFIDENCE:.0%} interval"
        tables[caption] = gnn_difference_table(rows, conv)
        price = price_table(rows, conv)
        if price is not None:
            tables["What CORES costs and gains, in points on the same test graphs"] = price
    for metric, ratio in KEPT.items():
        table = kept_table(rows, conv, metric)
        if table is not None:
            tables[f"{ratio.caption}, the paper's in brackets"] = table
    judged = [row for row in rows if row["judge_accuracy"]]
    if judged:
        caption = "Accuracy of a judge on what is kept"
        tables[caption] = accuracy_table(judged, conv, "judge_accuracy")
    if any(model in paper_baselines() for model in models):
        tables["Accuracy beside the paper's"] = baselines_table(rows, conv)
    return tables


def _models(rows: Sequence[Row]) -> list[str]:
    return ordered_models(row["model"] for row in rows)


def _datasets(rows: Sequence[Row]) -> list[str]:
    return ordered_datasets(row["dataset"] for row in rows)


def _spreads(rows: Sequence[Row], conv: str, metric: str) -> dict[tuple[str, str], Spread]:
    """The spread of a metric by dataset and model, where there are runs."""
    conv_rows = rows_of_conv(rows, conv)
    return {
        (dataset, model): value
        for dataset in _datasets(rows)
        for model in _models(rows)
        if (value := spread(conv_rows, metric, dataset=dataset, model=model)) is not None
    }


def _ranks(
    spreads: dict[tuple[str, str], Spread], dataset: str, models: Sequence[str]
) -> dict[str, float]:
    means = {model: spreads[dataset, model].mean for model in models if (dataset, model) in spreads}
    return {model: rank(value, list(means.values())) for model, value in means.items()}


def rank(value: float, among: Sequence[float]) -> float:
    """Rank of a value, 1 being the largest; ties share the mean of their ranks.

    >>> [rank(value, [0.9, 0.8, 0.8, 0.7]) for value in (0.9, 0.8, 0.7)]
    [1.0, 2.5, 4.0]
    """
    better = sum(other - value > TIE for other in among)
    equal = sum(abs(other - value) <= TIE for other in among)
    return better + (equal + 1) / 2


def _cell(value: Spread | None, runs: int, best: float) -> Cell:
    """Mean and deviation, the best in bold, with the number of runs where some are missing."""
    if value is None or value.runs < runs:
        return percent(value) + _runs_note(value, runs)
    return Bold(percent(value)) if best - value.mean <= TIE else percent(value)


def _in_brackets(paper: Spread | None) -> str:
    return "" if paper is None else f" ({percent(paper)})"


def _runs_note(value: Spread | None, runs: int) -> str:
    """The number of runs behind a cell, where some are missing."""
    return "" if value is None or value.runs == runs else f" ({value.runs} of {runs} runs)"


def _mean(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):.2f}" if values else "–"
