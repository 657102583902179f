"""One graph drawn with matplotlib: kept part, removed part, and the true reason where known."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from cores.errors import UserError
from cores.explain.layout import Positions, graph_layout
from cores.explain.plotting import figure_bytes
from cores.files import write_atomically
from cores.files.escape import figure as figure_text

KEPT, REMOVED, TRUTH, WRONG = "#0072B2", "#C8C8C8", "#E69F00", "#D55E00"
"""Colours that stay apart for colour-blind readers and in grey."""
MOST_LAID_OUT = 1000
"""Nodes of a graph that is laid out with care; that of a larger one would take minutes."""
PANEL = 220.0
"""Points that a drawing is wide, about: nodes are as large as there is room between them."""
SMALLEST, LARGEST = 7.0, 90.0
"""Areas of a node's dot, in points squared."""
NAMED = 190.0
"""The same of one with room for a name."""


@dataclass(frozen=True)
class Drawing:
    """A graph laid out, and which of it was kept."""

    positions: Positions
    edges: list[tuple[int, int]]
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
        """Lay a graph out; edges may be given in both directions."""
        once = sorted({(min(a, b), max(a, b)) for a, b in edges})
        if len(kept_nodes) <= MOST_LAID_OUT:
            positions = graph_layout(len(kept_nodes), [(a, b) for a, b in once if a != b])
        else:
            graph = nx.empty_graph(len(kept_nodes))
            graph.add_edges_from(once)
            placed = nx.spring_layout(graph, seed=0)
            positions = np.array([placed[node] for node in range(len(kept_nodes))])
        return cls(positions, once, kept_nodes, kept_edges, truth)

    @property
    def removes_edges_alone(self) -> bool:
        """Whether nothing but edges was removed."""
        return all(self.kept_nodes) and len(self.kept_edges) < len(self.edges)

    @property
    def lonely_nodes(self) -> list[bool]:
        """Where edges alone were removed: kept nodes that have lost all of their edges."""
        if not self.removes_edges_alone:
            return [False] * len(self.kept_nodes)
        reached = {end for edge in self.kept_edges for end in edge}
        had = {end for edge in self.edges for end in edge}
        return [node in had and node not in reached for node in range(len(self.kept_nodes))]

    @property
    def dot(self) -> float:
        """Area of a node's dot: about a third of an edge wide."""
        if not len(self.positions):
            return LARGEST
        between = PANEL / max(float(np.ptp(self.positions, axis=0).max()), 1.0)
        if len(self.positions) > MOST_LAID_OUT:  # that layout is one wide, whatever the number
            return SMALLEST
        return min(max((0.36 * between) ** 2, SMALLEST), LARGEST)

    def lines(
        self, axis: Any, edges: Sequence[tuple[int, int]], colour: str, width: float, layer: int
    ) -> None:
        """Draw edges; what is in a higher layer is in front."""
        from matplotlib.collections import LineCollection

        ends = self.positions[np.array(edges, dtype=np.int64).reshape(-1, 2)]  # [E, 2, 2]
        drawn = LineCollection(list(ends), colors=colour, linewidths=width, zorder=layer)
        axis.add_collection(drawn)

    def dots(
        self,
        axis: Any,
        shown: Sequence[bool],
        colour: str,
        size: float,
        layer: int,
        hollow: bool = False,
    ) -> None:
        """Draw those nodes that are shown, the true reason ringed."""
        truth = np.array(self.truth or [False] * len(shown))
        nodes = np.flatnonzero(shown)
        wide = size**0.5
        axis.scatter(
            *self.positions[nodes].T,
            s=size,
            c="white" if hollow else colour,
            edgecolors=np.where(truth[nodes], TRUTH, colour),
            linewidths=np.where(truth[nodes], 0.25 * wide, 0.12 * wide),
            zorder=layer,
        )

    def labels(self, axis: Any, names: Sequence[str], shown: Sequence[bool]) -> None:
        """Write names on some of the nodes."""
        for (x, y), name, visible in zip(self.positions, names, shown, strict=False):
            if visible:
                axis.text(
                    x,
                    y,
                    figure_text(name),
                    fontsize=8,
                    color="white",
                    ha="center",
                    va="center",
                    zorder=6,
                )

    def frame(self, axis: Any) -> None:
        """No axes, and as long in each direction: a ring is round."""
        axis.set_axis_off()
        axis.set_aspect("equal", adjustable="datalim")
        axis.autoscale_view()
        axis.margins(0.08)

    def draw(self, axis: Any, names: Sequence[str] = ()) -> None:
        """Draw the graph: its kept part dark and in front, the rest faded."""
        size = NAMED if names else self.dot
        thick = 2.6 if size > LARGEST / 3 else 1.6
        kept, lonely = self.kept_nodes, self.lonely_nodes
        gone = sorted({*self.edges} - {*self.kept_edges})
        self.lines(axis, gone, REMOVED, 1.0 if thick > 2 else 0.6, layer=1)
        self.dots(axis, [not each for each in kept], REMOVED, 0.7 * size if thick < 2 else size, 2)
        self.lines(axis, self.kept_edges, KEPT, thick, layer=3)
        linked = [a and not b for a, b in zip(kept, lonely, strict=True)]
        self.dots(axis, linked, KEPT, size, layer=4)
        self.dots(axis, lonely, KEPT, 0.7 * size, layer=4, hollow=not names)
        self.labels(axis, names, [True] * len(names))
        self.frame(axis)


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
            markersize=8,
            markerfacecolor=face,
            markeredgecolor=ring,
            markeredgewidth=2.0,
            label=label,
        )

    def line(label: str, colour: str, width: float) -> Any:
        return Line2D([], [], color=colour, linewidth=width, label=label)

    if all(all(drawing.kept_nodes) for drawing in drawings):
        entries = [line("kept edges", KEPT, 2.6), line("removed edges", REMOVED, 1.0)]
    else:
        entries = [
            dot("kept: all that the classifier sees", KEPT, KEPT),
            dot("removed", REMOVED, REMOVED),
        ]
    if any(any(drawing.lonely_nodes) for drawing in drawings):
        entries.append(dot("node without a kept edge", "white", KEPT))
    if any(drawing.truth is not None for drawing in drawings):
        entries.append(dot("truly decides the class", "white", TRUTH))
    figure.legend(handles=entries, loc="lower center", ncol=len(entries), frameon=False, fontsize=9)
