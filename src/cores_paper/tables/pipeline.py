"""The paper's pictures of the pipeline: graphs, what is kept of them, and predictions from that."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from cores.explain.explanation import Explanation
from cores.explain.plotting import ROLES, save_figure
from cores.files.escape import figure as figure_text


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
