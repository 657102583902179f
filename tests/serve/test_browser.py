"""The page in a real browser: Debian's chromium, which ``make test`` installs."""

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cores import load_dataset

pytestmark = pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Debian's chromium")
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
HOSTILE = '</script><script>window.hacked=1</script><img src="http://example.invalid/x" onerror=1>'
PASTED = "CCO ethanol\nc1ccccc1O phenol\nCC(=O)Nc1ccc(O)cc1 paracetamol\nC1CC broken"


def test_pasted_molecules_are_drawn_and_predicted(opened: Callable[..., Any]) -> None:
    tab = opened()
    tab.paste(PASTED, 3)
    page = tab.page
    assert page.locator(".card h3").all_inner_texts() == ["ethanol", "phenol", "paracetamol"]
    assert page.locator(".card svg.drawing").count() == 3
    for card in page.locator(".card").all():
        text = card.inner_text()
        assert "probability" in text
        assert "ruled out" in text or "no label fits" in text
        assert card.locator("tbody tr").count() == 2
    assert "3 graphs" in page.locator("#status").inner_text()
    assert "misses the true label at most 10 %" in page.locator("#promise").inner_text()
    assert page.locator("#failed summary").inner_text() == "1 row could not be used"
    tab.check_quiet()


def sets(page: Any) -> list[str]:
    return list(page.locator(".card .labels").all_inner_texts())


def test_the_error_rate_changes_the_sets(opened: Callable[..., Any]) -> None:
    tab = opened()
    tab.paste(PASTED, 3)
    page = tab.page
    drawing = page.locator(".card svg.drawing").first.element_handle()
    page.get_by_label("Error rate, number").fill("0.02")
    page.locator("#promise", has_text="error rate 0.02").wait_for()
    assert sets(page) == ["{chain, ring}"] * 3
    assert "too few" in page.locator("#promise").inner_text()
    page.get_by_label("Error rate, number").fill("0.99")
    page.locator("#promise", has_text="error rate 0.99").wait_for()
    assert sum(each != "{chain, ring}" for each in sets(page)) > 0
    slider = page.get_by_label("Error rate, slider")
    assert slider.input_value() == "0.5"
    slider.focus()
    page.keyboard.press("ArrowLeft")
    page.locator("#promise", has_text="error rate 0.49").wait_for()
    assert page.get_by_label("Error rate, number").input_value() == "0.49"
    assert drawing.evaluate("drawing => drawing.isConnected"), "drawings stay as they are"
    tab.check_quiet()


def test_sufficiency_and_parts_change_what_is_kept(
    opened: Callable[..., Any], drawn_run: Path
) -> None:
    lines = []
    for at in range(2):
        graph = load_dataset("motifs").graphs.graph(at)
        edges = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]].T.tolist()
        lines.append(json.dumps({"nodes": graph.x.tolist(), "edges": edges}))
    tab = opened(drawn_run)
    page = tab.page
    tab.paste("\n".join(lines), cards=2)
    slider = page.get_by_label("Sufficiency")
    assert slider.input_value() == "0.8"
    answer = page.locator(".card .answer").first
    assert "on the whole graph" in answer.inner_text()
    assert "sufficient at 0.8" in answer.inner_text() or "less sure than 0.8" in answer.inner_text()
    before = answer.inner_text()
    slider.focus()
    with page.expect_response(lambda answer: "sufficiency=0.81" in answer.url):
        page.keyboard.press("ArrowRight")
    assert page.locator("#sufficiency-value").inner_text() == "0.81"
    with page.expect_response(lambda answer: "sufficiency=0.5&" in answer.url):
        page.keyboard.press("Home")
    page.wait_for_function(
        "before => document.querySelector('.card .answer')?.innerText !== before", arg=before
    )
    with page.expect_response(lambda answer: "parts=policy" in answer.url):
        page.get_by_label("Parts").select_option("policy")
    page.locator(".card dd", has_text="a smaller part may be enough").first.wait_for()
    tab.check_quiet()


