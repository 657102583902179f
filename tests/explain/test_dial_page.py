"""The dial of a report: turned in a browser, it shows what a report of that setting does."""

import gzip
import json
import re
import shutil
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from cores.explain.dial_chart import dial_charts

from cores import load_dataset
from cores.__main__ import main
from cores.config.policy import SETTINGS
from cores.explain import dial_view
from cores.explain.dial_view import DialView, SettingFigures, bit_string
from cores.graphs.store import GraphStore
from cores.runs.opened import PredictedGraphs, Run
from cores.runs.trained import TrainedModel

pytestmark = pytest.mark.usefixtures("unchecked")
CHROMIUM = pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Debian's chromium")
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
RANGES = "#lam, #lam-near"


def explained(run: Path, source: str | Path, out: Path, *options: str) -> Path:
    """Where the report was written."""
    arguments = ("explain", run, source, "--out", out, "--device", "cpu", *options)
    assert main([str(each) for each in arguments]) == 0
    return out


@pytest.fixture(scope="module")
def motifs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight graphs with a motif."""
    lines = []
    dataset = load_dataset("motifs")
    for graph in dataset.graphs.subset(torch.arange(0, 240, 30)).to_graphs():
        edges = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]].T.tolist()
        nodes, label = graph.x.tolist(), dataset.labels[graph.y.item()]
        lines.append(json.dumps({"nodes": nodes, "edges": edges, "label": label}))
    path = tmp_path_factory.mktemp("motifs") / "motifs.jsonl"
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def reports(
    dial_run: Path,
    edge_dial_run: Path,
    molecule_dial_run: Path,
    molecule_table: Callable[..., str],
    motifs: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str, str], Path]:
    """Reports of eight graphs or molecules, made at a setting."""
    folder = tmp_path_factory.mktemp("reports")
    (folder / "molecules.csv").write_text(molecule_table(8))
    inputs = {
        "graphs": (dial_run, motifs),
        "edges": (edge_dial_run, motifs),
        "molecules": (molecule_dial_run, folder / "molecules.csv"),
    }

    def report(kind: str, lam: str) -> Path:
        out = folder / f"{kind}-{lam}.html"
        if not out.exists():
            explained(*inputs[kind], out, "--lam", lam)
        return out

    return report


def details_of(report: Path) -> list[dict[str, Any]]:
    found = re.search(r'id="details">(.*?)</script>', report.read_text(), re.DOTALL)
    assert found is not None
    return list(json.loads(gzip.decompress(b64decode(found[1]))))


@pytest.mark.parametrize("kind", ["graphs", "molecules"])
def test_what_is_embedded_is_what_a_report_of_each_setting_shows(
    reports: Callable[[str, str], Path], kind: str
) -> None:
    turned = details_of(reports(kind, "0.5"))
    assert any(len(each["dial"]["parts"]) > 2 for each in turned), "the dial changes something"
    for lam in ("0", "0.3", "1"):
        place = SETTINGS.index(float(lam))
        for mine, theirs in zip(turned, details_of(reports(kind, lam)), strict=True):
            part = mine["dial"]["parts"][mine["dial"]["part"][place]]
            assert part[0] == bit_string([node["kept"] for node in theirs["nodes"]])
            assert mine["dial"] == theirs["dial"], "whatever the setting the page was made at"


def test_edges_that_are_embedded_are_those_of_a_report_of_each_setting(
    reports: Callable[[str, str], Path],
) -> None:
    turned = details_of(reports("edges", "0.5"))
    assert any(len(each["dial"]["parts"]) > 2 for each in turned), "the dial changes something"
    for lam in ("0", "0.3", "1"):
        place = SETTINGS.index(float(lam))
        for mine, theirs in zip(turned, details_of(reports("edges", lam)), strict=True):
            part = mine["dial"]["parts"][mine["dial"]["part"][place]]
            kept = [True] * (len(mine["ends"]) // 2)
            if "edges" in theirs:
                kept = [edge["kept"] for edge in theirs["edges"]]
            assert part[1] == bit_string(kept)


def test_the_figures_are_those_of_the_calibration_part(
    reports: Callable[[str, str], Path], dial_run: Path
) -> None:
    text = reports("graphs", "0.5").read_text()
    found = re.search(r'id="dial-data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    dial = TrainedModel.load(dial_run).dial
    assert dial is not None
    told = json.loads(found[1])["figures"]
    assert len(told) == len(SETTINGS)
    for place, line in enumerate(told):
        right = (dial.probs[place].argmax(-1) == dial.labels).double().mean()
        kept = dial.kept_ratio[place].double().mean()
        assert line.startswith(f"accuracy {100 * right:.1f} %, kept {100 * kept:.1f} %, ")


@pytest.mark.parametrize(("accuracy", "size"), [(1.0, 2.0), (0.0, 0.0), (0.99, 1.95)])
def test_no_axis_tells_of_what_cannot_be(accuracy: float, size: float) -> None:
    figures = [SettingFigures(lam, accuracy, 0.5 + lam / 2, size) for lam in SETTINGS]
    charts = dial_charts(DialView(0.5, figures, 1.0, 40, 2, []))
    for chart, most in zip(charts, (100.0, 2.0), strict=True):
        told = re.findall(r'text-anchor="end">([\d.]+)</text>', chart.svg)
        numbers = [float(each) for each in told]
        assert len(numbers) == 3
        assert 0 <= min(numbers) < max(numbers) <= most
        heights = [float(each) for each in re.findall(r'cy="([\d.-]+)"', chart.svg)]
        assert 0 < min(heights) <= max(heights) < 190, "all dots are within the picture"


def test_a_model_without_a_dial_has_none_on_its_page(
    molecule_run: Path, molecule_table: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "new.csv").write_text(molecule_table(2))
    text = explained(molecule_run, tmp_path / "new.csv", tmp_path / "o.html").read_text()
    for word in ('class="turn', "dial-data", '"dial"', "data-e", "turnTo"):
        assert word not in text


def test_graphs_for_which_the_page_has_no_room_stay_as_they_are(
    dial_run: Path, motifs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dial_view, "MOST_BYTES", 2_000)
    monkeypatch.setattr(dial_view, "CHUNK", 1)
    asked: list[int] = []
    predicted = Run.predicted_graphs

    def counted(self: Run, graphs: GraphStore, *rows: Any, **options: Any) -> PredictedGraphs:
        asked.append(len(graphs))
        return predicted(self, graphs, *rows, **options)

    monkeypatch.setattr(Run, "predicted_graphs", counted)
    out = explained(dial_run, motifs, tmp_path / "o.html")
    follow = ["dial" in each for each in details_of(out)]
    assert 0 < sum(follow) < 8
    assert sum(asked) - 8 < 8 * len(SETTINGS), "the model is not asked what no page will show"
    text = out.read_text()
    assert f"{sum(follow)} of 8 graphs follow the dial" in text
    assert text.count("shown at lambda 0.5 alone") == 8 - sum(follow)


SHOWN = """() => [...document.querySelectorAll(".card")].map((card) => {
  const pieces = {};
  for (const part of card.querySelectorAll("svg path, svg text")) {
    const kind = part.getAttribute("class");
    if (part.tagName === "text") (pieces[kind] ??= []).push(part.outerHTML);
    else (pieces[kind] ??= []).push(...part.getAttribute("d").split(/(?=M)/));
  }
  for (const [kind, drawn] of Object.entries(pieces)) {
    pieces[kind] = drawn.filter(Boolean).sort();
    if (!pieces[kind].length) delete pieces[kind];
  }
  const { class: predicted, right, sure } = card.dataset;
  return [card.querySelector("dl").innerText, pieces, predicted, right, sure];
})"""
"""Words and lines of every card."""


EDGES = """() => [...document.querySelectorAll("dialog table:nth-of-type(2) tbody tr")].map(
  (row) => [...row.cells].map((cell) => cell.textContent))"""
"""Rows of the edges of a graph whose details are open; none where no edge is removed."""


@CHROMIUM
def test_every_edge_of_a_graph_is_kept_or_not_as_the_dial_stands(
    open_file: Callable[..., Any], reports: Callable[[str, str], Path]
) -> None:
    """At each setting, against the bits of the page; a table lists them where some are removed."""
    details = details_of(reports("edges", "0.5"))
    tab = open_file(reports("edges", "0.5"), viewport=DESKTOP)
    page, seen = tab.page, set()
    page.locator("#lam").focus()
    page.keyboard.press("Home")
    for place in range(len(SETTINGS)):
        for at in (0, 5):
            part = details[at]["dial"]["parts"][details[at]["dial"]["part"][place]]
            page.locator(".card button").nth(at).dispatch_event("click")
            rows = page.evaluate(EDGES)
            page.keyboard.press("Escape")
            kept = [row[3] == "yes" for row in rows]
            seen.add(part[1])
            assert "100 % of nodes" in page.locator(".card").nth(at).text_content()
            if rows:
                assert bit_string(kept) == part[1]
                assert not all(kept)
            else:
                assert part[5] == 1.0, "all edges are kept"
        page.locator("#lam").focus()
        page.keyboard.press("ArrowRight")
    assert len(seen) > 4
    assert tab.said == []


@CHROMIUM
@pytest.mark.parametrize("kind", ["graphs", "edges", "molecules"])
def test_the_page_at_another_setting_is_that_of_a_report_at_it(
    open_file: Callable[..., Any], reports: Callable[[str, str], Path], kind: str
) -> None:
    turned = open_file(reports(kind, "1"), viewport=DESKTOP)
    page = turned.page
    before = page.evaluate(SHOWN)
    page.locator("#lam").focus()
    page.keyboard.press("Home")  # as far as it goes: settings close by may keep the same
    page.evaluate("dispatchEvent(new Event('beforeprint'))")  # cards out of sight, too
    other = open_file(reports(kind, "0"), viewport=DESKTOP)
    assert page.evaluate(SHOWN) == other.page.evaluate(SHOWN) != before
    page.locator(".turn button").first.click()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(SHOWN) == before
    assert turned.said == other.said == []
    assert len(turned.asked) == 1


@CHROMIUM
def test_figures_marks_filters_and_details_follow_the_dial(
    open_file: Callable[..., Any], reports: Callable[[str, str], Path]
) -> None:
    tab = open_file(reports("graphs", "0.5"), viewport=DESKTOP)
    page = tab.page
    marks = "() => [...document.querySelectorAll('.mark')].map((mark) => mark.getAttribute('cx'))"
    before = page.evaluate(marks)
    assert len(before) == 2
    page.locator("#lam-near").focus()
    page.keyboard.press("Home")
    assert page.evaluate(marks) != before
    assert page.locator("#lam").input_value() == "0"
    row = page.locator("#dial ~ details tbody tr").first.locator("td").all_text_contents()
    for output in page.locator(".turn output").all_text_contents():
        assert output == f"At lambda 0: accuracy {row[0]}, kept {row[1]}, {row[2]} labels in a set"
    assert page.locator("#lam").get_attribute("aria-valuetext").startswith("At lambda 0: accuracy")
    page.locator("select[name=right]").select_option("yes")
    right = tab.shown
    page.locator("select[name=right]").select_option("no")
    assert right + tab.shown == 8
    page.locator("select[name=right]").select_option("")
    page.locator(".card button").first.click()
    kept = page.locator("dialog tbody tr.is-kept").count()
    nodes = page.locator("dialog tbody tr").count()
    page.keyboard.press("Escape")
    card = page.locator(".card").first
    assert f"{round(100 * kept / nodes)} % of nodes" in card.inner_text()
    assert f"{round(100 * kept / nodes)} % of the nodes" in card.locator("title").text_content()
    assert tab.said == []


@CHROMIUM
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_everyone_can_read_the_dial_at_any_width(
    open_file: Callable[..., Any],
    reports: Callable[[str, str], Path],
    viewport: dict[str, int],
    scheme: str,
    hard_to_read: Callable[[Any], list[str]],
) -> None:
    tab = open_file(reports("molecules", "0.5"), viewport=viewport, color_scheme=scheme)
    tab.page.locator("#lam").focus()
    tab.page.keyboard.press("Home")
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert tab.page.evaluate(wide) <= 0
    assert not hard_to_read(tab.page)
    assert tab.said == []
