"""Count all graphs of an input, and choose those that are shown."""

from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from inspect import signature
from itertools import chain
from typing import Any

from torch_geometric.data import Data

from cores.data.molecules import needs_rdkit
from cores.data.raw import SHOWN
from cores.errors import UserError, nearest
from cores.explain.atoms import atom_map
from cores.explain.explained import ExplainedGraph, explained_graphs
from cores.runs.opened import PredictedGraphs
from cores.runs.trained import TrainedModel
from cores.tasks import TASKS

MOST_MOLECULES = 10_000
"""Molecules that are counted: looking for groups takes about a millisecond each."""
FEWEST = 3
"""Molecules that must have a group for its line."""
MOST_GROUPS = 12
"""Groups that are listed for a class."""
BINS = 20
"""Bins of the kept shares."""
MOST_SHOWN = 100
"""Graphs, where no other number is asked for."""


@dataclass(frozen=True)
class Conditions:
    """Which graphs to show; a graph must meet every condition."""

    graphs: frozenset[int] | None = None
    """Positions; None for any."""
    predicted: str | None = None
    """The predicted class."""
    errors: bool = False
    """Only graphs that are predicted wrong."""
    uncertain: bool = False
    """Only graphs whose prediction set holds no label, or several."""
    count: int | None = None
    """The most that are shown; None for 100, or all of ``top`` or ``largest``."""
    top: int | None = None
    """Only so many, those of which the smallest share is kept, in this order."""
    largest: int | None = None
    """Only so many, those of which the largest share is kept, in this order."""

    def __post_init__(self) -> None:
        for name in ("count", "top", "largest"):
            if (number := getattr(self, name)) is not None and number < 1:
                raise UserError(f"`{name}` must be positive, got {number}")
        if self.top is not None and self.largest is not None:
            raise UserError("`top` and `largest` are opposites; choose one")

    @property
    def most(self) -> int:
        """Most graphs that are shown."""
        return min(
            (each for each in (self.count, self.top, self.largest) if each), default=MOST_SHOWN
        )

    def rank(self, kept_share: float) -> float:
        """Sort key of the graphs that are shown."""
        if self.top is not None:
            return kept_share
        return 0.0 if self.largest is None else -kept_share

    def check(self, trained: TrainedModel) -> None:
        """Refuse conditions that no graph of this model can meet."""
        names = trained.schema.class_names
        if self.predicted is not None:
            trained.need_classes("`class`")
        if self.errors:
            trained.need_sets("`errors`")
        if self.uncertain:
            trained.need_sets("`uncertain`")
        if self.predicted is not None and self.predicted not in names:
            raise UserError(
                f"the model knows no class {self.predicted!r}; {nearest(self.predicted, names)}"
            )
        if self.uncertain and not len(trained.calibration):
            raise UserError("the model was not calibrated: it has no prediction sets")

    def admits(self, graph: ExplainedGraph) -> bool:
        """Return True if a graph meets the conditions."""
        return (
            (self.graphs is None or graph.position in self.graphs)
            and (self.predicted is None or graph.prediction == self.predicted)
            and not (self.errors and graph.correct is not False)
            and not (self.uncertain and graph.sure is not False)
        )


@dataclass
class ClassCounts:
    """Counts of the graphs that are predicted to be of a class."""

    graphs: int = 0
    right: int = 0
    wrong: int = 0
    sure: int = 0
    unsure: int = 0
    weak: int = 0
    node_share: float = 0.0
    """Sum of the shares of nodes that are kept."""
    edge_share: float = 0.0
    shares: Counter[int] = field(default_factory=Counter)
    """Graphs by the bin of the share that the model decides on: of nodes, or of edges."""


@dataclass
class Part:
    """Counts of an element or group: molecules that have it, its atoms, and those kept."""

    molecules: int = 0
    atoms: int = 0
    kept: int = 0

    def add(self, atoms: int, kept: int) -> None:
        """Count a molecule that has it."""
        self.molecules += 1
        self.atoms += atoms
        self.kept += kept

    @property
    def share(self) -> float:
        """Share of its atoms that is kept."""
        return self.kept / self.atoms if self.atoms else 0.0


@dataclass
class Kept:
    """Counts of kept elements and groups in the molecules of a class."""

    all: Part = field(default_factory=Part)
    elements: dict[str, Part] = field(default_factory=lambda: defaultdict(Part))
    groups: dict[str, Part] = field(default_factory=lambda: defaultdict(Part))

    def lift(self, part: Part) -> float:
        """Share of a part's atoms that is kept, divided by that of all atoms."""
        return part.share / self.all.share if self.all.share else 0.0

    @property
    def frequent_elements(self) -> list[tuple[str, Part]]:
        """Elements, the frequent ones first."""
        return sorted(self.elements.items(), key=lambda item: (-item[1].atoms, item[0]))

    @property
    def kept_groups(self) -> list[tuple[str, Part]]:
        """Groups that several molecules have, those first that are kept most."""
        known = [item for item in self.groups.items() if item[1].molecules >= FEWEST]
        known.sort(key=lambda item: (-item[1].share, -item[1].molecules, item[0]))
        return known[:MOST_GROUPS]


