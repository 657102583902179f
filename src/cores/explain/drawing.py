"""Draws a graph, its kept part strong and the rest faded, as an SVG or with matplotlib.

A drawing is a few layers of lines and dots in a frame; :data:`LAYERS` says how each looks.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cores.explain.explained import ExplainedGraph
from cores.explain.layout import Positions, graph_layout
from cores.explain.molecule import draw_molecule
from cores.explain.plotting import ROLES
from cores.files.escape import figure as figure_text
from cores.files.escape import html

WIDTH, HEIGHT, MARGIN = 300, 220, 16
MOST_NODES = 150
"""Nodes of a graph that is drawn whole."""
LAYERS = {
    "ge": ("gone", 1.0),
    "tr": ("truth", 16.0),
    "ke": ("kept", 3.0),
    "gn": ("gone", 6.0),
    "kn": ("kept", 11.0),
}
"""Role and width of removed edges, true reason, kept edges, removed nodes and kept nodes, from
the back to the front."""
DOTS = ("tr", "gn", "kn")
MANY, SMALL = 40, 0.64
"""Nodes of a graph with small dots, and how small."""
NAMED = 1.7
"""Factor of the dots of a figure that have names on them."""
STYLE = (
    f".drawing{{{''.join(f'--{name}:{colour};' for name, colour in ROLES.items())}"
    "--mark:#9fd0f0;--ink:#1b1b1b;--n:#1f4fd8;--o:#c00;--s:#7a6200;--hal:#0a7a2f}"
    ".drawing path{fill:none;stroke-linecap:round;stroke-linejoin:round}"
    + "".join(
        f".drawing .{kind}{{stroke:var(--{colour});stroke-width:{width:g}}}"
        + (f".drawing.many .{kind}{{stroke-width:{SMALL * width:.3g}}}" if kind in DOTS else "")
        for kind, (colour, width) in LAYERS.items()
    )
    + """
