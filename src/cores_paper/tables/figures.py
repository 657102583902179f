"""The paper's figures: sparsity reward, ablations over d and lambda, pictures of the pipeline."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from cores.explain.explanation import Explanation
from cores.explain.plotting import COLOURS, MARKERS, ROLES, save_figure
from cores.files.escape import figure as figure_text
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


def draw_pipeline(
    explanations: Sequence[Explanation],
    class_names: Sequence[str],
    symbols: Sequence[str],
    stem: Path,
    note: str = "",
) -> list[Path]:
    """Draw a graph of every class, what is kept of it, and the prediction from that (Figure 1).

    The first of each; the last class on top, as the paper has the mutagenic molecule. A note is
    written below.

    Returns the files, a PNG and an SVG.
    """
    labels = [int(explanation.y) for explanation in explanations]
    chosen = [labels.index(label) for label in sorted(set(labels), reverse=True)]
    figure = Figure(figsize=(10, 3.3 * len(chosen)), layout="constrained")
    axes = figure.subplots(len(chosen), 3, squeeze=False, width_ratios=(3, 3, 2))
    for index, (left, middle, right) in zip(chosen, axes, strict=True):
        explanation = explanations[index]
        names = [symbols[label] for label in explanation.x.argmax(dim=1)] if symbols else []
        kept = explanation.drawing
        full = replace(
            kept, kept_nodes=[True] * len(kept.points), kept_edges=[True] * len(kept.edges)
        )
        full.draw(left, names, ROLES | {"kept": "#5a5a5a"})
        kept.draw(middle, names)
        left.set_title(f"graph: {figure_text(class_names[labels[index]])}", fontsize=11)
        nodes, edges = explanation.node_ratio, explanation.edge_ratio
        middle.set_title(f"kept: {nodes:.0%} of the nodes, {edges:.0%} of the edges", fontsize=11)
        _bars(right, explanation.probabilities.tolist(), class_names, labels[index])
    if note:
        figure.supxlabel(note, fontsize=9)
    return save_figure(figure, stem)


def _bars(axis: Any, probs: list[float], class_names: Sequence[str], true: int) -> None:
    """Draw the classifier's probabilities; the true class has a dark edge."""
    axis.set_title("prediction", fontsize=11)
    edges = [ROLES["truth"] if label == true else "white" for label in range(len(probs))]
    names = [figure_text(name) for name in class_names]
    axis.barh(names, probs, color=ROLES["kept"], edgecolor=edges, linewidth=2.5, height=0.5)
    for label, prob in enumerate(probs):
        axis.text(prob + 0.04, label, f"{prob:.2f}", va="center", fontsize=9)
    axis.set(xlim=(0, 1.25), xlabel="probability (ringed: true class)", xticks=(0, 0.5, 1))
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_box_aspect(0.55)
