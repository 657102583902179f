"""Pictures of several graphs: what a model kept of each, and what it predicts from that."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cores.explain.drawing import KEPT, NAMED, TRUTH, WRONG, legend
from cores.explain.explanation import Explanation
from cores.explain.plotting import figure_bytes, pyplot, save_figure, write_note
from cores.files import write_atomically
from cores.files.escape import figure as figure_text

FULL, LINE, GHOST = "#5A5A5A", "#8A8A8A", "#E6E6E6"
"""Colours of the full graph, and of what was removed where the kept part stands alone."""
COLUMNS = 3


def draw_subgraphs(
    explanations: Sequence[Explanation], class_names: Sequence[str], path: Path
) -> None:
    """Draw every graph, its kept part dark, its true reason ringed, into a PNG."""
    plt = pyplot()
    rows = -(-len(explanations) // COLUMNS)
    figure, axes = plt.subplots(rows, COLUMNS, figsize=(10, 3.6 * rows + 0.6), squeeze=False)
    for axis in axes.flat:
        axis.set_axis_off()
    drawings = [explanation.drawing for explanation in explanations]
    for explanation, drawing, axis in zip(explanations, drawings, axes.flat, strict=False):
        drawing.draw(axis)
        true = figure_text(class_names[int(explanation.y)])
        predicted = figure_text(explanation.prediction)
        probability = float(explanation.probabilities.max())
        right = explanation.correct is not False
        axis.set_title(
            f"{'' if right else 'WRONG: '}true {true}, predicted {predicted} ({probability:.2f})\n"
            f"{explanation.kept_text}",
            fontsize=10,
            color="black" if right else WRONG,
            fontweight="normal" if right else "bold",
        )
    legend(figure, drawings)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    write_atomically(path, figure_bytes(figure, "png", dpi=130))
    plt.close(figure)


def draw_pipeline(
    explanations: Sequence[Explanation],
    class_names: Sequence[str],
    symbols: Sequence[str],
    stem: Path,
    note: str = "",
) -> list[Path]:
    """A graph of every class, what is kept of it, and the prediction from that (Fig. 1).

    The first of each; the last class on top, as the paper has the mutagenic molecule. A note is
    written below.

    Returns the files, a PNG and an SVG.
    """
    plt = pyplot()
    labels = [int(explanation.y) for explanation in explanations]
    chosen = [labels.index(label) for label in sorted(set(labels), reverse=True)]
    figure, axes = plt.subplots(
        len(chosen),
        3,
        figsize=(10, 3.3 * len(chosen)),
        squeeze=False,
        width_ratios=(3, 3, 2),
        layout="constrained",
    )
    for index, (left, middle, right) in zip(chosen, axes, strict=True):
        explanation = explanations[index]
        drawing = explanation.drawing
        names = _symbols(explanation, symbols)
        size = NAMED if symbols else drawing.dot
        left.set_title(f"graph: {figure_text(class_names[labels[index]])}", fontsize=11)
        everything, kept = [True] * len(drawing.kept_nodes), drawing.kept_nodes
        drawing.lines(left, drawing.edges, LINE, 1.2, layer=1)
        drawing.dots(left, everything, FULL, size, layer=2)
        nodes, edges = explanation.node_ratio, explanation.edge_ratio
        middle.set_title(f"kept: {nodes:.0%} of the nodes, {edges:.0%} of the edges", fontsize=11)
        drawing.lines(middle, drawing.edges, GHOST, 0.8, layer=1)
        drawing.dots(middle, [not each for each in kept], GHOST, size, layer=2)
        drawing.lines(middle, drawing.kept_edges, KEPT, 2.6, layer=3)
        drawing.dots(middle, kept, KEPT, size, layer=4)
        for axis, shown in ((left, everything), (middle, kept)):
            drawing.labels(axis, names, shown)
            drawing.frame(axis)
        _bars(right, explanation.probabilities.tolist(), class_names, labels[index])
    write_note(figure, note)
    return save_figure(figure, stem)


def _symbols(explanation: Explanation, symbols: Sequence[str]) -> list[str]:
    return [symbols[label] for label in explanation.x.argmax(dim=1)] if symbols else []


def _bars(axis: Any, probs: list[float], class_names: Sequence[str], true: int) -> None:
    """The classifier's probabilities; the true class has a dark edge."""
    axis.set_title("prediction", fontsize=11)
    edges = [TRUTH if label == true else "white" for label in range(len(probs))]
    names = [figure_text(name) for name in class_names]
    axis.barh(names, probs, color=KEPT, edgecolor=edges, linewidth=2.5, height=0.5)
    for label, prob in enumerate(probs):
        axis.text(prob + 0.04, label, f"{prob:.2f}", va="center", fontsize=9)
    axis.set(xlim=(0, 1.25), xlabel="probability (ringed: true class)", xticks=(0, 0.5, 1))
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_box_aspect(0.55)
