"""Pictures of graphs: what the model kept, and what decides the class where that is known."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import torch

from cores.explain.explanation import Explanation
from cores.explain.plotting import pyplot, save_figure
from cores.files import write_atomically

KEPT, REMOVED, TRUTH = "#0072B2", "#C8C8C8", "#E69F00"
FULL, LINE, GHOST = "#5A5A5A", "#8A8A8A", "#E6E6E6"
"""Colours that stay apart for colour-blind readers and in grey."""
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
    for explanation, axis in zip(explanations, axes.flat, strict=False):
        _draw(axis, explanation)
        axis.set_title(_title(explanation, class_names), fontsize=10)
    _legend(figure, explanations)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=130)
    plt.close(figure)
    write_atomically(path, buffer.getvalue())


def draw_explanation(
    explanation: Explanation,
    path: str | Path | None = None,
    node_labels: Sequence[str] | None = None,
) -> None:
    """Draw one graph with its kept part highlighted; without a path, show it on the screen."""
    if path is None:
        from matplotlib import pyplot as plt
    else:
        plt = pyplot()
    figure, axis = plt.subplots(figsize=(5, 4.4))
    axis.set_axis_off()
    _draw(axis, explanation, node_labels)
    axis.set_title(f"predicted {explanation.prediction}\n{_kept(explanation)}", fontsize=10)
    _legend(figure, [explanation])
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    if path is None:
        plt.show()
        return
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=150, format=Path(path).suffix.removeprefix(".") or "png")
    plt.close(figure)
    write_atomically(Path(path), buffer.getvalue())


@dataclass(frozen=True)
class _Drawing:
    """A graph laid out, and which of it was kept."""

    graph: nx.Graph
    positions: dict[int, Any]
    kept_nodes: list[bool]
    kept_edges: list[tuple[int, int]]
    truth: list[bool]

    @classmethod
    def of(cls, explanation: Explanation) -> "_Drawing":
        nodes = explanation.num_nodes
        graph = nx.empty_graph(nodes)  # first the nodes: colours go by their number
        graph.add_edges_from(explanation.edge_index.t().tolist())
        if nodes <= 60:  # few crossings, but its time grows with the cube
            positions = nx.kamada_kawai_layout(graph)
        else:
            positions = nx.spring_layout(graph, seed=0)
        truth = explanation.get("node_truth")
        return cls(
            graph,
            positions,
            explanation.node_mask.squeeze(-1).tolist(),
            explanation.kept_edges,
            [False] * nodes if truth is None else truth.tolist(),
        )

    def edges(self, axis: Any, **style: Any) -> None:
        nx.draw_networkx_edges(self.graph, self.positions, ax=axis, **style)

    def nodes(self, axis: Any, colours: list[str], size: int, **style: Any) -> None:
        """Nodes in their colours, the true reason ringed."""
        nx.draw_networkx_nodes(
            self.graph,
            self.positions,
            ax=axis,
            node_size=size,
            node_color=colours,
            edgecolors=[
                TRUTH if true else colour for true, colour in zip(self.truth, colours, strict=True)
            ],
            linewidths=[2.4 if true else 0.8 for true in self.truth],
            **style,
        )

    def labels(self, axis: Any, names: Sequence[str], shown: Sequence[bool]) -> None:
        """Names on some of the nodes."""
        nx.draw_networkx_labels(
            self.graph,
            self.positions,
            {node: name for node, name in enumerate(names) if shown[node]},
            ax=axis,
            font_size=8,
            font_color="white",
        )


def _draw(axis: Any, explanation: Explanation, names: Sequence[str] | None = None) -> None:
    drawing = _Drawing.of(explanation)
    drawing.edges(axis, edge_color=REMOVED, width=1.0)
    drawing.edges(axis, edgelist=drawing.kept_edges, edge_color=KEPT, width=2.6)
    colours = [KEPT if kept else REMOVED for kept in drawing.kept_nodes]
    size = 190 if names else (90 if len(colours) <= 60 else 25)
    drawing.nodes(axis, colours, size)
    if names:
        drawing.labels(axis, names, [True] * len(names))


def _title(explanation: Explanation, class_names: Sequence[str]) -> str:
    probability = float(explanation.probabilities.max())
    return (
        f"true {class_names[int(explanation.y)]}, "
        f"predicted {explanation.prediction} ({probability:.2f})\n{_kept(explanation)}"
    )


def _kept(explanation: Explanation) -> str:
    nodes, edges = explanation.node_ratio, explanation.edge_ratio
    return f"kept {nodes:.0%} of nodes, {edges:.0%} of edges"


def draw_pipeline(
    explanations: Sequence[Explanation],
    class_names: Sequence[str],
    symbols: Sequence[str],
    stem: Path,
) -> list[Path]:
    """A graph of every class, what is kept of it, and the prediction from that (Fig. 1).

    The first of each; the last class on top, as the paper has the mutagenic molecule.

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
        drawing = _Drawing.of(explanation)
        names = _symbols(explanation, symbols)
        size = 190 if symbols else 90
        left.set_title(f"graph: {class_names[labels[index]]}", fontsize=11)
        drawing.edges(left, edge_color=LINE, width=1.2)
        drawing.nodes(left, [FULL] * len(drawing.kept_nodes), size)
        nodes, edges = explanation.node_ratio, explanation.edge_ratio
        middle.set_title(f"kept: {nodes:.0%} of the nodes, {edges:.0%} of the edges", fontsize=11)
        drawing.edges(middle, edge_color=GHOST, width=0.8)
        drawing.edges(middle, edgelist=drawing.kept_edges, edge_color=KEPT, width=2.6)
        drawing.nodes(middle, [KEPT if kept else GHOST for kept in drawing.kept_nodes], size)
        for axis, shown in ((left, [True] * len(names)), (middle, drawing.kept_nodes)):
            axis.set_axis_off()
            drawing.labels(axis, names, shown)
        _bars(right, explanation.probabilities.tolist(), class_names, labels[index])
    return save_figure(figure, stem)


