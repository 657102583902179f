"""Molecules of benchmark datasets: what their numbers stand for, and that all can be drawn."""

from pathlib import Path

import pytest
import torch
from rdkit import Chem

from cores.data.datasets import load_dataset
from cores.explain.atoms import ATOM_MAPS, atom_map, elements_of, molecule_of
from cores.explain.drawing import graph_svg
from cores.explain.explained import ExplainedGraph

MUTAG = ATOM_MAPS["MUTAG"]
BONDS = tuple(f"edge label 0 = {number}" for number in range(4))
RING = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)]


def made(elements: str, ends: list[tuple[int, int]], bonds: str) -> str:
    """The SMILES of a graph with MUTAG's labels; a letter for the type of each bond."""
    kinds = torch.tensor(["ASDT".index(letter) for letter in bonds])
    rows = torch.nn.functional.one_hot(kinds, 4).float()
    return str(Chem.MolToSmiles(molecule_of(MUTAG, elements.split(), ends, rows, BONDS)))


def test_bonds_and_charges_are_those_of_the_molecule() -> None:
    nitrobenzene = made("C C C C C C N O O", [*RING, (0, 6), (6, 7), (6, 8)], "AAAAAASDS")
    assert nitrobenzene == Chem.CanonSmiles("c1ccccc1[N+](=O)[O-]")
    assert made("C C N", [(0, 1), (1, 2)], "ST") == "CC#N"


def test_what_breaks_a_rule_is_a_molecule_all_the_same() -> None:
    """Pyrrole without the hydrogen that makes it aromatic, and a carbon with six bonds."""
    five = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]
    assert "n" in made("N C C C C", five, "AAAAA")
    assert made("C O O O", [(0, 1), (0, 2), (0, 3)], "DDD").count("O") == 3
    assert made("* C", [(0, 1)], "S") == "*C"


def test_without_features_bonds_are_single() -> None:
    molecule = molecule_of(MUTAG, ["C", "O"], [(0, 1)], None, ())
    assert Chem.MolToSmiles(molecule) == "CO"


def test_elements_are_found_by_the_value_of_a_column() -> None:
    x = torch.eye(3)
    columns = ["node label 0 = 1", "node label 0 = 6", "node label 0 = 40"]
    assert elements_of(MUTAG, x, columns) == ["N", "Br", "*"]
    assert elements_of(ATOM_MAPS["Benzene"], x, ["feature 0", "feature 3", "feature 12"]) == [
        *("C", "S", "H")
    ]
    assert elements_of(MUTAG, x, ["a", "b", "c"]) == ["*"] * 3


def test_only_known_names_have_a_map(monkeypatch: pytest.MonkeyPatch) -> None:
    assert atom_map("MUTAG") is MUTAG
    assert atom_map("NCI1") is None
    monkeypatch.setattr("cores.explain.atoms.find_spec", lambda name: None)
    assert atom_map("MUTAG") is None, "without rdkit, molecules are drawn as other graphs"


@pytest.mark.parametrize("name", ["MUTAG", "PTC", "Mutagenicity", "Benzene"])
def test_every_molecule_of_a_dataset_can_be_drawn(name: str, data_root: Path) -> None:
    """The first 60 of each: elements as many as nodes, rings around the atoms that decide."""
    dataset = load_dataset(name, data_root)
    atoms = ATOM_MAPS[name]
    for number in range(60):
        graph = dataset.graphs.graph(number)
        elements = elements_of(atoms, graph.x, dataset.feature_names)
        assert len(elements) == graph.x.size(0)
        ends = sorted({(min(a, b), max(a, b)) for a, b in graph.edge_index.T.tolist() if a != b})
        rows = [
            int(((graph.edge_index[0] == a) & (graph.edge_index[1] == b)).nonzero()[0])
            for a, b in ends
        ]
        bonds = graph.edge_attr[rows]
        molecule = molecule_of(atoms, elements, ends, bonds, dataset.edge_feature_names)
        truth = [node == 0 for node in range(len(elements))]
        kept = [True] * len(elements)
        shown = graph_svg(
            ExplainedGraph(
                position=0,
                record={"id": "a", "prediction": "1"},
                label=None,
                nodes=elements,
                numbers=list(range(len(elements))),
                edges=ends,
                kept_nodes=kept,
                kept_edges=[True] * len(ends),
                node_scores=None,
                edge_scores=None,
                truth=truth,
                molecule=molecule,
            )
        )
        if len(elements) <= 150:
            assert 'class="rg"' in shown.body
            assert len([point for point in shown.points if point]) == len(elements)
