"""A molecule as chemists draw it, by rdkit, with the kept part highlighted."""

import re
from collections import defaultdict
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
    """Return elements of SVG, and the coordinates of each atom.

    rdkit's own SVG has a kilobyte for every few bonds; here lines of a kind are one path, or, where
    a script is to find them ``apart``, those of a bond or an atom.
    """
    needs_rdkit()
    from rdkit import Chem
    from rdkit.Chem.Draw import rdMolDraw2D

    drawer = rdMolDraw2D.MolDraw2DSVG(width, height, width, height, True)  # letters as text
    options: Any = drawer.drawOptions()
    options.useBWAtomPalette()
    options.clearBackground = False
    options.fixedBondLength = BOND_LENGTH
    options.padding = 0.08
    options.prepareMolsBeforeDrawing = False
    # Without hydrogens at stereo centres: they would be atoms that the graph does not have.
    try:
        prepared = rdMolDraw2D.PrepareMolForDrawing(graph.molecule, addChiralHs=False)
    except Chem.MolSanitizeException:  # nobody can tell single from double bonds in its rings
        prepared = rdMolDraw2D.PrepareMolForDrawing(
            graph.molecule, kekulize=False, addChiralHs=False
        )
    drawer.DrawMolecule(prepared)
    drawer.FinishDrawing()
    places = [drawer.GetDrawCoords(atom) for atom in range(len(graph.nodes))]
    points: list[tuple[int, int] | None] = [(round(place.x), round(place.y)) for place in places]
    drawn = _lines_and_letters(drawer.GetDrawingText(), graph, apart=apart)
    return _highlight(graph, places) + drawn, points


def _highlight(graph: ExplainedGraph, places: list[Any]) -> str:
    """Draw a band below kept bonds, a dot below kept atoms, a ring around the true reason."""

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


def _lines_and_letters(text: str, graph: ExplainedGraph, *, apart: bool) -> str:
    """Divide rdkit's SVG into bonds and atoms, and join all lines, or wedges, that look alike.

    With ``apart`` those of a bond, or of an atom, have an element of their own.
    """
    numbers = {frozenset(ends): number for number, ends in enumerate(graph.edges)}
    paths: dict[tuple[str, str], list[str]] = defaultdict(list)
    letters = []
    for element in ElementTree.fromstring(text.encode("iso-8859-1", "xmlcharrefreplace")):
        kind = element.tag.rpartition("}")[2]
        tags = _TAGS.findall(element.get("class", ""))
        atoms = [int(number) for what, number in tags if what == "atom"]
        # A line has the atoms of its bond; letters and marks, as of a radical, have one atom.
        bond = numbers.get(frozenset(atoms))
        if kind == "text" and atoms:
            letters.append(_letter(element, graph, atoms[0], apart=apart))
        elif kind == "path" and atoms:
            kept = graph.marked[atoms[0]] if bond is None else graph.kept_edges[bond]
            filled = "fill:none" not in element.get("style", "")
            layer = ("k" if kept else "g") + ("w" if filled else "b")
            place = f' data-n="{atoms[0]}"' if bond is None else f' data-e="{bond}"'
            paths[layer, place if apart else ""].append(_path(element))
    by_layer = sorted(paths.items(), key=lambda item: item[0][0])  # what is kept in front
    drawn = [
        f'<path class="{layer}"{place} d="{"".join(lines)}"/>' for (layer, place), lines in by_layer
    ]
    return "".join(drawn + letters)


def _path(element: ElementTree.Element) -> str:
    """Shorten the numbers of a path."""
    d = _NUMBER.sub(lambda found: f"{float(found[0]):.1f}".removesuffix(".0"), element.get("d", ""))
    return re.sub(r"\s*([A-Za-z])\s*", r"\1", d.replace(",", " ")).strip()


def _letter(element: ElementTree.Element, graph: ExplainedGraph, atom: int, *, apart: bool) -> str:
    x, y = (f"{float(element.get(name, '0')):.0f}" for name in ("x", "y"))
    size = _FONT.search(element.get("style", ""))
    symbol = graph.nodes[atom]
    kind = symbol if graph.marked[atom] else "gt"
    font = f' font-size="{size[1]}"' if size else ""
    place = f' data-n="{atom}"' if apart else ""
    return f'<text{place} class="{kind}" x="{x}" y="{y}"{font}>{html(element.text or "")}</text>'
