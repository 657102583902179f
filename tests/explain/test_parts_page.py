"""The slider of a report: moved in a browser, it shows what a report of that sufficiency does."""

import gzip
import json
import re
import shutil
from base64 import b64decode
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from cores import load_dataset
from cores.__main__ import main
from cores.config import ExplanationConfig
from cores.explain import parts_view
from cores.explain.parts_view import SUFFICIENCIES, PartWords, bit_string
from cores.graphs.store import GraphStore
from cores.runs.opened import PredictedGraphs, Run
from cores.tasks import TASKS

CHROMIUM = pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Debian's chromium")
DESKTOP, PHONE = {"width": 1200, "height": 900}, {"width": 375, "height": 844}


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
    drawn_run: Path,
    drawn_edge_run: Path,
    drawn_molecule_run: Path,
    molecule_table: Callable[..., str],
    motifs: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str, str], Path]:
    """Reports of eight graphs or molecules, made at a sufficiency."""
    folder = tmp_path_factory.mktemp("reports")
    (folder / "molecules.csv").write_text(molecule_table(8))
    inputs = {
        "graphs": (drawn_run, motifs),
        "edges": (drawn_edge_run, motifs),
        "molecules": (drawn_molecule_run, folder / "molecules.csv"),
    }

    def report(kind: str, sufficiency: str) -> Path:
        out = folder / f"{kind}-{sufficiency}.html"
        if not out.exists():
            explained(*inputs[kind], out, "--sufficiency", sufficiency)
        return out

    return report


def details_of(report: Path) -> list[dict[str, Any]]:
    found = re.search(r'id="details">(.*?)</script>', report.read_text(), re.DOTALL)
    assert found is not None
    return list(json.loads(gzip.decompress(b64decode(found[1]))))


@pytest.mark.parametrize("kind", ["graphs", "edges", "molecules"])
def test_what_is_embedded_is_what_a_report_of_each_sufficiency_shows(
    reports: Callable[[str, str], Path], kind: str
) -> None:
    opened = details_of(reports(kind, "0.8"))
    assert any(each["parts"][0] != each["parts"][-1] for each in opened), "parts differ"
    for sufficiency in ("0.5", "0.95"):
        place = SUFFICIENCIES.index(float(sufficiency))
        for mine, theirs in zip(opened, details_of(reports(kind, sufficiency)), strict=True):
            part = mine["parts"][place]
            if kind == "edges":
                assert part["edges"] == bit_string([edge["kept"] for edge in theirs["edges"]])
            else:
                assert part["nodes"] == bit_string([node["kept"] for node in theirs["nodes"]])
            assert mine["parts"] == theirs["parts"], "whatever the page was made at"


def test_the_figures_are_means_over_the_graphs_of_the_page(
    reports: Callable[[str, str], Path], drawn_run: Path, motifs: Path, tmp_path: Path
) -> None:
    rows = re.findall(
        r'<th scope="row" class="n">([\d.]+)</th><td class="n">(\d+) %</td><td class="n">(\d+) %',
        reports("graphs", "0.8").read_text(),
    )
    assert [float(row[0]) for row in rows] == [*SUFFICIENCIES]
    out = explained(drawn_run, motifs, tmp_path / "o.jsonl", "--sufficiency", "0.9")
    records = [json.loads(line) for line in out.read_text().splitlines()]
    shares = [sum(record[of] for record in records) / 8 for of in ("node_ratio", "weak")]
    assert rows[SUFFICIENCIES.index(0.9)][1:] == tuple(f"{100 * share:.0f}" for share in shares)


def test_a_sufficiency_of_the_run_has_its_place_on_the_slider(
    drawn_run: Path, motifs: Path, tmp_path: Path
) -> None:
    out = explained(drawn_run, motifs, tmp_path / "o.html", "--sufficiency", "0.75")
    text = out.read_text()
    assert 'id="sufficiency" min="0" max="6" value="3"' in text
    assert "Back to 0.75" in text
    assert {len(each["parts"]) for each in details_of(out)} == {7}


def test_a_model_that_nobody_asks_has_no_slider(
    train_tiny: Callable[..., Path],
    molecule_file: Path,
    molecule_table: Callable[..., str],
    tmp_path: Path,
) -> None:
    (tmp_path / "new.csv").write_text(molecule_table(2))
    run = train_tiny(molecule_file, "gnn")
    text = explained(run, tmp_path / "new.csv", tmp_path / "o.html").read_text()
    for word in ('class="turn', 'id="parts"', "data-e", "turnTo", "weak", "sufficien"):
        assert word not in text


def test_graphs_for_which_the_page_has_no_room_stay_as_they_are(
    drawn_run: Path, motifs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts_view, "MOST_BYTES", 5_000)
    monkeypatch.setattr(parts_view, "CHUNK", 1)
    asked: list[int] = []
    predicted = Run.predicted_graphs

    def counted(self: Run, graphs: GraphStore, *rows: Any, **options: Any) -> PredictedGraphs:
        asked.append(len(graphs))
        return predicted(self, graphs, *rows, **options)

    monkeypatch.setattr(Run, "predicted_graphs", counted)
    out = explained(drawn_run, motifs, tmp_path / "o.html")
    follow = ["parts" in each for each in details_of(out)]
    assert 0 < sum(follow) < 7
    assert sum(asked) - 8 < 8 * len(SUFFICIENCIES), "not asked about what no page will show"
    text = out.read_text()
    assert f"The {sum(follow)} graphs on this page that follow the slider" in text
    assert text.count("shown at 0.8 alone") == 8 - sum(follow)


