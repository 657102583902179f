"""All models beside each other: accuracy, average rank, what is kept, and the paper's figures."""

from collections.abc import Sequence

from cores.config.models import MODELS
from cores.config.presets import PAPER_DATASETS
from cores.paper.paired import CONFIDENCE, paired
from cores.paper.tables import TIE, Cell, of_conv, paper_first, percent, reported
from cores.runs.rows import Row, Spread, matching, spread
from cores.runs.table import Bold, Table
from cores.runs.table import Cell as TableCell

NAMES = {name: row.title for name, row in MODELS.items()}
"""What tables call the models, in their order."""
KEEPING = tuple(name for name, row in MODELS.items() if row.removes is not None)
KEPT = {"node_ratio": "Nodes kept", "edge_ratio": "Edges kept"}
COMPARED = ("sagpool", "diffpool", "sugar", "gpool")
"""The baselines that the paper reports."""


def accuracies(rows: Sequence[Row], conv: str, figure: str = "accuracy") -> Table:
    """A figure of every model on every dataset; for accuracies, the average ranks below it.

    A model ranks on a dataset by its mean among the models that ran on it, 1 being the best; ties
    share their ranks. The first average is over the datasets that a model ran on, as the paper
    takes it, the second over those that all models ran on. A cell with fewer runs than the others
    says so and does not rank.
    """
    models = _models(rows)
    cells = _cells(rows, conv, figure)
    datasets = [name for name in _datasets(rows) if any((name, each) in cells for each in models)]
    runs = max((cell.runs for cell in cells.values()), default=0)
    lines: list[list[TableCell]] = []
    for dataset in datasets:
        found = [cells.get((dataset, model)) for model in models]
        whole_means = [each.mean for each in found if each is not None and each.runs == runs]
        best = max(whole_means, default=1.0)
        lines.append([dataset, *(_shown(each, runs, best) for each in found)])
    if figure == "accuracy" and len(models) > 1:
        whole = {where: cell for where, cell in cells.items() if cell.runs == runs}
        ranks = {name: _ranks(whole, name, models) for name in datasets}
        shared = [name for name in datasets if len(ranks[name]) == len(models)]
        titles = {"rank, own datasets": datasets, f"rank, {len(shared)} shared datasets": shared}
        for title, names in titles.items():
            averages = [
                _mean([ranks[name][model] for name in names if model in ranks[name]])
                for model in models
            ]
            lines.append([title, *averages])
    return Table(["dataset", *(NAMES[model] for model in models)], lines)


def kept(rows: Sequence[Row], conv: str, figure: str) -> Table | None:
    """The share of nodes or edges that models keep, the paper's in brackets; None if all keep all.

    Below it the average rank over the datasets that a model ran on, the sparsest being 1. A model
    that keeps all of them everywhere is left out.
    """
    cells = _cells(rows, conv, figure)
    runs = max((cell.runs for cell in cells.values()), default=0)
    partial = {model for (_, model), cell in cells.items() if cell.mean < 1}
    models = [model for model in _models(rows) if model in KEEPING and model in partial]
    if not models:
        return None
    lines = []
    ranks: dict[str, list[float]] = {model: [] for model in models}
    for dataset in _datasets(rows):
        found = {model: cells.get((dataset, model)) for model in models}
        whole = {model: cell.mean for model, cell in found.items() if cell and cell.runs == runs}
        for model, share in whole.items():
            ranks[model].append(rank(-share, [-other for other in whole.values()]))
        shown = [
            percent(cell)
            + _in_brackets(reported(dataset, conv, model, figure))
            + _runs_note(cell, runs)
            for model, cell in found.items()
        ]
        lines.append([dataset, *shown])
    lines.append(["rank, own datasets", *(_mean(ranks[model]) for model in models)])
    return Table(["dataset", *(NAMES[model] for model in models)], lines)


def coverages(rows: Sequence[Row], conv: str) -> Table:
    """How often the prediction sets hold the true label, and how many labels they have."""
    models = _models(rows)
    covered, sizes = (_cells(rows, conv, figure) for figure in ("coverage", "set_size"))
    lines = [
        [
            dataset,
            *(
                f"{percent(covered[dataset, model])} / {sizes[dataset, model].mean:.2f}"
                if (dataset, model) in covered
                else "–"
                for model in models
            ),
        ]
        for dataset in _datasets(rows)
    ]
    return Table(["dataset", *(NAMES[model] for model in models)], lines)


def _in_brackets(theirs: Spread | None) -> str:
    return "" if theirs is None else f" ({percent(theirs)})"


def paper_cells(rows: Sequence[Row], model: str, conv: str) -> list[Cell]:
    """A baseline's accuracy beside the paper's, where both exist and no run is missing."""
    cells = _cells(rows, conv, "accuracy")
    runs = max((cell.runs for cell in cells.values()), default=0)
    cells = {where: cell for where, cell in cells.items() if cell.runs == runs}
    pairs = [
        (name, cells.get((name, model)), reported(name, conv, model)) for name in PAPER_DATASETS
    ]
    return [Cell(name, ours, theirs) for name, ours, theirs in pairs if ours and theirs]


