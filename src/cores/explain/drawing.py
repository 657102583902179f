"""One graph drawn with matplotlib: kept part, removed part, and the true reason where known."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx

from cores.errors import UserError
from cores.explain.plotting import figure_bytes
from cores.files import write_atomically
from cores.files.escape import figure as figure_text

KEPT, REMOVED, TRUTH = "#0072B2", "#C8C8C8", "#E69F00"
"""Colours that stay apart for colour-blind readers and in grey."""


@dataclass(frozen=True)
class Drawing:
    """A graph laid out, and which of it was kept."""

    graph: nx.Graph
    positions: dict[int, Any]
    kept_nodes: list[bool]
    kept_edges: list[tuple[int, int]]
    truth: list[bool] | None
    """Nodes that truly decide the class; None where that is not known."""

    @classmethod
    def of(
        cls,
        edges: Sequence[Sequence[int]],
        kept_nodes: list[bool],
        kept_edges: list[tuple[int, int]],
        truth: list[bool] | None,
    ) -> "Drawing":
        """Lay a graph out."""
        graph = nx.empty_graph(len(kept_nodes))  # first the nodes: colours go by their number
        graph.add_edges_from(edges)
        if len(kept_nodes) <= 60:  # few crossings, but its time grows with the cube
            positions = nx.kamada_kawai_layout(graph)
        else:
            positions = nx.spring_layout(graph, seed=0)
        return cls(graph, positions, kept_nodes, kept_edges, truth)

    def edges(self, axis: Any, **style: Any) -> None:
        """Draw edges."""
        nx.draw_networkx_edges(self.graph, self.positions, ax=axis, **style)

    def nodes(self, axis: Any, colours: list[str], size: int) -> None:
        """Draw nodes in their colours, the true reason ringed."""
        truth = self.truth or [False] * len(colours)
        rings = [TRUTH if true else colour for true, colour in zip(truth, colours, strict=True)]
        nx.draw_networkx_nodes(
            self.graph,
            self.positions,
            ax=axis,
            node_size=size,
            node_color=colours,
            edgecolors=rings,
            linewidths=[2.4 if true else 0.8 for true in truth],
        )

    def labels(self, axis: Any, names: Sequence[str], shown: Sequence[bool]) -> None:
        """Write names on some of the nodes."""
        nx.draw_networkx_labels(
            self.graph,
            self.positions,
            {node: figure_text(name) for node, name in enumerate(names) if shown[node]},
            ax=axis,
            font_size=8,
            font_color="white",
        )

    def draw(self, axis: Any, names: Sequence[str] = ()) -> None:
        """Draw the graph with its kept part dark."""
        axis.set_axis_off()
        self.edges(axis, edge_color=REMOVED, width=1.0)
        self.edges(axis, edgelist=self.kept_edges, edge_color=KEPT, width=2.6)
        colours = [KEPT if kept else REMOVED for kept in self.kept_nodes]
        size = 190 if names else (90 if len(colours) <= 60 else 25)
        self.nodes(axis, colours, size)
        self.labels(axis, names, [True] * len(names))


def draw_graph(
    drawing: Drawing, title: str, path: str | Path | None, names: Sequence[str] = ()
) -> None:
    """Draw one graph into a file by its ending; without a path, show it on the screen."""
    from matplotlib import pyplot as plt
    from matplotlib.figure import Figure

    # Without pyplot, a file leaves the screen that the user chose as it is.
    figure = plt.figure(figsize=(5, 4.4)) if path is None else Figure(figsize=(5, 4.4))
    axis = figure.subplots()
    drawing.draw(axis, names)
    axis.set_title(title, fontsize=10)
    legend(figure, [drawing])
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    if path is None:
        plt.show()
        return
    kind = Path(path).suffix.removeprefix(".") or "png"
    if kind not in (known := figure.canvas.get_supported_filetypes()):
        raise UserError(f"cannot draw a .{kind} file; known: {', '.join(sorted(known))}")
    write_atomically(Path(path), figure_bytes(figure, kind, dpi=150))


def legend(figure: Any, drawings: Sequence[Drawing]) -> None:
    """Say what the colours mean: of nodes where nodes were removed, else of edges."""
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

    if all(all(drawing.kept_nodes) for drawing in drawings):
        entries = [
            line("kept edges: all that the classifier sees", KEPT, 2.6),
            line("removed edges", REMOVED, 1.0),
        ]
    else:
        entries = [
            dot("kept: all that the classifier sees", KEPT, KEPT),
            dot("removed", REMOVED, REMOVED),
        ]
    if any(drawing.truth is not None for drawing in drawings):
        entries.append(dot("truly decides the class", "white", TRUTH))
    figure.legend(handles=entries, loc="lower center", ncol=len(entries), frameon=False)
