"""A molecule as chemists draw it, by rdkit, with the kept part highlighted."""

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from cores.data.molecules import needs_rdkit
from cores.explain.explained import ExplainedGraph
from cores.files.escape import html

_TAGS = re.compile(r"\b(atom|bond)-(\d+)\b")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_FONT = re.compile(r"font-size:(\d+)px")
BOND_LENGTH = 26
"""Length of a bond, at most."""
RING = 9
"""Radius of a ring around an atom."""
_AROUND = f"a{RING} {RING} 0 1 0 {2 * RING} 0a{RING} {RING} 0 1 0 {-2 * RING} 0"


def draw_molecule(
    graph: ExplainedGraph, width: int, height: int, *, apart: bool = False
) -> tuple[str, list[tuple[int, int] | None]]:
    """Draw elements of SVG; returns them, and where each atom is.

    rdkit's own SVG has a kilobyte for every few bonds; here lines of a kind are one path, or, where
    a script is to find them ``apart``, those of a bond or an atom.
    """
    needs_rdkit()
    from rdkit.Chem.Draw import rdMolDraw2D

    drawer = rdMolDraw2D.MolDraw2DSVG(width, height, width, height, True)  # letters as text
    options: Any = drawer.drawOptions()
    options.useBWAtomPalette()
    options.clearBackground = False
    options.fixedBondLength = BOND_LENGTH
    options.padding = 0.08
    options.prepareMolsBeforeDrawing = False
    # Without hydrogens at stereo centres: they would be atoms that the graph does not have.
    drawer.DrawMolecule(_prepared(graph.molecule))
    drawer.FinishDrawing()
    atoms = range(len(graph.nodes))
    places = [drawer.GetDrawCoords(atom) for atom in atoms]
    points: list[tuple[int, int] | None] = [(round(place.x), round(place.y)) for place in places]
    parts = _parts(drawer.GetDrawingText(), graph)
    return _highlight(graph, places) + _joined(parts, apart=apart), points


def _prepared(molecule: Any) -> Any:
    """Give its rings single and double bonds, where these can be told."""
    from rdkit import Chem
    from rdkit.Chem.Draw.rdMolDraw2D import PrepareMolForDrawing

    try:
        return PrepareMolForDrawing(molecule, addChiralHs=False)
    except Chem.MolSanitizeException:
        return PrepareMolForDrawing(molecule, kekulize=False, addChiralHs=False)


def _highlight(graph: ExplainedGraph, places: list[Any]) -> str:
    """Draw a band below kept bonds, a dot below kept atoms, a ring around those that decide."""

    def at(node: int) -> str:
        return f"{places[node].x:.0f} {places[node].y:.0f}"

    bonds = [
        f"M{at(a)}L{at(b)}"
        for (a, b), kept in zip(graph.edges, graph.kept_edges, strict=True)
        if kept
    ]
    atoms = [f"M{at(node)}h0" for node, marked in enumerate(graph.marked) if marked]
    rings = [
        f"M{places[node].x - RING:.0f} {places[node].y:.0f}{_AROUND}"
        for node, decides in enumerate(graph.truth or ())
        if decides
    ]
    band = f'<path class="mk" d="{"".join(bonds + atoms)}"/>' if atoms else ""
    return band + (f'<path class="rg" d="{"".join(rings)}"/>' if rings else "")


@dataclass(frozen=True)
class _Part:
    """A piece of what rdkit drew: a line or wedge of a bond, a mark or the letters of an atom."""

    element: str
    """``data-e`` and the number of an edge, or ``data-n`` and that of a node."""
    kind: str
    """Class of the path, which says whether it is kept; empty for letters."""
    text: str
    """The path, or a whole element with letters."""


def _parts(text: str, graph: ExplainedGraph) -> list[_Part]:
    """Take what rdkit drew apart, bond by bond and atom by atom."""
    numbers = {frozenset(ends): number for number, ends in enumerate(graph.edges)}
    found = []
    for element in ElementTree.fromstring(text.encode("iso-8859-1", "xmlcharrefreplace")):
        kind = element.tag.rpartition("}")[2]
        tags = _TAGS.findall(element.get("class", ""))
        named = [int(number) for what, number in tags if what == "atom"]
        if kind == "text" and named:
            found.append(_Part(f'data-n="{named[0]}"', "", _letter(element, graph, named[0])))
        elif kind == "path" and named:
            # A line of a bond; marks of an atom, as of a radical, have one atom alone.
            bond = numbers.get(frozenset(named))
            kept = graph.marked[named[0]] if bond is None else graph.kept_edges[bond]
            place = f'data-n="{named[0]}"' if bond is None else f'data-e="{bond}"'
            filled = "fill:none" not in element.get("style", "")
            layer = ("k" if kept else "g") + ("w" if filled else "b")
            found.append(_Part(place, layer, _path(element)))
    return found


def _joined(parts: list[_Part], *, apart: bool) -> str:
    """One path for all lines, or wedges, of kept or removed bonds; ``apart``, one for each bond."""
    paths: dict[tuple[str, str], list[str]] = defaultdict(list)
    letters = []
    for part in parts:
        element = f" {part.element}" if apart else ""
        if part.kind:
            paths[part.kind, element].append(part.text)
        else:
            letters.append(part.text.replace("<text", f"<text{element}", 1))
    by_kind = sorted(paths.items(), key=lambda item: item[0][0])  # what is kept in front
    return "".join(
        [
            *(
                f'<path class="{kind}"{element} d="{"".join(lines)}"/>'
                for (kind, element), lines in by_kind
            ),
            *letters,
        ]
    )


def _path(element: ElementTree.Element) -> str:
    """The path with short numbers."""
    d = _NUMBER.sub(lambda found: f"{float(found[0]):.1f}".removesuffix(".0"), element.get("d", ""))
    return re.sub(r"\s*([A-Za-z])\s*", r"\1", d.replace(",", " ")).strip()


def _letter(element: ElementTree.Element, graph: ExplainedGraph, atom: int) -> str:
    x, y = (f"{float(element.get(name, '0')):.0f}" for name in ("x", "y"))
    size = _FONT.search(element.get("style", ""))
    symbol = graph.nodes[atom]
    kind = symbol if graph.marked[atom] else "gt"
    font = f' font-size="{size[1]}"' if size else ""
    return f'<text class="{kind}" x="{x}" y="{y}"{font}>{html(element.text or "")}</text>'