def beside_the_paper(rows: Sequence[Row], conv: str) -> Table:
    """Baselines: ours, the paper's in brackets; the last line counts what is reached.

    Reached is a mean of at least the paper's minus one of its deviations.
    """
    found = {
        model: {cell.dataset: cell for cell in paper_cells(rows, model, conv)} for model in COMPARED
    }
    models = [model for model in COMPARED if found[model]]
    lines = []
    for dataset in PAPER_DATASETS:
        cells = [found[model].get(dataset) for model in models]
        if any(cells):
            lines.append([dataset, *(_beside(cell) if cell else "–" for cell in cells)])
    counts = [
        f"{sum(cell.reached for cell in found[each].values())} of {len(found[each])}"
        for each in models
    ]
    lines.append(["reached", *counts])
    return Table(["dataset", *(NAMES[model] for model in models)], lines)


def _beside(cell: Cell) -> str:
    mark = "" if cell.reached else " short"
    return f"{percent(cell.ours)}{_in_brackets(cell.theirs)}{mark}"


def less_the_gnn(rows: Sequence[Row], conv: str) -> Table:
    """Every model's accuracy less the plain GNN's on the same test graphs; the interval's margin.

    The number of splits is given where a model lacks some that others share with the GNN.
    """
    models = [model for model in _models(rows) if model != "gnn"]
    found = {}
    for dataset in _datasets(rows):
        plain = matching(rows, {"dataset": dataset, "model": "gnn", "conv": conv})
        for model in models:
            mine = matching(of_conv(rows, conv), {"dataset": dataset, "model": model})
            found[dataset, model] = paired(mine, plain, "accuracy")
    most = max((each.splits for each in found.values() if each), default=0)
    lines = []
    for dataset in _datasets(rows):
        shown = []
        for model in models:
            each = found[dataset, model]
            note = f" ({each.splits} of {most} splits)" if each and each.splits < most else ""
            shown.append("–" if each is None else f"{each}{note}")
        if any(found[dataset, model] for model in models):
            lines.append([dataset, *shown])
    return Table(["dataset", *(NAMES[model] for model in models)], lines)


def comparison_tables(rows: Sequence[Row], conv: str) -> dict[str, Table]:
    """Every table of a comparison for which there are runs, by its caption."""
    tables = {
        "Accuracy": accuracies(rows, conv),
        "Balanced accuracy": accuracies(rows, conv, "balanced_accuracy"),
    }
    splits = len({row["split"] for row in rows})
    if splits > 1 and len(_models(rows)) > 1 and "gnn" in _models(rows):
        caption = f"Accuracy less the GNN's on the same test graphs, {CONFIDENCE:.0%} interval"
        tables[caption] = less_the_gnn(rows, conv)
    for figure, caption in KEPT.items():
        table = kept(rows, conv, figure)
        if table is not None:
            tables[f"{caption}, the paper's in brackets"] = table
    judged = [row for row in rows if row["judge_accuracy"]]
    if judged:
        tables["Accuracy of a judge on what is kept"] = accuracies(judged, conv, "judge_accuracy")
    if any(row["model"] in COMPARED for row in rows):
        tables["Accuracy beside the paper's"] = beside_the_paper(rows, conv)
    return tables


def _models(rows: Sequence[Row]) -> list[str]:
    measured = {row["model"] for row in rows}
    return [model for model in NAMES if model in measured]


def _datasets(rows: Sequence[Row]) -> list[str]:
    return paper_first(row["dataset"] for row in rows)


def _cells(rows: Sequence[Row], conv: str, figure: str) -> dict[tuple[str, str], Spread]:
    """The spread of a figure by dataset and model."""
    cells = {}
    for dataset in _datasets(rows):
        for model in _models(rows):
            mine = matching(of_conv(rows, conv), {"dataset": dataset, "model": model})
            found = spread(mine, figure)
            if found is not None:
                cells[dataset, model] = found
    return cells


def _ranks(
    cells: dict[tuple[str, str], Spread], dataset: str, models: Sequence[str]
) -> dict[str, float]:
    means = {model: cells[dataset, model].mean for model in models if (dataset, model) in cells}
    return {model: rank(value, list(means.values())) for model, value in means.items()}


def rank(value: float, among: Sequence[float]) -> float:
    """Place of a value when the largest is 1; ties share the mean of their places.

    >>> [rank(value, [0.9, 0.8, 0.8, 0.7]) for value in (0.9, 0.8, 0.7)]
    [1.0, 2.5, 4.0]
    """
    better = sum(other - value > TIE for other in among)
    equal = sum(abs(other - value) <= TIE for other in among)
    return better + (equal + 1) / 2


def _shown(cell: Spread | None, runs: int, best: float) -> TableCell:
    """Mean and deviation, the best in bold, with the number of runs where some are missing."""
    if cell is None or cell.runs < runs:
        return percent(cell) + _runs_note(cell, runs)
    return Bold(percent(cell)) if best - cell.mean <= TIE else percent(cell)


def _runs_note(cell: Spread | None, runs: int) -> str:
    """How many runs a cell has, where some are missing."""
    return "" if cell is None or cell.runs == runs else f" ({cell.runs} of {runs} runs)"


def _mean(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):.2f}" if values else "–"
