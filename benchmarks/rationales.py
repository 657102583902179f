"""Kept atoms beside rationales by Monte-Carlo tree search, which asks the same model.

    python benchmarks/rationales.py RUN molecules.csv [--molecules 50] [--truth-smarts c1ccccc1]

Of molecules that the run's model predicts to be of its last class: seconds per molecule, the share
of the atoms that is held, and recall and precision of the true ones, where a pattern tells them.

The search is written from section 3 of Jin, Barzilay and Jaakkola (2020), "Multi-Objective Molecule
Generation using Interpretable Substructures" (https://arxiv.org/abs/2002.03244): a state is a
connected part of the molecule, an action deletes a peripheral bond or a peripheral ring, and the
reward is the property that the model predicts for what is left.
"""

import math
import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

import torch
from rdkit import Chem, rdBase

from cores import Cores
from cores_paper.tables.table import Table
from inputs import parser, read_rows

Atoms = frozenset[int]
"""Numbers of atoms, as the molecule's SMILES counts them."""
Score = Callable[[list[str]], Sequence[float]]
"""Takes SMILES, gives the probability of the property for each."""


@dataclass(frozen=True)
class SearchSettings:
    """Of the search; the defaults are those of chemprop 1's ``interpret``."""

    rollouts: int = 20
    """Paths from the whole molecule to a leaf."""
    c_puct: float = 10.0
    """Weight of exploration."""
    min_atoms: int = 8
    """No part is made smaller than this."""
    max_atoms: int = 20
    """A rationale is not larger than this."""
    prop_delta: float = 0.5
    """A rationale has at least this score."""


@dataclass(frozen=True)
class Rationale:
    """What the search found for a molecule."""

    molecule_score: float
    """Of the whole molecule."""
    atoms: Atoms | None
    """The smallest part that was accepted, by its best score; None if there was none."""
    smiles: str | None
    score: float | None
    scored: int
    """Molecules and parts that the model was asked to score."""


@dataclass
class _State:
    """A part of the molecule, with what the search knows of the deletions from it."""

    atoms: Atoms
    smiles: str
    score: float
    children: "list[_State] | None" = None  # None: not yet expanded
    visits: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def choice(self, c_puct: float) -> int:
        """The deletion with the highest mean value plus exploration term."""
        assert self.children is not None
        root = math.sqrt(sum(self.visits))

        def worth(index: int) -> float:
            visits = self.visits[index]
            mean = self.values[index] / visits if visits else 0.0
            reward = self.children[index].score  # type: ignore[index]
            # Before the first visit the root is 0: the deletions are then told apart by rewards.
            return mean + c_puct * reward * max(root, 1e-6) / (1 + visits)

        return max(range(len(self.children)), key=worth)


def best_rationale(
    smiles: str, score: Score, settings: SearchSettings | None = None
) -> Rationale | None:
    """Search a molecule for the smallest part that alone still has the property.

    Parts are scored once each, those that differ by one deletion from the same state in one call.

    Args:
        smiles: The molecule.
        score: The model.
        settings: Of the search.

    Returns:
        What was found, or None if RDKit cannot read the SMILES.
    """
    settings = settings or SearchSettings()
    mol = Chem.MolFromSmiles(smiles)
    if mol is None:
        return None
    search = _Search(mol, score, settings)
    root = search.root
    for _ in range(settings.rollouts):
        search.rollout()
        if not root.children:
            break
    accepted = [
        state
        for state in search.states.values()
        if len(state.atoms) <= settings.max_atoms and state.score >= settings.prop_delta
    ]
    if not accepted:
        return Rationale(root.score, None, None, None, search.scored)
    best = min(accepted, key=lambda state: (len(state.atoms), -state.score))
    return Rationale(root.score, best.atoms, best.smiles, best.score, search.scored)


