"""The paper's plots: the sparsity reward, and the ablations over d and lambda."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from cores.explain.plotting import COLOURS, MARKERS, save_figure
from cores.runs.rows import Row, Spread, kept_metric, matching, spread
from cores_paper.tables.style import ordered_models, removal_titles
from cores_paper.tables.targets import ABLATIONS

BAR_OFFSET = 0.012
"""Distance between the error bars of two datasets at one setting, as a share of the axis."""
MIN_SPAN = 1.0
"""Smallest range of an axis in percentage points, so that rounding does not look like a trend."""
AXES = {"desired_ratio": "d, desired ratio", "lam": "λ"}
KEPT = {"node_ratio": "kept nodes, %", "edge_ratio": "kept edges, %"}


def sparsity_reward_figure(stem: Path) -> list[Path]:
    """R_s over the kept ratio for several d, with a line where each is 0.95 (Figure 2)."""
    import torch

    from cores.reward import sparsity_reward

    figure = Figure(figsize=(5.2, 3.6), layout="constrained")
    axis = figure.subplots()
    ratio = torch.linspace(0, 1, 401)
    for number, desired in enumerate((0.1, 0.3, 0.5, 0.7, 0.9)):
        colour = COLOURS[number]
        axis.plot(ratio, sparsity_reward(ratio, desired), color=colour, label=f"d = {desired:g}")
        axis.vlines(desired, 0, 0.95, color=colour, linestyle=":", linewidth=1.2)
    axis.axhline(0.95, color="#999999", linewidth=0.8)
    axis.text(0.005, 0.94, "0.95", color="#555555", fontsize=9, va="top")
    axis.set(
        xlabel="kept ratio of nodes or edges",
        ylabel="sparsity reward $R_s$",
        xlim=(0, 1),
        ylim=(0, 1.02),
    )
    figure.legend(loc="outside upper center", ncols=5, frameon=False, columnspacing=1)
    return save_figure(figure, stem)


def ablation_figure(rows: Sequence[Row], target: str, stem: Path, note: str = "") -> list[Path]:
    """Accuracy and kept ratio over a setting, and against each other (Figures 3 and 4).

    A row of panels per model, a line per dataset. Error bars are one standard deviation over the
    splits; those of different datasets are drawn side by side. A note is written below.
    """
    setting, values = ABLATIONS[target].setting, ABLATIONS[target].values
    datasets = sorted({row["dataset"] for row in rows})
    offset = BAR_OFFSET * (max(values) - min(values))
    models = ordered_models(row["model"] for row in rows)
    titles = removal_titles(models)
    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.08)
    figure = Figure(figsize=(11, 3.2 * len(models) + 0.5), layout=layout)
    axes = figure.subplots(len(models), 3, squeeze=False)
    for model, (left, middle, right) in zip(models, axes, strict=True):
        ratio = kept_metric(model)
        for number, dataset in enumerate(datasets):
            dataset_rows = matching(rows, {"model": model, "dataset": dataset})
            at, accuracies, ratios = [], [], []
            for value in values:
                value_rows = [row for row in dataset_rows if float(row[setting]) == value]
                accuracy, kept = spread(value_rows, "accuracy"), spread(value_rows, ratio)
                if accuracy is not None and kept is not None:
                    at.append(value + (number - (len(datasets) - 1) / 2) * offset)
                    accuracies.append(accuracy)
                    ratios.append(kept)
            style = {
                "color": COLOURS[number % len(COLOURS)],
                "marker": MARKERS[number % len(MARKERS)],
                "markersize": 5,
                "linewidth": 1.4,
                "capsize": 2,
                "elinewidth": 0.8,
                "label": dataset,
            }
            left.errorbar(at, _means(accuracies), _deviations(accuracies), **style)
            middle.errorbar(at, _means(ratios), _deviations(ratios), **style)
            right.errorbar(_means(ratios), _means(accuracies), **style)
        left.set(xlabel=AXES[setting], ylabel="test accuracy, %")
        middle.set(xlabel=AXES[setting], ylabel=KEPT[ratio])
        right.set(xlabel=KEPT[ratio], ylabel="test accuracy, %")
        right.set_xlim(_widened(*right.get_xlim()))
        for axis in (left, middle, right):
            axis.set_ylim(_widened(*axis.get_ylim()))
            axis.ticklabel_format(useOffset=False)  # the labels are the values themselves
        left.set_title(titles[model], loc="left", fontsize=11)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    if note:
        figure.supxlabel(note, fontsize=9)
    return save_figure(figure, stem)


def _widened(low: float, high: float) -> tuple[float, float]:
    """Limits of an axis, at least ``MIN_SPAN`` apart.

    >>> _widened(0.0, 80.0), _widened(79.875, 80.125)
    ((0.0, 80.0), (79.5, 80.5))
    """
    missing = max(0.0, MIN_SPAN - (high - low))
    return low - missing / 2, high + missing / 2


def _means(spreads: Sequence[Spread]) -> list[float]:
    return [100 * value.mean for value in spreads]


def _deviations(spreads: Sequence[Spread]) -> list[float]:
    return [100 * (value.std or 0.0) for value in spreads]