.drawing .mk{stroke:var(--mark);stroke-width:13}.drawing .rg{stroke:var(--truth);stroke-width:2}
.drawing .kb{stroke:var(--ink);stroke-width:1.8}.drawing .gb{stroke:var(--gone);stroke-width:1.3}
.drawing .kw{fill:var(--ink);stroke:none}.drawing .gw{fill:var(--gone);stroke:none}
.drawing text{font-family:sans-serif;fill:var(--ink)}.drawing .N{fill:var(--n)}
.drawing .O{fill:var(--o)}.drawing .S,.drawing .P{fill:var(--s)}
.drawing .F,.drawing .Cl,.drawing .Br,.drawing .I{fill:var(--hal)}.drawing text.gt{fill:var(--gone)}
"""
)
"""Style sheet of every SVG of a graph or molecule."""


@dataclass(frozen=True)
class GraphDrawing:
    """A graph in a frame of ``WIDTH`` and ``HEIGHT``, and which of it is kept."""

    points: list[tuple[int, int] | None]
    """Coordinates of each node; None where it is not drawn."""
    edges: Sequence[tuple[int, int]]
    kept_nodes: Sequence[bool]
    kept_edges: Sequence[bool]
    truth: Sequence[bool] | None
    """Nodes that truly decide the class; None where that is not known."""

    @classmethod
    def of(
        cls,
        edges: Sequence[tuple[int, int]],
        kept_nodes: Sequence[bool],
        kept_edges: Sequence[bool],
        truth: Sequence[bool] | None,
        scores: Sequence[float] | None = None,
    ) -> "GraphDrawing":
        """Lay a graph out.

        Of a large one, the kept nodes are drawn, and their neighbours as far as they fit; where
        not even the kept ones fit, those of the largest scores.
        """
        nodes = range(len(kept_nodes))
        shown = list(nodes)
        if len(nodes) > MOST_NODES:
            marks = scores or [0.0] * len(nodes)
            kept = sorted((at for at in nodes if kept_nodes[at]), key=lambda at: -marks[at])
            near = {end for edge in edges if any(kept_nodes[end] for end in edge) for end in edge}
            around = [*kept, *sorted(near - set(kept))]
            shown = sorted(around[:MOST_NODES]) or list(nodes[:MOST_NODES])
        number = {node: at for at, node in enumerate(shown)}
        inside = [(number[a], number[b]) for a, b in edges if a in number and b in number]
        points: list[tuple[int, int] | None] = [None] * len(nodes)
        for node, place in zip(shown, _fitted(graph_layout(len(shown), inside)), strict=True):
            points[node] = place
        return cls(points, edges, kept_nodes, kept_edges, truth)

    @property
    def missing(self) -> int:
        """Nodes that are not drawn."""
        return self.points.count(None)

    @property
    def many(self) -> bool:
        """True where dots must be small."""
        return len(self.points) - self.missing > MANY

    def layers(self) -> Iterator[tuple[str, list[list[tuple[int, int]]]]]:
        """Yield kind and shapes of each layer that is not empty: lines have two ends, dots one."""
        layers: dict[str, list[list[tuple[int, int]]]] = {kind: [] for kind in LAYERS}
        for (one, other), kept in zip(self.edges, self.kept_edges, strict=True):
            a, b = self.points[one], self.points[other]
            if a and b:
                layers["ke" if kept else "ge"].append([a, b])
        for at, point in enumerate(self.points):
            if point:
                layers["kn" if self.kept_nodes[at] else "gn"].append([point])
                if self.truth and self.truth[at]:
                    layers["tr"].append([point])
        yield from ((kind, shapes) for kind, shapes in layers.items() if shapes)

    def svg(self) -> str:
        """Draw each layer as one path of SVG."""
        return "".join(
            f'<path class="{kind}" d="{"".join(map(_path, shapes))}"/>'
            for kind, shapes in self.layers()
        )

    def draw(
        self, axis: Any, names: Sequence[str] = (), colours: Mapping[str, str] = ROLES
    ) -> None:
        """Draw with matplotlib; names, such as those of atoms, stand on the nodes."""
        from matplotlib.collections import LineCollection

        axis.set(xlim=(0, WIDTH), ylim=(HEIGHT, 0), aspect="equal")
        axis.set_axis_off()
        unit = 72 * axis.bbox.width / axis.figure.dpi / WIDTH  # in points
        size = NAMED if names else SMALL if self.many else 1.0
        for layer, (kind, shapes) in enumerate(self.layers()):
            colour, width = LAYERS[kind]
            if kind in DOTS:
                places = np.array(shapes)[:, 0]
                area = (size * width * unit) ** 2
                axis.scatter(*places.T, s=area, color=colours[colour], linewidths=0, zorder=layer)
            else:
                style = {"colors": colours[colour], "linewidths": width * unit}
                axis.add_collection(LineCollection(shapes, capstyle="round", zorder=layer, **style))
        letters = {"fontsize": 8, "color": "white", "ha": "center", "va": "center"}
        for point, name in zip(self.points, names, strict=False):
            if point:
                axis.text(*point, figure_text(name), zorder=len(LAYERS), **letters)


def draw_graphs(
    figure: Any,
    drawings: Sequence[GraphDrawing],
    titles: Sequence[Mapping[str, Any]],
    *,
    edges_alone: bool,
    columns: int = 1,
    names: Sequence[str] = (),
) -> None:
    """Draw graphs side by side into an empty figure, with a legend below.

    ``titles`` are text and style above each graph, ``names`` stand on its nodes.
    """
    axes = figure.subplots(-(-len(drawings) // columns), columns, squeeze=False)
    for axis in axes.flat:
        axis.set_axis_off()
    for drawing, title, axis in zip(drawings, titles, axes.flat, strict=False):
        drawing.draw(axis, names)
        axis.set_title(**{"fontsize": 10, **title})
    if edges_alone:
        entries = {"kept edges": "ke", "removed edges": "ge"}
        if not all(all(drawing.kept_nodes) for drawing in drawings):
            entries["node without a kept edge"] = "gn"
    else:
        entries = {"kept": "kn", "removed": "gn"}
    if any(drawing.truth is not None for drawing in drawings):
        entries["truly decides the class"] = "tr"
    figure.set_layout_engine("constrained", h_pad=0.1)
    figure.legend(
        handles=[_legend_entry(label, kind) for label, kind in entries.items()],
        loc="outside lower center",
        ncols=2 if figure.get_figwidth() < 8 else len(entries),
        frameon=False,
        fontsize=9,
    )


def _legend_entry(label: str, kind: str) -> Any:
    from matplotlib.lines import Line2D

    role, width = LAYERS[kind]
    style: dict[str, Any] = {"linewidth": width}
    if kind in DOTS:
        style = {"linestyle": "", "marker": "o", "markersize": 0.8 * width}
    if kind == "tr":  # a ring around a node
        style |= {"markersize": 9, "markerfacecolor": "white", "markeredgewidth": 2}
    return Line2D([], [], color=ROLES[role], label=label, **style)


@dataclass(frozen=True)
class GraphSvg:
    """An SVG of a graph or molecule."""

    body: str
    points: list[tuple[int, int] | None]
    """Coordinates of each node; None where it is not drawn."""
    title: str
    note: str = ""
    """Says what is left out."""
    many: bool = False
    """True where dots are small."""

    def inline(self, attributes: str = "", before: str = "") -> str:
        """Return the element, for a page that has the style."""
        kind = "drawing many" if self.many else "drawing"
        return (
            f'<svg{attributes} class="{kind}" role="img" viewBox="0 0 {WIDTH} {HEIGHT}">'
            f"<title>{html(self.title)}</title>{before}{self.body}</svg>"
        )

    def standalone(self) -> bytes:
        """Return a file, on white."""
        style = f'<style>{STYLE}</style><rect width="100%" height="100%" fill="#fff"/>'
        return self.inline(' xmlns="http://www.w3.org/2000/svg"', style).encode()


def graph_svg(graph: ExplainedGraph, *, apart: bool = False) -> GraphSvg:
    """Draw a molecule as chemists do, any other graph as dots and lines.

    With ``apart`` a script can find the bonds and atoms of a molecule.
    """
    title = (
        f"{graph.id}: {sum(graph.marked)} of {len(graph.nodes)} nodes and "
        f"{sum(graph.kept_edges)} of {len(graph.edges)} edges are kept; "
        f"predicted {graph.prediction}"
    )
    if graph.molecule is not None and len(graph.nodes) <= MOST_NODES:
        return GraphSvg(*draw_molecule(graph, WIDTH, HEIGHT, apart=apart), title)
    drawn = GraphDrawing.of(
        graph.edges, graph.marked, graph.kept_edges, graph.truth, graph.node_scores
    )
    note = f"{drawn.missing} of {len(graph.nodes)} nodes are not shown" if drawn.missing else ""
    return GraphSvg(drawn.svg(), drawn.points, title, note, drawn.many)


def _path(shape: Sequence[tuple[int, int]]) -> str:
    (x, y), *ends = shape
    return f"M{x} {y}" + ("".join(f"L{a} {b}" for a, b in ends) or "h0")


def _fitted(positions: Positions) -> list[tuple[int, int]]:
    """Scale positions into the frame, as whole numbers."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    room = np.array([WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN])
    scale = min(40.0, *(room / np.maximum(high - low, 1e-6)))
    placed = (positions - (low + high) / 2) * scale + np.array([WIDTH, HEIGHT]) / 2
    return [(round(float(x)), round(float(y))) for x, y in placed]