def words(task: str = "classification", **shown: Any) -> PartWords:
    config = ExplanationConfig(**shown)
    return PartWords(config, TASKS[task], "molecule", "atoms", "bonds", "atom")  # type: ignore[index]


CHECKS: list[tuple[PartWords, bool, bool, str, str]] = [
    (words(), False, True, "probability 0.91", "sufficient at 0.8; no single atom can go"),
    (
        words(parts="cut"),
        *(False, False, "probability 0.91"),
        "sufficient at 0.8; a smaller part may be enough",
    ),
    (
        words(),
        *(True, True, "probability 0.91"),
        "weak: on the whole molecule, too, the model is less sure than 0.8; no single atom can go",
    ),
    (
        words(class_from="part"),
        *(True, True, "probability 0.91"),
        "weak: on the policy's part, too, the model is less sure than 0.8; no single atom can go",
    ),
    (
        words(parts="policy"),
        *(True, False, "probability 0.91"),
        "weak: on the policy's part, the model is less sure than 0.8; a smaller part may be enough",
    ),
    (
        replace(words(), most_pieces=1),
        *(True, True, "probability 0.91"),
        "weak: on the connected part of the molecule, too, the model is less sure than 0.8; "
        "no single atom can go",
    ),
    (
        words("multilabel"),
        *(False, True, "0.91 or more each"),
        "sufficient at 0.8; no single atom can go",
    ),
    (
        words("regression"),
        *(False, True, "0.912"),
        "sufficient: within the tolerance; no single atom can go",
    ),
]


@pytest.mark.parametrize(("said", "weak", "minimal", "alone", "check"), CHECKS)
def test_a_card_tells_no_more_of_a_part_than_was_checked(
    said: PartWords, weak: bool, minimal: bool, alone: str, check: str
) -> None:
    record = {"part_probability": 0.912, "weak": weak, "minimal": minimal, "questions": 17}
    assert said.facts(record) == {
        "part alone": alone,
        "check": check,
        "questions": "17 parts were tried",
    }
    assert said.facts({"prediction": 1}) == {}


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
  const told = [...card.querySelectorAll("dt, dd")].map((each) => each.textContent);
  return [told, pieces, { ...card.dataset }];
})"""
"""Words and lines of every card."""
TABLES = """() => [...document.querySelectorAll("dialog tbody tr")].map(
  (row) => [...row.cells].map((cell) => cell.textContent))"""
"""Rows of the details that are open."""
PREDICTED = """() => [...document.querySelectorAll(".card")].map((card) => [
  ...card.querySelectorAll("dt")].filter((name) =>
  ["predicted", "true", "set"].includes(name.textContent)).map(
  (name) => name.nextElementSibling.textContent))"""
"""Class and set of every card."""


@CHROMIUM
@pytest.mark.parametrize("kind", ["graphs", "edges", "molecules"])
def test_the_page_at_another_sufficiency_is_that_of_a_report_at_it(
    open_file: Callable[..., Any], reports: Callable[[str, str], Path], kind: str
) -> None:
    moved = open_file(reports(kind, "0.95"), viewport=DESKTOP)
    page = moved.page
    before, predicted = page.evaluate(SHOWN), page.evaluate(PREDICTED)
    page.locator("#sufficiency").focus()
    page.keyboard.press("Home")
    other = open_file(reports(kind, "0.5"), viewport=DESKTOP)
    assert page.evaluate(SHOWN) == other.page.evaluate(SHOWN) != before
    assert page.evaluate(PREDICTED) == predicted, "class and set stay as they are"
    for tab in (moved, other):
        tab.page.locator(".card button").first.click()
    assert page.evaluate(TABLES) == other.page.evaluate(TABLES)
    page.keyboard.press("Escape")
    page.locator(".turn button").click()
    assert page.evaluate(SHOWN) == before
    assert moved.said == other.said == []
    assert len(moved.asked) == 1


@CHROMIUM
def test_the_line_and_the_details_follow_the_slider(
    open_file: Callable[..., Any], reports: Callable[[str, str], Path]
) -> None:
    tab = open_file(reports("graphs", "0.8"), viewport=DESKTOP)
    page = tab.page
    page.locator("#sufficiency").focus()
    page.keyboard.press("ArrowRight")
    row = page.locator(".turn + details tbody tr").nth(4).locator("td").all_text_contents()
    told = f"At 0.9: {row[0]} of nodes kept, {row[1]} of graphs weak"
    assert page.locator(".turn output").inner_text() == told
    assert page.locator("#sufficiency").get_attribute("aria-valuetext") == told
    card = page.locator(".card").first
    card.locator("button").click()
    kept = page.locator("dialog tbody tr.is-kept").count()
    nodes = page.locator("dialog tbody tr").count()
    assert "part alone" in page.locator("dialog dl").inner_text()
    page.keyboard.press("Escape")
    share = f"{100 * kept / nodes:.0f} % of nodes"
    assert share in card.inner_text()
    assert share in card.locator("title").text_content()
    assert tab.said == []


@CHROMIUM
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_everyone_can_read_the_slider_at_any_width(
    open_file: Callable[..., Any],
    reports: Callable[[str, str], Path],
    viewport: dict[str, int],
    scheme: str,
    hard_to_read: Callable[[Any], list[str]],
) -> None:
    tab = open_file(reports("molecules", "0.8"), viewport=viewport, color_scheme=scheme)
    tab.page.locator("#sufficiency").focus()
    tab.page.keyboard.press("Home")
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert tab.page.evaluate(wide) <= 0
    assert not hard_to_read(tab.page)
    assert tab.said == []
