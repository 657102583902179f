"""Molecules are drawn with the atoms and bonds that were kept, and with no others."""

import re
from typing import Any

import pytest

from cores.data.molecules import molecule_from_smiles
from cores.explain.drawing import graph_svg
from cores.explain.explained import ExplainedGraph
from cores.explain.survey import KeptChemistry, group_atoms


def explained(smiles: str, kept: set[int], bonds: set[tuple[int, int]] | None = None) -> Any:
    molecule = molecule_from_smiles(smiles)
    ends = [sorted((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx())) for bond in molecule.GetBonds()]
    edges = sorted((a, b) for a, b in ends)
    nodes = [atom.GetSymbol() for atom in molecule.GetAtoms()]
    between = {(a, b) for a, b in edges if a in kept and b in kept}
    return ExplainedGraph(
        position=0,
        record={"id": "x", "prediction": "toxic", "prediction_set": None},
        label=None,
        nodes=nodes,
        numbers=list(range(len(nodes))),
        edges=edges,
        kept_nodes=[atom in kept for atom in range(len(nodes))],
        kept_edges=[edge in (between if bonds is None else bonds) for edge in edges],
        node_scores=None,
        edge_scores=None,
        truth=None,
        molecule=molecule,
    )


def test_the_kept_atoms_and_bonds_are_highlighted() -> None:
    graph = explained("Cc1ccccc1O", {1, 2, 3})
    drawn = graph_svg(graph)
    (band,) = re.findall(r'class="mk" d="([^"]*)"', drawn.body)
    dots = {(int(x), int(y)) for x, y in re.findall(r"M(\d+) (\d+)h0", band)}
    assert dots == {drawn.points[atom] for atom in (1, 2, 3)}
    lines = re.findall(r"M(\d+) (\d+)L(\d+) (\d+)", band)
    found = {frozenset([(int(a), int(b)), (int(c), int(d))]) for a, b, c, d in lines}
    assert found == {
        frozenset([drawn.points[a], drawn.points[b]]) for a, b in ((1, 2), (2, 3))
    }  # fmt: skip
    assert 'class="gt"' in drawn.body  # the removed OH
    assert "4 of 8" not in drawn.title
    assert "3 of 8 nodes and 2 of 8 edges are kept" in drawn.title


def test_where_bonds_alone_are_removed_the_atoms_they_reach_are_marked() -> None:
    graph = explained("CCCC", {0, 1, 2, 3}, {(1, 2)})
    assert graph.marked == [False, True, True, False]


@pytest.mark.parametrize(
    "smiles", ["[Na+].[Cl-]", "C[C@H]1CCCC[C@@H]1O", "[2H]C([2H])O", "[CH3]", "*c1ccccc1", "[Fe]"]
)
def test_unusual_molecules_are_drawn(smiles: str) -> None:
    graph = explained(smiles, {0})
    assert len(graph_svg(graph).points) == len(graph.nodes)
    assert len(graph_svg(graph).inline()) < 6_000


def test_what_is_kept_is_counted_by_class() -> None:
    chemistry = KeptChemistry()
    for _ in range(3):
        chemistry.add(explained("Cc1ccccc1", {1, 2, 3, 4, 5, 6}))
    kept = chemistry.classes["toxic"]
    groups = dict(kept.kept_groups)
    assert groups["benzene rings"].share == 1
    assert kept.lift(groups["benzene rings"]) == pytest.approx(7 / 6)
    assert kept.elements["C"].share == pytest.approx(6 / 7)
    assert group_atoms(molecule_from_smiles("CC(=O)O"))