@dataclass
class KeptChemistry:
    """Counts of kept elements and groups by predicted class."""

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
    for name, pattern in _patterns():
        if matches := molecule.GetSubstructMatches(pattern):
            found[name] = set(chain.from_iterable(matches))
    return found


@cache
def _patterns() -> list[tuple[str, Any]]:
    """Names and patterns of rdkit's fragments; two have the same name."""
    needs_rdkit()
    from rdkit.Chem import Fragments

    names = [(found.__doc__ or name).strip() for name, found in Fragments.fns]
    patterns = [signature(found).parameters["pattern"].default for _, found in Fragments.fns]
    return [
        (name.removeprefix("Number of "), pattern)
        for name, pattern in zip(names, patterns, strict=True)
    ]


@dataclass
class Survey:
    """Counts of an input, and the graphs to show."""

    removes_edges: bool
    """True for a model that removes edges alone."""
    classes: dict[str, ClassCounts]
    """Counts by predicted class, in the model's order."""
    shown: list[ExplainedGraph] = field(default_factory=list)
    """Graphs that were chosen, as many as asked for."""
    data: dict[int, Data] = field(default_factory=dict)
    """The same by position, where the model is asked about parts: it is asked again."""
    graphs: int = 0
    chosen: int = 0
    """Graphs that meet the conditions."""
    errors: int = 0
    """Rows that could not be used."""
    first_errors: list[str] = field(default_factory=list)
    unknown_label: str | None = None
    """The first that the model does not know: a graph that has one counts as unlabelled."""
    chemistry: KeptChemistry | None = None

    @classmethod
    def of(
        cls, trained: TrainedModel, chunks: Iterable[PredictedGraphs], choice: Conditions
    ) -> "Survey":
        """Go through the graphs once; only those that are shown are kept."""
        choice.check(trained)
        group = TASKS[trained.task].group
        schema, atoms = trained.schema, atom_map(trained.config.dataset)
        molecules = schema.encoding.kind == "molecules" or atoms is not None
        found = cls(
            trained.config.spec.removes == "edge",
            {name: ClassCounts() for name in ((group,) if group else schema.class_names)},
            chemistry=KeptChemistry() if molecules else None,
        )
        for chunk in chunks:
            found.errors += len(chunk.rejected)
            found.first_errors = [*found.first_errors, *map(str, chunk.rejected)][:SHOWN]
            for graph in explained_graphs(chunk, trained, atoms):
                found._add(graph, choice)
            if trained.has_committee:
                found._hold(chunk)
        found._check(choice)
        return found

    @property
    def right(self) -> int:
        """Graphs that are predicted as labelled."""
        return sum(counts.right for counts in self.classes.values())

    @property
    def wrong(self) -> int:
        """Graphs that are predicted otherwise than labelled."""
        return sum(counts.wrong for counts in self.classes.values())

    def _add(self, graph: ExplainedGraph, choice: Conditions) -> None:
        self.graphs += 1
        if self.unknown_label is None and graph.unknown_label is not None:
            known = ", ".join(self.classes)
            self.unknown_label = f"{graph.unknown_label:.40} (the model knows {known})"
        counts = self.classes[graph.group]
        counts.graphs += 1
        counts.right += graph.correct is True
        counts.wrong += graph.correct is False
        counts.sure += graph.sure is True
        counts.unsure += graph.sure is False
        counts.weak += graph.record.get("weak") is True
        counts.node_share += graph.record["node_ratio"]
        counts.edge_share += graph.record["edge_ratio"]
        share = self._share(graph)
        counts.shares[min(BINS - 1, int(share * BINS))] += 1
        if self.chemistry is not None:
            self.chemistry.add(graph)
        if choice.admits(graph):
            self.chosen += 1
            insort(self.shown, graph, key=lambda each: choice.rank(self._share(each)))
            del self.shown[choice.most :]  # never more in memory than are asked for

    def _hold(self, chunk: PredictedGraphs) -> None:
        """Copy the graphs that are shown, so that the chunk that holds them need not stay."""
        shown = {graph.position for graph in self.shown}
        self.data = {position: data for position, data in self.data.items() if position in shown}
        for at, position in enumerate(chunk.positions):
            if position in shown:
                self.data[position] = chunk.graphs.graph(at).clone()

    def _share(self, graph: ExplainedGraph) -> float:
        """The share that the model decides on: of the nodes, or of the edges."""
        return float(graph.record["edge_ratio" if self.removes_edges else "node_ratio"])

    def _check(self, choice: Conditions) -> None:
        """Refuse to go on where there is nothing to show, and say why."""
        if not self.graphs:
            told = f": {'; '.join(self.first_errors)}" if self.errors else ""
            raise UserError(f"the input holds no usable graph{told}")
        if choice.errors and not self.right + self.wrong:
            found = "none" if self.unknown_label is None else self.unknown_label
            raise UserError(
                f"`errors` needs true labels, and the input has {found} (`label_column`)"
            )
        if not self.shown:
            unusable = ""
            if self.errors:
                unusable = f" ({self.errors} rows could not be used: {self.first_errors[0]})"
            raise UserError(
                f"none of the {self.graphs} graphs meets all conditions{unusable}; leave out "
                "`graphs`, `class`, `errors` or `uncertain`"
            )
