"""Pictures of graphs: what the model kept, and what decides the class where that is known."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx

from cores.evaluation.predictions import Predictions
from cores.files import write_atomically
from cores.graphs.store import GraphStore
from cores.paper.figures import pyplot, save_figure
from cores.runs.trained import DataSchema

KEPT, REMOVED, TRUTH = "#0072B2", "#C8C8C8", "#E69F00"
WHOLE, LINE, GHOST = "#5A5A5A", "#8A8A8A", "#E6E6E6"
"""Colours that stay apart for colour-blind readers and in grey."""
COLUMNS = 3


def draw_subgraphs(
    graphs: GraphStore, predictions: Predictions, schema: DataSchema, path: Path
) -> None:
    """Draw every graph of a small store, its kept part dark, its true reason ringed, into a PNG."""
    plt = pyplot()
    rows = -(-len(graphs) // COLUMNS)
    figure, axes = plt.subplots(rows, COLUMNS, figsize=(10, 3.6 * rows + 0.6), squeeze=False)
    for index, axis in enumerate(axes.flat):
        axis.set_axis_off()
        if index < len(graphs):
            _draw(axis, index, graphs, predictions, schema)
    _legend(figure, graphs.node_truth is not None)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=130)
    plt.close(figure)
    write_atomically(path, buffer.getvalue())


@dataclass(frozen=True)
class _Drawing:
    """A graph laid out, and which of it was kept."""

    graph: nx.Graph
    where: dict[int, Any]
    kept_nodes: list[bool]
    kept_pairs: list[tuple[int, int]]
    truth: list[bool]

    @classmethod
    def of(cls, index: int, graphs: GraphStore, predictions: Predictions) -> "_Drawing":
        graph = graphs.graph(index)
        nodes = slice(int(graphs.node_ptr[index]), int(graphs.node_ptr[index + 1]))
        edges = slice(int(graphs.edge_ptr[index]), int(graphs.edge_ptr[index + 1]))
        pairs = list(zip(*graph.edge_index.tolist(), strict=True))
        gone = predictions.removed_edges[edges].tolist()
        drawn = nx.empty_graph(graph.num_nodes)  # first the nodes: colours go by their number
        drawn.add_edges_from(pairs)
        if graph.num_nodes <= 60:  # few crossings, but its time grows with the cube
            where = nx.kamada_kawai_layout(drawn)
        else:
            where = nx.spring_layout(drawn, seed=0)
        return cls(
            drawn,
            where,
            (~predictions.removed_nodes[nodes]).tolist(),
            [pair for pair, removed in zip(pairs, gone, strict=True) if not removed],
            graph.node_truth.tolist() if "node_truth" in graph else [False] * graph.num_nodes,
        )

    def edges(self, axis: Any, **style: Any) -> None:
        nx.draw_networkx_edges(self.graph, self.where, ax=axis, **style)

    def nodes(self, axis: Any, colours: list[str], size: int, **style: Any) -> None:
        """Nodes in their colours, the true reason ringed."""
        nx.draw_networkx_nodes(
            self.graph,
            self.where,
            ax=axis,
            node_size=size,
            node_color=colours,
            edgecolors=[
                TRUTH if true else colour for true, colour in zip(self.truth, colours, strict=True)
            ],
            linewidths=[2.4 if true else 0.8 for true in self.truth],
            **style,
        )


def _draw(
    axis: Any, index: int, graphs: GraphStore, predictions: Predictions, schema: DataSchema
) -> None:
    drawing = _Drawing.of(index, graphs, predictions)
    drawing.edges(axis, edge_color=REMOVED, width=1.0)
    drawing.edges(axis, edgelist=drawing.kept_pairs, edge_color=KEPT, width=2.6)
    colours = [KEPT if kept else REMOVED for kept in drawing.kept_nodes]
    drawing.nodes(axis, colours, 90 if len(colours) <= 60 else 25)
    probs = predictions.probs[index]
    named, likely = schema.class_names, int(probs.argmax())
    axis.set_title(
        f"true {named[int(graphs.y[index])]}, "
        f"predicted {named[likely]} ({float(probs[likely]):.2f})\n"
        f"kept {float(predictions.node_ratio[index]):.0%} of nodes, "
        f"{float(predictions.edge_ratio[index]):.0%} of edges",
        fontsize=10,
    )


def draw_pipeline(
    graphs: GraphStore,
    predictions: Predictions,
    class_names: Sequence[str],
    symbols: Sequence[str],
    stem: Path,
) -> list[Path]:
    """A graph of every class, what is kept of it, and the prediction from that (Fig. 1).

    The first of each; the last class on top, as the paper has the mutagenic molecule.

    Returns the files, a PNG and an SVG.
    """
    plt = pyplot()
    labels = graphs.y.tolist()
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
        drawing = _Drawing.of(index, graphs, predictions)
        names = _symbols(graphs, index, symbols)
        size = 190 if symbols else 90
        left.set_title(f"graph: {class_names[labels[index]]}", fontsize=11)
        drawing.edges(left, edge_color=LINE, width=1.2)
        drawing.nodes(left, [WHOLE] * len(drawing.kept_nodes), size)
        nodes, edges = float(predictions.node_ratio[index]), float(predictions.edge_ratio[index])
        middle.set_title(f"kept: {nodes:.0%} of the nodes, {edges:.0%} of the edges", fontsize=11)
        drawing.edges(middle, edge_color=GHOST, width=0.8)
        drawing.edges(middle, edgelist=drawing.kept_pairs, edge_color=KEPT, width=2.6)
        drawing.nodes(middle, [KEPT if kept else GHOST for kept in drawing.kept_nodes], size)
        for axis, shown in ((left, [True] * len(names)), (middle, drawing.kept_nodes)):
            axis.set_axis_off()
            nx.draw_networkx_labels(
                drawing.graph,
                drawing.where,
                {node: name for node, name in enumerate(names) if shown[node]},
                ax=axis,
                font_size=8,
                font_color="white",
            )
        _bars(right, predictions.probs[index].tolist(), class_names, labels[index])
    return save_figure(figure, stem)


def _symbols(graphs: GraphStore, index: int, symbols: Sequence[str]) -> list[str]:
    nodes = slice(int(graphs.node_ptr[index]), int(graphs.node_ptr[index + 1]))
    return [symbols[label] for label in graphs.x[nodes].argmax(dim=1)] if symbols else []


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


def _legend(figure: Any, with_truth: bool) -> None:
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

    entries = [
        dot("kept: all that the classifier sees", KEPT, KEPT),
        dot("removed", REMOVED, REMOVED),
    ]
    if with_truth:
        entries.append(dot("truly decides the class", "white", TRUTH))
    figure.legend(handles=entries, loc="lower center", ncol=len(entries), frameon=False)
