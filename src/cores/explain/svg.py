"""A graph as a small SVG: the kept part strong, the rest faded. No matplotlib, a few kilobytes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from cores.explain.explained import ExplainedGraph
from cores.explain.layout import graph_layout
from cores.explain.molecule import draw_molecule
from cores.files.escape import html

WIDTH, HEIGHT = 300, 220
MARGIN = 16
MOST_NODES = 150
"""Of a graph that is drawn whole."""
STYLE = """
.drawing{--kept:#0072b2;--gone:#767676;--truth:#b35900;--mark:#9fd0f0;--ink:#1b1b1b;--n:#1f4fd8;
--o:#c00;--s:#7a6200;--hal:#0a7a2f}
.drawing path{fill:none;stroke-linecap:round;stroke-linejoin:round}
.drawing .ke{stroke:var(--kept);stroke-width:3}.drawing .ge{stroke:var(--gone);stroke-width:1}
.drawing .kn{stroke:var(--kept);stroke-width:11}.drawing .gn{stroke:var(--gone);stroke-width:6}
.drawing .tr{stroke:var(--truth);stroke-width:16}
.drawing.many .kn{stroke-width:7}.drawing.many .gn{stroke-width:4}.drawing.many .tr{stroke-width:11}
.drawing .mk{stroke:var(--mark);stroke-width:13}.drawing .rg{stroke:var(--truth);stroke-width:2}
.drawing .kb{stroke:var(--ink);stroke-width:1.8}.drawing .gb{stroke:var(--gone);stroke-width:1.3}
.drawing .kw{fill:var(--ink);stroke:none}.drawing .gw{fill:var(--gone);stroke:none}
.drawing text{font-family:sans-serif;fill:var(--ink)}.drawing .N{fill:var(--n)}
.drawing .O{fill:var(--o)}.drawing .S,.drawing .P{fill:var(--s)}
.drawing .F,.drawing .Cl,.drawing .Br,.drawing .I{fill:var(--hal)}.drawing text.gt{fill:var(--gone)}
""".strip()
"""Of every drawing; a page may set the colours anew."""


@dataclass(frozen=True)
class Picture:
    """What is drawn of a graph."""

    body: str
    """Elements of SVG."""
    points: list[tuple[int, int] | None]
    """Where each node is; None where it is not drawn."""
    title: str
    note: str = ""
    """What is not shown."""
    many: bool = False
    """Whether nodes must be small."""

    def inline(self) -> str:
        """For a page that has the style."""
        return self._svg("")

    def standalone(self) -> bytes:
        """A file of its own, on white."""
        style = f'<style>{STYLE}</style><rect width="100%" height="100%" fill="#fff"/>'
        return self._svg(' xmlns="http://www.w3.org/2000/svg"', style).encode()

    def _svg(self, attributes: str, before: str = "") -> str:
        kind = "drawing many" if self.many else "drawing"
        return (
            f'<svg{attributes} class="{kind}" role="img" viewBox="0 0 {WIDTH} {HEIGHT}">'
            f"<title>{html(self.title)}</title>{before}{self.body}</svg>"
        )


def picture(graph: ExplainedGraph, *, apart: bool = False) -> Picture:
    """A molecule as chemists draw it, any other graph as dots and lines.

    With ``apart`` a script can find the bonds and atoms of a molecule.
    """
    title = (
        f"{graph.id}: {sum(graph.marked)} of {len(graph.nodes)} nodes and "
        f"{sum(graph.kept_edges)} of {len(graph.edges)} edges are kept; "
        f"predicted {graph.prediction}"
    )
    if graph.molecule is not None and len(graph.nodes) <= MOST_NODES:
        body, points = draw_molecule(graph, WIDTH, HEIGHT, apart=apart)
        return Picture(body, points, title)
    shown = _shown_nodes(graph)
    missing = len(graph.nodes) - len(shown)
    note = f"{missing} of {len(graph.nodes)} nodes are not shown" if missing else ""
    body, points = _dots(graph, shown)
    return Picture(body, points, title, note, many=len(shown) > 40)


def _shown_nodes(graph: ExplainedGraph) -> list[int]:
    """All nodes of a small graph; of a large one the kept part and, if they fit, its neighbours."""
    nodes = range(len(graph.nodes))
    if len(nodes) <= MOST_NODES:
        return list(nodes)
    scores = graph.node_scores or [0.0] * len(nodes)
    kept = sorted((node for node in nodes if graph.marked[node]), key=lambda node: -scores[node])
    beside = {end for edge in graph.edges if any(graph.marked[end] for end in edge) for end in edge}
    around = [*kept, *sorted(beside - set(kept))]
    return sorted(around[:MOST_NODES]) or list(nodes[:MOST_NODES])


def _dots(graph: ExplainedGraph, shown: Sequence[int]) -> tuple[str, list[tuple[int, int] | None]]:
    number = {node: at for at, node in enumerate(shown)}
    inside = [
        (number[a], number[b], kept)
        for (a, b), kept in zip(graph.edges, graph.kept_edges, strict=True)
        if a in number and b in number
    ]
    places = _fitted(graph_layout(len(shown), [(a, b) for a, b, _ in inside]))

    def lines(wanted: bool) -> str:
        return "".join(
            f"M{places[a][0]} {places[a][1]}L{places[b][0]} {places[b][1]}"
            for a, b, kept in inside
            if kept == wanted
        )

    def dots(nodes: Iterable[int]) -> str:
        return "".join(f"M{places[number[node]][0]} {places[number[node]][1]}h0" for node in nodes)

    layers = {
        "ge": lines(False),
        "tr": dots(node for node in shown if graph.truth and graph.truth[node]),
        "ke": lines(True),
        "gn": dots(node for node in shown if not graph.marked[node]),
        "kn": dots(node for node in shown if graph.marked[node]),
    }
    points: list[tuple[int, int] | None] = [None] * len(graph.nodes)
    for node, at in number.items():
        points[node] = places[at]
    return path_layers(layers), points


def path_layers(layers: dict[str, str]) -> str:
    """One path for each layer that is not empty."""
    return "".join(f'<path class="{name}" d="{d}"/>' for name, d in layers.items() if d)


def _fitted(positions: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> list[tuple[int, int]]:
    """Positions within the picture, in whole numbers, not stretched."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    room = np.array([WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN])
    scale = min(40.0, *(room / np.maximum(high - low, 1e-6)))
    placed = (positions - (low + high) / 2) * scale + np.array([WIDTH, HEIGHT]) / 2
    return [(round(float(x)), round(float(y))) for x, y in placed]