def _symbols(explanation: Explanation, symbols: Sequence[str]) -> list[str]:
    return [symbols[label] for label in explanation.x.argmax(dim=1)] if symbols else []


def _bars(axis: Any, probs: list[float], class_names: Sequence[str], true: int) -> None:
    """The classifier's probabilities; the true class has a dark edge."""
    axis.set_title("prediction", fontsize=11)
    edges = [TRUTH if label == true else "white" for label in range(len(probs))]
    axis.barh(class_names, probs, color=KEPT, edgecolor=edges, linewidth=2.5, height=0.5)
    for label, prob in enumerate(probs):
        axis.text(prob + 0.04, label, f"{prob:.2f}", va="center", fontsize=9)
    axis.set(xlim=(0, 1.25), xlabel="probability (ringed: true class)", xticks=(0, 0.5, 1))
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_box_aspect(0.55)


def _legend(figure: Any, explanations: Sequence[Explanation]) -> None:
    """What the colours mean: of nodes where nodes were removed, else of edges."""
    from matplotlib.lines import Line2D

    def dot(label: str, face: str, ring: str) -> Any:
        return Line2D(
            [],
            [],
            linestyle="",
            marker="o",
            markersize=9,
            markerfacecolor=face,
            markeredgecolor=ring,
            markeredgewidth=2.0,
            label=label,
        )

    def line(label: str, colour: str, width: float) -> Any:
        return Line2D([], [], color=colour, linewidth=width, label=label)

    if all(bool(torch.all(explanation.node_mask)) for explanation in explanations):
        entries = [
            line("kept edges: all that the classifier sees", KEPT, 2.6),
            line("removed edges", REMOVED, 1.0),
        ]
    else:
        entries = [
            dot("kept: all that the classifier sees", KEPT, KEPT),
            dot("removed", REMOVED, REMOVED),
        ]
    if any("node_truth" in explanation for explanation in explanations):
        entries.append(dot("truly decides the class", "white", TRUTH))
    figure.legend(handles=entries, loc="lower center", ncol=len(entries), frameon=False)
