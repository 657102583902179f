"""`cores explain`: what is written, which graphs are shown, and that data stay text."""

import gzip
import json
import re
from base64 import b64decode
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch

Ask = Callable[..., tuple[int, str, str]]
Table = Callable[..., str]
CPU = ("--device", "cpu")
TINY = ("--epochs", "2", "--network.hidden_dim", "8", "--network.num_layers", "1", *CPU)
VOID = ("meta", "input", "br")


class Page(HTMLParser):
    """A page as a browser reads it; refuses one whose tags do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cards: list[dict[str, str]] = []
        self.addresses: list[str] = []
        self.scripts: list[str] = []
        self.headings: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.addresses += [found[name] for name in ("src", "href", "action") if name in found]
        if "card" in found.get("class", "").split():
            self.cards.append(found)
        if tag == "script":
            self.scripts.append("")
        if tag == "h3":
            self.headings.append("")
        assert not [name for name in found if name.startswith("on")], "no code in attributes"
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        if self.open and self.open[-1] == "h3":
            self.headings[-1] += data

    @property
    def details(self) -> list[dict[str, Any]]:
        return json.loads(gzip.decompress(b64decode(self.scripts[0])))


@pytest.fixture
def new_file(tmp_path: Path, molecule_table: Table) -> Path:
    """Twelve molecules with labels, and a row that is none."""
    (tmp_path / "new.csv").write_text(molecule_table(12) + "bad,C(,ring\n")
    return tmp_path / "new.csv"


def test_a_page_shows_every_graph_and_asks_for_nothing(
    ask: Ask, molecule_run: Path, new_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "sub" / "report.html"
    status, printed, err = ask("explain", molecule_run, new_file, "--out", out, *CPU)
    assert (status, printed) == (0, f"12 of 12 graphs explained: {out}\n")
    assert err.startswith("note: 1 rows could not be used: line 14 (bad): invalid SMILES 'C('")
    text = out.read_text()
    page = Page(text)
    assert page.headings[-12:] == [f"m{number}" for number in range(12)]
    assert [card["data-id"] for card in page.cards] == [f"m{number}" for number in range(12)]
    assert all(address.startswith("#") for address in page.addresses)
    assert "http://" not in text
    assert "https://" not in text
    assert "connect-src" not in text
    assert "default-src 'none'" in text
    assert len(page.details) == 12
    for word in ("What is kept of the molecules", "All metrics", "Share of the atoms that is kept"):
        assert word in text
    assert text.count('class="drawing"') >= 12


def test_records_are_those_of_predict_with_nodes_and_edges(
    ask: Ask, molecule_run: Path, new_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "explanations.jsonl"
    assert ask("explain", molecule_run, new_file, "--out", out, *CPU)[0] == 0
    explained = [json.loads(line) for line in out.read_text().splitlines()]
    _, printed, _ = ask("predict", molecule_run, new_file, *CPU)
    predicted = [json.loads(line) for line in printed.splitlines()][:12]
    for record, expected in zip(explained, predicted, strict=True):
        assert {name: record[name] for name in expected} == expected
        kept = [node["node"] for node in record["nodes"] if node["kept"]]
        assert sorted(kept) == sorted(expected["kept_nodes"])
        ends = [edge["ends"] for edge in record["edges"] if edge["kept"]]
        assert sorted(ends) == sorted(expected["kept_edges"])
        assert all(0 <= node["keep_probability"] <= 1 for node in record["nodes"])
    assert {record["label"] for record in explained} == {"ring", "chain"}


def test_labels_that_the_model_does_not_know_are_told_and_count_as_none(
    ask: Ask, molecule_run: Path, new_file: Path, tmp_path: Path
) -> None:
    new_file.write_text(new_file.read_text().replace(",chain", ",0").replace(",ring", ",1"))
    told = "0 (the model knows chain, ring)"
    out = tmp_path / "report.html"
    status, printed, err = ask("explain", molecule_run, new_file, "--out", out, "--json", *CPU)
    assert (status, json.loads(printed)["wrong"]) == (0, 0)
    assert f"note: labels such as {told} count as none" in err
    assert f"Labels such as {told} count as none." in out.read_text()
    asked = ("--errors", "--out", tmp_path / "wrong.html")
    status, _, err = ask("explain", molecule_run, new_file, *asked, *CPU)
    assert status == 2
    assert f"--errors needs true labels, and the input has {told}" in err
    asked = ("--graphs", "12", "--out", tmp_path / "none.html")  # the row that is no molecule
    status, _, err = ask("explain", molecule_run, new_file, *asked, *CPU)
    assert status == 2
    assert "meets all conditions (1 rows could not be used: line 14 (bad): invalid SMILES" in err
    new_file.write_text(new_file.read_text().replace("bad,C(,ring\n", "").replace("bad,C(,1\n", ""))
    status, _, err = ask("explain", molecule_run, new_file, *asked, *CPU)
    assert status == 2
    assert "none of the 12 graphs meets all conditions; leave out --graphs" in err


def test_a_folder_gets_a_picture_of_every_graph(
    ask: Ask, molecule_run: Path, tmp_path: Path
) -> None:
    (tmp_path / "new.csv").write_text("id,smiles\n../../up,CCO\n0,c1ccccc1O\n")
    out = tmp_path / "pictures"
    asked = ask("explain", molecule_run, tmp_path / "new.csv", "--out", out, "--json", *CPU)
    assert json.loads(asked[1])["shown"] == 2
    assert sorted(path.name for path in out.iterdir()) == ["000000-up.svg", "000001-0.svg"]
    for path in out.iterdir():
        assert ElementTree.parse(path).getroot().tag.endswith("svg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.csv", "pictures"]


def test_conditions_choose_graphs_and_add_up(
    ask: Ask, molecule_run: Path, new_file: Path, tmp_path: Path
) -> None:
    _, printed, _ = ask("predict", molecule_run, new_file, *CPU, "--alpha", "0.3")
    records = [json.loads(line) for line in printed.splitlines()][:12]
    labels = [line.rsplit(",", 1)[1] for line in new_file.read_text().splitlines()[1:13]]
    rows = list(enumerate(zip(records, labels, strict=True)))
    name = records[0]["prediction"]
    conditions = {
        ("--graphs", "0,3-5"): {0, 3, 4, 5},
        ("--class", name): {at for at, (row, _) in rows if row["prediction"] == name},
        ("--errors",): {at for at, (row, label) in rows if row["prediction"] != label},
        ("--uncertain",): {at for at, (row, _) in rows if len(row["prediction_set"]) != 1},
        ("--class", name, "--graphs", "0-2"): {
            at for at, (row, _) in rows[:3] if row["prediction"] == name
        },
    }
    for number, (options, expected) in enumerate(conditions.items()):
        out = tmp_path / f"{number}.jsonl"
        common = ("explain", molecule_run, new_file, "--out", out, "--alpha", "0.3", *CPU)
        status, _, err = ask(*common, *options)
        if expected:
            found = [json.loads(line)["position"] for line in out.read_text().splitlines()]
            assert set(found) == expected
        else:
            assert (status, out.exists()) == (2, False)
            assert "none of the 12 graphs meets all conditions" in err
    out = tmp_path / "few.jsonl"
    asked = ask("explain", molecule_run, new_file, "--out", out, "--count", "2", "--json", *CPU)
    summary = json.loads(asked[1])
    assert (summary["graphs"], summary["chosen"], summary["shown"]) == (12, 12, 2)
    assert summary["right"] + summary["wrong"] == 12


def test_the_sparsest_and_the_densest_of_those_that_meet_the_conditions(
    ask: Ask, molecule_run: Path, new_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tiny model keeps everything, so the shares are made up; two of them are equal."""
    from cores.explain.survey import Survey

    shares = [0.5, 0.2, 0.9, 0.2, 0.7, 0.1, 0.6, 0.3, 1.0, 0.4, 0.8, 0.35]
    monkeypatch.setattr(Survey, "_share", lambda _, graph: shares[graph.position])

    def found(*options: str) -> list[int]:
        out = tmp_path / f"{'_'.join(options)}.jsonl"
        status, _, err = ask("explain", molecule_run, new_file, "--out", out, *options, *CPU)
        assert status == 0, err
        return [json.loads(line)["position"] for line in out.read_text().splitlines()]

    assert found("--top", "4") == [5, 1, 3, 7]
    assert found("--largest", "3") == [8, 2, 10]
    assert found("--top", "200") == sorted(range(12), key=lambda at: shares[at])
    assert found("--top", "4", "--count", "2") == [5, 1]
    assert found("--top", "2", "--count", "4") == [5, 1]
    assert found("--graphs", "0-4", "--top", "2") == [1, 3]
    assert found("--graphs", "0-4", "--largest", "9") == [2, 4, 0, 1, 3]
    wrong = found("--errors")
    assert found("--errors", "--top", "2") == sorted(wrong, key=lambda at: shares[at])[:2]
    first = json.loads((tmp_path / "--top_4.jsonl").read_text().splitlines()[0])
    name = first["prediction"]
    of_class = found("--class", name, "--alpha", "0.3")
    assert found("--class", name, "--top", "3") == sorted(of_class, key=lambda at: shares[at])[:3]
    unsure = found("--uncertain", "--alpha", "0.01")
    ranked = sorted(unsure, key=lambda at: shares[at])
    assert found("--uncertain", "--alpha", "0.01", "--top", "1") == ranked[:1]