def test_a_file_is_shown_and_its_records_are_downloaded(
    opened: Callable[..., Any], tmp_path: Path, molecule_table: Callable[..., str]
) -> None:
    (tmp_path / "new.csv").write_text(molecule_table(12))
    tab = opened()
    page = tab.page
    page.locator("#file").set_input_files(tmp_path / "new.csv")
    tab.wait(12)
    assert "new.csv: 12 graphs" in page.locator("#status").inner_text()
    assert page.locator(".card .right, .card .wrong").count() == 12, "it has labels"
    for name, kind in (("JSON lines", "jsonl"), ("CSV", "csv")):
        with page.expect_download() as waited:
            page.get_by_role("button", name=name, exact=True).click()
        assert waited.value.suggested_filename == f"predictions.{kind}"
        text = Path(waited.value.path()).read_text()
        rows = (
            [json.loads(line) for line in text.splitlines()]
            if kind == "jsonl"
            else list(csv.DictReader(text.splitlines()))
        )
        assert [row["id"] for row in rows] == [f"m{number}" for number in range(12)]
        shown = page.locator(".card dd").all_inner_texts()
        assert shown[0].startswith(f"{rows[0]['prediction']}, probability")
    tab.check_quiet()


def test_what_goes_wrong_is_told_on_the_page(opened: Callable[..., Any], tmp_path: Path) -> None:
    tab = opened()
    page = tab.page
    tab.paste(PASTED, 3)
    (tmp_path / "large.smi").write_bytes(b"CCO\n" * 2_200_000)
    page.locator("#file").set_input_files(tmp_path / "large.smi")
    page.get_by_text("The file has more than 8.0 MiB").wait_for()
    tab.check_quiet()
    page.get_by_label("one per line").fill("nonsense")
    page.get_by_role("button", name="Predict").click()
    page.get_by_text("no row of pasted.smi can be used").wait_for()
    assert not page.locator(".card").first.is_visible(), "what was there before is no answer"
    tab.paste("CCC", cards=1)
    assert not page.locator("#error").is_visible()


def test_hostile_names_are_text(opened: Callable[..., Any]) -> None:
    tab = opened()
    tab.paste(f"CCO {HOSTILE}", cards=1)
    assert tab.page.locator(".card h3").inner_text() == HOSTILE
    tab.page.locator(".card button").click()
    assert tab.page.locator("#dialog-title").inner_text() == HOSTILE
    assert tab.page.evaluate("window.hacked") is None
    assert tab.page.locator("img").count() == 0
    tab.check_quiet()


def test_details_open_and_close_by_keyboard(opened: Callable[..., Any]) -> None:
    tab = opened()
    page = tab.page
    page.get_by_label("one per line").focus()
    page.keyboard.type("CCO ethanol")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    tab.wait(1)
    page.locator(".card button").focus()
    page.keyboard.press("Enter")
    assert page.locator("dialog").is_visible()
    assert page.locator("dialog tbody tr").count() == 3
    page.keyboard.press("Escape")
    assert not page.locator("dialog").is_visible()
    tab.check_quiet()


def test_the_test_graphs_of_a_run_are_paged_through(
    opened: Callable[..., Any], trained_run: Path
) -> None:
    tab = opened(trained_run)
    page = tab.page
    page.evaluate("document.body.dataset.perPage = 10")
    page.get_by_role("button", name="test graphs").click()
    tab.wait(10)
    assert page.locator(".card .right, .card .wrong").count() == 10
    assert page.get_by_role("button", name="Previous").is_disabled()
    page.get_by_role("button", name="Next").click()
    tab.wait(6)
    assert "Test graphs 10 to 15 of 16" in page.locator("#status").inner_text()
    assert page.get_by_role("button", name="Next").is_disabled()
    page.get_by_role("button", name="Previous").click()
    tab.wait(10)
    tab.check_quiet()


def test_graphs_are_pasted_as_json(opened: Callable[..., Any], graph_run: Path) -> None:
    tab = opened(graph_run)
    tab.paste('{"id": "mine", "nodes": ["a", "a", "b"], "edges": [[0, 1], [1, 2]]}', cards=1)
    assert tab.page.locator(".card h3").inner_text() == "mine"
    assert tab.page.locator(".card svg path").count() > 0
    tab.check_quiet()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_everyone_can_read_it_at_any_width(
    opened: Callable[..., Any],
    viewport: dict[str, int],
    scheme: str,
    hard_to_read: Callable[[Any], list[str]],
) -> None:
    """Contrast, names of controls, order of headings: by axe-core's rules."""
    tab = opened(viewport=viewport, color_scheme=scheme)
    page = tab.page
    tab.paste(PASTED, 3)
    page.locator("#failed summary").click()
    for _ in ("page", "dialog"):
        assert tab.too_wide <= 0
        assert not hard_to_read(tab.page)
        page.locator(".card button").first.dispatch_event("click")
    assert page.locator("dialog").bounding_box()["width"] <= viewport["width"]