class _Search:
    """The tree of a molecule; states that two paths reach are one."""

    def __init__(self, mol: Chem.Mol, score: Score, settings: SearchSettings) -> None:
        self._mol = mol
        self._score = score
        self._settings = settings
        self._pieces = pieces(mol)
        self._invalid: set[Atoms] = set()
        self.scored = 0
        self.states: dict[Atoms, _State] = {}
        whole = frozenset(range(mol.GetNumAtoms()))
        self._add([(whole, Chem.MolToSmiles(mol))])
        self.root = self.states[whole]

    def rollout(self) -> None:
        """Follow the best deletions down to a leaf, and tell every step what the leaf is worth."""
        state, path = self.root, []
        while self._expand(state):
            index = state.choice(self._settings.c_puct)
            path.append((state, index))
            state = state.children[index]  # type: ignore[index]
        for passed, index in path:
            passed.visits[index] += 1
            passed.values[index] += state.score

    def _expand(self, state: _State) -> bool:
        """Score the deletions from a state; False if there are none: it is a leaf."""
        if state.children is None:
            parts = []
            for atoms in smaller_parts(self._mol, self._pieces, state.atoms):
                if len(atoms) >= self._settings.min_atoms and atoms not in self._invalid:
                    parts.append(atoms)
            new = []
            for atoms in parts:
                if atoms not in self.states:
                    text = part_smiles(self._mol, atoms)
                    if text is None:
                        self._invalid.add(atoms)
                    else:
                        new.append((atoms, text))
            self._add(new)
            state.children = [self.states[atoms] for atoms in parts if atoms in self.states]
            state.visits = [0] * len(state.children)
            state.values = [0.0] * len(state.children)
        return bool(state.children)

    def _add(self, parts: Sequence[tuple[Atoms, str]]) -> None:
        if not parts:
            return
        scores = self._score([smiles for _, smiles in parts])
        self.scored += len(parts)
        for (atoms, smiles), score in zip(parts, scores, strict=True):
            self.states[atoms] = _State(atoms, smiles, float(score))


def pieces(mol: Chem.Mol) -> list[Atoms]:
    """What one action may delete: bonds outside rings, and rings.

    Rings that share more than a bond, as in bridged systems, are one piece.
    """
    rings = [set(ring) for ring in mol.GetRingInfo().AtomRings()]
    merged: list[set[int]] = []
    for ring in rings:
        while overlapping := [other for other in merged if len(other & ring) > 2]:
            for other in overlapping:
                merged.remove(other)
                ring = ring | other
        merged.append(ring)
    bonds = [
        {bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()}
        for bond in mol.GetBonds()
        if not bond.IsInRing()
    ]
    return [frozenset(piece) for piece in (*bonds, *merged)]


def smaller_parts(mol: Chem.Mol, all_pieces: Iterable[Atoms], atoms: Atoms) -> list[Atoms]:
    """What is left of a part after each deletion that keeps it connected.

    An atom leaves with a piece if no other piece holds it.
    """
    inside = [piece for piece in all_pieces if piece <= atoms]
    found: dict[Atoms, None] = {}
    for piece in inside:
        others = frozenset().union(*(other for other in inside if other != piece))
        left = atoms - (piece - others)
        if left and left != atoms and _connected(mol, left):
            found[left] = None
    return list(found)


def _connected(mol: Chem.Mol, atoms: Atoms) -> bool:
    reached: set[int] = set()
    waiting = [next(iter(atoms))]
    while waiting:
        number = waiting.pop()
        if number not in reached:
            reached.add(number)
            near = mol.GetAtomWithIdx(number).GetNeighbors()
            waiting += [atom.GetIdx() for atom in near if atom.GetIdx() in atoms]
    return len(reached) == len(atoms)


def part_smiles(mol: Chem.Mol, atoms: Atoms) -> str | None:
    """A part as a molecule of its own, hydrogens where bonds were cut; None if there is none."""
    kekulised = Chem.Mol(mol)
    Chem.Kekulize(kekulised, clearAromaticFlags=True)
    # A ring that stays whole stays aromatic if it can: with a hydrogen on a nitrogen that lost a
    # neighbour (a pyrrole's), without one (a pyridine's); else the drawn double bonds decide.
    for source, hydrogen in ((mol, False), (mol, True), (kekulised, False)):
        part = _cut(source, atoms, hydrogen)
        try:
            with rdBase.BlockLogs():  # what cannot be is tried in another form
                Chem.SanitizeMol(part)
        except (ValueError, RuntimeError):
            continue
        return str(Chem.MolToSmiles(part))
    return None


