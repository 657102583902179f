"""Molecules that are drawn on the page: by clicks, by keys, and as SMILES that rdkit reads."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rdkit import Chem

pytestmark = pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Debian's chromium")
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
HOSTILE = "<img src=x onerror=window.hacked=1>"
NITROBENZENE = "O=[N+]([O-])c1ccccc1"
PLACE = """([x, y]) => {
  const { x: left, y: top } = new DOMPoint(x, y).matrixTransform(canvas.getScreenCTM());
  return [left, top];
}"""


class Drawing:
    """The editor of a page."""

    def __init__(self, tab: Any) -> None:
        self.tab, self.page = tab, tab.page
        self.page.locator("#draw summary").click()
        self.page.locator("#canvas").scroll_into_view_if_needed()

    @property
    def smiles(self) -> str:
        """As rdkit writes it."""
        return str(Chem.CanonSmiles(self.page.locator("#draw-smiles").inner_text()))

    @property
    def told(self) -> str:
        return str(self.page.locator("#draw-told").inner_text())

    def choose(self, tool: str) -> None:
        self.page.get_by_role("radio", name=tool, exact=True).check()

    def at(self, x: float, y: float) -> list[float]:
        return list(self.page.evaluate(PLACE, [x, y]))

    def atom(self, number: int) -> list[float]:
        """Where an atom is on the screen, from 1."""
        x, y = self.page.evaluate(
            "at => [editor.drawn.atoms[at].x, editor.drawn.atoms[at].y]", number - 1
        )
        return self.at(x, y)

    def click(self, tool: str, place: list[float]) -> None:
        self.choose(tool)
        self.page.mouse.click(*place)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def ask(self) -> None:
        self.page.get_by_role("button", name="Ask about the drawing").click()
        self.tab.wait(1)


@pytest.fixture
def drawing(opened: Callable[..., Any]) -> Drawing:
    """The open editor on the page of a model of molecules."""
    return Drawing(opened())


def check_answer(drawing: Drawing) -> None:
    """The drawn molecule was predicted as a pasted one would be."""
    assert drawing.smiles == Chem.CanonSmiles(NITROBENZENE)
    drawing.ask()
    card = drawing.page.locator(".card")
    assert card.locator("h3").inner_text() == "drawn"
    assert "of 9 atoms" in card.inner_text()
    assert "Drawn: 1 graph." in drawing.page.locator("#status").inner_text()
    answer = card.locator(".answer").inner_text()
    drawing.tab.check_quiet()
    drawing.page.get_by_label("one per line").fill(
        f"{drawing.page.locator('#draw-smiles').inner_text()} pasted"
    )
    drawing.page.get_by_role("button", name="Predict").click()
    drawing.page.locator(".card h3", has_text="pasted").wait_for()
    assert drawing.page.locator(".card .answer").inner_text() == answer


def test_nitrobenzene_is_drawn_by_clicks_and_predicted(drawing: Drawing) -> None:
    drawing.click("Benzene ring", drawing.at(240, 180))
    assert drawing.smiles == "c1ccccc1"
    drawing.click("Single bond", drawing.atom(1))
    drawing.click("Nitrogen", drawing.atom(7))
    drawing.click("Double bond", drawing.atom(7))
    drawing.click("Oxygen", drawing.atom(8))
    drawing.click("Single bond", drawing.atom(7))
    drawing.click("Oxygen", drawing.atom(9))
    drawing.click("More negative", drawing.atom(9))
    drawing.click("More positive", drawing.atom(7))
    check_answer(drawing)


def test_nitrobenzene_is_drawn_by_keys_and_predicted(drawing: Drawing) -> None:
    drawing.page.get_by_role("button", name="Undo").focus()  # disabled: the drawing is next
    drawing.page.locator("#element").focus()
    drawing.press("Tab")
    assert drawing.page.evaluate("document.activeElement === canvas"), "reached by Tab"
    drawing.press("r", "Enter", "1", "Enter", "n", "Enter", "2", "Enter", "o", "Enter")
    assert drawing.told == "Atom 8 of 8: O, bound to N (double)."
    drawing.press("ArrowDown", "+", "Enter")
    assert drawing.told == "Atom 7 of 8: N+, bound to C (single), O (double)."
    drawing.press("1", "Enter", "o", "Enter", "-", "Enter")
    check_answer(drawing)


def test_a_marked_atom_is_bound_to_another_by_keys(drawing: Drawing) -> None:
    drawing.page.locator("#canvas").focus()
    drawing.press("c", "Enter", "1", "Enter", "1", "Enter", "m")
    assert "atom 3 is marked" in drawing.told
    drawing.press("ArrowLeft", "ArrowLeft", "Enter")
    assert drawing.smiles == "C1CC1"
    drawing.press("u")
    assert drawing.smiles == "CCC"
    drawing.press("Delete")
    assert drawing.smiles == "CC"
    drawing.tab.check_quiet()


def test_bonds_are_dragged_changed_and_erased_and_all_is_undone(drawing: Drawing) -> None:
    page = drawing.page
    drawing.click("Carbon", drawing.at(200, 150))
    drawing.choose("Double bond")
    page.mouse.move(*drawing.atom(1))
    page.mouse.down()
    page.mouse.move(*drawing.at(260, 152), steps=3)
    page.mouse.up()
    assert drawing.smiles == "C=C"
    drawing.click("Triple bond", drawing.at(220, 150))
    assert drawing.smiles == "C#C"
    drawing.click("Erase", drawing.at(220, 150))
    assert drawing.smiles == "C.C"
    drawing.choose("Single bond")
    page.mouse.move(*drawing.atom(2))
    page.mouse.down()
    page.mouse.move(*drawing.atom(1), steps=3)
    page.mouse.up()
    drawing.click("Erase", drawing.atom(1))
    assert drawing.smiles == "C"
    page.get_by_role("button", name="Clear").click()
    assert page.locator("#draw-smiles").inner_text() == "–"
    assert page.get_by_role("button", name="Ask about the drawing").is_disabled()
    for _ in range(7):
        page.get_by_role("button", name="Undo").click()
    assert page.get_by_role("button", name="Undo").is_disabled()
    assert page.locator("#draw-smiles").inner_text() == "–"
    drawing.tab.check_quiet()


def test_rings_are_fused_bound_and_closed(drawing: Drawing) -> None:
    drawing.click("Benzene ring", drawing.at(200, 150))
    first, second = drawing.atom(2), drawing.atom(3)
    middle = [(first[0] + second[0]) / 2, (first[1] + second[1]) / 2]
    drawing.click("Benzene ring", middle)
    assert drawing.smiles == Chem.CanonSmiles("c1ccc2ccccc2c1")
    drawing.page.get_by_role("button", name="Undo").click()
    drawing.click("Benzene ring", drawing.atom(4))
    assert drawing.smiles == Chem.CanonSmiles("c1ccccc1-c1ccccc1")
    drawing.page.get_by_role("button", name="Clear").click()
    drawing.click("Ring of five", drawing.at(200, 150))
    drawing.click("Single bond", drawing.atom(1))
    drawing.click("Ring of six", drawing.atom(6))
    assert drawing.smiles == Chem.CanonSmiles("C1CCCC1C1CCCCC1")
    drawing.page.get_by_role("button", name="Add to the field").click()
    field = drawing.page.get_by_label("one per line").input_value()
    assert Chem.CanonSmiles(field) == drawing.smiles
    drawing.tab.check_quiet()


MOLECULES = (
    *("Cn1cnc2c1c(=O)n(C)c(=O)n2C", "[Na+].[Cl-]", "C[N+](C)(C)C", "[NH3+]CC(=O)[O-]", "CC#N"),
    *(
        "OB(O)c1ccccc1",
        "F[B-](F)(F)F",
        "C[Si](C)(C)O",
        "C12C3C4C1C5C2C3C45",
        "[NH4+]",
        "C[S+](C)[O-]",
    ),
    *(
        "CS(=O)(=O)N",
        "OP(=O)(O)O",
        "C[Se]C",
        "c1ccc2c(c1)[nH]c1ccccc12",
        "C1CC2(C1)CCN2.O",
        "[OH-]",
    ),
)


def test_rdkit_reads_what_is_written(drawing: Drawing) -> None:
    for smiles in MOLECULES:
        molecule = Chem.MolFromSmiles(smiles)
        Chem.Kekulize(molecule, clearAromaticFlags=True)
        atoms = [(atom.GetSymbol(), atom.GetFormalCharge()) for atom in molecule.GetAtoms()]
        bonds = [
            (bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), int(bond.GetBondTypeAsDouble()))
            for bond in molecule.GetBonds()
        ]
        written = drawing.page.evaluate(
            """([atoms, bonds]) => {
              const made = new Molecule();
              atoms.forEach(([element, charge]) => made.add({ x: 0, y: 0 }, element, charge));
              bonds.forEach(([a, b, order]) => made.join(made.atoms[a], made.atoms[b], order));
              return made.smiles;
            }""",
            [atoms, bonds],
        )
        assert Chem.CanonSmiles(written) == Chem.CanonSmiles(smiles)


def test_what_is_no_element_is_told_as_text(drawing: Drawing) -> None:
    page = drawing.page
    for said in (HOSTILE, "", "Xx", "C]O[C"):
        page.locator("#element").fill(said)
        drawing.click("Other element", drawing.at(200, 150))
        assert drawing.told == f"There is no element {said or 'without a name'}."
    page.locator("#element").fill("na")
    drawing.click("Other element", drawing.at(200, 150))
    assert drawing.smiles == "[Na]"
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    drawing.tab.check_quiet()


def test_a_drawing_that_is_no_molecule_is_told_in_a_line(drawing: Drawing) -> None:
    drawing.click("Oxygen", drawing.at(200, 150))
    drawing.click("Triple bond", drawing.atom(1))
    drawing.page.get_by_role("button", name="Ask about the drawing").click()
    drawing.page.get_by_text("no row of pasted.smi can be used: drawn").wait_for()


def test_only_models_of_molecules_have_it(opened: Callable[..., Any], graph_run: Path) -> None:
    tab = opened(graph_run)
    assert tab.page.locator("#draw").count() == 0
    tab.check_quiet()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_everyone_can_draw_at_any_width(
    opened: Callable[..., Any],
    viewport: dict[str, int],
    scheme: str,
    hard_to_read: Callable[[Any], list[str]],
) -> None:
    drawing = Drawing(opened(viewport=viewport, color_scheme=scheme))
    drawing.page.locator("#canvas").focus()
    drawing.press("r", "Enter", "1", "Enter", "n", "Enter", "m")
    assert drawing.tab.too_wide <= 0
    assert not hard_to_read(drawing.tab.page)
    drawing.tab.check_quiet()
