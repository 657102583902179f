"""The report in a real browser: Debian's chromium, which ``make test`` installs."""

import csv
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cores.__main__ import main

pytestmark = pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Debian's chromium")
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
HOSTILE = '</script><script>window.hacked=1</script><img src="http://example.invalid/x" onerror=1>'


@pytest.fixture(scope="module")
def report(
    molecule_run: Path,
    molecule_table: Callable[..., str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A page of 40 molecules, the first of which has a hostile name."""
    folder = tmp_path_factory.mktemp("report")
    rows = list(csv.reader(molecule_table(40).splitlines()))
    rows[1][rows[0].index("id")] = HOSTILE
    with (folder / "new.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    out = folder / "report.html"
    arguments = ("explain", molecule_run, folder / "new.csv", "--out", out, "--device", "cpu")
    assert main([str(each) for each in arguments]) == 0
    return out


@pytest.fixture
def opened(open_file: Callable[..., Any], report: Path) -> Callable[..., Any]:
    """Opens the report."""
    return partial(open_file, report)


def test_nothing_is_asked_of_anyone_and_nothing_goes_wrong(
    opened: Callable[..., Any], report: Path
) -> None:
    tab = opened(viewport=DESKTOP)
    assert tab.shown == 40
    assert tab.said == []
    assert tab.asked == [report.as_uri()]
    assert tab.page.evaluate("window.hacked") is None
    assert tab.page.locator(".card h3").first.text_content() == HOSTILE


def test_filters_add_up(opened: Callable[..., Any]) -> None:
    tab = opened(viewport=DESKTOP)
    page = tab.page
    page.get_by_label("name contains").fill("hacked")
    assert tab.shown == 1
    assert "1 of 40 shown" in page.locator("#count").inner_text()
    page.get_by_label("name contains").fill("")
    counts = []
    for value in page.locator("select[name=right] option").evaluate_all(
        "options => options.map(option => option.value)"
    ):
        page.locator("select[name=right]").select_option(value)
        counts.append(tab.shown)
    assert counts[0] == 40
    assert sum(counts[1:]) == 40, "right or wrong, each of them"
    assert tab.said == []


def test_details_open_and_close_by_keyboard(opened: Callable[..., Any]) -> None:
    tab = opened(viewport=DESKTOP)
    page = tab.page
    button = page.locator(".card button").nth(1)
    button.focus()
    page.keyboard.press("Enter")
    assert page.locator("dialog").is_visible()
    nodes = page.locator("dialog table").first.locator("tbody tr").count()
    assert nodes > 1
    assert page.locator("dialog svg").count() == 1
    page.keyboard.press("Escape")
    assert not page.locator("dialog").is_visible()
    assert button.evaluate("element => element === document.activeElement"), "back where it was"
    assert tab.said == []


def box_of(page: Any) -> list[float]:
    """What of a drawing is shown: left, top, width and height."""
    shown = page.locator("dialog svg.drawing").get_attribute("viewBox")
    return [float(each) for each in shown.split()]


def test_a_drawing_can_be_enlarged_and_moved(opened: Callable[..., Any]) -> None:
    tab = opened(viewport=DESKTOP)
    page = tab.page
    page.locator(".card button").nth(1).click()
    full = box_of(page)
    page.get_by_role("button", name="Zoom in").click()
    closer = box_of(page)
    assert closer[2] == pytest.approx(0.8 * full[2])
    assert closer[0] > full[0], "about its middle"
    page.locator("#dialog-picture").focus()
    page.keyboard.press("ArrowRight")
    assert box_of(page)[0] > closer[0]
    for _ in range(30):
        page.keyboard.press("ArrowRight")
    assert sum(box_of(page)[::2]) == pytest.approx(full[0] + full[2]), "never out of sight"
    page.keyboard.press("0")
    assert box_of(page) == full
    drawing = page.locator("dialog svg.drawing").bounding_box()
    page.mouse.move(drawing["x"] + 20, drawing["y"] + 20)
    page.mouse.wheel(0, -300)
    page.wait_for_function("document.querySelector('dialog svg.drawing.zoomed')")
    near = box_of(page)
    page.mouse.down()
    page.mouse.move(drawing["x"] + 10, drawing["y"] + 10, steps=4)
    page.mouse.up()
    assert box_of(page)[0] > near[0], "dragged to the left"
    page.get_by_role("button", name="Zoom out").click()
    page.get_by_role("button", name="Show all").click()
    assert box_of(page) == full
    assert tab.said == []


def test_pointing_at_a_node_tells_what_it_is(opened: Callable[..., Any]) -> None:
    tab = opened(viewport=DESKTOP)
    page = tab.page
    page.locator(".card button").nth(1).click()
    assert "Point at a node" in page.locator("#told").inner_text()
    page.locator("dialog .hit").nth(2).hover()
    row = (
        page.locator("dialog table")
        .first.locator("tbody tr")
        .nth(2)
        .locator("td")
        .all_inner_texts()
    )
    number, element, probability, effect, kept = row
    expected = f"Atom {number}: {element}; keep-probability {probability}; effect {effect}; "
    told = page.locator("#told").inner_text()
    assert told == expected + ("kept" if kept == "yes" else "removed")
    assert tab.said == []


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_no_part_is_wider_than_the_screen(
    opened: Callable[..., Any], viewport: dict[str, int]
) -> None:
    page = opened(viewport=viewport).page
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) <= 0
    page.locator(".card button").first.click()
    assert page.evaluate(wide) <= 0
    box = page.locator("dialog").bounding_box()
    assert box["width"] <= viewport["width"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_everyone_can_read_it(
    opened: Callable[..., Any],
    viewport: dict[str, int],
    scheme: str,
    hard_to_read: Callable[[Any], list[str]],
) -> None:
    """Contrast, names of controls, order of headings: by axe-core's rules."""
    tab = opened(viewport=viewport, color_scheme=scheme)
    for _ in ("page", "dialog"):
        assert not hard_to_read(tab.page)
        tab.page.locator(".card button").first.dispatch_event("click")
