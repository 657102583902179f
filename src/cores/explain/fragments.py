"""What a model keeps of molecules: elements and functional groups, by predicted class."""

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from inspect import signature
from typing import Any

from cores.data.molecules import needs_rdkit
from cores.explain.explained import ExplainedGraph

MOST_MOLECULES = 10_000
"""That are counted: looking for groups takes about a millisecond each."""
FEWEST = 3
"""Molecules that must have a group for its line."""
MOST_GROUPS = 12
"""Lines of a class."""


@dataclass
class Part:
    """An element or a group: how many molecules have it, and how much of it is kept."""

    molecules: int = 0
    atoms: int = 0
    kept: int = 0

    def add(self, atoms: int, kept: int) -> None:
        """Count it in a molecule."""
        self.molecules += 1
        self.atoms += atoms
        self.kept += kept

    @property
    def share(self) -> float:
        """Share of its atoms that is kept."""
        return self.kept / self.atoms if self.atoms else 0.0


@dataclass
class Kept:
    """What is kept of the molecules of a class."""

    all: Part = field(default_factory=Part)
    elements: dict[str, Part] = field(default_factory=lambda: defaultdict(Part))
    groups: dict[str, Part] = field(default_factory=lambda: defaultdict(Part))

    def lift(self, part: Part) -> float:
        """How much more often than any atom those of a part are kept."""
        return part.share / self.all.share if self.all.share else 0.0

    @property
    def frequent_elements(self) -> list[tuple[str, Part]]:
        """Elements, the frequent ones first."""
        return sorted(self.elements.items(), key=lambda item: (-item[1].atoms, item[0]))

    @property
    def kept_groups(self) -> list[tuple[str, Part]]:
        """Groups that several molecules have, those first that are kept most."""
        known = [item for item in self.groups.items() if item[1].molecules >= FEWEST]
        return sorted(known, key=lambda item: (-item[1].share, -item[1].molecules, item[0]))[
            :MOST_GROUPS
        ]


@dataclass
class KeptChemistry:
    """What is kept of molecules, by predicted class."""

    classes: dict[str, Kept] = field(default_factory=lambda: defaultdict(Kept))
    molecules: int = 0

    def add(self, graph: ExplainedGraph) -> None:
        """Count a molecule, unless there were enough."""
        if self.molecules >= MOST_MOLECULES:
            return
        self.molecules += 1
        kept, marked = self.classes[graph.group], graph.marked
        kept.all.add(len(marked), sum(marked))
        for element in set(graph.nodes):
            atoms = [node for node, name in enumerate(graph.nodes) if name == element]
            kept.elements[element].add(len(atoms), sum(marked[atom] for atom in atoms))
        for name, found in group_atoms(graph.molecule).items():
            kept.groups[name].add(len(found), sum(marked[atom] for atom in found))


def group_atoms(molecule: Any) -> dict[str, set[int]]:
    """The atoms of every functional group of rdkit's that a molecule has.

    >>> from cores.data.molecules import molecule_from_smiles
    >>> sorted(group_atoms(molecule_from_smiles("Cc1ccccc1"))["benzene rings"])
    [1, 2, 3, 4, 5, 6]
    """
    found = {}
    for name, pattern in _groups():
        if matches := molecule.GetSubstructMatches(pattern):
            found[name] = {atom for match in matches for atom in match}
    return found


@cache
def _groups() -> tuple[tuple[str, Any], ...]:
    """Names and patterns of rdkit's fragments."""
    needs_rdkit()
    from rdkit.Chem import Fragments

    return tuple(
        (
            (function.__doc__ or name).strip().removeprefix("Number of "),
            signature(function).parameters["pattern"].default,
        )
        for name, function in Fragments.fns
    )