def test_the_sparsest_are_told_by_the_share_of_what_is_removed() -> None:
    from cores.explain.explained import ExplainedGraph
    from cores.explain.survey import Survey

    record = {"node_ratio": 0.25, "edge_ratio": 0.5}
    graph = ExplainedGraph(0, record, None, [], [], [], [], [], None, None, None, None)
    assert [Survey(edges, {})._share(graph) for edges in (False, True)] == [0.25, 0.5]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "TMP/o.txt"], "--out must end in .html or .jsonl, or be a folder, got o.txt"),
        (["--out", "NEW"], "--out must end in"),
        (["--out", "TMP/there.html"], "there.html exists already; delete it"),
        (["--graphs", "one"], "--graphs takes numbers from 0"),
        (["--graphs", "99"], "none of the 2 graphs meets all conditions"),
        (["--class", "rings"], "the model knows no class 'rings'; did you mean ring?"),
        (["--count", "0"], "--count must be positive, got 0"),
        (["--top", "0"], "--top must be positive, got 0"),
        (["--largest", "-2"], "--largest must be positive, got -2"),
        (["--top", "2", "--largest", "2"], "--top and --largest are opposites; choose one"),
        (["--errors"], "--errors needs true labels, and the input has none (--label-column)"),
        (["--alpha", "2"], "--alpha must lie in (0, 1), got 2.0"),
        (["--smiles-column", "smile"], "no column 'smile'"),
        (["--on-error", "fail"], "line 4 (c): invalid SMILES 'C('; mend it, or set --on-error"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_told_in_a_line_and_nothing_is_written(
    ask: Ask, molecule_run: Path, tmp_path: Path, options: list[str], message: str
) -> None:
    (tmp_path / "new.csv").write_text("id,smiles\na,CCO\nb,c1ccccc1\nc,C(\n")
    (tmp_path / "there.html").write_text("mine")
    given = [
        text.replace("NEW", str(tmp_path / "new.csv")).replace("TMP", str(tmp_path))
        for text in options
    ]
    out = () if "--out" in options else ("--out", tmp_path / "o.html")
    status, printed, err = ask("explain", molecule_run, tmp_path / "new.csv", *given, *out, *CPU)
    assert (status, printed) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.csv", "there.html"]
    assert (tmp_path / "there.html").read_text() == "mine"


def test_without_an_input_a_model_that_knows_no_data_says_so(ask: Ask, molecule_run: Path) -> None:
    status, _, err = ask("explain", molecule_run, *CPU)
    assert status == 2
    assert "does not say where its data are" in err
    status, _, err = ask("explain", molecule_run, "--id-column", "id", *CPU)
    assert status == 2
    assert "naming others needs an INPUT" in err


@pytest.mark.parametrize("kind", ["csv", "sdf"])
def test_without_an_input_the_test_graphs_are_shown(
    ask: Ask, molecule_table: Table, tmp_path: Path, kind: str
) -> None:
    """Also where the file counts atoms otherwise than a SMILES made of it would."""
    data = tmp_path / f"data.{kind}"
    table = molecule_table(80)
    data.write_text(table if kind == "csv" else sdf(table))
    run = tmp_path / "run"
    assert ask("train", "--dataset", data, "--model", "gnn", *TINY, "--out", run)[0] == 0
    for _ in range(2):  # a report of ours is replaced
        status, printed, _ = ask("explain", run, "--json", *CPU)
        summary = json.loads(printed)
        assert (status, summary["out"]) == (0, str(run / "report.html"))
    metrics = json.loads((run / "metrics.json").read_text())
    assert summary["graphs"] == metrics["test_graphs"]
    assert summary["right"] == round(metrics["accuracy"] * metrics["test_graphs"])
    text = (run / "report.html").read_text()
    Page(text)
    assert "Accuracy, selection part" in text
    assert "Loss of the classifier over 2 epochs" in text


def sdf(table: str) -> str:
    from rdkit import Chem

    entries = []
    for line in table.splitlines()[1:]:
        name, smiles, label = line.split(",")
        molecule = Chem.MolFromSmiles(smiles)
        order = list(reversed(range(molecule.GetNumAtoms())))
        block = Chem.MolToMolBlock(Chem.RenumberAtoms(molecule, order))
        entries.append(f"{name}{block}\n> <label>\n{label}\n\n$$$$\n")
    return "".join(entries)


def test_a_named_dataset_is_shown_with_its_true_reason(ask: Ask, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert ask("train", "--dataset", "motifs", "--model", "gnn", *TINY, "--out", run)[0] == 0
    assert ask("explain", run, "--count", "3", *CPU)[0] == 0
    text = (run / "report.html").read_text()
    assert len(Page(text).cards) == 3
    assert "truly decides the class" in text
    assert text.count('class="tr"') == 4  # with that of the legend


HOSTILE = ("</script><script>alert(1)</script>", "'\"><img src=x onerror=alert(1)>", "\x1b[31mred")


def test_names_and_labels_stay_text(
    ask: Ask, train_tiny: Callable[..., Path], molecule_table: Table, tmp_path: Path
) -> None:
    label = "</script><script>alert(2)</script> $分子"
    train = tmp_path / "train.csv"
    train.write_text(molecule_table(160).replace(",ring", f",{label}"))
    run = train_tiny(train)
    rows = [f'"{name.replace(chr(34), 2 * chr(34))}",c1ccccc1,{label}' for name in HOSTILE]
    (tmp_path / "new.csv").write_text("\n".join(["id,smiles,label", *rows]) + "\n")
    out = tmp_path / "report.html"
    assert ask("explain", run, tmp_path / "new.csv", "--out", out, *CPU)[0] == 0
    page = Page(out.read_text())
    assert len(page.scripts) == 3
    assert len(page.details) == 3
    assert "alert" not in page.scripts[-1]
    shown = [*HOSTILE[:2], r"\x1b[31mred"]
    assert [card["data-id"] for card in page.cards] == shown
    assert "\x1b" not in out.read_text()
    pictures = tmp_path / "pictures"
    assert ask("explain", run, tmp_path / "new.csv", "--out", pictures, *CPU)[0] == 0
    titles = [ElementTree.parse(path).getroot()[0].text for path in sorted(pictures.iterdir())]
    assert [(title or "").partition(": ")[0] for title in titles] == shown


def test_the_page_of_a_graph_model_draws_dots(
    ask: Ask, train_tiny: Callable[..., Path], tmp_path: Path
) -> None:
    ring = [[at, (at + 1) % 5] for at in range(5)]
    rows = [
        {"id": f"g{at}", "nodes": ["a", "b"] * 2 + ["a"], "edges": ring[: 5 - at % 2],
         "label": at % 2} for at in range(60)
    ]  # fmt: skip
    path = tmp_path / "graphs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = train_tiny(path, "cores-edge")
    big = {"id": "big", "nodes": ["a"] * 400, "edges": [[at, at + 1] for at in range(399)]}
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows[:4], big]))
    out = tmp_path / "report.html"
    assert ask("explain", run, path, "--out", out, *CPU)[0] == 0
    text = out.read_text()
    page = Page(text)
    assert len(page.cards) == 5
    assert re.search(r"\d+ of 400 nodes are not shown", text)
    assert "removes edges alone" in text
    assert [node["is"] for node in page.details[0]["nodes"]] == list("ababa")


def test_a_test_graph_without_a_prediction_is_left_out_and_no_other(
    ask: Ask, molecule_table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its row in the file has another number than it has among the test graphs."""
    from cores.runs import opened

    data, run = tmp_path / "data.csv", tmp_path / "run"
    data.write_text(molecule_table(80))
    assert ask("train", "--dataset", data, "--model", "gnn", *TINY, "--out", run)[0] == 0
    _, printed, _ = ask("explain", run, "--out", tmp_path / "all.jsonl", "--json", *CPU)
    assert json.loads(printed)["errors"] == 0
    everything = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]

    def last_missing(probs: torch.Tensor) -> torch.Tensor:
        return torch.arange(len(probs)) == len(probs) - 1

    monkeypatch.setattr(opened, "unpredicted", last_missing)
    _, printed, _ = ask("explain", run, "--out", tmp_path / "some.jsonl", "--json", *CPU)
    assert json.loads(printed)["errors"] == 1
    some = [json.loads(line) for line in (tmp_path / "some.jsonl").read_text().splitlines()]
    assert some == everything[:-1]