def _cut(mol: Chem.Mol, atoms: Atoms, hydrogen: bool) -> Chem.Mol:
    """The atoms and the bonds between them; not yet sanitised."""
    part = Chem.RWMol(mol)
    whole = [set(ring) for ring in mol.GetRingInfo().AtomRings() if atoms.issuperset(ring)]
    for bond in part.GetBonds():
        ends = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        kept = [end for end in ends if end in atoms]
        if bond.GetIsAromatic() and not any(ring.issuperset(ends) for ring in whole):
            bond.SetIsAromatic(False)
            bond.SetBondType(Chem.BondType.SINGLE)
        if len(kept) == 1:
            atom = part.GetAtomWithIdx(kept[0])
            lost = round(mol.GetBondBetweenAtoms(*ends).GetBondTypeAsDouble() - 0.1)
            ring_nitrogen = hydrogen and atom.GetIsAromatic() and atom.GetAtomicNum() == 7
            if atom.GetNoImplicit() or ring_nitrogen:  # the others get theirs by themselves
                atom.SetNumExplicitHs(atom.GetNumExplicitHs() + lost)
            atom.SetChiralTag(Chem.ChiralType.CHI_UNSPECIFIED)
            for near in atom.GetBonds():
                near.SetStereo(Chem.BondStereo.STEREONONE)
                near.SetBondDir(Chem.BondDir.NONE)
    for atom in part.GetAtoms():
        number = atom.GetIdx()
        if atom.GetIsAromatic() and not any(number in ring for ring in whole):
            atom.SetIsAromatic(False)
    for number in sorted(set(range(mol.GetNumAtoms())) - atoms, reverse=True):
        part.RemoveAtom(number)
    return part.GetMol()


def matched_atoms(smiles: str, smarts: str) -> Atoms:
    """All atoms of a molecule that a pattern matches somewhere."""
    mol, pattern = Chem.MolFromSmiles(smiles), Chem.MolFromSmarts(smarts)
    if mol is None or pattern is None:
        raise ValueError(f"RDKit cannot read {smiles if mol is None else smarts}")
    return frozenset(number for match in mol.GetSubstructMatches(pattern) for number in match)


def recall_and_precision(kept: Atoms, truth: Atoms) -> tuple[float, float]:
    """Share of the true atoms that are kept, and of the kept atoms that are true.

    >>> recall_and_precision(frozenset({0, 1, 2, 3}), frozenset({2, 3, 4}))
    (0.6666666666666666, 0.5)
    """
    both = len(kept & truth)
    return both / len(truth) if truth else math.nan, both / len(kept) if kept else math.nan


def line(
    method: str, seconds: float, smiles: list[str], found: list[Atoms], smarts: str | None
) -> list[str]:
    """Write a line of the table; one not found recalls nothing."""
    sizes = [Chem.MolFromSmiles(text).GetNumAtoms() for text in smiles]
    shares = [len(atoms) / size for atoms, size in zip(found, sizes, strict=True) if atoms]
    cells = [method, f"{seconds / len(smiles):.4f}", str(len(shares)), f"{fmean(shares):.3f}"]
    if smarts is None:
        return [*cells, "–", "–"]
    pairs = [
        recall_and_precision(atoms, matched_atoms(text, smarts))
        for text, atoms in zip(smiles, found, strict=True)
    ]
    precision = fmean(value for _, value in pairs if not math.isnan(value))
    return [*cells, f"{fmean(recall for recall, _ in pairs):.3f}", f"{precision:.3f}"]


def main() -> None:
    """Print the table."""
    options = parser(__doc__)
    options.add_argument("run", type=Path)
    options.add_argument("table", type=Path, help="CSV with a column smiles")
    options.add_argument("--molecules", type=int, default=50)
    options.add_argument("--truth-smarts", help="pattern of the atoms that decide")
    given = options.parse_args()
    torch.set_num_threads(1)
    rdBase.DisableLog("rdApp.*")
    model, smarts = Cores.load(given.run), given.truth_smarts
    texts = [row["smiles"] for row in read_rows(given.table)]
    texts = random.Random(0).sample(texts, min(10 * given.molecules, len(texts)))
    able = [text for text in texts if smarts is None or matched_atoms(text, smarts)]

    def score(smiles: list[str]) -> Sequence[float]:
        return [float(row[-1]) for row in model.predict_proba(smiles)]

    positive = [text for text, value in zip(able, score(able), strict=True) if value >= 0.5]
    positive = positive[: given.molecules]
    begin = time.perf_counter()
    kept = [frozenset(each.kept_nodes) for each in model.explain(positive)]
    middle = time.perf_counter()
    searched = [best_rationale(text, score) for text in positive]
    end = time.perf_counter()
    found = [each.atoms or frozenset() if each else frozenset() for each in searched]
    lines = [
        line("CORES", middle - begin, positive, kept, smarts),
        line("tree search", end - middle, positive, found, smarts),
    ]
    head = ["method", "seconds per molecule", "found", "share of atoms", "recall", "precision"]
    print(Table(head, lines).markdown())


if __name__ == "__main__":
    main()
