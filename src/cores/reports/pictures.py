"""Pictures of graphs: what the model kept, and what decides the class where that is known."""

from pathlib import Path
from typing import Any

import networkx as nx

from cores.data.store import GraphStore
from cores.evaluation.predictions import Predictions
from cores.experiments.model import Task
from cores.files import write_atomically

KEPT, REMOVED, TRUTH = "#0072B2", "#C8C8C8", "#E69F00"
"""Colours that stay apart for colour-blind readers and in grey."""
COLUMNS = 3


def draw_subgraphs(graphs: GraphStore, predictions: Predictions, task: Task, path: Path) -> None:
    """Draw every graph of a small store, its kept part dark, its true reason ringed, into a PNG."""
    import io

    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    rows = -(-len(graphs) // COLUMNS)
    figure, axes = plt.subplots(rows, COLUMNS, figsize=(10, 3.6 * rows + 0.6), squeeze=False)
    for index, axis in enumerate(axes.flat):
        axis.set_axis_off()
        if index < len(graphs):
            _draw(axis, index, graphs, predictions, task)
    _legend(figure, graphs.node_truth is not None)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=130)
    plt.close(figure)
    write_atomically(path, buffer.getvalue())


def _draw(axis: Any, index: int, graphs: GraphStore, predictions: Predictions, task: Task) -> None:
    graph = graphs.graph(index)
    nodes = slice(int(graphs.node_ptr[index]), int(graphs.node_ptr[index + 1]))
    edges = slice(int(graphs.edge_ptr[index]), int(graphs.edge_ptr[index + 1]))
    kept_nodes = ~predictions.removed_nodes[nodes]
    pairs = list(zip(*graph.edge_index.tolist(), strict=True))
    kept_pairs = [
        pair
        for pair, gone in zip(pairs, predictions.removed_edges[edges].tolist(), strict=True)
        if not gone
    ]
    drawn = nx.empty_graph(graph.num_nodes)  # first the nodes: colours go by their number
    drawn.add_edges_from(pairs)
    if graph.num_nodes <= 60:  # few crossings, but its time grows with the cube
        where = nx.kamada_kawai_layout(drawn)
    else:
        where = nx.spring_layout(drawn, seed=0)
    nx.draw_networkx_edges(drawn, where, ax=axis, edge_color=REMOVED, width=1.0)
    nx.draw_networkx_edges(drawn, where, ax=axis, edgelist=kept_pairs, edge_color=KEPT, width=2.6)
    colours = [KEPT if kept else REMOVED for kept in kept_nodes.tolist()]
    truth = graph.node_truth.tolist() if "node_truth" in graph else [False] * graph.num_nodes
    rings = [TRUTH if true else colour for true, colour in zip(truth, colours, strict=True)]
    size = 90 if graph.num_nodes <= 60 else 25
    nx.draw_networkx_nodes(
        drawn,
        where,
        ax=axis,
        node_size=size,
        node_color=colours,
        edgecolors=rings,
        linewidths=[2.4 if true else 0.8 for true in truth],
    )
    probs = predictions.probs[index]
    named, likely = task.class_names, int(probs.argmax())
    axis.set_title(
        f"true {named[int(graph.y)]}, predicted {named[likely]} ({float(probs[likely]):.2f})\n"
        f"kept {float(predictions.node_ratio[index]):.0%} of nodes, "
        f"{float(predictions.edge_ratio[index]):.0%} of edges",
        fontsize=10,
    )


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
